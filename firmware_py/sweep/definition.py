"""The TOML file of a sweep: its keys, what each may hold, and the parser that checks all of it.

    invalid = "skip"                 # leave out what `clew compare` refuses; or "error", the default

    [traces]                         # each name is one value of the axis; patterns are relative to this file
    crosswords = ["traces/infoss_*.json", "traces/more.json"]
    game24 = "traces/game24.json"

    [axes]                           # one value or a list of them; what is left out has the default
    memory = ["hbm2_2000", "MINE.toml"]   # preset files are relative to this file too
    far = ["v100_hbm2", "seed_conventional"]
    far_help = ["", "cache=v100_l2", "stack,stream"]
    concurrent = [1, 16, 64]

Axes and their defaults are the fields of `DesignSettings` and `ReplaySettings` (firmware_py/settings.py),
called as the options of `clew compare`. The sweep is the cross product of all axes and all sets of traces.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from hdl.memory.timing import preset

from ..errors import InputError
from ..paths import path_presets
from ..place import AT_THE_MEMORY
from ..settings import DesignSettings, ReplaySettings

__all__ = ["AXES", "Invalid", "SweepDefinition", "Value", "read_definition"]

Value: TypeAlias = str | int | bool
Invalid = Literal["error", "skip"]

_KEYS = ("invalid", "traces", "axes")
#: Axes by name, with the type of their values. Texts are the type of what may also be None.
AXES: dict[str, type] = {
    field.name: next(kind for kind in (bool, int, str) if str(field.type).split(" |")[0] == kind.__name__)
    for settings in (DesignSettings, ReplaySettings)
    for field in dataclasses.fields(settings)
}
_WORDS = {str: "a text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, kw_only=True)
class SweepDefinition:
    """What a sweep file says: the values of every axis that it names, and the sets of traces."""

    file: Path
    text: str
    traces: Mapping[str, tuple[Path, ...]]
    axes: Mapping[str, tuple[Value, ...]]
    invalid: Invalid
    """What becomes of combinations that `clew compare` refuses."""


def read_definition(file: Path) -> SweepDefinition:
    """The sweep of a file. Raises InputError naming file and key, or OSError."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected text in UTF-8") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: expected TOML: {error}") from None
    _require_known(content, _KEYS, f"{file}: ")
    invalid = content.get("invalid", "error")
    if invalid not in get_args(Invalid):
        raise InputError(f"{file}: invalid is {invalid!r}: expected one of {', '.join(get_args(Invalid))}")
    for key in ("traces", "axes"):
        if not isinstance(content.get(key, {}), dict):
            raise InputError(f"{file}: {key} is {content[key]!r}: expected a table [{key}]")
    if not content.get("traces"):
        raise InputError(f"{file}: traces: expected a table [traces] with at least one set of trace files")
    axes = content.get("axes", {})
    _require_known(axes, AXES, f"{file}: axes.")
    return SweepDefinition(
        file=file,
        text=text,
        traces={name: _trace_files(file, name, value) for name, value in content["traces"].items()},
        axes={name: _values(file, name, value) for name, value in axes.items()},
        invalid=invalid,
    )


def _require_known(table: Mapping[str, Any], known: Mapping[str, Any] | tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{where}{key}: unknown key: expected one of {', '.join(known)}")


def _listed(file: Path, key: str, value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InputError(f"{file}: {key} is an empty list: expected at least one value")
    return values


def _trace_files(file: Path, name: str, value: Any) -> tuple[Path, ...]:
    """The files of one set, in the order of its patterns and then of their names."""
    key = f"traces.{name}"
    found: list[Path] = []
    for pattern in _listed(file, key, value):
        if not isinstance(pattern, str) or not pattern:
            raise InputError(f"{file}: {key} holds {pattern!r}: expected names or patterns of trace files")
        path = Path(pattern).expanduser()
        if re.search(r"[*?\[]", pattern):
            anchor = Path(path.anchor) if path.is_absolute() else file.parent
            matches = sorted(anchor.glob(str(path.relative_to(path.anchor))))
            if not matches:
                raise InputError(f"{file}: {key}: no file matches {pattern!r}: expected at least one")
        else:
            matches = [file.parent / path]
        for match in matches:
            if match in found:
                raise InputError(f"{file}: {key} names {match} twice: expected it once")
            found.append(match)
    return tuple(found)


def _values(file: Path, name: str, value: Any) -> tuple[Value, ...]:
    key, kind = f"axes.{name}", AXES[name]
    values: list[Value] = []
    for item in _listed(file, key, value):
        if type(item) is not kind:
            raise InputError(f"{file}: {key} holds {item!r}: expected {_WORDS[kind]}, or a list of them")
        if name == "memory" and item.endswith(".toml"):
            item = str(file.parent / Path(item).expanduser())
        if item in values:
            raise InputError(f"{file}: {key} holds {item!r} twice: expected it once")
        try:
            _ALONE.get(name, _alone)(name, item)
        except ValueError as error:
            raise InputError(f"{file}: {key}: {error}") from None
        values.append(item)
    return tuple(values)


def _alone(name: str, value: Any) -> None:
    """Check a value with the defaults of all other settings. Raises ValueError."""
    if name in {field.name for field in dataclasses.fields(DesignSettings)}:
        DesignSettings(**{name: value}).config()
    else:
        ReplaySettings(**{name: value}).require_usable(DesignSettings().config())


def _known_path(name: str, value: Any) -> None:
    """Check that a path preset exists and can be in that place: whether it fits the memory is seen later."""
    usable = [path.name for path in path_presets().values() if path.port or path.place == name]
    if name == "near":
        usable = [AT_THE_MEMORY, *(path.name for path in path_presets().values() if path.port)]
    if value not in usable:
        raise InputError(f"unknown {name} preset {value!r}: expected one of {', '.join(usable)}")


#: How a value is checked that only other settings make good or bad.
_ALONE: dict[str, Callable[[str, Any], None]] = {
    "memory": lambda name, value: preset(value) and None,
    "address_map": lambda name, value: None,
    "far": _known_path,
    "near": _known_path,
}
