"""A comparison that ran on a board: its document, schema `clew.compare/1`, and its table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from sim.trace.errors import printable

from ..board import not_measured
from ..compare import ReplayComparison
from ..place import ReplayFigures
from .document import replay_document
from .table import comparison_table

__all__ = ["board_document", "print_board_comparison"]


def board_document(comparison: ReplayComparison[ReplayFigures]) -> dict[str, Any]:
    """The comparison as plain JSON types; `details.not_measured` says which figures are null, and why."""
    shared = replay_document(comparison)
    places = {"near": comparison.near, "far": comparison.far}
    return shared | {
        "details": shared["details"]
        | {
            "effect": comparison.effect.as_dict(),
            "replay_cycles": {name: figures.replay_cycles for name, figures in places.items()},
            "counters": {name: dict(figures.counters) for name, figures in places.items()},
            "not_measured": not_measured(comparison.config),
        }
    }


def print_board_comparison(comparison: ReplayComparison[ReplayFigures], target: Console) -> None:
    """The table, what is not in it and why, and a line for each fault."""
    target.print(comparison_table(comparison))
    target.print("not measured on a board:")
    for figure, why in not_measured(comparison.config).items():
        target.print(f"  {figure}: {why}")
    for failure in comparison.failures:
        target.print(Text(printable(failure), style="bold red"), soft_wrap=True)
