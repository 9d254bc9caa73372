"""descend: from a node down to a leaf, at each level to the live child with the highest score.

The score is the priority that the host wrote. Of equal children the first in the list; one without a score
is worse than every other. A leaf is a node without a live child.

In: start at the node; no registers.
Out, always with DONE: r0 = the leaf's address, the start itself if it is one.
Reads: 1 + the number of children of every node on the way, dead ones included, the leaf's own dead
children too. A child's record is not read again to go down from it.
2 instructions on the start, 2 to 6 on a child.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load
from ..operands import address, field, r0, r1, r2, r3
from ..records import CHILD, LIVE, SCORE, SIBLING
from .memory_view import children, is_dead, read

__all__ = ["build", "reference"]


def build() -> Program:
    """The walk program: r0 = the node above; r1, r2, r3 = score, address, first child of the best child."""
    program = Program("descend")
    program.entry("descend")
    program.always(r0.mov(address))
    program.when(field(CHILD) == 0, then=done(), otherwise=load(field(CHILD)))
    program.label("first")
    program.when(field(LIVE) >= 0, r2.mov(address), then=goto("take"))
    program.when(field(SIBLING) == 0, then=done(), otherwise=load(field(SIBLING), "first"))
    program.label("take")
    program.always(r1.mov(field(SCORE)))
    program.always(r3.mov(field(CHILD)), then=goto("next"))
    program.label("child")
    program.when(field(LIVE) < 0, then=goto("next"))
    program.when(r1 < field(SCORE), r2.mov(address), then=goto("take"), otherwise=goto("next"))
    program.label("next")
    program.when(field(SIBLING) == 0, r0.mov(r2), otherwise=load(field(SIBLING), "child"))
    program.when(r3 == 0, then=done(), otherwise=load(r3, "first"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int) -> int:
    """The leaf that the best live children lead to."""
    node = start
    while live := [child for child in children(memory, node) if not is_dead(memory, child)]:
        node = max(live, key=lambda child: read(memory, child, SCORE))
    return node
