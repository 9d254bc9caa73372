"""The schema `clew.compare/1`: exact keys, exact types, finite numbers, counts that agree."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["require_schema"]

_STATISTICS = dict.fromkeys(("min", "mean", "p50", "p99", "p999", "max"), float)
_SERIES = {"count": int} | _STATISTICS
_PLACE = {
    "walk_ns": _SERIES,
    "reads_per_walk": _SERIES,
    "loop_cycles": _SERIES,
    "loop_ns": _SERIES,
    "bound_ns": {"mean": float},
    "ratio_to_bound": float,
    "row": {"hit": float, "closed": float, "conflict": float},
}
_TALLY = {"checked": int, "wrong": int}
_TRACE = {
    "file": str,
    "format": str,
    "problems": int,
    "nodes": int,
    "walks": int,
    "verdicts_checked": int,
    "verdicts_wrong": int,
    "verdicts_unchecked": int,
    "by_source": {None: _TALLY},
}
_DOCUMENT = {
    "schema": str,
    "memory": str,
    "clock_ns": float,
    "concurrent": int,
    "traces": [_TRACE],
    "paths": {"near": _PLACE, "far": _PLACE | {"preset": str, "source": str}},
    "speedup": {"walk_mean": float, "walk_p50": float, "loop_mean": float},
    "violations": int,
    "details": dict,
}


def _require(value: Any, shape: Any, name: str, *, empty: bool) -> None:
    if isinstance(shape, list):
        assert isinstance(value, list), name
        for position, item in enumerate(value):
            _require(item, shape[0], f"{name}[{position}]", empty=empty)
    elif isinstance(shape, dict):
        assert isinstance(value, dict), name
        if None in shape:  # any key
            shape = dict.fromkeys(value, shape[None])
        assert list(value) == list(shape), f"{name}: keys"
        for key, inner in shape.items():
            _require(value[key], inner, f"{name}.{key}", empty=empty)
    elif shape is float and value is None:
        assert empty, f"{name}: null although there are samples"
    elif shape is float:
        assert type(value) in (int, float) and math.isfinite(value) and value >= 0, f"{name}: {value!r}"
    else:
        assert type(value) is shape, f"{name}: {value!r}"
        assert shape is not int or value >= 0, f"{name}: {value!r}"


def require_schema(document: dict[str, Any]) -> None:
    """Assert that a document read back from JSON is of the schema.

    A figure is null only without a walk, or where the help of the far place left nothing to read in memory.
    """
    traces, paths = document["traces"], document["paths"]
    walks = sum(entry["walks"] for entry in traces)
    helped = bool(document["details"]["far_help"])
    _require(document, _DOCUMENT, "document", empty=walks == 0 or helped)
    _require(paths["near"], _PLACE, "document.paths.near", empty=walks == 0)
    assert document["schema"] == "clew.compare/1"
    for entry in traces:
        checked, unchecked = entry["verdicts_checked"], entry["verdicts_unchecked"]
        # An unchecked event may start no walk, a checked one always does.
        assert checked <= entry["walks"] <= checked + unchecked
        assert entry["verdicts_wrong"] <= checked
        assert sum(tally["checked"] for tally in entry["by_source"].values()) <= checked
    for place in paths.values():
        assert place["walk_ns"]["count"] == place["reads_per_walk"]["count"] == walks
        assert place["loop_cycles"]["count"] == place["loop_ns"]["count"]
