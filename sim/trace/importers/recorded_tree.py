"""Events of a search of which a file holds the tree: its nodes in some order, and little else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..events import Eval, Event
from .depth_first import DepthFirstEvents, climbs_only_where_nearest, climbs_unchecked

__all__ = ["ORDER_LOST", "OTHER_ORDER", "RecordedNode", "recorded_events"]

ORDER_LOST = "the order of visits is lost"
OTHER_ORDER = "the search did not go back to the nearest node with children left to try"


@dataclass(frozen=True, kw_only=True)
class RecordedNode:
    """One node as a file has it."""

    parents: tuple[int, ...]
    """Places of nodes before it in the order; the first is the one that it counts as a child of."""
    kind: str = "thought"
    state_bytes: int = 0
    tokens: int | None = None
    ext_id: str | None = None
    text: str | None = None
    score: float | None = None
    """None: it has none."""
    dead: str | None = None
    """Why the search gave it up; None: it did not."""


def _last_descendants(nodes: Sequence[RecordedNode]) -> list[int]:
    """The last node of each one's subtree by first parents, itself included."""
    last = list(range(len(nodes)))
    for node in reversed(range(len(nodes))):
        for parent in nodes[node].parents[:1]:
            last[parent] = max(last[parent], last[node])
    return last


def recorded_events(nodes: Sequence[RecordedNode], *, order_known: bool) -> list[Event]:
    """The events between `begin` and `end` of a search that made `nodes` in this order.

    The search stands where it made a node until it makes one elsewhere: then it goes back there, or jumps.
    What is left to try comes from the children that follow. A node is dead from when its last descendant is
    made. Backtracks are checked if the order is known and they go to the nearest node with children left.
    """
    children = [0] * len(nodes)
    for node in nodes:
        for parent in node.parents[:1]:
            children[parent] += 1
    last = _last_descendants(nodes)
    search = DepthFirstEvents(children=children, untried_source="lookahead")
    for identifier, node in enumerate(nodes):
        parent = node.parents[0] if node.parents else None
        if parent is not None:
            search.go(parent)
        search.node(
            parent,
            kind=node.kind,
            state_bytes=node.state_bytes,
            ext_id=node.ext_id,
            text=node.text,
            tokens=node.tokens,
            further_parents=node.parents[1:],
        )
        if node.score is not None:
            search.events.append(Eval(id=identifier, score=node.score))
        done: int | None = identifier
        while done is not None and last[done] == identifier:
            reason = nodes[done].dead
            if reason is not None:
                search.prune(done, reason)
            done = nodes[done].parents[0] if nodes[done].parents else None
    if not order_known:
        return climbs_unchecked(search.events, ORDER_LOST)
    return climbs_only_where_nearest(search.events, OTHER_ORDER)
