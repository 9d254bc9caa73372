"""climb: from a node, itself included, up to the nearest one that is not dead and has something untried.

In: nothing; start at the node.
Out: r0 and the verdict's value = that node's address with DONE. If there is none the walk runs off the root:
r0 = 0, value 0, with NULL_POINTER.
Reads: one for each node from the start up to the answer, or up to the root.
One instruction a hop. r0 must start as 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, load
from ..operands import address, field, r0
from ..records import LIVE, PARENT
from .memory_view import ancestors, is_dead, untried

__all__ = ["build", "reference"]


def build() -> Program:
    """The walk program."""
    program = Program("climb")
    program.entry("climb")
    program.when(field(LIVE) >= 1, r0.mov(address), then=done(), otherwise=load(field(PARENT), "climb"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int) -> int:
    """The nearest of the node and its ancestors that is alive with something untried; 0 if none."""
    for node in ancestors(memory, start):
        if not is_dead(memory, node) and untried(memory, node) > 0:
            return node
    return 0
