"""reclaim: the state blocks of a dead subtree, told to the host or given back to the pool on the spot.

Both entries visit the subtree in preorder along first parents; the way is kept in the records, not in a
stack. `reclaim` changes nothing. `reclaim_release` also takes the state from each node before it gives the
blocks back, so that a second walk of the same subtree finds nothing.

Walks at the same time must be on subtrees that do not overlap. Takers may run beside them: a block is free
from its one store on (`pool_take`), and the walk has read the next block's address before that.

In: start at the subtree's root; r0 = the root again; r1 = r2 = 0. `reclaim_release` needs write permission,
and a window that holds the pool.
Out, with DONE: `reclaim`: the first block record of every state as a yield, in preorder; r1 = their number.
`reclaim_release`: r1 = the number of blocks given back.
Reads, n being the nodes of the subtree and m those of them with a child: n + m; `reclaim_release` one more
for each block and each node with a state. Writes of `reclaim_release`: one a block, one a node with a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load, store, yield_value
from ..operands import address, field, r0, r1, r2, r3, r7
from ..records import CHILD, PARENT, SIBLING, STATE, STATE_BLOCK, BitField
from .blocks import reference as chain
from .memory_view import children, read

__all__ = ["blocks_of", "build", "reference"]

_NEXT = BitField(STATE_BLOCK["next"])
_OWNER = BitField(STATE_BLOCK["owner"])


def build() -> Program:
    """The walk program: r2 = the node whose blocks are given back, r3 = its first block; r7 stays 0."""
    program = Program("reclaim")
    program.entry("reclaim")
    program.when(field(STATE) != r7, r1.add(1), then=yield_value(field(STATE)))
    program.when(field(CHILD) != 0, then=load(field(CHILD), "reclaim"))
    program.label("up")
    program.when(address == r0, then=done())
    program.when(
        field(SIBLING) != 0, then=load(field(SIBLING), "reclaim"), otherwise=load(field(PARENT), "up")
    )
    program.entry("reclaim_release")
    program.when(field(STATE) != 0, r3.mov(field(STATE)), otherwise=goto("children"))
    program.always(r2.mov(address), store(field(STATE), r7), then=load(r3))
    program.label("block")
    program.always(r1.add(1), store(field(_OWNER), r7))
    program.when(field(_NEXT) != 0, then=load(field(_NEXT), "block"), otherwise=load(r2))
    program.label("children")
    program.when(field(CHILD) != 0, then=load(field(CHILD), "reclaim_release"))
    program.label("above")
    program.when(address == r0, then=done())
    program.when(
        field(SIBLING) != 0,
        then=load(field(SIBLING), "reclaim_release"),
        otherwise=load(field(PARENT), "above"),
    )
    return program


def reference(memory: Mapping[int, Atom], *, start: int) -> list[int]:
    """The first block record of every state of the subtree, in preorder."""
    return [state for node in _preorder(memory, start) if (state := read(memory, node, STATE))]


def blocks_of(memory: Mapping[int, Atom], *, start: int) -> list[int]:
    """Every block record of the subtree's states."""
    return [block for state in reference(memory, start=start) for block in chain(memory, start=state)]


def _preorder(memory: Mapping[int, Atom], node: int) -> Iterator[int]:
    yield node
    for child in children(memory, node):
        yield from _preorder(memory, child)
