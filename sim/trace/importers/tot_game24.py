"""Tree-of-Thoughts logs of the Game of 24: beam search, values from a language model.

A file is a list of problems, each with up to four steps (`tot_beam.py`). A candidate's value is the sum of
three verdicts (sure, likely, impossible) of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .registry import Importer
from .source import array_records, check_kind, field, items, one_each
from .tot_beam import beam_events

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True for a list of objects whose first has `steps` on a question of four numbers."""
    return (
        re.match(r'\s*\[\s*\{\s*"steps"\s*:', head) is not None
        and re.search(r'"x"\s*:\s*"\d+ \d+ \d+ \d+"', head) is not None
    )


def _status(record: Any) -> Status:
    results = items(record, "infos", dict)
    right = [field(result, "r", int, f"infos[{position}]") for position, result in enumerate(results)]
    return "solved" if any(right) else "unsolved"


def _events(record: Any, index: int) -> list[Event]:
    check_kind(record, dict, "problem")
    events = beam_events(record)
    steps = field(record, "steps", list)
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"tot_game24/{index}",
        algorithm="beam",
        source="tot_game24",
        meta={
            "idx": record.get("idx"),
            "x": field(steps[0], "x", str, "steps[0]") if steps else None,
            # Cumulative over the source file, not over the problem.
            "usage_so_far": record.get("usage_so_far"),
        },
    )
    return [begin, *events, End(status=_status(record))]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a problem."""
    return one_each(path, array_records(path), _events)


IMPORTER = Importer(
    name="tot_game24",
    description="Tree-of-Thoughts Game of 24 log, beam search",
    recognises=recognises,
    read=read,
    lacks=(
        "untried counts: a beam search never goes back to try more",
        "tokens of a thought: the log has totals only",
    ),
)
