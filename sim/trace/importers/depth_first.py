"""Events of a depth-first search, from the order in which it made its nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ..events import Backtrack, Event, Expand, Jump, Node, Prune, Restore, Save, UntriedSource
from ..oracle import Oracle

__all__ = ["DepthFirstEvents", "climbs_only_where_nearest", "climbs_unchecked"]


class DepthFirstEvents:
    """Collects the events of one depth-first search whose children per node are known.

    `children[n]` is how many children node n has to try when it comes to exist: those recorded later
    (look-ahead), or those that the search's own rule gives (recomputed). A child being tried counts its
    parent's number down with an `expand` of its own, right before the child's `node`.
    """

    def __init__(self, *, children: Sequence[int], untried_source: UntriedSource) -> None:
        self.events: list[Event] = []
        self.focus = 0
        """The node where the search stands."""
        self._children = children
        self._source: UntriedSource = untried_source
        self._parents: list[int | None] = []
        self._depths: list[int] = []
        self._bytes: list[int] = []
        self._untried: list[int] = []

    def node(
        self,
        parent: int | None,
        *,
        kind: str,
        state_bytes: int,
        ext_id: str | None = None,
        text: str | None = None,
        tokens: int | None = None,
        further_parents: Iterable[int] = (),
    ) -> int:
        """A node is made and the search stands on it; returns its id."""
        identifier = len(self._parents)
        depth = 0
        if parent is not None:
            depth = self._depths[parent] + 1
            self._untried[parent] -= 1
            self._expand(parent)
        self._parents.append(parent)
        self._depths.append(depth)
        self._bytes.append(state_bytes)
        self._untried.append(self._children[identifier])
        self.events.append(
            Node(
                id=identifier,
                parents=() if parent is None else (parent, *further_parents),
                depth=depth,
                kind=kind,
                state_bytes=state_bytes,
                tokens=tokens,
                ext_id=ext_id,
                text=text,
            )
        )
        if self._untried[identifier]:
            # The state of a node with children to try is kept to come back to.
            self.events.append(Save(id=identifier, bytes=state_bytes))
            self._expand(identifier)
        self.focus = identifier
        return identifier

    def prune(self, node: int, reason: str) -> None:
        """The search stopped at `node` for good."""
        self.events.append(Prune(id=node, reason=reason))

    def back(self, to: int) -> None:
        """The search goes back from where it stands to `to`, an ancestor, and restores its state."""
        self.events.append(Backtrack(from_=self.focus, to=to, untried_source=self._source))
        self.events.append(Restore(id=to, bytes=self._bytes[to]))
        self.focus = to

    def go(self, to: int) -> None:
        """The search goes on at `to` and reads its state: back if it is above, else a jump."""
        if self.is_ancestor(to, self.focus):
            self.back(to)
        elif to != self.focus:
            self.events.append(Jump(from_=self.focus, to=to))
            self.events.append(Restore(id=to, bytes=self._bytes[to]))
            self.focus = to

    def is_ancestor(self, candidate: int, node: int) -> bool:
        """True if `candidate` is a proper ancestor of `node`."""
        parent = self._parents[node]
        while parent is not None and parent > candidate:
            parent = self._parents[parent]
        return parent == candidate

    def _expand(self, node: int) -> None:
        self.events.append(Expand(id=node, untried=self._untried[node], untried_source=self._source))


def climbs_unchecked(events: Iterable[Event], reason: str) -> list[Event]:
    """The events with no backtrack checked, for `reason`."""
    return [
        dataclasses.replace(event, check="none", reason=reason) if isinstance(event, Backtrack) else event
        for event in events
    ]


def climbs_only_where_nearest(events: Iterable[Event], reason: str) -> list[Event]:
    """The events with a backtrack checked only if it goes where a depth-first search would.

    That is the nearest ancestor that is alive and has something left to try, by the counts of the events.
    The others are not, for `reason`.
    """
    oracle = Oracle()
    checked: list[Event] = []
    for event in events:
        if isinstance(event, Backtrack) and not oracle.agrees(event):
            event = dataclasses.replace(event, check="none", reason=reason)
        oracle.feed(event)
        checked.append(event)
    return checked
