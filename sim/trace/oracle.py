"""The answers that a trace should get, worked out in plain Python from its events alone.

It keeps the tree as `events` says it changes and shares no code with the accelerator, the golden
interpreter or the walk programs.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .events import Backtrack, Backup, Eval, Event, Expand, Jump, Node, Prune, Select

__all__ = ["Oracle", "Tally", "tally"]


def _float32(score: float) -> float:
    """`score` as the record holds it: two scores that differ beyond float32 are equal there."""
    value: float = struct.unpack("<f", struct.pack("<f", score))[0]
    return value


class Oracle:
    """The tree of one trace after the events fed so far, and the answers it gives."""

    def __init__(self) -> None:
        self.parents: list[tuple[int, ...]] = []
        self.depths: list[int] = []
        self.scores: list[float | None] = []
        """As float32; None: no score."""
        self.untried: list[int] = []
        self.dead: list[bool] = []
        self.visits: list[int] = []
        self.values: list[float] = []

    def feed(self, event: Event) -> None:
        """Apply one event. Events that only ask change nothing."""
        match event:
            case Node():
                self.parents.append(event.parents)
                self.depths.append(event.depth)
                self.scores.append(None)
                self.untried.append(0)
                self.dead.append(False)
                self.visits.append(0)
                self.values.append(0.0)
            case Expand():
                self.untried[event.id] = event.untried
            case Eval():
                self.scores[event.id] = None if event.score is None else _float32(event.score)
            case Prune():
                if event.abandoned:
                    self.untried[event.id] = 0
                else:
                    self.dead[event.id] = True
            case Backup():
                for node in event.path:
                    self.visits[node] += 1
                    self.values[node] += event.value
            case _:
                pass

    def path(self, node: int) -> list[int]:
        """The node and its ancestors by first parents, up to the root."""
        path = [node]
        while self.parents[path[-1]]:
            path.append(self.parents[path[-1]][0])
        return path

    def climb(self, node: int) -> int | None:
        """The nearest proper ancestor that is alive and has something left to try."""
        return next(
            (above for above in self.path(node)[1:] if not self.dead[above] and self.untried[above] > 0),
            None,
        )

    def select(self, candidates: Iterable[int], count: int, *, live_only: bool = False) -> list[int]:
        """The `count` best by (score descending, place among the candidates ascending); no score is worst."""
        ranked = sorted(
            (node for node in candidates if not (live_only and self.dead[node])), key=self._rank, reverse=True
        )
        return ranked[:count]

    def _rank(self, node: int) -> tuple[bool, float]:
        score = self.scores[node]
        return (score is not None, 0.0 if score is None else score)

    def common_ancestor(self, first: int, second: int) -> int | None:
        """The deepest node on both paths, the nodes themselves included; None in different trees."""
        above = set(self.path(first))
        return next((node for node in self.path(second) if node in above), None)

    def agrees(self, event: Backtrack | Select | Jump) -> bool:
        """Whether the event's own answer is the one that the tree gives now.

        A jump says only where it went: it agrees if that is no ancestor of where it came from.
        """
        if isinstance(event, Backtrack):
            return self.climb(event.from_) == event.to
        if isinstance(event, Jump):
            return event.to is not None and self.common_ancestor(event.from_, event.to) != event.to
        best = self.select(event.candidates, len(event.chosen), live_only=event.live_only)
        if event.order == "exact":
            return tuple(best) == event.chosen
        return [self._rank(node) for node in best] == [self._rank(node) for node in event.chosen]


@dataclass(kw_only=True)
class Tally:
    """How many checked answers of some traces agree with the oracle."""

    checked: Counter[str] = field(default_factory=Counter)
    """Checked events by `check`."""
    agreed: Counter[str] = field(default_factory=Counter)
    """Those of them whose answer the oracle gives too."""
    by_source: Counter[str] = field(default_factory=Counter)
    """Checked climbs by the source of their counts."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """Unchecked events by reason."""


def tally(traces: Iterable[Iterable[Event]]) -> Tally:
    """Run the oracle over traces."""
    result = Tally()
    for trace in traces:
        oracle = Oracle()
        for event in trace:
            if isinstance(event, Backtrack | Select | Jump):
                if event.check == "none":
                    result.unchecked[event.reason or ""] += 1
                else:
                    result.checked[event.check] += 1
                    result.agreed[event.check] += oracle.agrees(event)
                    if isinstance(event, Backtrack):
                        result.by_source[event.untried_source or "none"] += 1
            oracle.feed(event)
    return result
