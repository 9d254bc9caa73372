"""The response side of a controller: every read and every acknowledgement is answered once, as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.layouts import MemoryStatus, Tag
from hdl.memory.responses import ACKNOWLEDGEMENTS, Acknowledgement, Responses
from tests.formal.harness import Internals, Proof, Property, quick
from tests.formal.small import small_design

DATA_WIDTH = 2
TAG_WIDTH = len(Value.cast(Signal(Tag)))


class ResponsesProperty(Property):
    """Free reads and acknowledgements, a memory that answers reads in order, whenever it likes, and a free
    taker; an eye on one read and one acknowledgement, whichever they are."""

    def __init__(self, *, ecc: bool, false: bool) -> None:
        self._controller = small_design(ecc=ecc).controller
        self._ecc = ecc
        super().__init__(
            {
                "issue": In(1),
                "tag": In(TAG_WIDTH),
                "read_valid": In(1),
                "data": In(DATA_WIDTH),
                "read_status": In(MemoryStatus),
                "acknowledge": In(1),
                "acknowledged_tag": In(TAG_WIDTH),
                "write": In(1),
                "status": In(MemoryStatus),
                "ready": In(1),
                "watch_read": In(1),
                "watch_acknowledgement": In(1),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        block = Responses(self._controller)
        inner = Internals(block)
        m.submodules.block = inner.fragment
        slots = self._controller.response_slots
        response = block.response
        answer = response.payload
        acknowledgement = Value.cast(block.acknowledgement)
        m.d.comb += [
            block.issue.eq(self.issue),
            Value.cast(block.issue_tag).eq(self.tag),
            block.read_valid.eq(self.read_valid),
            block.read_data.eq(self.data),
            block.acknowledge.eq(self.acknowledge),
            block.acknowledgement.write.eq(self.write),
            block.acknowledgement.status.eq(self.status),
            Value.cast(block.acknowledgement.tag).eq(self.acknowledged_tag),
            response.ready.eq(self.ready),
        ]
        came = Cat(self.data, Value.cast(self.read_status) if self._ecc else MemoryStatus.OK)
        if self._ecc:
            m.d.comb += block.read_status.eq(self.read_status)

        # -- What is outside, by counting --
        outstanding, flying = Signal(range(slots + 1)), Signal(range(slots + 1))
        acknowledgements = Signal(range(ACKNOWLEDGEMENTS + 1))
        sent = Signal()
        # Which answer is a read's is the block's choice; what it then must be is checked below.
        is_read, read_sent, other_sent = inner["choose_read"], Signal(), Signal()
        m.d.comb += [
            sent.eq(response.valid & self.ready),
            read_sent.eq(sent & is_read),
            other_sent.eq(sent & ~is_read),
            Assume(~self.issue | block.room),
            Assume(~self.acknowledge | block.acknowledge_room),
            Assume(~self.read_valid | (flying != 0)),
        ]
        m.d.sync += [
            outstanding.eq(outstanding + self.issue - read_sent),
            flying.eq(flying + self.issue - self.read_valid),
            acknowledgements.eq(acknowledgements + self.acknowledge - other_sent),
        ]
        there = outstanding - flying
        m.d.comb += [
            Assert(block.room == (outstanding != slots)),
            Assert(block.acknowledge_room == (acknowledgements != ACKNOWLEDGEMENTS)),
            # Nothing without a request, nothing held back.
            Assert(~(response.valid & is_read) | (there != 0) | self.read_valid),
            Assert(~(response.valid & ~is_read) | (acknowledgements != 0)),
            Assert(response.valid == ((there != 0) | self.read_valid | (acknowledgements != 0))),
            Assert(block.empty == ((outstanding == 0) & (acknowledgements == 0))),
        ]
        # An offer stands until it is taken.
        offer = Cat(Value.cast(answer.tag), answer.write, answer.data[:DATA_WIDTH], Value.cast(answer.status))
        standing, offered = Signal(), Signal.like(offer)
        m.d.sync += [standing.eq(response.valid & ~self.ready), offered.eq(offer)]
        m.d.comb += Assert(~standing | (response.valid & (offer == offered)))

        # -- How the block keeps the same things --
        issued, arrived, left = inner["issued"], inner["arrived"], inner["left"]
        first, last = inner["first"], inner["last"]
        m.d.comb += [
            Assert(inner["reserved"] == outstanding),
            Assert(inner["waiting"] == there),
            Assert(inner["queued"] == acknowledgements),
            Assert(flying <= outstanding),
            Assert(outstanding <= slots),
            Assert(acknowledgements <= ACKNOWLEDGEMENTS),
            Assert(issued == (left + outstanding)[: len(left)]),
            Assert(arrived == (left + there)[: len(left)]),
            Assert(last == (first + acknowledgements)[: len(first)]),
            Assert(~inner["offered"] | (acknowledgements != 0)),
            Assert(~inner["offered"] | standing),
        ]

        # -- One read, whichever it is --
        watching, arrived_too = Signal(name="watching_read"), Signal()
        seen_tag, seen_data = Signal(TAG_WIDTH), Signal(len(came))
        ahead, to_come = Signal(range(slots + 1)), Signal(range(slots + 1))
        begins = self.issue & self.watch_read & ~watching
        turn, arrives = Signal(), Signal()
        m.d.comb += [
            turn.eq(watching & read_sent & (ahead == 0)),
            arrives.eq(watching & self.read_valid & (to_come == 0) & ~arrived_too),
        ]
        with m.If(begins):
            m.d.sync += [
                watching.eq(1),
                arrived_too.eq(0),
                seen_tag.eq(self.tag),
                ahead.eq(outstanding - read_sent),
                to_come.eq(flying - self.read_valid),
            ]
        with m.Elif(watching):
            m.d.sync += [
                watching.eq(~turn),
                ahead.eq(ahead - (read_sent & (ahead != 0))),
                to_come.eq(to_come - (self.read_valid & (to_come != 0))),
            ]
            with m.If(arrives):
                m.d.sync += [arrived_too.eq(1), seen_data.eq(came)]
        found = Cat(answer.data[:DATA_WIDTH], Value.cast(answer.status))
        place = (left + ahead)[: len(left)]
        tag_kept = inner.word(m, "tags", place, "tag_kept")
        data_kept = inner.word(m, "atoms", place, "data_kept")
        kept = Cat(
            data_kept[:DATA_WIDTH],
            data_kept[-len(Value.cast(self.read_status)) :] if self._ecc else MemoryStatus.OK,
        )
        m.d.comb += [
            Assert(~turn | (Value.cast(answer.tag) == seen_tag)),
            Assert(~turn | ~answer.write),
            Assert(~turn | (found == Mux(arrived_too, seen_data, came))),
            Assert(~turn | arrived_too | arrives),
            Assert(~watching | (ahead < outstanding)),
            Assert(~watching | (tag_kept == seen_tag)),
            Assert(~watching | (arrived_too == (ahead < there))),
            Assert(~watching | arrived_too | (to_come == ahead - there)),
            Assert(~(watching & arrived_too) | (kept == seen_data)),
        ]

        # -- One acknowledgement, whichever it is --
        waiting_for = Signal(name="watching_acknowledgement")
        seen = Signal.like(acknowledgement)
        before = Signal(range(ACKNOWLEDGEMENTS + 1))
        its_turn = waiting_for & other_sent & (before == 0)
        with m.If(self.acknowledge & self.watch_acknowledgement & ~waiting_for):
            m.d.sync += [
                waiting_for.eq(1),
                seen.eq(acknowledgement),
                before.eq(acknowledgements - other_sent),
            ]
        with m.Elif(waiting_for):
            m.d.sync += [waiting_for.eq(~its_turn), before.eq(before - (other_sent & (before != 0)))]
        acknowledgement_kept = inner.word(m, "queue", (first + before)[: len(first)], "acknowledgement_kept")
        shown = Signal(Acknowledgement)
        m.d.comb += [
            shown.tag.eq(answer.tag),
            shown.write.eq(answer.write),
            shown.status.eq(answer.status),
            Assert(~its_turn | (Value.cast(shown) == seen)),
            Assert(~waiting_for | (before < acknowledgements)),
            Assert(~waiting_for | (acknowledgement_kept == seen)),
        ]
        m.d.comb += [Cover(turn & (ahead == 0) & (outstanding == slots)), Cover(its_turn & self.read_valid)]
        m.d.comb += [
            Cover(turn & ~arrived_too),
            Cover(standing & ~is_read & self.read_valid),
            Cover(turn & arrived_too & (seen_data != 0)),
        ]
        if self.false:
            # An acknowledgement on offer may keep a read waiting.
            m.d.comb += Assert(~(other_sent & self.read_valid))


PROOFS = [
    Proof(
        name=f"responses{' with ECC' if ecc else ''}",
        build=lambda false, ecc=ecc: ResponsesProperty(ecc=ecc, false=false),
        depth=2,
        cover_depth=12,
        quick=not ecc,
    )
    for ecc in (False, True)
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_every_read_and_every_acknowledgement_is_answered_once(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
