"""Off-chip path presets: published dependent-read times with citations, and the link cycles they mean.

The presets are the rows of `data/off_chip_paths.csv`. A far preset sets the link's latency so that one
isolated iteration of the far loop, in the preset's row state, takes the published time: what the loop takes
with a link of latency 0 (`loop_floor`) is subtracted and the rest is the link's.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, cast, get_args

from hdl.config import DesignConfig
from hdl.fabric.cache import Cache
from hdl.fabric.link import Link

from .errors import InputError
from .loop_parts import RowState, memory_side_cycles

__all__ = [
    "FarPath",
    "OffChipPath",
    "crossing_cycles",
    "far_path",
    "link_cycles",
    "loop_floor",
    "parse_paths",
    "path_presets",
    "port_path",
]

Place = Literal["near", "far"]

_COLUMNS = (
    "name",
    "place",
    "memory",
    "row_state",
    "published_ns",
    "low_ns",
    "high_ns",
    "what",
    "source",
)
_FILE = "off_chip_paths.csv"


@dataclass(frozen=True, kw_only=True)
class OffChipPath:
    """One published time of a dependent read, in ns, with what it measured and where it was published."""

    name: str
    place: Place
    """Where the reader was: across a path (far) or beside the memory (near)."""
    memory: str
    """Memory preset it was measured on; `any`: bound to none."""
    row_state: RowState
    """State of the row that an isolated read of the measurement found."""
    published_ns: float
    low_ns: float
    high_ns: float
    what: str
    source: str

    @property
    def port(self) -> bool:
        """It is a host controller's port: a reader beside the memory, on a memory that is named."""
        return self.place == "near" and self.memory != "any"


@dataclass(frozen=True, kw_only=True)
class FarPath:
    """A far preset turned into link cycles for one design."""

    path: OffChipPath
    floor_cycles: int
    """The isolated far loop with a link of latency 0, in the preset's row state."""
    latency_up: int
    latency_down: int
    clock_ns: float

    @property
    def isolated_cycles(self) -> int:
        """The isolated far loop with this link, in the preset's row state."""
        return self.floor_cycles + self.latency_up + self.latency_down


def parse_paths(text: str, *, file: str) -> dict[str, OffChipPath]:
    """The presets in `text`, a CSV table with the header of `data/off_chip_paths.csv`, by name.

    Raises InputError naming file, line and field for a wrong header, a wrong number of fields, an empty
    field, a name that repeats, a place or row state that is not known, a time that is not a positive
    number, or times that are not low <= published <= high.
    """
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if tuple(header) != _COLUMNS:
        raise InputError(f"{file}: line 1: header is {','.join(header)!r}: expected {','.join(_COLUMNS)}")
    presets: dict[str, OffChipPath] = {}
    for row in rows:
        where = f"{file}: line {rows.line_num}"
        if len(row) != len(_COLUMNS):
            raise InputError(f"{where}: {len(row)} fields: expected {len(_COLUMNS)}")
        cells: dict[str, str] = dict(zip(_COLUMNS, row, strict=True))
        for field, value in cells.items():
            if not value.strip():
                raise InputError(f"{where}: field {field} is empty: expected a value")
        if cells["name"] in presets:
            raise InputError(f"{where}: field name is {cells['name']!r}: expected a name not used before")
        for field, known in (("place", get_args(Place)), ("row_state", get_args(RowState))):
            if cells[field] not in known:
                raise InputError(
                    f"{where}: field {field} is {cells[field]!r}: expected one of {', '.join(known)}"
                )
        times = {
            field: _time(cells[field], where=where, field=field)
            for field in ("published_ns", "low_ns", "high_ns")
        }
        if not times["low_ns"] <= times["published_ns"] <= times["high_ns"]:
            raise InputError(
                f"{where}: field published_ns is {cells['published_ns']!r}: "
                f"expected {cells['low_ns']} (low_ns) to {cells['high_ns']} (high_ns)"
            )
        presets[cells["name"]] = OffChipPath(
            name=cells["name"],
            place=cast(Place, cells["place"]),
            memory=cells["memory"],
            row_state=cast(RowState, cells["row_state"]),
            what=cells["what"],
            source=cells["source"],
            **times,
        )
    return presets


def _time(text: str, *, where: str, field: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InputError(f"{where}: field {field} is {text!r}: expected a positive number of ns")
    return value


@cache
def path_presets() -> dict[str, OffChipPath]:
    """Every preset of the project's own data file by name."""
    text = resources.files("firmware_py").joinpath("data", _FILE).read_text(encoding="utf-8")
    return parse_paths(text, file=_FILE)


def crossing_cycles(config: DesignConfig) -> int:
    """Cycles of a crossing with a link of latency 0, one way: the link's own and the boundary's behind it."""
    return Link.minimum_latency + config.boundary_registers


def loop_floor(config: DesignConfig, row_state: RowState) -> int:
    """Cycles of the isolated far loop with a link of latency 0: memory side, link and walker.

    With a `clock_ratio` above 1 of one whose requests arrive as a slow cycle ends: then it is shortest. With
    a cache its lookup too: the published time of a read from memory is that of one that missed.
    """
    cache = Cache.miss_cycles if config.cache.built else 0
    crossings = 2 * crossing_cycles(config)
    return memory_side_cycles(config, row_state) + config.walker.execute_stages + crossings + cache


def link_cycles(path: OffChipPath, config: DesignConfig) -> FarPath:
    """The link of `path` for the design `config`: half of the latency each way, the odd cycle down.

    A `clock_ratio` above 1 makes the isolated loop a multiple of it: the one nearest to the published time.
    Raises InputError when the published time is shorter than the loop without a link.
    """
    clock = config.memory.timing.clock_ns
    floor = loop_floor(config, path.row_state)
    slow = config.clock_ratio * clock
    total = round(path.published_ns / slow) * config.clock_ratio - floor
    if total < 0:
        raise InputError(
            f"far preset {path.name!r} takes {path.published_ns} ns: expected at least {floor * clock} ns, "
            f"the loop across a link of latency 0 on {config.memory.preset}"
        )
    return FarPath(
        path=path, floor_cycles=floor, latency_up=total // 2, latency_down=total - total // 2, clock_ns=clock
    )


def far_path(name: str, config: DesignConfig) -> FarPath:
    """The far preset called `name` as link cycles for the design `config`; a host controller's port too.

    Raises InputError (listing those that fit) for an unknown name, the claim of the near place, or a preset
    that was measured on another memory than the design's.
    """
    presets = path_presets().values()
    return _fitting(
        name, config, "far", [*(p for p in presets if p.place == "far"), *(p for p in presets if p.port)]
    )


def port_path(name: str, config: DesignConfig) -> FarPath:
    """The host controller's port called `name`, as the link that a walker behind it reads across.

    Raises InputError (listing those that fit) for any other name, or another memory.
    """
    return _fitting(name, config, "near", [p for p in path_presets().values() if p.port])


def _fitting(name: str, config: DesignConfig, role: str, presets: Sequence[OffChipPath]) -> FarPath:
    memory = config.memory.timing.name
    usable = ", ".join(p.name for p in presets if p.memory in ("any", memory)) or "none"
    path = path_presets().get(name)
    if path is None:
        raise InputError(f"unknown {role} preset {name!r}: expected one of {usable}")
    if path not in presets:
        where = "beside the memory" if path.place == "near" else "across a path"
        raise InputError(f"{role} preset {name!r} was measured {where}: expected one of {usable}")
    if path.memory not in ("any", memory):
        raise InputError(
            f"{role} preset {name!r} was measured on {path.memory}: expected one that fits {memory}: {usable}"
        )
    return link_cycles(path, config)
