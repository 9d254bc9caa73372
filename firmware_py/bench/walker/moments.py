"""Moments of recorded searches: a whole tree in memory as it is when the search goes back.

A search that proposes all children of a node at once and then visits them in order has a record for each
proposal. So at a moment the records of nodes that come later are there too, open (one thing untried), with
the highest score for the child that comes first. Every node has the skip that it began with
(`firmware_py.skips`), unless one that it may pass has been armed again since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.trace.events import Backtrack, Expand, Node, Prune
from sim.trace.schema import Trace

from ...commands import Atoms
from ...pool import chain_blocks, pool_records
from ...programs.climb_compressed import skip_word
from ...records import (
    CHILD,
    DEAD_BIT,
    DEPTH,
    NO_SCORE,
    PARENT,
    SCORE,
    SIBLING,
    SKIP,
    STATE,
    UNTRIED_MAX,
    order_preserving,
)

__all__ = ["BLOCK_BYTES", "LESSEE", "STAMP", "Moment", "moments"]

#: Bytes of state in a block of the pool.
BLOCK_BYTES = 256
LESSEE = 1
#: The stamp of the trees' skips.
STAMP = 1
#: Free blocks of a pool for each leased one.
_FREE_SHARE = 1
_FIRST = 1


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The memory at one backtrack: nodes from atom 1 on, the pool of their state blocks behind them."""

    atoms: Atoms
    """From atom 1 on."""
    failed: int
    """Address of the node that the search goes back from."""
    resumed: int
    """Address of the node that it goes back to."""
    dead: int
    """Address of the child of that node whose whole subtree is given up."""
    nodes: int
    """Node records."""
    pool: int
    """First atom of the pool."""
    pool_atoms: int


def moments(trace: Trace) -> Iterator[Moment]:
    """Every backtrack of the trace to a node. Every node that exists keeps its state until it is given up."""
    nodes = [event for event in trace.events if isinstance(event, Node)]
    parents = [node.parents[0] if node.parents else None for node in nodes]
    links = _links(nodes, parents)
    untried = np.ones(len(nodes), dtype=np.uint32)
    dead = np.zeros(len(nodes), dtype=np.bool_)
    held: set[int] = set()
    skips = np.zeros(len(nodes), dtype=np.uint32)
    with_child: set[int] = set()
    for event in trace.events:
        match event:
            case Node():
                untried[event.id] = 0
                held.add(event.id)
                with_child |= set(event.parents[:1])
                skips[event.id] = _first_skip(parents, event.id, (untried > 0) & ~dead)
            case Expand():
                if event.id in with_child and event.untried and not untried[event.id]:
                    skips[:] = 0
                untried[event.id] = min(event.untried, UNTRIED_MAX)
            case Prune():
                dead[event.id] = not event.abandoned
            case Backtrack(to=int(to)):
                given_up = event.from_
                while parents[given_up] != to:
                    above = parents[given_up]
                    assert above is not None, "the trace goes back to an ancestor"
                    given_up = above
                status = dead.copy()
                status[event.from_] = False
                records = links.copy()
                records[:, SKIP.word] = skips
                records[:, DEAD_BIT.word] |= untried | status.astype(np.uint32) << DEAD_BIT.low
                yield _moment(nodes, records, held, event.from_, to, given_up)
                held -= {node for node in held if _is_below(parents, node, given_up)}
            case _:
                pass


def _links(nodes: Sequence[Node], parents: Sequence[int | None]) -> Atoms:
    """What never changes of the records."""
    atoms = np.zeros((len(nodes), 8), dtype=np.uint32)
    last: dict[int, int] = {}
    position: dict[int, int] = {}
    for node, parent in zip(nodes, parents, strict=True):
        atoms[node.id, DEPTH.word] = node.depth << DEPTH.low
        score: int = NO_SCORE
        if parent is not None:
            atoms[node.id, PARENT.word] = _FIRST + parent
            if parent in last:
                atoms[last[parent], SIBLING.word] = _FIRST + node.id
            else:
                atoms[parent, CHILD.word] = _FIRST + node.id
            last[parent] = node.id
            position[parent] = position.get(parent, 0) + 1
            score = order_preserving(1 / position[parent])
        atoms[node.id, SCORE.word] = score & 0xFFFFFFFF
    return atoms


def _moment(
    nodes: Sequence[Node],
    records: Atoms,
    held: set[int],
    failed: int,
    resumed: int,
    given_up: int,
) -> Moment:
    base = _FIRST + len(nodes)
    lengths = {node: -(-nodes[node].state_bytes // BLOCK_BYTES) for node in sorted(held)}
    leased = sum(lengths.values())
    pool = pool_records(base=base, count=max(1, leased * (1 + _FREE_SHARE)), block_bytes=BLOCK_BYTES)
    following = base
    for node, length in lengths.items():
        blocks = range(following, following + length)
        records[node, STATE.word] = chain_blocks(pool, base=base, blocks=blocks, owner=LESSEE)
        following += length
    return Moment(
        atoms=np.concatenate([records, pool]),
        failed=_FIRST + failed,
        resumed=_FIRST + resumed,
        dead=_FIRST + given_up,
        nodes=len(nodes),
        pool=base,
        pool_atoms=len(pool),
    )


def _first_skip(parents: Sequence[int | None], node: int, opened: NDArray[np.bool_]) -> int:
    """The SKIP word of a new node: over the closed nodes above it, if its parent is one of them."""
    parent = parents[node]
    above = parent
    while above is not None and not opened[above]:
        above = parents[above]
    return 0 if above is None or above == parent else skip_word(stamp=STAMP, target=_FIRST + above)


def _is_below(parents: Sequence[int | None], node: int | None, top: int) -> bool:
    while node is not None and node > top:
        node = parents[node]
    return node == top
