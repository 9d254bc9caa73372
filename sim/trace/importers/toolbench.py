"""ToolBench DFSDT answers: one file, one tree of thoughts, actions and action inputs.

The search without filter visits its tree in preorder, so the order of `children` is the order of visits;
`expand_num`, counted up by the search, must agree or the order counts as lost (`order_known` false, and
the backtracks are not checked). A node marked `pruned` is dead from when the search left it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .depth_first import DepthFirstEvents, climbs_unchecked
from .registry import Importer
from .source import field, located, single_record, text_bytes

__all__ = ["IMPORTER"]

_KINDS = {"Action": "action", "Action Input": "action_input", "Thought": "thought"}


def recognises(head: str) -> bool:
    """True for an object with a `tree` whose nodes have a `node_type`."""
    return (
        re.match(r"\s*\{", head) is not None
        and re.search(r'"tree"\s*:\s*\{', head) is not None
        and re.search(r'"node_type"\s*:', head) is not None
    )


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """One node of the source, in order of visit."""

    parent: int | None
    kind: str
    state_bytes: int
    pruned: bool
    expand_num: int
    children: int


def _visit(node: Any, name: str, parent: int | None, depth: int) -> _Visit:
    node_type = field(node, "node_type", str, name)
    if node_type not in _KINDS:
        raise FieldError(f"{name}.node_type", f"one of {', '.join(_KINDS)}", shorten(node_type))
    if "depth" in node and field(node, "depth", int, name) != depth:
        raise FieldError(f"{name}.depth", f"{depth}, its place in the tree", shorten(node["depth"]))
    observation = node.get("observation", "")
    if not isinstance(observation, str):
        observation = json.dumps(observation)
    text = field(node, "description", str, name) + observation
    return _Visit(
        parent=parent,
        kind="root" if parent is None else _KINDS[node_type],
        state_bytes=text_bytes(text),
        pruned=field(node, "pruned", bool, name) if "pruned" in node else False,
        expand_num=field(node, "expand_num", int, name) if "expand_num" in node else 0,
        children=len(field(node, "children", list, name)),
    )


def _preorder(root: Any) -> list[_Visit]:
    visits: list[_Visit] = []
    waiting: list[tuple[Any, str, int | None, int]] = [(root, "tree.tree", None, 0)]
    while waiting:
        node, name, parent, depth = waiting.pop()
        visit = _visit(node, name, parent, depth)
        identifier = len(visits)
        visits.append(visit)
        for position in reversed(range(visit.children)):
            child = node["children"][position]
            waiting.append((child, f"{name}.children[{position}]", identifier, depth + 1))
    return visits


def _order_known(visits: list[_Visit]) -> bool:
    numbers = [visit.expand_num for visit in visits if visit.expand_num]
    return numbers == sorted(numbers)


def _search(visits: list[_Visit]) -> list[Event]:
    search = DepthFirstEvents(children=[visit.children for visit in visits], untried_source="lookahead")
    for visit in visits:
        if visit.parent is not None and visit.parent != search.focus:
            _leave(search, visits, until=visit.parent)
            search.back(visit.parent)
        search.node(visit.parent, kind=visit.kind, state_bytes=visit.state_bytes)
    _leave(search, visits, until=None)
    return search.events


def _leave(search: DepthFirstEvents, visits: list[_Visit], *, until: int | None) -> None:
    """Mark what was pruned on the way up from the focus to `until`, which the search goes back to."""
    node: int | None = search.focus
    while node is not None and node != until:
        if visits[node].pruned:
            search.prune(node, "pruned")
        node = visits[node].parent


def _status(record: Any) -> Status:
    if field(record, "win", bool):
        return "solved"
    arguments, answer = record.get("forward_args"), record.get("answer_generation")
    if isinstance(arguments, dict) and isinstance(answer, dict):
        spent, limit = answer.get("query_count"), arguments.get("max_query_count")
        if isinstance(spent, int) and isinstance(limit, int) and spent >= limit:
            return "budget"
    return "unsolved"


def _events(record: Any) -> list[Event]:
    tree = field(record, "tree", dict)
    visits = _preorder(field(tree, "tree", dict, "tree"))
    if "size" in tree and field(tree, "size", int, "tree") != len(visits):
        raise FieldError("tree.size", f"{len(visits)}, the nodes that there are", shorten(tree["size"]))
    known = _order_known(visits)
    events = _search(visits)
    if not known:
        reason = "the tree's expand_num is not in preorder: the order of visits is lost"
        events = climbs_unchecked(events, reason)
    begin = Begin(
        version=SCHEMA_VERSION,
        trace="toolbench_dfsdt/0",
        algorithm="dfsdt",
        order_known=known,
        source="toolbench_dfsdt",
        meta={} if known else {"order": "preorder"},
    )
    return [begin, *events, End(status=_status(record))]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """The one trace of the file."""
    record = single_record(path)
    with located(path, "record 0"):
        events = _events(record)
    yield "record 0", events


IMPORTER = Importer(
    name="toolbench_dfsdt",
    description="ToolBench DFSDT answer, one tree",
    recognises=recognises,
    read=read,
    lacks=(
        "untried counts: taken from the children recorded later",
        "scores: Elo is the same constant in every node",
        "tokens of a node",
    ),
)
