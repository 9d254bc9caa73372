"""The write buffer: no entry is lost, given twice or overwritten, and its drain keeps to the marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Signal
from amaranth.lib.wiring import In

from hdl.layouts import ATOM_BYTES
from hdl.memory.write_buffer import WriteBuffer
from tests.formal.harness import Internals, Proof, Property, quick
from tests.formal.small import small_design

CONTROLLER = small_design(drain_high=3, drain_low=1).controller
ENTRIES = CONTROLLER.write_buffer
DATA_WIDTH = 4


class WriteBufferProperty(Property):
    """A pool with a free user, who takes only where there is room and gives back only what he holds; an eye
    on one entry, whichever it is."""

    def __init__(self, *, false: bool) -> None:
        super().__init__(
            {
                "take": In(1),
                "data": In(DATA_WIDTH),
                "mask": In(ATOM_BYTES),
                "give": In(1),
                "entry": In(range(ENTRIES)),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        block = WriteBuffer(CONTROLLER)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        held, watched = Signal(ENTRIES), AnyConst(range(ENTRIES).stop.bit_length() - 1)
        kept = Signal.like(Cat(self.data, self.mask))
        taken = Signal(ENTRIES)
        m.d.comb += [
            block.take.eq(self.take),
            block.data.eq(self.data),
            block.mask.eq(self.mask),
            block.give.eq(self.give),
            block.read_entry.eq(self.entry),
            Assume(~self.take | block.room),
            Assume(~self.give | held.bit_select(self.entry, 1)),
            taken.eq((self.take << block.entry)[:ENTRIES]),
        ]
        m.d.sync += held.eq((held | taken) & ~(self.give << self.entry)[:ENTRIES])
        with m.If(self.take & (block.entry == watched)):
            m.d.sync += kept.eq(Cat(self.data, self.mask))

        count = Signal(range(ENTRIES + 1))
        m.d.comb += count.eq(sum(held[n] for n in range(ENTRIES)))
        here = held.bit_select(watched, 1)
        # How the block keeps the same things.
        stored = inner.word(m, "contents", watched, "stored")
        m.d.comb += [
            Assert(inner["free"] == ~held),
            Assert(inner["count"] == count),
            Assert(~here | (Cat(stored[:DATA_WIDTH], stored[-ATOM_BYTES:]) == kept)),
        ]
        contents = Cat(block.read_data[:DATA_WIDTH], block.read_mask)
        m.d.comb += [
            Assert(block.room == (held != (1 << ENTRIES) - 1)),
            Assert(~(taken & held).any()),
            Assert(~(here & (self.entry == watched)) | (contents == kept)),
        ]
        # The drain, a cycle after the count: from the upper mark down to the lower.
        before, was = Signal.like(count), Signal()
        m.d.sync += [before.eq(count), was.eq(block.drain)]
        m.d.comb += [
            Assert(~block.drain | (before > CONTROLLER.drain_low)),
            Assert(block.drain | (before < CONTROLLER.drain_high)),
            Assert(
                (block.drain == was) | (before <= CONTROLLER.drain_low) | (before >= CONTROLLER.drain_high)
            ),
            Cover(~block.room & self.give),
            Cover(self.take & self.give & (self.entry == watched)),
            Cover(was & ~block.drain),
        ]
        if self.false:
            m.d.comb += Assert(~(block.drain & (before == Const(CONTROLLER.drain_low + 1))))


PROOFS = [
    Proof(name="write buffer", build=lambda false: WriteBufferProperty(false=false), depth=2, cover_depth=10)
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_pool_keeps_its_entries(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
