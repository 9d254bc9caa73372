"""The comparison as a JSON document, schema `clew.compare/1`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.trace.output import output_target, temporary_name, whole_file

from ..axi_port import AXI_PORT, NOT_SEEN, axi_rows
from ..compare import Comparison, F, FileVerdicts, ReplayComparison, Tally
from ..effect import ratio
from ..errors import InputError
from ..far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES
from ..place import AT_THE_MEMORY, ReplayFigures
from .ledger_document import ledger_details

__all__ = ["ROWS", "SCHEMA", "document", "replay_document", "require_output", "write_document", "write_text"]

#: The rows that a read may find.
ROWS = ("hit", "closed", "conflict")
#: The `schema` of the document.
SCHEMA = "clew.compare/1"


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison of a simulation as plain JSON types. A figure without a sample is null."""
    shared = replay_document(comparison)
    return shared | {"details": shared["details"] | ledger_details(comparison)}


def replay_document(comparison: ReplayComparison[F]) -> dict[str, Any]:
    """What every comparison says, whatever it ran on. A figure without a sample or a source is null."""
    path = comparison.far_path.path
    return {
        "schema": SCHEMA,
        "memory": comparison.config.memory.timing.name,
        "clock_ns": comparison.clock_ns,
        "concurrent": comparison.concurrent,
        "traces": [_file(verdicts) for verdicts in comparison.files],
        "paths": {
            "near": _place(comparison.near, comparison.clock_ns),
            "far": {
                **_place(comparison.far, comparison.clock_ns),
                "preset": path.name,
                "source": path.source,
            },
        },
        "speedup": {
            "walk_mean": ratio(comparison.far.walk.mean, comparison.near.walk.mean),
            "walk_p50": ratio(comparison.far.walk.p50, comparison.near.walk.p50),
            "loop_mean": ratio(comparison.far.loop.mean, comparison.near.loop.mean),
        },
        "violations": comparison.violations,
        "details": {
            "isolated_speedup_input": comparison.isolated_speedup,
            "link_latency_cycles": {
                "up": comparison.far_path.latency_up,
                "down": comparison.far_path.latency_down,
            },
            "by_check": {check: _tally(tally) for check, tally in by_check(comparison.files).items()},
            "unchecked": dict(unchecked(comparison.files)),
            "refresh": comparison.refresh.name.lower(),
            "ecc": _errors(comparison),
            "execute_stages": comparison.config.walker.execute_stages,
            "clock_ratio": comparison.config.clock_ratio,
            "address_map": list(comparison.config.memory.address_map),
            "negative_control": {control.check: "wrong" for control in comparison.controls},
            "channels": [_channel(comparison, channel) for channel in range(len(comparison.trees))],
            "placement": comparison.placement,
            "program": comparison.climbing,
            "layout": comparison.layout,
            "stores": {"near": comparison.near.stores, "far": comparison.far.stores},
            "near_place": _near(comparison),
            "far_help": _help(comparison),
            "walks_per_second": {
                "near": comparison.near.walks_per_second,
                "far": comparison.far.walks_per_second,
            },
            "repeated_searches": comparison.repeated,
            "failures": list(comparison.failures),
        },
    }


def write_document(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document so that the file appears whole or not at all. Raises OSError."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all. Raises OSError naming `path`."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def require_output(path: Path, *, inputs: Sequence[Path] = ()) -> None:
    """Check, before anything takes long, that `path` can be written and is none of the `inputs`.

    Raises InputError and OSError naming `path`.
    """
    target = output_target(path)
    for file in inputs:
        if os.path.exists(target) and os.path.exists(file) and os.path.samefile(target, file):
            raise InputError(f"{path}: expected another file than the input {file}")
    temporary = temporary_name(target)
    try:
        temporary.touch()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def by_check(files: Sequence[FileVerdicts]) -> dict[str, Tally]:
    """The verdicts of all files by check."""
    return _merged([verdicts.by_check for verdicts in files])


def by_source(files: Sequence[FileVerdicts]) -> dict[str, Tally]:
    """The verdicts of all files by the source of their untried counts."""
    return _merged([verdicts.by_source for verdicts in files])


def unchecked(files: Sequence[FileVerdicts]) -> Counter[str]:
    """The events without a verdict of all files by reason."""
    total: Counter[str] = Counter()
    for verdicts in files:
        total.update(verdicts.unchecked)
    return total


def _merged(parts: Sequence[Mapping[Any, Tally]]) -> dict[str, Tally]:
    merged: dict[str, Tally] = {}
    for part in parts:
        for name, tally in part.items():
            into = merged.setdefault(name, Tally())
            into.checked += tally.checked
            into.wrong += tally.wrong
    return dict(sorted(merged.items()))


def _tally(tally: Tally) -> dict[str, int]:
    return {"checked": tally.checked, "wrong": tally.wrong}


def _file(verdicts: FileVerdicts) -> dict[str, Any]:
    return {
        "file": verdicts.file,
        "format": verdicts.format,
        "problems": verdicts.problems,
        "nodes": verdicts.nodes,
        "walks": verdicts.walks,
        "verdicts_checked": verdicts.verdicts.checked,
        "verdicts_wrong": verdicts.verdicts.wrong,
        "verdicts_unchecked": verdicts.unchecked.total(),
        "by_source": {source: _tally(tally) for source, tally in sorted(verdicts.by_source.items())},
    }


def _channel(comparison: ReplayComparison[F], channel: int) -> dict[str, Any]:
    places = {"near": comparison.near, "far": comparison.far}
    return {
        "trees": comparison.trees[channel],
        **{
            name: {
                "reads": figures.channel_reads and figures.channel_reads[channel],
                "violations": figures.channel_violations and figures.channel_violations[channel],
            }
            for name, figures in places.items()
        },
    }


def _near(comparison: ReplayComparison[F]) -> dict[str, Any]:
    """What is between walker and controller near the memory: an input."""
    port = comparison.near_path
    if comparison.near_behind_axi:
        rows = axi_rows()
        return {
            "preset": AXI_PORT,
            "published_ns_input": {state: row.published_ns for state, row in rows.items()},
            "source": "; ".join(dict.fromkeys(row.source for row in rows.values())),
            "unknown": NOT_SEEN,
        }
    if port is None:
        return {"preset": AT_THE_MEMORY}
    return {
        "preset": port.path.name,
        "published_ns_input": port.path.published_ns,
        "source": port.path.source,
    }


def _help(comparison: ReplayComparison[F]) -> dict[str, Any]:
    """Every help of the far place: keys that end in _input were given, the others were measured."""
    help_, figures = comparison.far_help, comparison.far
    found: dict[str, Any] = {}
    if help_.cache is not None and comparison.cache is not None and figures.cache is not None:
        found["cache"] = {
            "preset": help_.cache.name,
            "bytes_input": help_.cache.size,
            "ways_input": comparison.cache.ways,
            "hit_ns_input": help_.cache.hit_ns,
            "hit_loop_cycles_input": comparison.cache.hit_cycles,
            "beside": help_.cache.beside,
            "source": help_.cache.source,
            "hits": figures.cache.hits,
            "misses": figures.cache.misses,
            "hit_rate": figures.cache.hit_rate,
        }
    if help_.stack:
        found["stack"] = {
            "cycles_per_level_input": STACK_LEVEL_CYCLES,
            "answered": figures.helped["stack"],
        }
    if help_.stream:
        found["stream"] = {
            "cycles_per_result_input": STREAM_RESULT_CYCLES,
            "answered": figures.helped["stream"],
        }
    return found


def _errors(comparison: ReplayComparison[F]) -> dict[str, Any] | None:
    """What ECC found in each place; null without ECC."""
    return {
        name: dataclasses.asdict(figures.errors)
        for name, figures in (("near", comparison.near), ("far", comparison.far))
        if figures.errors is not None
    } or None


def _place(figures: ReplayFigures, clock_ns: float) -> dict[str, Any]:
    bound = figures.bound_mean
    return {
        "walk_ns": figures.walk.scaled(clock_ns).as_dict(),
        "reads_per_walk": figures.reads_per_walk.as_dict(),
        "loop_cycles": figures.loop.as_dict(),
        "loop_ns": figures.loop.scaled(clock_ns).as_dict(),
        "bound_ns": {"mean": None if bound is None else bound * clock_ns},
        "ratio_to_bound": figures.ratio_to_bound,
        "row": dict.fromkeys(ROWS) if figures.rows is None else figures.rows.as_dict(),
    }
