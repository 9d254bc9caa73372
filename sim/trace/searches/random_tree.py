"""A search problem whose tree is drawn from a seed: for replays of any size, the same every time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["RandomTree"]

State = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RandomTree:
    """A tree whose root has three children and every other node zero to three, down to `depth`.

    A state is the path to it: the place of each child among its siblings. Nothing is a solution; a state at
    `depth` is dead.
    """

    seed: int
    depth: int = 6

    @property
    def root(self) -> State:
        """The empty path."""
        return ()

    def children(self, state: State) -> Sequence[State]:
        """The paths one longer."""
        if not state:
            count = 3
        elif len(state) < self.depth:
            count = random.Random(f"{self.seed} {state}").randrange(4)
        else:
            count = 0
        return [(*state, child) for child in range(count)]

    def solved(self, state: State) -> bool:
        """Never."""
        return False

    def dead(self, state: State) -> str | None:
        """At the depth where the tree ends."""
        return "dead_end" if len(state) == self.depth else None

    def describe(self, state: State) -> str:
        """The path."""
        return str(state)

    def size(self, state: State) -> int:
        """Grows with the path."""
        return 64 * len(state)
