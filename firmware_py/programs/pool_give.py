"""pool_give: give back a chain of leased state blocks.

Only the lessee gives a block back, by one store of 0 to its owner word, after the walk has read where the
next one is: whoever takes the block from then on may chain it anew (`pool_take`).

In: start at the chain's first block record; r0 = the lessee's number; r1 = 0. The context needs write
permission.
Out: r1 = the number of blocks given back, with DONE code 0. Code 2: the current block is leased by another,
or free; it and what follows was left alone.
Reads and writes: one for each block. 3 instructions a hop.
"""

from __future__ import annotations

from ..assembler import Program, done, load, store
from ..operands import field, r0, r1, r7
from ..records import STATE_BLOCK, BitField

__all__ = ["NOT_LEASED", "build"]

#: The code of DONE when a block is not the lessee's.
NOT_LEASED = 2

_NEXT = BitField(STATE_BLOCK["next"])
_OWNER = BitField(STATE_BLOCK["owner"])


def build() -> Program:
    """The walk program; r7 stays 0."""
    program = Program("pool_give")
    program.entry("pool_give")
    program.when(field(_OWNER) != r0, then=done(NOT_LEASED))
    program.always(r1.add(1), store(field(_OWNER), r7))
    program.when(field(_NEXT) == 0, then=done(), otherwise=load(field(_NEXT), "pool_give"))
    return program
