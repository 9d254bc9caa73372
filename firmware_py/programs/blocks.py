"""blocks: the block records of a state, in the order of their chain.

In: start at the first block record; nothing else.
Out: every block record's address as a yield, then DONE. A state without blocks (start 0) ends with
NULL_POINTER as every walk from null.
Reads: the number of blocks. 2 instructions a hop.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, load, yield_value
from ..operands import address, field
from ..records import STATE_BLOCK, BitField
from .memory_view import linked

__all__ = ["build", "reference"]

_NEXT = BitField(STATE_BLOCK["next"])


def build() -> Program:
    """The walk program."""
    program = Program("blocks")
    program.entry("blocks")
    program.always(then=yield_value(address))
    program.when(field(_NEXT) == 0, then=done(), otherwise=load(field(_NEXT), "blocks"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int) -> list[int]:
    """The addresses of the chain that begins at `start`."""
    return list(linked(memory, start, _NEXT))
