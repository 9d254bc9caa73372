"""decide: all that a depth-first search asks after a dead end, in one walk.

It marks the node dead, climbs from its parent to the nearest node that is alive with something untried (the
resume point), finds that node's best child, and yields the blocks of its state, which are what has to be
restored. The same as a write, `climb`, `best_sibling` and `blocks` one after another, without the crossings
between them. It climbs along the tree's skips if it has any (`climb_compressed`), and leaves none behind.

In: start at the node that failed; r0 = r1 = 0; r2 = least LIVE field of a child that counts, as in
`best_sibling`; r4 = the tree's stamp, NO_SKIPS for a tree without skips. The context needs write permission.
Out, with DONE: r0 = the resume point; r1 = its best child, 0 if none counts; the blocks of its state as
yields. If there is no resume point, r0 = 0 with NULL_POINTER; the node is dead all the same.
Reads: 1 for the node, those of `climb`, one for each child and each block. Writes: 1.
2 instructions on the node, 2 a hop up and 3 along a skip, 3 on the resume point, 2 to 6 a child, 2 a block.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load, store, yield_value
from ..operands import address, field, r0, r1, r2, r3, r4, r5, r6
from ..records import (
    CHILD,
    DEAD_BIT,
    LIVE,
    PARENT,
    SCORE,
    SIBLING,
    SKIP,
    SKIP_ADDRESS,
    SKIP_STAMP,
    STATE,
    STATE_BLOCK,
    STATUS,
    BitField,
)
from . import best_sibling, blocks, climb
from .memory_view import read

__all__ = ["NO_SKIPS", "build", "reference"]

#: A stamp that no skip has.
NO_SKIPS = 1 << SKIP_STAMP.width
_ADDRESS_BITS = (1 << SKIP_ADDRESS.width) - 1

_NEXT = BitField(STATE_BLOCK["next"])


def build() -> Program:
    """The walk program: r3 = score of the best child so far, r5 = first block to restore, r6 = skip."""
    program = Program("decide")
    program.entry("decide")
    program.always(r3.mov(1 << DEAD_BIT.low))
    program.always(r3.or_(field(STATUS)), store(field(STATUS), r3), then=load(field(PARENT), "up"))
    program.label("up")
    program.when(field(LIVE) >= 1, r0.mov(address), then=goto("point"))
    program.when(field(SKIP_STAMP) == r4, r6.mov(_ADDRESS_BITS), otherwise=load(field(PARENT), "up"))
    program.always(r6.and_(field(SKIP)), then=load(r6, "up"))
    program.label("point")
    program.always(r5.mov(field(STATE)))
    program.when(field(CHILD) == 0, then=goto("state"), otherwise=load(field(CHILD)))
    program.label("child")
    program.when(field(LIVE) < r2, then=goto("next"))
    program.when(r1 == 0, then=goto("take"))
    program.when(r3 >= field(SCORE), then=goto("next"))
    program.label("take")
    program.always(r1.mov(address))
    program.always(r3.mov(field(SCORE)))
    program.label("next")
    program.when(field(SIBLING) != 0, then=load(field(SIBLING), "child"))
    program.label("state")
    program.when(r5 == 0, then=done(), otherwise=load(r5))
    program.label("block")
    program.always(then=yield_value(address))
    program.when(field(_NEXT) == 0, then=done(), otherwise=load(field(_NEXT), "block"))
    return program


def reference(
    memory: Mapping[int, Atom], *, start: int, least_live: int = best_sibling.LIVE_CHILDREN
) -> tuple[int, int, list[int]]:
    """The resume point, its best child and the blocks of its state, by the references of the parts."""
    parent = read(memory, start, PARENT)
    point = climb.reference(memory, start=parent) if parent else 0
    if not point:
        return 0, 0, []
    child = best_sibling.reference(memory, start=point, least_live=least_live)
    return point, child, blocks.reference(memory, start=read(memory, point, STATE))
