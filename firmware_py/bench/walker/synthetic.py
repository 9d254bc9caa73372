"""Synthetic depth-first searches with deep climbs: long forced runs that end in dead ends."""

from __future__ import annotations

import random

from sim.trace.events import SCHEMA_VERSION, Begin, End
from sim.trace.importers.depth_first import DepthFirstEvents
from sim.trace.schema import Trace

__all__ = ["deep_searches"]

_DEPTH = 16
#: Above this depth every node has a child, and half of them two.
_CROWN = 6
_NODES = 300
_STATE_BYTES = (64, 1024)


def deep_searches(count: int, *, seed: int) -> list[Trace]:
    """`count` exhausted searches of trees at least 8 deep, at most 16 deep, of up to about 300 nodes."""
    chance = random.Random(seed)
    return [_search(chance, f"deep {number}") for number in range(count)]


def _search(chance: random.Random, name: str) -> Trace:
    parents, children = _tree(chance)
    search = DepthFirstEvents(children=children, untried_source="declared")
    for node, parent in enumerate(parents):
        if parent is not None and parent != search.focus:
            search.prune(search.focus, "dead end")
            search.back(parent)
        search.node(parent, kind="thought", state_bytes=chance.randint(*_STATE_BYTES))
        assert search.focus == node
    return Trace(
        begin=Begin(version=SCHEMA_VERSION, trace=name, algorithm="dfs", source="synthetic"),
        events=search.events,
        end=End(status="exhausted"),
        file="synthetic",
    )


def _tree(chance: random.Random) -> tuple[list[int | None], list[int]]:
    """Parents and numbers of children, in preorder."""
    parents: list[int | None] = []
    children: list[int] = []
    waiting: list[tuple[int | None, int]] = [(None, 0)]
    while waiting:
        parent, depth = waiting.pop()
        node = len(parents)
        if depth == _DEPTH:
            count = 0
        elif depth < _CROWN:
            count = chance.choice((1, 2))
        else:
            count = chance.choices((0, 1, 2), (2, 15, 3))[0]
        if node + len(waiting) + count > _NODES:
            count = min(count, 1)
        parents.append(parent)
        children.append(count)
        waiting += [(node, depth + 1)] * count
    return parents, children
