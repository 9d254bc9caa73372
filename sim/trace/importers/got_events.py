"""Events of a graph of thoughts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..events import Eval, Event, Join, Jump, Node, Prune, Restore, Save, Select
from .got_graph import Graph, Step
from .source import text_bytes

__all__ = ["graph_events"]

UNSCORED = "not all thoughts that were chosen from have a score"
OTHER_RULE = "the thoughts that were kept are neither those of the highest scores nor of the lowest"


def _best(scores: Sequence[float], count: int, *, highest: bool) -> list[int]:
    """Places of the best, equals in the order in which they stand."""
    return sorted(range(len(scores)), key=lambda place: -scores[place] if highest else scores[place])[:count]


class _Events:
    def __init__(self, graph: Graph) -> None:
        self.events: list[Event] = [Node(id=0, parents=(), depth=0, kind="root", text="")]
        self.scores: dict[int, float] = {}
        self.choices: list[tuple[int, list[float], list[int]]] = []
        """Where all have scores: the place in `events`, the scores, the places of the chosen among them."""
        self._graph = graph
        self._depths = [0]
        self._sizes = [0]
        self._focus = 0

    def step(self, step: Step) -> None:
        for node in step.made:
            self._make(node)
        if step.kind == "score":
            for node, score in zip(step.results, step.scores, strict=True):
                self.events.append(Eval(id=node + 1, score=score))
                if score is not None:
                    self.scores[node] = score
        elif step.kind == "keep_best_n" and step.results:
            self._keep(step)

    def _make(self, place: int) -> None:
        node = self._graph.nodes[place]
        identifier = place + 1
        parents = tuple(parent + 1 for parent in node.parents) or (0,)
        self._move(parents[0])
        size = text_bytes(json.dumps(dict(node.state), ensure_ascii=False))
        text: Any = node.state.get("current")
        self._depths.append(self._depths[parents[0]] + 1)
        self._sizes.append(size)
        self.events.append(
            Node(
                id=identifier,
                parents=parents,
                depth=self._depths[identifier],
                state_bytes=size,
                text=text if isinstance(text, str) else None,
            )
        )
        if len(parents) > 1:
            self.events.append(Join(ids=parents, to=identifier))

    def _move(self, to: int) -> None:
        """The search goes on at `to`: a jump unless that is where it is, or below."""
        if self._focus not in self._path(to):
            self.events.append(Jump(from_=self._focus, to=to))
            self.events.append(Restore(id=to, bytes=self._sizes[to]))
        self._focus = to

    def _path(self, node: int) -> list[int]:
        path = [node]
        while path[-1]:
            path.append(next((parent + 1 for parent in self._graph.nodes[path[-1] - 1].parents[:1]), 0))
        return path

    def _keep(self, step: Step) -> None:
        known = [self.scores[node] for node in step.taken if node in self.scores]
        chosen = [node + 1 for node in step.results]
        candidates = tuple(node + 1 for node in step.taken)
        if len(known) == len(step.taken):
            places = [step.taken.index(node) for node in step.results]
            self.choices.append((len(self.events), known, places))
            self.events.append(Select(candidates=candidates, chosen=tuple(chosen)))
        else:
            self.events.append(
                Select(candidates=candidates, chosen=tuple(chosen), check="none", reason=UNSCORED)
            )
        for node in chosen:
            self.events.append(Save(id=node, bytes=self._sizes[node]))
        kept = {above for node in chosen for above in self._path(node)}
        for node in candidates:
            if node not in kept:
                self.events.append(Prune(id=node, reason="keep_best"))


def graph_events(graph: Graph) -> tuple[list[Event], bool | None]:
    """The events between `begin` and `end`, and whether the highest scores are the best (None: neither)."""
    made = _Events(graph)
    for step in graph.steps:
        made.step(step)
    for highest in (True, False):
        if all(_best(scores, len(chosen), highest=highest) == chosen for _, scores, chosen in made.choices):
            if highest:
                return made.events, True
            negated: list[Event] = [
                Eval(id=event.id, score=-event.score)
                if isinstance(event, Eval) and event.score is not None
                else event
                for event in made.events
            ]
            return negated, False
    for place, _, _ in made.choices:
        event = made.events[place]
        assert isinstance(event, Select)
        made.events[place] = Select(
            candidates=event.candidates, chosen=event.chosen, check="none", reason=OTHER_RULE
        )
    return made.events, None
