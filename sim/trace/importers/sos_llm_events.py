"""Events of a Stream-of-Search text by a language model."""

from __future__ import annotations

from collections import Counter

from ..events import Event, Jump
from .depth_first import DepthFirstEvents, climbs_only_where_nearest
from .sos_llm_path import ToldMove, ToldNode, ToldSearch

__all__ = ["told_events"]

UNKNOWN_MOVE = "the text moves to an id that it never gave"
OTHER_ORDER = "the text does not go back to the nearest node with children left to try"


class _Events:
    def __init__(self, told: ToldSearch) -> None:
        recorded = Counter(node.parent for node in told.nodes)
        children = [recorded[identifier] for identifier in range(len(told.nodes))]
        self.search = DepthFirstEvents(children=children, untried_source="lookahead")
        self._told = told
        self._operations: list[tuple[str, ...]] = []
        self.make(0)

    def make(self, identifier: int) -> None:
        """A node comes to exist; the search stands where it was made, or on it if it is a result."""
        node = self._told.nodes[identifier]
        search = self.search
        above = () if node.parent is None else self._operations[node.parent]
        self._operations.append(above if node.operation is None else (*above, node.operation))
        stood = search.focus
        if node.parent is not None:
            self._stand_at(node.parent)
            stood = search.focus
        search.node(
            node.parent,
            kind="root" if identifier == 0 else _kind(node),
            state_bytes=len(self._state(identifier)),
            ext_id=node.ext_id,
            text=node.text,
        )
        if not node.terminal:
            search.focus = stood
        elif not node.goal:
            search.prune(identifier, "no_solution")

    def _stand_at(self, node: int) -> None:
        """Where a node is made from: below where the search stands, above its last result, or elsewhere."""
        search = self.search
        focus = self._told.nodes[search.focus]
        if search.is_ancestor(search.focus, node) or (focus.terminal and focus.parent == node):
            search.focus = node
        else:
            search.go(node)

    def move(self, move: ToldMove) -> None:
        """The text moves."""
        search = self.search
        if move.to is None:
            search.events.append(Jump(from_=search.focus, to=None, check="none", reason=UNKNOWN_MOVE))
        elif search.is_ancestor(search.focus, move.to):
            search.focus = move.to
        else:
            search.go(move.to)

    def _state(self, identifier: int) -> str:
        """The state as the source writes it."""
        node = self._told.nodes[identifier]
        numbers = ", ".join(node.numbers)
        return f"{self._told.target}:[{numbers}], Operations: {list(self._operations[identifier])}"


def _kind(node: ToldNode) -> str:
    return "terminal" if node.terminal else "thought"


def told_events(told: ToldSearch) -> list[Event]:
    """The events between `begin` and `end`."""
    events = _Events(told)
    for step in told.steps:
        if isinstance(step, ToldMove):
            events.move(step)
        else:
            events.make(step)
    return climbs_only_where_nearest(events.search.events, OTHER_ORDER)
