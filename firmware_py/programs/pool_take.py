"""pool_take: lease state blocks from a pool that every context may take from at once, without a lock.

A pool is a ring of block records (`firmware_py.pool`). A block is leased by whoever's number its owner word
holds, and free while that is 0. The walk looks at one record after another, claims each free one by a
conditional store of its number, and reads it again: it has the block if the number is its own.

Why this is right with any number of walks at once: the owner word goes from 0 to a number only by a
conditional store, which memory does as a whole, and back to 0 only by the lessee. Of the walks that saw 0,
memory lets one store. That one reads its own number, for nobody else may clear it; the others read another
number, or 0 when it was given back meanwhile, and go on. A block that was leased and given back between the
look and the store (ABA) is free, so the claim is right all the same: nothing that was read before is used
but the ring, which never changes. There is no lock that a walk which ends early could leave behind.

Why it ends: a record is left after one look, one claim and one reading, whatever the others do, and the walk
goes once round the ring. So it is wait-free: at most two reads a record of the pool.

In: start at the record to look at first; r0 = the lessee's number, not 0, and not that of another take that
runs at the same time; r1 = blocks wanted, at least 1; r2 = 0; r5 = the start again. The context needs write
permission.
Out: the leased blocks as yields, chained by their next words in reverse; r2 = the last, the chain's first.
With DONE code 0: r0 = where to look first the next time; r1 = 0. With DONE code 1, the ring has been round:
r1 = the number of blocks that are missing.
Reads: one for each record looked at, one more for each claim. Writes: 2 a block, 1 for each claim
that was lost.
2 instructions on a leased record, 2 and 5 on one that is taken.
"""

from __future__ import annotations

from ..assembler import Program, done, goto, load, store, yield_value
from ..operands import address, field, r0, r1, r2, r5
from ..records import STATE_BLOCK, BitField

__all__ = ["EXHAUSTED", "build", "launch_registers"]

#: The code of DONE when the pool had too few free blocks.
EXHAUSTED = 1

_NEXT = BitField(STATE_BLOCK["next"])
_OWNER = BitField(STATE_BLOCK["owner"])
_RING = BitField(STATE_BLOCK["ring"])


def launch_registers(*, start: int, owner: int, count: int) -> tuple[int, ...]:
    """r0..r5 of a walk that looks at `start` first. Raises ValueError for owner 0 or no block."""
    if owner < 1 or count < 1:
        raise ValueError(f"lease of {count} blocks for {owner}: expected at least 1 block and an owner not 0")
    return (owner, count, 0, 0, 0, start)


def build() -> Program:
    """The walk program."""
    program = Program("pool_take")
    program.entry("pool_take")
    program.when(
        field(_OWNER) == 0,
        store(field(_OWNER), r0, conditional=True),
        then=load(address, "claimed"),
        otherwise=goto("next"),
    )
    program.label("claimed")
    program.when(field(_OWNER) != r0, then=goto("next"))
    program.always(store(field(_NEXT), r2), then=yield_value(address))
    program.always(r2.mov(address))
    program.always(r1.sub(1))
    program.when(r1 == 0, r0.mov(field(_RING)), then=done())
    program.label("next")
    program.when(field(_RING) == r5, then=done(EXHAUSTED), otherwise=load(field(_RING), "pool_take"))
    return program
