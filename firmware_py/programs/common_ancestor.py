"""common_ancestor: the lowest node that is on the paths of two nodes to their root; either may be it.

It follows first parents. Only one record is current, so the other pointer waits in registers with what
is needed of its record: the deeper one goes up, of equally deep ones either. A parent is compared before
it is read, so no record is read twice.

In: start at one node; r0 = the address of the other.
Out: r0 = the common ancestor with DONE; 0 with DONE if the nodes have different roots. An other node of 0
ends with NULL_POINTER.
Reads: d(a) + d(b) - 2 d(c), d being the depth and c the answer, plus 1 if c is one of the two; with
different roots the depth of both plus 2.
3 instructions on a record whose parent is read next, 7 where the pointers change places, 5 on the first.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load
from ..operands import address, field, r0, r1, r2, r3
from ..records import PARENT, STATUS
from .memory_view import ancestors

__all__ = ["build", "reference"]


def build() -> Program:
    """The walk program: r0, r1, r2 = address, status word and parent of the node that is not current.

    The depth is the top of the status word, so the whole words compare like the depths; where those are
    equal the rest decides, and either answer will do.
    """
    program = Program("common_ancestor")
    program.entry("common_ancestor")
    program.when(address == r0, then=done())
    program.always(r3.mov(r0), then=goto("change"))
    program.label("pair")
    program.when(field(PARENT) == r2, r0.mov(r2), then=done())
    program.when(field(STATUS) < r1, then=goto("other"))
    program.when(field(PARENT) == r0, then=done(), otherwise=load(field(PARENT), "pair"))
    program.label("other")
    program.when(address == r2, r0.mov(r2), then=done())
    program.always(r3.mov(r2))
    program.label("change")
    program.always(r0.mov(address))
    program.always(r1.mov(field(STATUS)))
    program.always(r2.mov(field(PARENT)), then=load(r3, "pair"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int, other: int) -> int:
    """The first of `other` and its ancestors that is `start` or an ancestor of it; 0 if none."""
    above = set(ancestors(memory, start))
    return next((node for node in ancestors(memory, other) if node in above), 0)
