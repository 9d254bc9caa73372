"""Events of reasoning without a tree: a question, then one step after another, each of which may grow."""

from __future__ import annotations

from ..events import SCHEMA_VERSION, Append, Begin, End, Eval, Event, Node, Status
from .source import text_bytes

__all__ = ["Chain"]


class Chain:
    """Collects the events of one trace. A node's state is the text that it adds to the node before it."""

    def __init__(self, question: str) -> None:
        self.events: list[Event] = []
        self.last = -1
        """The node that the next one follows."""
        self._nodes = 0
        self._depths: list[int] = []
        self.node(question, kind="question")

    def node(self, text: str, *, kind: str = "step", follow: bool = True) -> int:
        """A node below `last`, which becomes `last` with `follow`; returns its id."""
        identifier = self._nodes
        parents = () if self.last < 0 else (self.last,)
        depth = self._depths[self.last] + 1 if parents else 0
        self.events.append(
            Node(
                id=identifier,
                parents=parents,
                depth=depth,
                kind=kind,
                state_bytes=text_bytes(text),
                text=text,
            )
        )
        self._nodes += 1
        self._depths.append(depth)
        if follow:
            self.last = identifier
        return identifier

    def score(self, node: int, score: float | None) -> None:
        """A label of a node, as its score."""
        self.events.append(Eval(id=node, score=score))

    def append(self, text: str, mark: str | None) -> None:
        """The last node grows."""
        self.events.append(Append(id=self.last, mark=mark, bytes=text_bytes(text), text=text))

    def trace(self, name: str, *, source: str, meta: dict[str, object], status: Status) -> list[Event]:
        """All events, from `begin` to `end`."""
        begin = Begin(version=SCHEMA_VERSION, trace=name, algorithm="linear", source=source, meta=meta)
        return [begin, *self.events, End(status=status)]
