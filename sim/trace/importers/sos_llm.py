"""Stream-of-Search texts written by a language model: countdown games in the words of that format.

A file is a list of records, or one a line, each with the question (`nums`, `target`) and the model's
`completion`. Its lines in the words of Stream-of-Search are read as the model meant them
(`sos_llm_path.py`); all others, a line that is cut off among them, are counted and left out. Ids are the
model's own: it gives one to several nodes (the last one has it then, unless the state that it shows names
another), extends ids that it never gave (such a node has no parent here: a root of its own) and moves to
ids that it never gave (a `jump` to no node, not checked).

What is left to try comes from the children made later. A move up is checked where it goes to the nearest
ancestor with children left, as a depth-first search would; the model need not search like that, and then it
is not. Dead is what it calls `unequal: No Solution`. `parsed_results.solved` says whether its answer is
right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .registry import Importer
from .sos_llm_events import told_events
from .sos_llm_path import parse_completion
from .source import field, items, one_each, value_records

__all__ = ["IMPORTER"]


#: Keys of what a list of records begins with: how they were made, and how many are right.
_ABOUT_THE_RUN = ("hyperparams", "trial_success_rates")


def recognises(head: str) -> bool:
    """True for objects, or a list of them, with a `completion` on `nums` and a `target`."""
    return re.match(r"\s*(\[\s*)?\{", head) is not None and all(
        re.search(rf'[{{,]\s*"{key}"\s*:', head) is not None for key in ("nums", "target", "completion")
    )


def _status(record: Any, *, empty: bool) -> Status:
    if empty:
        return "empty"
    if "parsed_results" not in record:
        return "unknown"
    results = field(record, "parsed_results", dict)
    return "solved" if field(results, "solved", bool, "parsed_results") else "unsolved"


def _events(record: Any, index: int) -> list[Event]:
    numbers = items(record, "nums", int)
    target = field(record, "target", int)
    told = parse_completion(field(record, "completion", str), target=target, numbers=numbers)
    meta: dict[str, object] = {"target": target, "nums": numbers}
    meta |= {key: record[key] for key in ("src", "rec", "solution", "parsed_results") if key in record}
    remarks = {what: count for what, count in told.remarks().items() if count}
    if remarks:
        meta["remarks"] = remarks
    begin = Begin(
        version=SCHEMA_VERSION, trace=f"sos_llm/{index}", algorithm="sos", source="sos_llm", meta=meta
    )
    status = _status(record, empty=len(told.nodes) == 1)
    return [begin, *told_events(told), End(status=status)]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a record with a question."""
    asked = (
        (place, record)
        for place, record in value_records(path)
        if not (isinstance(record, dict) and any(key in record for key in _ABOUT_THE_RUN))
    )
    return one_each(path, asked, _events)


IMPORTER = Importer(
    name="sos_llm",
    description="Stream-of-Search texts written by a language model",
    recognises=recognises,
    read=read,
    lacks=(
        "untried counts: taken from the children made later",
        "scores: the model computes no heuristic",
        "lines in other words than those of the format",
        "tokens of a line",
    ),
)
