"""The tables of an implementation: area by block, the clock, and the path that limits it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.fpga.netlist import BlockArea

from .flow import Implementation

__all__ = ["area_rows", "print_implementation", "timing_lines"]


def area_rows(implementation: Implementation) -> list[tuple[str, ...]]:
    """Rows for people: block, LUT4, flip-flops, block RAMs; the first is the heading, the last the total."""

    def row(name: str, area: BlockArea) -> tuple[str, ...]:
        return (name, f"{area.luts:,}", f"{area.flip_flops:,}", f"{area.block_rams:,}")

    return [
        ("block", "LUT4", "flip-flops", "block RAMs"),
        *(row(name, area) for name, area in implementation.area.items()),
        row("all", implementation.total),
    ]


def timing_lines(implementation: Implementation) -> list[str]:
    """What the clock can be, whether that is enough, and what limits it."""
    placement = implementation.placement
    path = placement.critical_path
    verdict = "met" if placement.met else "NOT met"
    return [
        f"fmax {placement.fmax_mhz:.1f} MHz (seed {placement.seed}); "
        f"{placement.required_mhz:.4g} MHz: {verdict}",
        f"critical path: {path.start} -> {path.end}",
        f"  {path.logic_ns + path.routing_ns:.1f} ns: {path.levels} cells {path.logic_ns:.1f} ns, "
        f"wires {path.routing_ns:.1f} ns",
    ]


def print_implementation(implementation: Implementation, target: Console) -> None:
    """The table of area by block, and below it the timing."""
    board = implementation.board
    table = Table(
        title=f"{implementation.configuration} on {board.name} (ECP5 {board.device}, {board.package})",
        title_justify="left",
    )
    heading, *rows = area_rows(implementation)
    for number, column in enumerate(heading):
        table.add_column(column, justify="right" if number else "left")
    for row in rows[:-1]:
        table.add_row(*row)
    table.add_section()
    table.add_row(*rows[-1])
    target.print(table)
    for line in timing_lines(implementation):
        target.print(Text(line), soft_wrap=True)
