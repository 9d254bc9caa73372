"""A comparison as an object for people and programs: it prints itself, and converts to JSON and Arrow."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from .compare import Comparison
from .place import PlaceFigures
from .report.columns import arrow_table, flattened
from .report.document import document, ratio, write_document
from .report.table import PIPE_WIDTH, comparison_table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ComparisonResult"]


class ComparisonResult:
    """The figures of one comparison: near the memory against across an off-chip path.

    A notebook shows it as the table that `clew compare` prints; `str` gives that table as text. Figures by
    name are in `to_dict()`.
    """

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        """Every measured value, with the logs of the replay."""

    @property
    def near(self) -> PlaceFigures:
        """The figures of the near place, times in cycles of `clock_ns`."""
        return self.comparison.near

    @property
    def far(self) -> PlaceFigures:
        """The figures of the far place, times in cycles of `clock_ns`."""
        return self.comparison.far

    @property
    def clock_ns(self) -> float:
        """Length of a cycle in ns."""
        return self.comparison.clock_ns

    @property
    def walk_speedup(self) -> float | None:
        """Mean walk latency far over near: what a search gains. None without a walk."""
        return ratio(self.far.walk.mean, self.near.walk.mean)

    @property
    def loop_speedup(self) -> float | None:
        """Mean loop latency far over near: what one dependent read gains. None without a read in both."""
        return ratio(self.far.loop.mean, self.near.loop.mean)

    @property
    def failures(self) -> Sequence[str]:
        """Why the run is not good, one line each: wrong verdicts, broken timing rules; empty when it is."""
        return self.comparison.failures

    @property
    def good(self) -> bool:
        """Every verdict was right, near and far, and every rule of the memory was kept."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """The document of `clew compare --json`, schema `clew.compare/1`, in plain JSON types.

        A figure without a sample is None. Names say units: `_ns`, `_cycles`, `_bytes`, `_per_second`.
        """
        return document(self.comparison)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """That document as JSON text; also written to `path`, whole or not at all. Raises OSError."""
        content = self.to_dict()
        if path is not None:
            write_document(Path(path), content)
        return json.dumps(content, indent=2, allow_nan=False)

    def to_arrow(self) -> pyarrow.Table:
        """One row: every figure of `to_dict()` in a typed column that is named by its path in it.

        A column of numbers has its unit in its field's metadata. `pyarrow.concat_tables(tables,
        promote_options="permissive")` joins the rows of several results.
        """
        return arrow_table([flattened(self.to_dict())], metadata={"schema": self.to_dict()["schema"]})

    def __repr__(self) -> str:
        near, far = self.near.walk.scaled(self.clock_ns), self.far.walk.scaled(self.clock_ns)
        state = "good" if self.good else f"NOT GOOD: {self.failures[0]}"
        if near.mean is None or far.mean is None or self.walk_speedup is None:
            return f"<ComparisonResult: no walk, {state}>"
        return (
            f"<ComparisonResult: {near.count:,} walks, mean {near.mean:,.1f} ns near, {far.mean:,.1f} ns "
            f"far: {self.walk_speedup:.2f} x, {state}>"
        )

    def __str__(self) -> str:
        console = Console(width=PIPE_WIDTH, no_color=True, highlight=False, force_terminal=False)
        with console.capture() as captured:
            console.print(comparison_table(self.comparison))
        return "\n".join([captured.get().rstrip("\n"), *self.failures])

    def _repr_html_(self) -> str:
        """What a notebook shows. Every text is escaped, for names come from trace files."""
        failures = "".join(f"<p><strong>{html.escape(line)}</strong></p>" for line in self.failures)
        return _html(comparison_table(self.comparison)) + failures


def _html(table: Table) -> str:
    """A table of texts as HTML: sections are bodies, so that a notebook's style separates them."""
    title = "<br>".join(html.escape(line) for line in str(table.title).splitlines())
    head = "".join(f"<th>{html.escape(str(column.header))}</th>" for column in table.columns)
    parts = [f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>"]
    cells = [list(column.cells) for column in table.columns]
    for number, row in enumerate(table.rows):
        texts = [html.escape(str(column[number])) for column in cells]
        aligned = [
            f'<td style="text-align:{"right" if column.justify == "right" else "left"}">{text}</td>'
            for column, text in zip(table.columns, texts, strict=True)
        ]
        parts.append(f"<tr>{''.join(aligned)}</tr>")
        if row.end_section and number + 1 < len(table.rows):
            parts.append("</tbody><tbody>")
    return "".join([*parts, "</tbody></table>", f"<p>{html.escape(str(table.caption))}</p>"])
