"""Where the thoughts of a Graph-of-Thoughts result come from: edges that the file does not hold, worked out.

In that program an operation takes the thoughts of those before it that it is joined to. The list is in an
order in which each stands behind those; two things tell which they are:

* A thought that an operation makes begins as a copy of the thought that it is made from, so it has all the
  keys of that one's state. A thought with a key that the new one lacks is not its origin: that is how
  parallel branches tell apart. Only ends of the graph so far are taken, thoughts that no operation has
  used.
* An operation that passes thoughts on (score, keep) has thoughts that are found again in those before it,
  by their states: first among the ends, then, as when the best so far is kept beside what is new, further
  back.

If the thoughts made by one operation come from several operations, it is a merge: then each has its own
origin as first parent, and the thoughts of the other operations as further parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import FieldError, shorten

__all__ = ["Graph", "GraphNode", "Operation", "Step", "Thought", "thought_graph"]

#: Operations whose thoughts are new ones.
_MAKING = ("generate", "improve", "aggregate", "validate_and_improve")
#: Operations that pass on thoughts that there are.
_PASSING = ("score", "keep_best_n", "keep_valid", "selector", "ground_truth_evaluator")
#: What scoring leaves behind in the state that it looked at, and not in the copy of it that it passes on.
_NOT_COMPARED = frozenset({"evaluation_metrics"})


@dataclass(frozen=True)
class Thought:
    """The state of a thought, as far as copies of it have it too."""

    state: Mapping[str, Any]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Thought:
        """The thought with this state in a file."""
        return cls({key: value for key, value in state.items() if key not in _NOT_COMPARED})


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the file."""

    kind: str
    thoughts: Sequence[Thought]
    scores: Sequence[float | None]
    solved: Sequence[bool]


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """A thought where it was made."""

    state: Mapping[str, Any]
    parents: tuple[int, ...]
    """Places in `Graph.nodes`; empty: made from the problem alone."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one operation did."""

    kind: str
    made: Sequence[int]
    """Nodes that it made."""
    taken: Sequence[int]
    """Nodes that it chose from or looked at, in order."""
    results: Sequence[int]
    """Nodes that came out of it, in order."""
    scores: Sequence[float | None]
    """Of each result."""


@dataclass(kw_only=True)
class Graph:
    """The thoughts and what was done with them, in order."""

    nodes: list[GraphNode] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


class _Builder:
    def __init__(self) -> None:
        self.graph = Graph()
        self._ends: list[int] = []
        """Places in `graph.steps` of operations whose thoughts none has used, oldest first."""

    def step(self, operation: Operation, name: str) -> None:
        """Add one operation. Raises FieldError that calls it `name`."""
        if operation.kind in _MAKING:
            step = self._make(operation)
        elif operation.kind in _PASSING:
            step = self._pass(operation, name)
        else:
            expected = f"one of {', '.join((*_MAKING, *_PASSING))}"
            raise FieldError(f"{name}.operation", expected, shorten(operation.kind))
        self._ends.append(len(self.graph.steps))
        self.graph.steps.append(step)

    def _make(self, operation: Operation) -> Step:
        count = len(operation.thoughts)
        first = len(self.graph.nodes)
        origins = [self._origins(thought) for thought in operation.thoughts]
        if operation.kind != "aggregate":
            # As many are made from each origin, those of one after those of another.
            origins = [held[place * len(held) // count :][:1] for place, held in enumerate(origins)]
        taken = list(dict.fromkeys(node for held in origins for node in held))
        sources = [end for end in self._ends if set(self.graph.steps[end].results) & set(taken)]
        merged = self._results(sources) if len(sources) > 1 else []
        for thought, held in zip(operation.thoughts, origins, strict=True):
            parents = tuple(dict.fromkeys([*held, *merged])) if held else ()
            self.graph.nodes.append(GraphNode(state=thought.state, parents=parents))
        self._ends = [end for end in self._ends if end not in sources]
        made = range(first, len(self.graph.nodes))
        return Step(kind=operation.kind, made=made, taken=taken, results=made, scores=operation.scores)

    def _origins(self, thought: Thought) -> list[int]:
        """The thoughts at the ends that this one may be made from."""
        held = self._results(self._ends)
        return [node for node in held if self.graph.nodes[node].state.keys() <= thought.state.keys()]

    def _pass(self, operation: Operation, name: str) -> Step:
        results: list[int] = []
        used: set[int] = set()
        for position, (thought, score) in enumerate(zip(operation.thoughts, operation.scores, strict=True)):
            found = self._find(thought, score, results)
            if found is None:
                expected = "a thought of an operation before this one"
                shown = shorten(thought.state.get("current", dict(thought.state)))
                raise FieldError(f"{name}.thoughts[{position}]", expected, shown)
            step, node = found
            used.add(step)
            results.append(node)
        newest = self._ends[-1:]
        kept_from_before = operation.kind == "keep_best_n" and not used <= set(self._ends)
        if kept_from_before or not (operation.thoughts or self._results(newest)):
            # One from further back was kept rather than what is new; and nothing passes on nothing.
            used.update(newest)
        self._ends = [end for end in self._ends if end not in used]
        return Step(
            kind=operation.kind,
            made=(),
            taken=list(dict.fromkeys(self._results(sorted(used)))),
            results=results,
            scores=operation.scores,
        )

    def _find(self, thought: Thought, score: float | None, already: Sequence[int]) -> tuple[int, int] | None:
        """The step and the node of a thought that is passed on: of the newest end, or further back.

        Of several with this state it is one with this score, if there is one, and else the first.
        """
        further_back = [step for step in range(len(self.graph.steps)) if step not in self._ends]
        for number in [*reversed(self._ends), *reversed(further_back)]:
            step = self.graph.steps[number]
            alike = [
                (scored != score, place)
                for place, (node, scored) in enumerate(zip(step.results, step.scores, strict=True))
                if node not in already and _same(self.graph.nodes[node].state, thought.state)
            ]
            if alike:
                return number, step.results[min(alike)[1]]
        return None

    def _results(self, steps: Iterable[int]) -> list[int]:
        return [node for step in steps for node in self.graph.steps[step].results]


def _same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two states agree in every key that both have, and have the same keys or all of one's."""
    common = first.keys() & second.keys()
    return (
        bool(common)
        and all(first[key] == second[key] for key in common)
        and (common == first.keys() or common == second.keys())
    )


def thought_graph(operations: Sequence[Operation]) -> Graph:
    """The thoughts of a file with their parents. Raises FieldError."""
    builder = _Builder()
    for position, operation in enumerate(operations):
        builder.step(operation, f"[{position}]")
    return builder.graph
