"""Graph-of-Thoughts results: the operations of one problem, each with the thoughts that came out of it.

A file is a list of operations and, last, the tokens and cost of the whole. It holds no edges: where the
thoughts of an operation come from is worked out from the list (`got_graph.py`). A thought becomes a node when
an operation makes it (generate, improve, aggregate, validate_and_improve); the others pass on thoughts that
there are: score scores them, keep_best_n chooses (a `select`), ground_truth_evaluator says whether one solves
the problem. Dead is what keep_best_n did not keep. The search moves (`jump`) to the thought that it makes the
next one from.

`keep_best_n` does not say whether the highest scores are the best. If the lowest are, in every choice of the
file, scores here are minus the source's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError
from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .got_events import graph_events
from .got_graph import Operation, Thought, thought_graph
from .registry import Importer
from .source import field, items, located, number, single_record

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True for a list of objects that begins with an operation and its thoughts."""
    return re.match(r'\s*\[\s*\{\s*"operation"\s*:\s*"[^"]*"\s*,\s*"thoughts"\s*:\s*\[', head) is not None


def _scores(record: Any, count: int, name: str) -> list[float | None]:
    """The score of each thought; None: it was not scored."""
    if "scores" not in record:
        return [None] * count
    scores = field(record, "scores", list, name)
    scored = items(record, "scored", bool, name) if "scored" in record else [True] * len(scores)
    for key, values in (("scores", scores), ("scored", scored)):
        if len(values) != count:
            raise FieldError(f"{name}.{key}", f"{count} values, as thoughts", str(len(values)))
    return [
        number(score, f"{name}.scores[{position}]") if known and score is not None else None
        for position, (score, known) in enumerate(zip(scores, scored, strict=True))
    ]


def _operation(record: Any, name: str) -> Operation:
    states = items(record, "thoughts", dict, name)
    solved = items(record, "problem_solved", bool, name) if "problem_solved" in record else []
    return Operation(
        kind=field(record, "operation", str, name),
        thoughts=[Thought.of(state) for state in states],
        scores=_scores(record, len(states), name),
        solved=solved,
    )


def _status(operations: list[Operation]) -> Status:
    if not any(operation.thoughts for operation in operations):
        return "empty"
    verdicts = [verdict for operation in operations for verdict in operation.solved]
    if not verdicts:
        return "unknown"
    return "solved" if any(verdicts) else "unsolved"


def _events(document: list[Any]) -> list[Event]:
    *records, last = document
    usage: object = None
    if isinstance(last, dict) and "operation" not in last:
        usage = last
    else:
        records.append(last)
    operations = [_operation(record, f"[{position}]") for position, record in enumerate(records)]
    graph = thought_graph(operations)
    events, higher_is_better = graph_events(graph)
    method = next((str(node.state["method"]) for node in graph.nodes if "method" in node.state), None)
    begin = Begin(
        version=SCHEMA_VERSION,
        trace="got/0",
        algorithm=method or "got",
        source="got",
        meta={
            "operations": [
                {"operation": step.kind, "nodes": [node + 1 for node in step.results]} for step in graph.steps
            ],
            "higher_is_better": higher_is_better,
            "usage": usage,
        },
    )
    return [begin, *events, End(status=_status(operations))]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """The one trace of the file."""
    document = single_record(path)
    with located(path, "record 0"):
        events = _events(document)
    yield "record 0", events


IMPORTER = Importer(
    name="got",
    description="Graph-of-Thoughts result, operations of one problem",
    recognises=recognises,
    read=read,
    lacks=(
        "edges: worked out from the list of operations and from what a thought's state is made of",
        "untried counts: the operations are fixed, none goes back to try more",
        "tokens of a thought: the file has totals only",
    ),
)
