"""Monte-Carlo tree searches of a language model (mcts-reasoning): one tree with visits and values.

A file is one search, or several. A node of its `root` has the whole text so far (`state`), its `visits`, its
`value` (the mean of its simulations, or their sum), `is_terminal`, `answer` and `children`.

Which simulations there were follows from the visits: those of a node and not of its children ended at it,
and what is left of its value is their sum. Each is a `backup` from there to the root. Where the numbers do
not add up there are no backups. The order of the simulations is not recorded: the events follow the tree in
preorder, each node with the simulations that ended at it, and then give every node its final value as
score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Backup, Begin, End, Eval, Event, Node
from .registry import Importer
from .source import field, number, one_each, text_bytes, value_records
from .tree import preorder

__all__ = ["IMPORTER"]

#: Relative error below which two sums of values are equal: they were added up in another order.
_TOLERANCE = 1e-9

NOT_REBUILT = "searches whose visits and values do not add up to simulations: no backups"
RESTATED = "states that do not begin with their parent's: kept whole"


def recognises(head: str) -> bool:
    """True for an object, or a list of them, with a `root` that begins with its `state`."""
    return (
        re.match(r"\s*(\[\s*)?\{", head) is not None
        and re.search(r'"root"\s*:\s*\{\s*"state"\s*:', head) is not None
        and re.search(r'"simulations_run"\s*:', head) is not None
    )


@dataclass(frozen=True, kw_only=True)
class _Visited:
    """One node of the source, in preorder."""

    parent: int | None
    state: str
    visits: int
    value: float
    terminal: bool
    answer: str | None


def _visited(node: Any, name: str, parent: int | None) -> _Visited:
    visits = field(node, "visits", int, name)
    if visits < 0:
        raise FieldError(f"{name}.visits", "a count from 0", shorten(visits))
    return _Visited(
        parent=parent,
        state=field(node, "state", str, name),
        visits=visits,
        value=number(node.get("value"), f"{name}.value"),
        terminal=field(node, "is_terminal", bool, name) if "is_terminal" in node else False,
        answer=field(node, "answer", str, name) if node.get("answer") is not None else None,
    )


#: What the sum of a node's simulations is, by what its value may be.
_SUMS: dict[str, Callable[[_Visited], float]] = {
    "mean": lambda node: node.value * node.visits,
    "sum": lambda node: node.value,
}


def _simulations(
    nodes: Sequence[_Visited], total: Callable[[_Visited], float]
) -> list[tuple[int, float]] | None:
    """How many simulations ended at each node and the sum of their values; None if they do not add up."""
    counts = [node.visits for node in nodes]
    sums = [total(node) for node in nodes]
    scales = [abs(value) for value in sums]
    for node in nodes:
        if node.parent is not None:
            counts[node.parent] -= node.visits
            sums[node.parent] -= total(node)
            scales[node.parent] += abs(total(node))
    for count, value, scale in zip(counts, sums, scales, strict=True):
        if count < 0 or (count == 0 and abs(value) > _TOLERANCE * max(scale, 1.0)):
            return None
    return list(zip(counts, sums, strict=True))


def _search(nodes: Sequence[_Visited], ended: Sequence[tuple[int, float]]) -> tuple[list[Event], list[int]]:
    """The events, and the nodes whose text is their whole state."""
    events: list[Event] = []
    paths: list[tuple[int, ...]] = []
    restated: list[int] = []
    for identifier, (node, (count, value)) in enumerate(zip(nodes, ended, strict=True)):
        above = () if node.parent is None else paths[node.parent]
        paths.append((identifier, *above))
        before = "" if node.parent is None else nodes[node.parent].state
        if not node.state.startswith(before):
            restated.append(identifier)
            before = ""
        events.append(
            Node(
                id=identifier,
                parents=above[:1],
                depth=len(above),
                kind="root" if node.parent is None else "terminal" if node.terminal else "thought",
                state_bytes=text_bytes(node.state),
                text=node.state[len(before) :],
            )
        )
        if count:
            events += [Backup(path=paths[identifier], value=value / count)] * count
    events += [Eval(id=identifier, score=node.value) for identifier, node in enumerate(nodes)]
    return events, restated


def _events(record: Any, index: int) -> list[Event]:
    nodes = [_visited(*place) for place in preorder(field(record, "root", dict), "root")]
    rebuilt = {
        name: found for name, total in _SUMS.items() if (found := _simulations(nodes, total)) is not None
    }
    value_is, ended = next(iter(rebuilt.items()), (None, [(0, 0.0)] * len(nodes)))
    events, restated = _search(nodes, ended)
    meta: dict[str, object] = {key: value for key, value in record.items() if key != "root"}
    meta |= {
        "order": "preorder",
        "answers": {str(place): node.answer for place, node in enumerate(nodes) if node.answer is not None},
        "value_is": value_is,
    }
    remarks: dict[str, int] = {}
    if value_is is None:
        meta["visits"] = [node.visits for node in nodes]
        remarks[NOT_REBUILT] = 1
    if restated:
        meta["restated"] = restated
        remarks[RESTATED] = len(restated)
    if remarks:
        meta["remarks"] = remarks
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"mcts_llm/{index}",
        algorithm="mcts",
        order_known=False,
        source="mcts_llm",
        meta=meta,
    )
    return [begin, *events, End(status="unknown")]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a search."""
    return one_each(path, value_records(path), _events)


IMPORTER = Importer(
    name="mcts_llm",
    description="Monte-Carlo tree search of a language model, tree with visits",
    recognises=recognises,
    read=read,
    lacks=(
        "the order of visits: events follow the tree in preorder, simulations where they ended",
        "the value of each simulation, where several ended at one node: their mean",
        "untried counts, and moves between simulations: each begins at the root",
        "whether the answer is right",
        "tokens of a node",
    ),
)
