"""Depth-first search on any problem, recorded while it runs.

It knows what it still has to try (it holds the list), so its untried counts are declared. Where it resumes
is decided by its own stack, not by the counts that it records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..events import Status
from ..recorder import Recorder

__all__ = ["Outcome", "Problem", "depth_first"]

State = TypeVar("State")


class Problem(Protocol[State]):
    """What a depth-first search needs to know of a problem."""

    @property
    def root(self) -> State:
        """Where the search starts."""
        ...

    def children(self, state: State) -> Sequence[State]:
        """The states to try below `state`, in order."""
        ...

    def solved(self, state: State) -> bool:
        """Whether the state is a solution."""
        ...

    def dead(self, state: State) -> str | None:
        """Why nothing below the state can be a solution; None if something may."""
        ...

    def describe(self, state: State) -> str:
        """The step that led to the state, in words."""
        ...

    def size(self, state: State) -> int:
        """Bytes that the state takes to keep."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[State]):
    """How a search ended."""

    status: Status
    solution: State | None = None


@dataclass(kw_only=True)
class _Frame(Generic[State]):
    """One level of the search's stack."""

    node: int
    state: State
    waiting: list[State] = field(default_factory=list)
    """Children left to try, the next one last."""
    tried: int = 0


def depth_first(
    recorder: Recorder, problem: Problem[State], *, budget: int, most_children: int | None = None
) -> Outcome[State]:
    """Search until a solution, `budget` nodes or the end, recording everything between `begin` and `end`.

    With `most_children` a node is left, whatever else it had to try, after that many children.
    """
    stack: list[_Frame[State]] = []

    def enter(node: int, state: State) -> None:
        waiting = list(reversed(problem.children(state)))
        if not waiting:
            recorder.prune(node, "no_children")
            return
        recorder.save(node, problem.size(state))
        recorder.expand(node, len(waiting))
        stack.append(_Frame(node=node, state=state, waiting=waiting))

    here = recorder.node(kind="root", state_bytes=problem.size(problem.root))
    root = here
    enter(root, problem.root)
    while stack:
        frame = stack[-1]
        if frame.waiting and frame.tried == most_children:
            recorder.prune(frame.node, "enough", abandoned=True)
            frame.waiting.clear()
        if not frame.waiting:
            stack.pop()
            continue
        if here != frame.node:
            recorder.backtrack(here, frame.node)
            recorder.restore(frame.node, problem.size(frame.state))
        state = frame.waiting.pop()
        frame.tried += 1
        recorder.expand(frame.node, len(frame.waiting))
        here = recorder.node(frame.node, state_bytes=problem.size(state), text=problem.describe(state))
        if problem.solved(state):
            return Outcome(status="solved", solution=state)
        if recorder.nodes >= budget:
            return Outcome(status="budget")
        reason = problem.dead(state)
        if reason is not None:
            recorder.prune(here, reason)
        else:
            enter(here, state)
    if here != root:
        recorder.backtrack(here, None)
    return Outcome(status="exhausted")
