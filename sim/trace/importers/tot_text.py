"""Tree-of-Thoughts logs of creative writing: plans, then passages, chosen by votes of a language model.

A file is a list of problems, each with two steps (`tot_beam.py`) and a beam of one. A candidate's value is
the number of votes for it out of five. The search never goes back: the passages are below the plan it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .registry import Importer
from .source import array_records, check_kind, field, number, one_each
from .tot_beam import beam_events

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True for a list of objects whose first has `steps` on a question that is not four numbers."""
    question = re.search(r'"x"\s*:\s*"((?:[^"\\]|\\.)*)', head)
    return (
        re.match(r'\s*\[\s*\{\s*"steps"\s*:', head) is not None
        and question is not None
        and re.fullmatch(r"\d+ \d+ \d+ \d+", question[1]) is None
        and re.search(r'"new_ys"\s*:\s*\[', head) is not None
    )


def _status(record: Any) -> Status:
    """What the log says of the passages: `accs` is above 0 where one was found right; without it, unknown."""
    if "accs" not in record:
        return "unknown"
    verdicts = field(record, "accs", list)
    rated = [number(verdict, f"accs[{position}]") for position, verdict in enumerate(verdicts)]
    return "solved" if any(verdict > 0 for verdict in rated) else "unsolved"


def _events(record: Any, index: int) -> list[Event]:
    check_kind(record, dict, "problem")
    events = beam_events(record)
    steps = field(record, "steps", list)
    status = _status(record)
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"tot_text/{index}",
        algorithm="beam",
        source="tot_text",
        meta={
            "idx": record.get("idx"),
            "x": field(steps[0], "x", str, "steps[0]") if steps else None,
            "accs": record.get("accs"),
            # Cumulative over the source file, not over the problem.
            "usage_so_far": record.get("usage_so_far"),
        },
    )
    return [begin, *events, End(status=status)]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a problem."""
    return one_each(path, array_records(path), _events)


IMPORTER = Importer(
    name="tot_text",
    description="Tree-of-Thoughts creative writing log, chosen by votes",
    recognises=recognises,
    read=read,
    lacks=(
        "backtracks: a beam of one never goes back",
        "untried counts: a beam search never goes back to try more",
        "tokens of a thought: the log has totals only",
    ),
)
