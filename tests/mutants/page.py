"""The page of the mutants: what was broken, what caught it, and after how many cycles."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .run import Outcome

__all__ = ["PAGE", "SURVIVED", "mutants_page"]

PAGE = Path(__file__).parents[2] / "hdl/memory/MUTANTS.md"
#: What the page says of a mutant that nothing caught.
SURVIVED = "**not caught**"

_HEAD = """\
# The RTL, broken on purpose

Written by `make mutants`; the mutants are in `tests/mutants/`. Each applies one defect to a copy of the
sources and runs it until something sees it: first a small memory subsystem under directed and random traffic,
watched by the RTL checker, the Python command checker over the recorded commands, the scoreboard, and checks
of placement, latency, refresh count, waits and determinism (then the cycles until then are given); what
that does not see, or what lies outside the memory subsystem, a named test of the project.

{caught} of {all} mutants are caught.

| mutant | what is wrong then | the edit | caught by | after cycles |
|---|---|---|---|---|
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def mutants_page(outcomes: Iterable[Outcome]) -> str:
    """The page as Markdown, a row for each outcome in order."""
    rows = list(outcomes)
    lines = [
        "| "
        + " | ".join(
            _cell(cell)
            for cell in (
                outcome.mutant.name,
                outcome.mutant.defect,
                "; ".join(edit.text for edit in outcome.mutant.edits),
                "; ".join(outcome.caught_by) or SURVIVED,
                "-" if outcome.cycles is None else str(outcome.cycles),
            )
        )
        + " |\n"
        for outcome in rows
    ]
    caught = sum(bool(outcome.caught_by) for outcome in rows)
    return _HEAD.format(caught=caught, all=len(rows)) + "".join(lines)
