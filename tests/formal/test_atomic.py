"""The atomic unit: a dependent write happens once, on what it read, and nothing slips in between.

The memory below is free: it accepts when it likes and answers what it owes in any order, with any data and
any status.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def words_of(mask: Value) -> list[Value]:
    """The enables of each word of an atom."""
    return [mask[WORD_BYTES * w : WORD_BYTES * (w + 1)] for w in range(ATOM_BYTES // WORD_BYTES)]


def one_word(mask: Value) -> Value:
    """The mask selects one word, the whole of it."""
    return Cat((word == 15) & (mask == 15 << WORD_BYTES * w) for w, word in enumerate(words_of(mask))).any()


def unchanged(passed: Any, asked: Any, byte: Value) -> Value:
    """`passed` is `asked`, in one byte of its data."""
    return (
        (passed.write == asked.write)
        & (passed.tag == asked.tag)
        & (passed.mask == asked.mask)
        & (passed.data.word_select(byte, 8) == asked.data.word_select(byte, 8))
    )


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
        byte = AnyConst(5)
        for waiting, standing in (
            stands(m, asked.valid, asked.ready, Value.cast(self.asked), "asked"),
            stands(m, found.valid, found.ready, Value.cast(self.answer), "found"),
        ):
            m.d.comb += Assume(~waiting | standing)
        m.d.comb += [
            Assume(self.asked.tag.source != Source.CONTROLLER),
            Assume(~(self.asked.write & self.asked.conditional) | one_word(self.asked.mask)),
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
        # An answer on offer stands, and so does a request unless `hold` takes it back.
        for name, waiting, standing in (
            ("given", *stands(m, given.valid, given.ready, Value.cast(given.payload), "given")),
            ("passed", *stands(m, passed.valid, passed.ready, Value.cast(passed.payload), "passed")),
        ):
            taken_back = self.hold if name == "passed" else Const(0)
            m.d.comb += Assert(~waiting | standing | taken_back)

        # -- The dependent write that was accepted last, and how far it has come --
        size = self._write_bytes

        def groups(bytes_of: Value) -> list[Value]:
            return [bytes_of[low : low + size] for low in range(0, ATOM_BYTES, size)]

        def dependent(request: Any) -> Value:
            partial = Cat(group.any() & ~group.all() for group in groups(request.mask)).any()
            return request.write & (request.conditional | partial)

        depends, busy, read, may = (Signal(name=n) for n in ("depends", "busy", "read", "may"))
        accepts, completes = Signal(), Signal()
        dependence, there, answer_of = Signal(MemoryRequest), Signal(8), Signal(MemoryStatus)
        good = (self.answer.status == MemoryStatus.OK) | (self.answer.status == MemoryStatus.CORRECTED)
        selected = words_of(dependence.mask)
        same = Cat(
            ~word.any() | (self.answer.data.word_select(w, 32) == dependence.expected)
            for w, word in enumerate(selected)
        ).all()
        refused = inner.state("REFUSE") & given.valid
        m.d.comb += [
            depends.eq(dependent(self.asked)),
            accepts.eq(accepted & depends),
            completes.eq(forwarded & ~accepted),
        ]
        with m.If(returned & own_answer):
            m.d.sync += [
                read.eq(1),
                may.eq(good & (~dependence.conditional | same)),
                there.eq(self.answer.data.word_select(byte, 8)),
                answer_of.eq(Mux(good, MemoryStatus.MISMATCH, self.answer.status)),
            ]
        with m.If(completes | (refused & answered)):
            m.d.sync += busy.eq(0)
        with m.If(accepts):
            m.d.sync += [busy.eq(1), read.eq(0), dependence.eq(self.asked)]
        to_come = Signal()
        m.d.comb += [
            to_come.eq(busy & mine(dependence.tag)),
            Assert(above == below + to_come),
            Assert(~(given.valid & mine(given.payload.tag)) | (above != 0)),
            Assert(~given.valid | (given.payload.tag.source != Source.CONTROLLER)),
            Assert(inner.state()),
            # Nothing of its atom is accepted before it is written or refused, and no other dependent write.
            Assert(~(busy & accepted) | (~depends & (self.asked.address != dependence.address))),
            # With a dependent write its read is forwarded, with anything else that itself.
            Assert(~accepted | forwarded),
            Assert(~passed.valid | ~passed.payload.conditional),
            Assert(accepts == (forwarded & own_request)),
            Assert(~accepts | ~passed.payload.write),
            Assert(~accepted | (passed.payload.address == self.asked.address)),
            Assert(~accepted | (passed.payload.priority == self.asked.priority)),
            Assert(~accepted | (passed.payload.tag.context == self.asked.tag.context)),
            Assert(~accepted | depends | unchanged(passed.payload, self.asked, byte)),
            # What is forwarded without being accepted is the write, when it may be, and once.
            Assert(~(passed.valid & completes) | (busy & read & may & passed.payload.write)),
            Assert(~completes | (passed.payload.address == dependence.address)),
            Assert(~completes | (passed.payload.tag == dependence.tag)),
            Assert(~(self.hold & passed.valid) | (busy & read & may)),
            Assert(block.idle == ~busy),
        ]
        # What it writes: the bytes asked for, and of their group what was read.
        asked_here = dependence.mask.bit_select(byte, 1)
        shift = size.bit_length() - 1
        group_here = Cat(group.any() for group in groups(dependence.mask)).bit_select(byte >> shift, 1)
        m.d.comb += [
            Assert(~completes | (passed.payload.mask.bit_select(byte, 1) == group_here)),
            Assert(
                ~(completes & group_here)
                | (
                    passed.payload.data.word_select(byte, 8)
                    == Mux(asked_here, dependence.data.word_select(byte, 8), there)
                )
            ),
            # What refuses it says why.
            Assert(~refused | ((given.payload.status == answer_of) & given.payload.write)),
            Assert(~refused | ((given.payload.tag == dependence.tag) & busy & read & ~may)),
            Assert(~refused | (given.payload.status != MemoryStatus.OK)),
        ]
        # What the unit keeps.
        kept = MemoryRequest(inner["kept"])
        kept_byte = Mux(read & ~asked_here & (size > 1), there, dependence.data.word_select(byte, 8))
        m.d.comb += [
            Assert(inner.state("PASS") == ~busy),
            Assert(inner.state("READ") == (busy & reading)),
            Assert(~reading | (busy & ~read)),
            Assert(~inner.state("WRITE") | (read & may)),
            Assert(~inner.state("REFUSE") | (read & ~may & (inner["status"] == Value.cast(answer_of)))),
            Assert(~busy | dependent(dependence)),
            Assert(~busy | (dependence.tag.source != Source.CONTROLLER)),
            Assert(~busy | ~dependence.conditional | one_word(dependence.mask)),
            Assert(~busy | (kept.data.word_select(byte, 8) == kept_byte)),
            *(
                Assert(~busy | (getattr(kept, name) == getattr(dependence, name)))
                for name in ("address", "write", "conditional", "expected", "mask", "tag", "priority")
            ),
        ]
        m.d.comb += [
            Cover(completes & dependence.conditional),
            Cover(refused & (given.payload.status == MemoryStatus.MISMATCH)),
            Cover(refused & (given.payload.status == MemoryStatus.POISONED)),
            Cover(reading & answered),
            Cover(reading & accepted & self.asked.write),
            Cover(inner.state("WRITE") & accepted),
            Cover(inner.state("WRITE") & self.hold & completes),
            Cover((above == 3) & answered & mine(given.payload.tag)),
        ]
        if size > 1:
            m.d.comb += Cover(completes & group_here & ~asked_here & (there != 0))
        if self.false:
            m.d.comb += Assert(~(completes & (above == 1)))


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
