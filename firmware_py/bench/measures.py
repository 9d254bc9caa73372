"""Measures of the memory: a name, where it was taken, a value with its bound, and the target that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from hdl.memory.timing import TimingPreset

__all__ = ["SCHEMA", "Measure", "Target", "measures_document", "measures_table", "missed", "print_measures"]

#: The `schema` of the document.
SCHEMA = "clew.bench.memory/1"


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a measure must reach, both limits included; None: no limit."""

    at_least: float | None = None
    at_most: float | None = None

    def reached(self, value: float) -> bool:
        """Whether `value` is within the limits."""
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )

    def __str__(self) -> str:
        limits = (("at least", self.at_least), ("at most", self.at_most))
        return ", ".join(f"{words} {_number(limit)}" for words, limit in limits if limit is not None)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One measured figure."""

    name: str
    where: Mapping[str, str | int]
    value: float
    unit: str
    bound: float | None = None
    """What the timing table allows, in `unit`, refresh included; None where it says nothing."""
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """Value over bound; None without a bound, or with a bound of 0."""
        return self.value / self.bound if self.bound else None

    @property
    def missed(self) -> bool:
        """There is a target, and it was not reached."""
        return self.target is not None and not self.target.reached(self.value)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "name": self.name,
            "where": dict(self.where),
            "value": self.value,
            "unit": self.unit,
            "bound": self.bound,
            "ratio": self.ratio,
        }


def measures_document(timing: TimingPreset, measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as plain JSON types."""
    return {
        "schema": SCHEMA,
        "preset": timing.name,
        "measures": [measure.as_dict() for measure in measures],
    }


def missed(measures: Sequence[Measure]) -> list[Measure]:
    """The measures whose target was not reached."""
    return [measure for measure in measures if measure.missed]


def _number(value: float | None) -> str:
    """At most four significant decimals, and no trailing zeros."""
    return "" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def measures_table(timing: TimingPreset, measures: Sequence[Measure]) -> list[tuple[str, ...]]:
    """Rows for people: figure, where, measured, bound, ratio, target, verdict; the first is the heading.

    A stream is given as share of the peak as well.
    """
    rows = [("figure", "where", "measured", "bound", "ratio", "target", "")]
    for measure in measures:
        verdict = "" if measure.target is None else "MISSED" if measure.missed else "reached"
        share = ""
        if measure.name.startswith("stream"):
            share = f" ({measure.value / timing.peak_bandwidth:.1%} of peak)"
        rows.append(
            (
                measure.name,
                ", ".join(f"{key} {value}" for key, value in measure.where.items()),
                f"{_number(measure.value)} {measure.unit}{share}",
                _number(measure.bound),
                "" if measure.ratio is None else f"{measure.ratio:.1%}",
                "" if measure.target is None else str(measure.target),
                verdict,
            )
        )
    return rows


def print_measures(timing: TimingPreset, measures: Sequence[Measure], target: Console) -> None:
    """The measures as a table."""
    heading, *rows = measures_table(timing, measures)
    table = Table(
        title=f"{timing.name}: one channel, 1 cycle = {timing.clock_ns:g} ns, peak "
        f"{timing.peak_bandwidth:.4g} GB/s",
        title_justify="left",
    )
    for column in heading:
        justify = "right" if column in ("bound", "ratio") else "left"
        table.add_column(column, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    target.print(table)
