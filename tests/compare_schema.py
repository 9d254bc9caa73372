"""The schema `clew.compare/1`: exact keys, exact types, finite numbers, counts that agree."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["require_board_schema", "require_schema"]

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
_LAYER = {"cycles": _SERIES, "ns": _SERIES, "refresh_cycles": _SERIES, "refresh_ns": _SERIES}
_LAYERS = dict.fromkeys(("device", "port", "loop", "walk", "replay"), _LAYER)
_PARTS = dict.fromkeys(
    ("link", "queue", "arbitration", "controller", "device", "cache", "walker", "help"), float
)
_BYTES = {
    "walk_up": int,
    "walk_down": int,
    "bulk_up": int,
    "bulk_down": int,
    "total": int,
    "per_solved_problem": float,
}
_RANGE = dict.fromkeys(("low", "typical", "high"), float)
_ENERGY = {
    "walk_pj": _RANGE,
    "walk_parts_pj": {None: _RANGE},
    "replay_pj": _RANGE,
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


def _require_ledger(document: dict[str, Any], *, walks: int) -> None:
    """What `details` says of the ledger: its keys, and that its layers are those of the places."""
    details = document["details"]
    for place, figures in document["paths"].items():
        empty = walks == 0 or (place == "far" and bool(details["far_help"]))
        name = f"document.details.{place}"
        layers, parts = details["layers"][place], details["time_parts"][place]
        seen = details["banks"][place] is not None
        shape = {layer: shape for layer, shape in _LAYERS.items() if seen or layer != "device"}
        _require(layers, shape, f"{name}.layers", empty=empty or not seen)
        for cycles in ("loop_cycles", "walk_cycles"):
            _require(parts[cycles], _PARTS, f"{name}.time_parts.{cycles}", empty=empty)
        for layer, mean in (("loop", parts["loop_cycles"]), ("walk", parts["walk_cycles"])):
            whole = layers[layer]["cycles"]["mean"]
            assert whole is None or math.isclose(sum(mean.values()), whole, rel_tol=1e-9), name
        assert layers["loop"]["ns"] == figures["loop_ns"] and layers["walk"]["ns"] == figures["walk_ns"]
        banks, crossed = details["banks"][place], dict(details["link_bytes"][place])
        if seen:
            assert layers["device"]["cycles"]["count"] == layers["port"]["cycles"]["count"]
            reads, writes = (_total(banks[count]) for count in ("reads", "writes"))
            assert reads + writes == sum(_total(banks[count]) for count in ("hits", "closed", "conflicts"))
            assert reads >= layers["device"]["cycles"]["count"]
        for found in (crossed.pop("port"), crossed):
            if found is not None:
                solved = found["per_solved_problem"] is None
                _require(found, _BYTES, f"{name}.link_bytes", empty=solved)
        energy = details["energy"][place]
        if energy is not None:
            solved = energy.pop("solved_problem_pj")
            _require(energy, _ENERGY, f"{name}.energy", empty=False)
            assert (solved is None) == (details["solved_problems"] == 0)
            energy["solved_problem_pj"] = solved
    assert set(details["effect"]) == {"variant", "over", "loop", "walk", "replay"}


def _total(counts: list[list[list[int]]]) -> int:
    return sum(count for channel in counts for unit in channel for count in unit)


def require_schema(document: dict[str, Any]) -> None:
    """Assert that a document read back from JSON is of the schema.

    A figure is null only without a walk, where the help of the far place left nothing to read in memory, and
    where the memory has a controller of its own.
    """
    traces, paths = document["traces"], document["paths"]
    walks = sum(entry["walks"] for entry in traces)
    helped = bool(document["details"]["far_help"])
    unseen = document["details"]["banks"]["near"] is None
    _require(document, _DOCUMENT, "document", empty=walks == 0 or helped or unseen)
    _require(paths["near"], _PLACE, "document.paths.near", empty=walks == 0 or unseen)
    assert document["schema"] == "clew.compare/1"
    _require_ledger(document, walks=walks)
    for entry in traces:
        checked, unchecked = entry["verdicts_checked"], entry["verdicts_unchecked"]
        # An unchecked event may start no walk, a checked one always does.
        assert checked <= entry["walks"] <= checked + unchecked
        assert entry["verdicts_wrong"] <= checked
        assert sum(tally["checked"] for tally in entry["by_source"].values()) <= checked
    for place in paths.values():
        assert place["walk_ns"]["count"] == place["reads_per_walk"]["count"] == walks
        assert place["loop_cycles"]["count"] == place["loop_ns"]["count"]


#: What a board gives of a place; a loop only where its design has histograms.
_BOARD_NULL = ("loop_cycles", "loop_ns", "bound_ns", "ratio_to_bound", "row")


def require_board_schema(document: dict[str, Any]) -> None:
    """Assert that a document of `clew drive` is of the same schema, null only where it says why."""
    reasons = document["details"]["not_measured"]
    named = {name for names in reasons for name in names.split(", ")}
    assert all(reasons.values())
    violations = document["violations"]
    assert (violations is None) == ("violations" in named)
    _require(document | {"violations": violations or 0}, _DOCUMENT, "document", empty=True)
    for place in document["paths"].values():
        for name in _PLACE:
            _require(place[name], _PLACE[name], f"document.paths.{name}", empty=name in named)
        for name in named & set(_BOARD_NULL) - {"loop_cycles", "loop_ns"}:
            found = place[name]
            assert found is None or set(found.values()) == {None}, name
        assert place["walk_ns"]["count"] == place["reads_per_walk"]["count"]
    for name in named & {"walks_per_second", "stores"}:
        assert set(document["details"][name].values()) == {None}
