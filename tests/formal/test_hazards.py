"""The hazard table: no read and write of one atom are under way at once, and nobody waits for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Module, Signal
from amaranth.lib.wiring import In

from hdl.memory.axi.hazards import HazardTable
from tests.formal.harness import Internals, Proof, Property, quick

OUTSTANDING = 2
BUCKETS = 4
ADDRESS_BITS = 5
KINDS = ("read", "write")


class HazardProperty(Property):
    """A table with a free user, who begins what the table lets him and ends only what he began; an eye on one
    bucket, whichever it is. An atom is in one bucket, so what holds of the bucket holds of the atom."""

    def __init__(self, *, false: bool) -> None:
        bucket = In(range(BUCKETS))
        super().__init__(
            {
                "address": In(ADDRESS_BITS),
                **{f"begin_{kind}": In(1) for kind in KINDS},
                **{f"done_{kind}": In(1) for kind in KINDS},
                **{f"done_{kind}_bucket": bucket for kind in KINDS},
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        block = HazardTable(address_bits=ADDRESS_BITS, buckets=BUCKETS, outstanding=OUTSTANDING)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        watched = AnyConst(range(BUCKETS).stop.bit_length() - 1)
        m.d.comb += [block.address.eq(self.address), Assume(~(self.begin_read & self.begin_write))]
        # The fold of the address is a function of it, so an atom has one bucket.
        here = Signal()
        m.d.comb += here.eq(block.bucket == watched)
        counts = {}
        for kind in KINDS:
            begin, done = getattr(self, f"begin_{kind}"), getattr(self, f"done_{kind}")
            free = getattr(block, f"{kind}_free")
            over = getattr(self, f"done_{kind}_bucket")
            counts[kind] = count = Signal(range(OUTSTANDING + 1), name=f"{kind}s")
            begins, ends = Signal(name=f"{kind}_begins"), Signal(name=f"{kind}_ends")
            m.d.comb += [
                getattr(block, f"begin_{kind}").eq(begin),
                getattr(block, f"done_{kind}").eq(done),
                getattr(block, f"done_{kind}_bucket").eq(over),
                begins.eq(begin & here),
                ends.eq(done & (over == watched)),
                Assume(~begin | free),
                Assume(~begins | (count != OUTSTANDING)),
                Assume(~ends | (count != 0)),
                Assume(~done | ~block.clearing),
            ]
            m.d.sync += count.eq(count + begins - ends)
            # How the block keeps the same thing.
            begun = inner.word(m, f"{kind}s_begun", watched, f"{kind}s_begun_there")
            ended = inner.word(m, f"{kind}s_done", watched, f"{kind}s_done_there")
            difference = Signal(OUTSTANDING.bit_length(), name=f"{kind}s_counted")
            cleared = ~block.clearing | (watched < inner["cleared"])
            m.d.comb += [
                difference.eq(begun - ended),
                Assert(~cleared | (difference == count)),
                Assert(~block.clearing | (count == 0)),
                Cover(here & ~free & ~block.clearing),
                Cover(count == OUTSTANDING),
            ]
        reads, writes = counts["read"], counts["write"]
        m.d.comb += [
            Assert((reads == 0) | (writes == 0)),
            Assert(~(here & block.read_free) | (writes == 0)),
            Assert(~(here & block.write_free) | (reads == 0)),
            Assert(block.clearing | ~here | (block.read_free == (writes == 0))),
            Assert(block.clearing | ~here | (block.write_free == (reads == 0))),
        ]
        if self.false:
            m.d.comb += Assert(~(here & block.read_free & (reads != 0)))


PROOFS = [
    Proof(name="hazard table", build=lambda false: HazardProperty(false=false), depth=2, cover_depth=12)
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_reads_and_writes_of_an_atom_keep_apart(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
