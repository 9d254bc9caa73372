"""decide: all that a depth-first search asks after a dead end, in one walk.

It marks the node dead, climbs from its parent to the nearest node that is alive with something untried (the
resume point), finds that node's best child, and yields the blocks of its state, which are what has to be
restored. The same as a write, `climb`, `best_sibling` and `blocks` one after another, without the crossings
between them.

In: start at the node that failed; r0 = r1 = 0; r2 = least LIVE field of a child that counts, as in
`best_sibling`. The context needs write permission.
Out, with DONE: r0 = the resume point; r1 = its best child, 0 if none counts; the blocks of its state as
yields. If there is no resume point, r0 = 0 with NULL_POINTER; the node is dead all the same.
Reads: 1 for the node, those of `climb`, one for each child and each block. Writes: 1.
2 instructions on the node, 1 a hop up, 3 on the resume point, 2 to 5 a child, 2 a block.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load, store, yield_value
from ..operands import address, field, r0, r1, r2, r3, r5
from ..records import CHILD, DEAD_BIT, LIVE, PARENT, SCORE, SIBLING, STATE, STATE_BLOCK, STATUS, BitField
from . import best_sibling, blocks, climb
from .memory_view import read

__all__ = ["build", "reference"]

_NEXT = BitField(STATE_BLOCK["next"])


def build() -> Program:
    """The walk program: r3 = score of the best child so far, r5 = first block of the resume point."""
    program = Program("decide")
    program.entry("decide")
    program.always(r3.mov(1 << DEAD_BIT.low))
    program.always(r3.or_(field(STATUS)), store(field(STATUS), r3), then=load(field(PARENT), "up"))
    program.label("up")
    program.when(field(LIVE) >= 1, r0.mov(address), otherwise=load(field(PARENT), "up"))
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
