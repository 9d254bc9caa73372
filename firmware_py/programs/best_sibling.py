"""best_sibling: the child of a node with the highest score; of equal ones the first in the list of children.

A child without a score is worse than every child with one, and still better than none.

In: start at the parent; r0 = 0; r2 = least LIVE field of a child that counts: 0 skips dead children, -4096
takes every child, 1 only those with something untried.
Out, always with DONE: r0 = the child's address, 0 if no child counts; r1 = its score word.
Reads: 1 + the number of children.
1 instruction on the parent, 2 to 4 on a child.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load
from ..operands import address, field, r0, r1, r2
from ..records import CHILD, LIVE, SCORE, SIBLING
from .memory_view import children, read

__all__ = ["EVERY_CHILD", "LIVE_CHILDREN", "build", "reference"]

#: Values of r2.
LIVE_CHILDREN = 0
EVERY_CHILD = -4096


def build() -> Program:
    """The walk program."""
    program = Program("best_sibling")
    program.entry("best_sibling")
    program.when(field(CHILD) == 0, then=done(), otherwise=load(field(CHILD)))
    program.label("first")
    program.when(field(LIVE) >= r2, r0.mov(address), then=goto("take"))
    program.when(field(SIBLING) == 0, then=done(), otherwise=load(field(SIBLING), "first"))
    program.label("child")
    program.when(field(LIVE) < r2, then=goto("next"))
    program.when(r1 < field(SCORE), r0.mov(address), then=goto("take"), otherwise=goto("next"))
    program.label("take")
    program.always(r1.mov(field(SCORE)))
    program.label("next")
    program.when(field(SIBLING) == 0, then=done(), otherwise=load(field(SIBLING), "child"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int, least_live: int = LIVE_CHILDREN) -> int:
    """The first child with the highest score among those whose LIVE field is at least `least_live`, or 0."""
    counted = [child for child in children(memory, start) if read(memory, child, LIVE) >= least_live]
    return max(counted, key=lambda child: read(memory, child, SCORE), default=0)
