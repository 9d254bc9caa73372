"""climb_compressed: what `climb` answers, with skip pointers that shorten later climbs.

The SKIP word of a node is ``stamp << 28 | address``: every node between it and `address`, an ancestor, had
nothing to try while `stamp` was the tree's stamp. 0, and every other stamp, is no skip: the walk goes to the
parent. The 28 bits hold every atom address of 8 GiB.

Who writes what:

* the host, when it makes a node whose parent has nothing to try: the skip over it, in the WRITE that makes
  the record (no write of its own);
* a walk that read three records or more: the answer, in every record on its way that did not point there. It
  goes up the same way a second time, one read and at most one store a record.

In a depth-first search each closed node is climbed over once, so there the host's first skips are what saves
reads; what walks leave behind helps where the same nodes are climbed over again.

Why a skip with the tree's stamp is right: let x skip to t. When it was written, by whichever of the two,
every node between had nothing to try. A node that gets something to try again, revived or re-armed, makes a
skip wrong only if it has a child, for skips start below what they pass; then the host takes a new stamp
before any later walk is launched, and no skip of the tree counts any more (`firmware_py.skips`; one register
of the launches, no write). Stamps are used again only after the host has written 0 to every skip. A node that
loses what it had to try makes no skip wrong: t is read like every record. A skip is one word, so a store is
whole, and walks at the same time on the same tree store skips that are all right. The host changes the
counts and flags of a tree only while no walk of it runs (a fence).

In: start at the node; r0 = 0; r1 = the tree's stamp, 1 to 15; r3 = the start again; r4 = 1; r5 = the stamp in
SKIP's place (`launch_registers`). The context needs write permission.
Out: r0 = the node with DONE. If there is none, r0 = 0 with NULL_POINTER, and nothing is stored.
Reads: as `climb`, less what skips pass; from three on, the records on the way but the last again.
2 instructions a hop; 2 to 6 a record of the second way.
"""

from __future__ import annotations

from ..assembler import Program, done, goto, load, store
from ..operands import address, field, r0, r1, r2, r3, r4, r5
from ..records import LIVE, PARENT, SKIP, SKIP_ADDRESS, SKIP_STAMP
from .climb import reference

__all__ = ["STAMPS", "build", "launch_registers", "reference", "skip_word"]

#: The stamps that there are: 1 to STAMPS.
STAMPS = (1 << SKIP_STAMP.width) - 1
_ADDRESS_BITS = (1 << SKIP_ADDRESS.width) - 1


def skip_word(*, stamp: int, target: int) -> int:
    """The SKIP word that skips to the record at `target`. Raises ValueError for what does not fit."""
    if not 1 <= stamp <= STAMPS:
        raise ValueError(f"stamp is {stamp}: expected 1 to {STAMPS}")
    if not 0 < target <= _ADDRESS_BITS:
        raise ValueError(f"skip to {target:#x}: expected 1 to {_ADDRESS_BITS:#x}")
    return stamp << SKIP_STAMP.low | target


def launch_registers(*, start: int, stamp: int) -> tuple[int, ...]:
    """r0..r5 of a walk from `start` in a tree with `stamp`."""
    return (0, stamp, 0, start, 1, stamp << SKIP_STAMP.low)


def build() -> Program:
    """The walk program: the first two records have a way of their own, after which nothing is compressed."""
    program = Program("climb_compressed")
    program.entry("climb_compressed")
    for here, above, found in (
        (None, "second", "found"),
        ("second", "further", "found"),
        ("further", "further", "compress"),
    ):
        if here is not None:
            program.label(here)
        program.when(field(LIVE) < r4, r2.mov(_ADDRESS_BITS), otherwise=goto(found))
        program.when(
            field(SKIP_STAMP) == r1,
            r2.and_(field(SKIP)),
            then=load(r2, above),
            otherwise=load(field(PARENT), above),
        )
    program.label("found")
    program.always(r0.mov(address), then=done())
    program.label("compress")
    program.always(r0.mov(address))
    program.always(r5.or_(address), then=load(r3, "way"))
    program.label("way")
    program.when(field(SKIP) == r5, then=done())
    program.when(field(PARENT) == r0, then=done())
    program.when(field(SKIP_STAMP) == r1, r2.mov(_ADDRESS_BITS), otherwise=goto("parent"))
    program.always(r2.and_(field(SKIP)), then=goto("shorten"))
    program.label("parent")
    program.always(r2.mov(field(PARENT)))
    program.label("shorten")
    program.always(store(field(SKIP), r5), then=load(r2, "way"))
    return program
