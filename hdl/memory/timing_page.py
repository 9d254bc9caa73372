"""The memory presets and their timing table as a Markdown page, generated from the preset files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import asdict

from ..layouts import ATOM_BYTES
from . import timing
from .preset_file import SECTIONS
from .timing import PRESETS, TimingPreset

__all__ = ["markdown"]

#: The isolated latencies of one read, and what each property of `TimingPreset` is.
_LATENCIES: tuple[tuple[str, str], ...] = (
    ("row_hit", "row open: tCL + burst"),
    ("row_closed", "bank closed: activate_lag + tRCDRD + tCL + burst"),
    ("row_conflict", "other row open: tRP + tRCDRD + tCL + burst"),
    ("same_bank", "row to row in one bank, closed in time: tRC, or tRTP + tRP + tRCDRD if that is longer"),
)


def markdown() -> str:
    """The page: conventions, the figures of each preset, parameters, rows between commands, and sources."""
    presets = list(PRESETS.values())
    conventions = inspect.getdoc(timing) or ""
    return "\n".join(
        [
            "# Memory presets and timing table",
            "",
            "Generated from `hdl/memory/presets/*.toml` by `clew timing`.",
            "",
            # The first line of the module's text is its own title.
            conventions.partition("\n")[2].strip(),
            "",
            "## Presets",
            "",
            *_figures(presets),
            "",
            "## Isolated read: first command on the bus to the end of the last data beat",
            "",
            *_latencies(presets),
            "",
            "## Parameters",
            "",
            "Cycles of tCK; - where the preset has no such rule.",
            "",
            *_parameters(presets),
            "",
            "## Rules",
            "",
            "`after` comes no earlier than so many cycles after `before`, where both address the same bank,",
            "bank group, pseudo channel or channel. A rule on the n-th last `before` is marked x n.",
            "",
            *_rules(presets),
            *(line for preset in presets for line in _sources(preset)),
            "",
        ]
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def _columns(presets: list[TimingPreset], *first: str) -> list[str]:
    return [*first, *(preset.name for preset in presets)]


def _figures(presets: list[TimingPreset]) -> list[str]:
    figures: list[tuple[str, Callable[[TimingPreset], object]]] = [
        ("tCK, ns", lambda preset: f"{preset.clock_ns:g}"),
        ("peak of a channel, GB/s", lambda preset: f"{preset.peak_bandwidth:.1f}"),
        ("capacity of a channel, MiB", lambda preset: preset.organisation.atoms * ATOM_BYTES >> 20),
        *(
            (limit.what, lambda preset, key=key: asdict(preset.organisation)[key])
            for key, limit in SECTIONS["organisation"].items()
        ),
        *(
            (limit.what, lambda preset, key=key: getattr(preset, key))
            for key, limit in SECTIONS["bus"].items()
        ),
        ("time lost to all-bank refresh", lambda preset: f"{preset['tRFC'] / preset['tREFI']:.1%}"),
    ]
    return _table(_columns(presets, ""), ([what, *map(figure, presets)] for what, figure in figures))


def _latencies(presets: list[TimingPreset]) -> list[str]:
    def cell(preset: TimingPreset, name: str) -> str:
        cycles = getattr(preset, name)
        return f"{cycles} ({cycles * preset.clock_ns:.1f} ns)"

    return _table(
        _columns(presets, ""),
        ([what, *(cell(preset, name) for preset in presets)] for name, what in _LATENCIES),
    )


def _parameters(presets: list[TimingPreset]) -> list[str]:
    return _table(
        _columns(presets, "parameter", "what"),
        (
            [key, limit.what, *(preset[key] if key in preset.values else "-" for preset in presets)]
            for key, limit in SECTIONS["parameters"].items()
        ),
    )


def _rules(presets: list[TimingPreset]) -> list[str]:
    """One line for rows that differ in nothing but their commands."""
    # Rows of all presets by what they relate; then those with the same cycles everywhere together.
    cycles: dict[tuple[str, str, str, str, int], dict[str, int]] = {}
    for preset in presets:
        for rule in preset.rules():
            relation = rule.name, rule.scope.value, rule.before.value, rule.after.value, rule.window
            cycles.setdefault(relation, {})[preset.name] = rule.cycles
    lines: dict[tuple[str, str, str, int, tuple[str, ...]], list[str]] = {}
    for (name, scope, before, after, window), by_preset in cycles.items():
        values = tuple(str(by_preset.get(preset.name, "-")) for preset in presets)
        lines.setdefault((name, scope, before, window, values), []).append(after)
    merged: dict[tuple[str, str, int, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (name, scope, before, window, values), after in lines.items():
        merged.setdefault((name, scope, window, tuple(after), values), []).append(before)
    return _table(
        _columns(presets, "rule", "scope", "before", "after"),
        (
            [
                name,
                scope,
                ", ".join(before) + (f" x {window}" if window != 1 else ""),
                ", ".join(after),
                *values,
            ]
            for (name, scope, window, after, values), before in merged.items()
        ),
    )


def _sources(preset: TimingPreset) -> list[str]:
    cited = dict(preset.sources) | {key: value.source for key, value in preset.values.items()}
    rows = ([key, cited[key]] for limits in SECTIONS.values() for key in limits if key in cited)
    return ["", f"## Sources of {preset.name}", "", *_table(["value", "source"], rows)]
