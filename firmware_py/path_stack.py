"""The path stack of a far place: the path from the root as a depth-first search program keeps it on chip."""

from __future__ import annotations

from dataclasses import dataclass

from sim.trace.events import Event, Expand, Join, Jump, Node, Prune, Spawn

__all__ = ["PathStack", "Resumed"]


@dataclass(slots=True)
class _Level:
    """One node of the path, as the search program knows it."""

    node: int
    untried: int = 0
    dead: bool = False


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """What a climb on the stack found."""

    node: int | None
    """The nearest node that is alive with something untried; None: there is none."""
    levels: int
    """Levels that were looked at."""


class PathStack:
    """The path from the root to the node that the search is at, with each node's count and dead flag.

    It follows the events of one trace. It holds what the search program itself wrote, so it may stand in for
    memory only while nobody else can change a flag of the path. It therefore holds nothing once the search
    has jumped off its path, has made a node with several parents, or below a node whose parent is not on the
    path; and it is of no use at all after branches were spawned that run at the same time. A search that
    shares its tree with others must not use it.
    """

    def __init__(self) -> None:
        self._path: list[_Level] = []
        self._level: dict[int, int] = {}
        """The index in the path of every node on it."""
        self._shared = False

    def follow(self, event: Event) -> None:
        """Do to the path what the event does to the search."""
        match event:
            case Node():
                parent = event.parents[0] if len(event.parents) == 1 else None
                self._cut(-1 if parent is None else self._level.get(parent, -1))
                if (parent is None and event.parents) or (parent is not None and not self._path):
                    return
                self._level[event.id] = len(self._path)
                self._path.append(_Level(event.id))
            case Expand() if event.id in self._level:
                self._path[self._level[event.id]].untried = event.untried
            case Prune() if event.id in self._level:
                level = self._path[self._level[event.id]]
                if event.abandoned:
                    level.untried = 0
                else:
                    level.dead = True
            case Jump():
                self._cut(-1)
            case Spawn() | Join():
                self._shared = True
            case _:
                pass

    def climb(self, start: int | None) -> Resumed | None:
        """The answer of a climb from `start`, which ends the path there; None: it must ask memory."""
        if self._shared or start is None or start not in self._level:
            return None
        top = self._level[start]
        level = top
        while level >= 0 and (self._path[level].dead or self._path[level].untried <= 0):
            level -= 1
        node = self._path[level].node if level >= 0 else None
        self._cut(level)
        return Resumed(node=node, levels=top - max(level, 0) + 1)

    def _cut(self, last: int) -> None:
        """Keep the path up to the level `last`."""
        for level in self._path[last + 1 :]:
            del self._level[level.node]
        del self._path[last + 1 :]
