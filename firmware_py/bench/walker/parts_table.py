"""The table of where the cycles of a loop go: a line for each design and row state, a column a part."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ...loop_parts import LOOP_PARTS
from ..measures import Measure

__all__ = ["PART_MEASURE", "parts_table", "print_parts", "without_parts"]

#: Name of the measures that the table shows, one for each part.
PART_MEASURE = "loop_part"
_DESIGN = ("row", "ecc", "stages", "clock_ratio")


def without_parts(measures: Sequence[Measure]) -> list[Measure]:
    """The measures that the table does not show."""
    return [measure for measure in measures if measure.name != PART_MEASURE]


def parts_table(measures: Sequence[Measure]) -> list[tuple[str, ...]]:
    """Rows for people, in cycles; the first is the heading. Only that when no part was measured."""
    lines: dict[tuple[str, ...], dict[str, float]] = {}
    for measure in measures:
        if measure.name == PART_MEASURE:
            design = tuple(str(measure.where[key]) for key in _DESIGN)
            lines.setdefault(design, {})[str(measure.where["part"])] = measure.value
    rows: list[tuple[str, ...]] = [("row", "stages", "clock ratio", *LOOP_PARTS, "loop", "over the bound")]
    for design, parts in lines.items():
        cycles = [parts[part] for part in LOOP_PARTS]
        loop = sum(cycles)
        # Whether there is ECC its own part tells.
        shown = (value for key, value in zip(_DESIGN, design, strict=True) if key != "ecc")
        rows.append((*shown, *(f"{value:g}" for value in (*cycles, loop, loop - parts["device"]))))
    return rows


def print_parts(measures: Sequence[Measure], target: Console) -> None:
    """The parts as a table; nothing when none was measured."""
    heading, *rows = parts_table(measures)
    if not rows:
        return
    table = Table(title="Where the cycles of a near loop go", title_justify="left")
    for column in heading:
        table.add_column(column, justify="left" if column == "row" else "right", no_wrap=column in LOOP_PARTS)
    for row in rows:
        table.add_row(*row)
    target.print(table)
