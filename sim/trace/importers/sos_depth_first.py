"""Events of a depth-first Stream-of-Search path."""

from __future__ import annotations

from collections import Counter

from ..errors import FieldError
from ..events import Event, Jump, UntriedSource
from .countdown import HEURISTICS, children
from .depth_first import DepthFirstEvents
from .sos_path import Move, SearchPath

__all__ = ["depth_first_events"]


def _recomputed(path: SearchPath, heuristic: str) -> list[int] | None:
    """Children of every node by the search's own rule; None if the path does not follow it."""
    if heuristic not in HEURISTICS:
        return None
    distance = HEURISTICS[heuristic]
    recorded = Counter(node.parent for node in path.nodes)
    last = path.nodes[-1].operations
    counts = []
    for identifier, node in enumerate(path.nodes):
        count = 0
        if not node.terminal:
            count = sum(distance(child, path.target) <= path.target for child in children(node.numbers))
            # Only on the path to where the search ended may something be left to try.
            unfinished = path.goal and last[: len(node.operations)] == node.operations
            if recorded[identifier] > count or (recorded[identifier] < count and not unfinished):
                return None
        counts.append(count)
    return counts


def depth_first_events(path: SearchPath, *, heuristic: str) -> list[Event]:
    """The events between `begin` and `end`. Raises FieldError."""
    source: UntriedSource = "recomputed"
    counts = _recomputed(path, heuristic)
    if counts is None:
        source = "lookahead"
        recorded = Counter(node.parent for node in path.nodes)
        counts = [recorded[identifier] for identifier in range(len(path.nodes))]
    search = DepthFirstEvents(children=counts, untried_source=source)
    root = path.nodes[0]
    search.node(None, kind="root", state_bytes=len(root.state(path.target)), ext_id=root.ext_id)
    for step in path.steps:
        if isinstance(step, Move):
            _move(search, step)
            continue
        node = path.nodes[step]
        if node.parent != search.focus:
            shown = f"operation {node.operations[-1]} without it"
            raise FieldError("search_path", "`Moving to Node` before going on elsewhere", shown)
        search.node(
            node.parent,
            kind="terminal" if node.terminal else "thought",
            state_bytes=len(node.state(path.target)),
            ext_id=node.ext_id,
            text=node.operations[-1],
        )
        if node.terminal and not node.goal:
            search.prune(step, "no_solution")
    return search.events


def _move(search: DepthFirstEvents, move: Move) -> None:
    if move.to == search.focus:
        return
    if move.to is None:
        reason = "the source moves to an id that it never generated"
        search.events.append(Jump(from_=search.focus, to=None, check="none", reason=reason))
    elif search.is_ancestor(move.to, search.focus):
        search.back(move.to)
    else:
        search.events.append(Jump(from_=search.focus, to=move.to))
        search.focus = move.to
