"""The atomic unit: a dependent write happens once, on what it read, and nothing slips in between.

The memory below is free: it accepts when it likes and answers what it owes in any order, with any data and
any status.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.layouts import ATOM_BYTES, MemoryRequest, MemoryResponse, MemoryStatus, Source, Tag
from hdl.memory.atomic import AtomicUnit
from tests.formal.harness import Internals, Proof, Property, quick

#: Requests under way of one tag that the proof counts: the unit does not limit them.
MOST = 6
WORD_BYTES = 4


def stands(m: Module, valid: Value, ready: Value, payload: Value, name: str) -> tuple[Signal, Value]:
    """An offer on a stream that must stand: (one was not taken in the cycle before, it still stands)."""
    waiting, offered = Signal(name=f"{name}_waiting"), Signal.like(payload, name=f"{name}_offered")
    m.d.sync += [waiting.eq(valid & ~ready), offered.eq(payload)]
    return waiting, valid & (payload == offered)


class AtomicProperty(Property):
    """The unit between free requesters and a free memory; an eye on one tag and on one byte of the atom,
    whichever they are."""

    def __init__(self, *, write_bytes: int, false: bool) -> None:
        self._write_bytes = write_bytes
        super().__init__(
            {
                "asks": In(1),
                "asked": In(MemoryRequest),
                "taker": In(1),
                "memory_ready": In(1),
                "answers": In(1),
                "answer": In(MemoryResponse),
                "hold": In(1),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        block = AtomicUnit(write_bytes=self._write_bytes)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        port, memory = block.port, block.memory
        asked, passed = port.request, memory.request
        found, given = memory.response, port.response
        m.d.comb += [
            asked.valid.eq(self.asks),
            asked.payload.eq(self.asked),
            given.ready.eq(self.taker),
            passed.ready.eq(self.memory_ready),
            found.valid.eq(self.answers),
            found.payload.eq(self.answer),
            block.hold.eq(self.hold),
        ]
        accepted, forwarded, returned, answered = (Signal(name=n) for n in ("acc", "fwd", "ret", "ans"))
        m.d.comb += [
            accepted.eq(asked.valid & asked.ready),
            forwarded.eq(passed.valid & passed.ready),
            returned.eq(found.valid & found.ready),
            answered.eq(given.valid & given.ready),
        ]
        # -- What requesters and the memory promise --
        own_answer = self.answer.tag.source == Source.CONTROLLER
        mask, byte = self.asked.mask, AnyConst(5)
        words = [mask[WORD_BYTES * w : WORD_BYTES * (w + 1)] for w in range(ATOM_BYTES // WORD_BYTES)]
        one_word = Cat((word == 15) & (mask == 15 << WORD_BYTES * w) for w, word in enumerate(words)).any()
        for waiting, standing in (
            stands(m, asked.valid, asked.ready, Value.cast(self.asked), "asked"),
            stands(m, found.valid, found.ready, Value.cast(self.answer), "found"),
        ):
            m.d.comb += Assume(~waiting | standing)
        m.d.comb += [
            Assume(self.asked.tag.source != Source.CONTROLLER),
            Assume(~(self.asked.write & self.asked.conditional) | one_word),
        ]
        # -- One tag: how many requests of it are under way, at the port and below --
        tag = AnyConst(len(Value.cast(Signal(Tag))))
        above, below, reading = Signal(range(MOST + 2)), Signal(range(MOST + 2)), Signal()
        own_request = passed.payload.tag.source == Source.CONTROLLER

        def mine(value: Value) -> Value:
            return Value.cast(value) == tag

        m.d.sync += [
            above.eq(above + (accepted & mine(asked.payload.tag)) - (answered & mine(given.payload.tag))),
            below.eq(below + (forwarded & mine(passed.payload.tag)) - (returned & mine(found.payload.tag))),
            reading.eq((reading | (forwarded & own_request)) & ~(returned & own_answer)),
        ]
        m.d.comb += [
            Assume(tag[:3] != Source.CONTROLLER.value),
            Assume(above < MOST),
            # The memory answers what it was asked, no more.
            Assume(~(found.valid & mine(found.payload.tag)) | (below != 0)),
            Assume(~(found.valid & own_answer) | reading),
        ]
        refusing = inner.state("ANSWER") & (Value.cast(inner["tag"]) == tag)
        m.d.comb += [
            Assert(above == below + refusing),
            Assert(~(given.valid & mine(given.payload.tag)) | (above != 0)),
            Assert(~given.valid | (given.payload.tag.source != Source.CONTROLLER)),
            Assert(inner.state()),
        ]
        # An answer on offer stands.
        waiting, standing = stands(m, given.valid, given.ready, Value.cast(given.payload), "given")
        m.d.comb += Assert(~waiting | standing)

        # -- A dependent write --
        size = self._write_bytes
        groups = [mask[low : low + size] for low in range(0, ATOM_BYTES, size)]
        partial = Cat(group.any() & ~group.all() for group in groups).any()
        depends = Signal()
        m.d.comb += depends.eq(self.asked.write & (self.asked.conditional | partial))
        read, may, kept = Signal(), Signal(), Signal(8)
        good = (self.answer.status == MemoryStatus.OK) | (self.answer.status == MemoryStatus.CORRECTED)
        same = Cat(
            ~word.any() | (self.answer.data.word_select(w, 32) == self.asked.expected)
            for w, word in enumerate(words)
        ).all()
        with m.If(returned & own_answer):
            m.d.sync += [
                read.eq(1),
                may.eq(good & (~self.asked.conditional | same)),
                kept.eq(self.answer.data.word_select(byte, 8)),
            ]
        with m.If(accepted):
            m.d.sync += read.eq(0)
        busy = reading | read
        answer_of = Signal(MemoryStatus)
        with m.If(returned & own_answer):
            m.d.sync += answer_of.eq(Mux(good, MemoryStatus.MISMATCH, self.answer.status))
        writes = passed.valid & passed.payload.write
        m.d.comb += [
            # Only its own write gets past, when it may, and that accepts it.
            Assert(~(busy & passed.valid) | (read & may & writes & (accepted == passed.ready))),
            Assert(~(busy & accepted) | read),
            Assert(~(accepted & depends) | (read & (may == forwarded))),
            Assert(~(forwarded & own_request) | (~passed.payload.write & depends & ~accepted)),
            # Everything else passes as it is.
            Assert(~(passed.valid & ~own_request) | (passed.payload.tag == asked.payload.tag)),
            Assert(~passed.valid | (passed.payload.address == asked.payload.address)),
            Assert(~passed.valid | (passed.payload.priority == asked.payload.priority)),
            Assert(~(passed.valid & ~own_request) | (passed.payload.write == asked.payload.write)),
            Assert(~passed.valid | ~passed.payload.conditional),
            Assert(~(accepted & ~depends) | forwarded),
            Assert(~(self.hold & passed.valid) | busy),
            Assert(block.idle == ~(busy | inner.state("ANSWER"))),
        ]
        # What it writes: the bytes asked for, and of their group what was read.
        asked_here = mask.bit_select(byte, 1)
        shift = size.bit_length() - 1
        group_here = Cat(group.any() for group in groups).bit_select(byte >> shift, 1)
        m.d.comb += [
            Assert(~writes | (passed.payload.mask.bit_select(byte, 1) == group_here)),
            Assert(
                ~(writes & group_here)
                | (
                    passed.payload.data.word_select(byte, 8)
                    == Mux(asked_here, asked.payload.data.word_select(byte, 8), kept)
                )
            ),
        ]
        # What refuses it says why.
        refused = inner.state("ANSWER") & given.valid
        m.d.comb += [
            Assert(~refused | ((given.payload.status == answer_of) & given.payload.write)),
            Assert(~refused | (given.payload.status != MemoryStatus.OK)),
            Assert(~inner.state("READ") | (reading & ~read & depends & asked.valid)),
            Assert(~inner.state("WRITE") | (read & ~reading & may & depends & asked.valid)),
            Assert(~inner.state("REFUSE") | (read & ~reading & ~may & depends & asked.valid)),
            Assert(~inner.state("PASS", "ANSWER") | (~reading & ~read)),
            Assert(inner.state("PASS", "READ") | (inner["status"] == Value.cast(answer_of))),
        ]
        if size > 1:
            m.d.comb += Assert(~read | (inner["kept"].word_select(byte, 8) == kept))
        m.d.comb += [
            Cover(accepted & depends & forwarded & asked.payload.conditional),
            Cover(refused & (given.payload.status == MemoryStatus.MISMATCH)),
            Cover(refused & (given.payload.status == MemoryStatus.POISONED)),
            Cover(reading & answered),
            Cover(read & self.hold & accepted),
            Cover((above == 3) & answered & mine(given.payload.tag)),
        ]
        if size > 1:
            m.d.comb += Cover(writes & group_here & ~asked_here & (kept != 0) & Const(1))
        if self.false:
            m.d.comb += Assert(~(forwarded & read & (above == 1)))


PROOFS = [
    Proof(
        name=name,
        build=lambda false, size=size: AtomicProperty(write_bytes=size, false=false),
        depth=2,
        cover_depth=8,
    )
    for name, size in (("atomic", 1), ("atomic with ECC", 8))
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_a_dependent_write_is_one_step(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
