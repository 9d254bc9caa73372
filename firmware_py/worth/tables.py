"""The inputs of `clew worth`: models and their KV bytes a token, and paths that KV is restored over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..csv_table import data_text, table_rows
from ..errors import InputError

__all__ = [
    "Model",
    "RestorePath",
    "model_named",
    "models",
    "parse_models",
    "parse_restore_paths",
    "restore_paths",
]

_MODELS = "models.csv"
_MODEL_COLUMNS = ("name", "layers", "kv_heads", "head_dim", "tensors", "element_bytes", "source")
_PATHS = "restore_paths.csv"
_PATH_COLUMNS = ("name", "gb_per_s", "latency_ns", "what", "source")


@dataclass(frozen=True, kw_only=True)
class Model:
    """The shape of a model's key-value cache."""

    name: str
    layers: int
    kv_heads: int
    head_dim: int
    tensors: int
    """Kept for each head and layer: 2 are keys and values, 1 is a latent that stands for both."""
    element_bytes: int
    source: str

    @property
    def token_bytes(self) -> int:
        """KV bytes of one token."""
        return self.layers * self.kv_heads * self.head_dim * self.tensors * self.element_bytes


@dataclass(frozen=True, kw_only=True)
class RestorePath:
    """A path that KV may be restored over: its bandwidth one way, and the time to the first byte."""

    name: str
    gb_per_s: float
    latency_ns: float
    what: str
    source: str

    def seconds(self, size: float) -> float:
        """The time of one transfer of `size` bytes; nothing takes none."""
        return self.latency_ns * 1e-9 + size / (self.gb_per_s * 1e9) if size else 0.0


def parse_models(text: str, *, file: str) -> dict[str, Model]:
    """The models in `text`, a CSV table with the header of `data/models.csv`, by name. Raises InputError."""
    return {
        row.cells["name"]: Model(
            name=row.cells["name"],
            **{field: row.whole(field) for field in _MODEL_COLUMNS[1:-1]},
            source=row.cells["source"],
        )
        for row in table_rows(text, file=file, columns=_MODEL_COLUMNS)
    }


def parse_restore_paths(text: str, *, file: str) -> dict[str, RestorePath]:
    """The paths in `text`, a CSV table with the header of `data/restore_paths.csv`, by name. InputError."""
    return {
        row.cells["name"]: RestorePath(
            name=row.cells["name"],
            gb_per_s=row.number("gb_per_s"),
            latency_ns=row.number("latency_ns"),
            what=row.cells["what"],
            source=row.cells["source"],
        )
        for row in table_rows(text, file=file, columns=_PATH_COLUMNS)
    }


@cache
def models() -> dict[str, Model]:
    """The models of the project's own table by name."""
    return parse_models(data_text(_MODELS), file=_MODELS)


@cache
def restore_paths() -> dict[str, RestorePath]:
    """The paths of the project's own table by name."""
    return parse_restore_paths(data_text(_PATHS), file=_PATHS)


def model_named(name: str) -> Model:
    """The model called `name`. Raises InputError that lists the known ones."""
    if name not in models():
        raise InputError(f"unknown model {name!r}: expected one of {', '.join(models())}")
    return models()[name]
