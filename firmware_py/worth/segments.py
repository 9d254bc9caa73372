"""What each change of focus in a trace restores: the tokens of the path that the search goes back to.

A backtrack or a jump moves the search to another node, and the model needs the keys and values of every token
on the path from the root to it. Two cases bound what must be brought back:

* kept: the last path is still in memory; restored is what the new path does not share with it. A backtrack to
  an ancestor restores nothing;
* evicted: other searches have taken the memory meanwhile; restored is the whole path.

A root without a token count has none: the prompt is not in a trace, so it is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.trace.events import Append, Backtrack, Jump, Node
from sim.trace.schema import Trace

from ..errors import InputError

__all__ = ["Segments", "segments"]


@dataclass(frozen=True, kw_only=True)
class Segments:
    """The tokens that traces generate, and what each of their backtracks and jumps restores, in tokens."""

    generated: int
    kept: NDArray[np.int64]
    evicted: NDArray[np.int64]
    searches: int
    assumed: int
    """Nodes whose tokens were not in the trace, but assumed."""


def segments(traces: Iterable[Trace], *, tokens_per_node: int | None) -> Segments:
    """The segments of traces; a node without a count has `tokens_per_node`, if that is given.

    Raises InputError naming file, trace and node for a node without a count where none is given, and for
    traces without any backtrack or jump.
    """
    generated = assumed = searches = 0
    kept: list[int] = []
    evicted: list[int] = []
    where = "no trace"
    for trace in traces:
        searches += 1
        where = trace.file
        parent: dict[int, int | None] = {}
        tokens: dict[int, int] = {}
        for event in trace:
            match event:
                case Node():
                    parent[event.id] = event.parents[0] if event.parents else None
                    # A root without a count is the question, which was not generated.
                    count = event.tokens if event.parents else event.tokens or 0
                    tokens[event.id] = 0
                case Append():
                    count = event.tokens
                case Backtrack() | Jump() if event.to is not None:
                    here, there = _path(parent, event.from_), _path(parent, event.to)
                    shared = set(here)
                    evicted.append(sum(tokens[node] for node in there))
                    kept.append(sum(tokens[node] for node in there if node not in shared))
                    continue
                case _:
                    continue
            if count is None:
                if tokens_per_node is None:
                    raise InputError(
                        f"{trace.file}: trace {trace.name}: {event.name} {event.id} has no token count: "
                        "expected one, or --tokens-per-node with the count to assume"
                    )
                count = tokens_per_node
                assumed += 1
            tokens[event.id] += count
            generated += count
    if not evicted:
        raise InputError(f"{where}: no backtrack and no jump: expected one at least to weigh")
    return Segments(
        generated=generated,
        kept=np.array(kept, dtype=np.int64),
        evicted=np.array(evicted, dtype=np.int64),
        searches=searches,
        assumed=assumed,
    )


def _path(parent: dict[int, int | None], node: int) -> list[int]:
    """The nodes from `node` up to its root, by first parents."""
    found: list[int] = []
    at: int | None = node
    while at is not None:
        found.append(at)
        at = parent[at]
    return found
