"""The walker of six stages keeps to window, permission and budget as the one of one stage does.

It checks a launch and the record that a store writes a cycle ahead. Two contexts between a free host and a
free memory, as in `test_walk.py`: any programs, records and registers. A launch that is offered stays as it
is until it is taken, and windows are set while nothing walks and no launch is offered.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.utils import ceil_log2

from hdl.config import WalkerConfig
from hdl.layouts import VerdictKind, Walk, WalkStatus
from hdl.walker.contexts import Deferred, Outcome
from hdl.walker.isa import ExitKind
from hdl.walker.stores import STORES_LIMIT
from hdl.walker.walker import Walker
from tests.formal.harness import Internals, Proof, quick
from tests.formal.walker import WalkerProperty

_STAGES = 6
#: The stage that commits: the sixth only puts out what that one decided.
_FINAL = _STAGES - 2
_CONTEXTS = 2
_BITS = ceil_log2(_CONTEXTS)


class AheadProperty(WalkerProperty):
    """A walker of six stages between a free host and a free memory."""

    def __init__(self, *, false: bool) -> None:
        super().__init__(WalkerConfig(contexts=_CONTEXTS, execute_stages=_STAGES), false=false)

    def contents(self, m: Module) -> None:
        block, inner = self.walker(m)
        stays = Signal()
        offered = Signal(Walk)
        m.d.sync += [stays.eq(self.launches & ~block.launch.ready), offered.eq(self.launch)]
        m.d.comb += [
            Assume(~stays | (self.launches & (Value.cast(self.launch) == Value.cast(offered)))),
            # Only a launch that was offered in the cycle before is checked, and it has its slot.
            Assert(~inner["launch_checked"] | (stays & ~inner[f"valid_{_FINAL}"])),
        ]
        for number in range(_CONTEXTS):
            self._context(m, number, block, inner)

        # -- What can happen --
        request, end = block.memory.request, block.verdict.payload
        ends = block.verdict.valid & (end.kind == VerdictKind.DONE)
        m.d.comb += [
            Cover(ends & (end.status == WalkStatus.BUDGET_SPENT) & (end.hops == 1)),
            Cover(ends & (end.status == WalkStatus.OUT_OF_WINDOW) & (end.hops == 0)),
            Cover(ends & (end.status == WalkStatus.WRITE_DENIED) & (end.context == 1)),
            Cover(ends & (end.status == WalkStatus.DONE) & (end.context == 1)),
            Cover(request.valid & request.payload.write),
            Cover(inner["launch_checked"] & ~inner["advance"]),
        ]

    def _context(self, m: Module, number: int, block: Walker, inner: Internals) -> None:
        """All that is so of one context."""

        def mine(context: Value) -> Value:
            return context[:_BITS] == number

        request = block.memory.request
        commit, verdicts, tracker = (inner.inside(name) for name in ("commit", "verdicts", "stores"))
        work = Signal(Deferred, name=f"work_{number}")
        outcome = Signal(Outcome, name=f"outcome_{number}")
        deferred = Signal(Deferred, name=f"deferred_{number}")
        ended = Signal(Outcome, name=f"ended_{number}")
        state, at = inner.inside("contexts"), Const(number, _BITS)
        base, limit, writable, budget, address, target, remaining, spent, hops = (
            state.word(m, name, at, f"kept_{name}_{number}")
            for name in (
                *("base", "limit", "writable", "budget"),
                *("address", "target", "remaining", "spent", "hops"),
            )
        )
        m.d.comb += [
            Value.cast(work).eq(inner["slot_work"]),
            Value.cast(outcome).eq(state.word(m, "outcome", at, f"kept_outcome_{number}")),
            Value.cast(deferred).eq(state.word(m, "deferred", at, f"kept_deferred_{number}")),
            Value.cast(ended).eq(Value.cast(commit["outcome"])),
        ]

        # -- What the host said --
        said = {
            name: Signal(len(getattr(self, name)), name=f"said_{name}_{number}")
            for name in ("base", "limit", "writable", "budget")
        }
        with m.If(self.configures & (self.index == number)):
            m.d.sync += [signal.eq(getattr(self, name)) for name, signal in said.items()]
        for name, kept in (("base", base), ("limit", limit), ("writable", writable), ("budget", budget)):
            m.d.comb += Assert(kept == said[name])

        def within(place: Value) -> Value:
            return (place >= said["base"]) & (place < said["limit"])

        # -- What was asked and not answered --
        slot = inner["slot_acting"] & mine(inner["slot_context"])
        asks = request.valid & mine(request.payload.tag.context)
        send_load, send_store = inner["send_load"] & slot, inner["send_store"] & slot
        answers = self.answers & mine(self.answer.tag.context)
        answered = answers & block.memory.response.ready
        reading = Signal(name=f"reading_{number}")
        unanswered = Signal(range(STORES_LIMIT + 1), name=f"unanswered_{number}")
        m.d.sync += [
            reading.eq((reading & ~(answered & ~self.answer.write)) | send_load),
            unanswered.eq(unanswered + send_store - (answered & self.answer.write)),
        ]
        m.d.comb += Assume(
            ~answers
            | Mux(
                self.answer.write,
                unanswered > (asks & request.payload.write),
                reading & ~(asks & ~request.payload.write),
            )
        )

        # -- Where the context is: in one place at a time --
        free, runnable, pending = block.free[number], inner["runnable"][number], inner["pending"][number]
        ending, yielding = verdicts["ending"][number], verdicts["yielding"][number]
        offered = block.verdict.valid & mine(verdicts["offered"])
        stages = [inner[f"valid_{stage}"] & mine(inner[f"context_{stage}"]) for stage in range(1, _FINAL + 1)]
        places = Cat(free, runnable, pending, reading, slot, ending, yielding, offered, *stages)
        m.d.comb += Assert((places != 0) & ((places & (places - 1)) == 0))
        issued, returned = (
            tracker.word(m, name, at, f"stores_{name}_{number}") for name in ("issued", "answered")
        )
        begins = slot & inner["slot_begins"]
        done, yields = outcome.kind == VerdictKind.DONE, outcome.kind == VerdictKind.YIELD
        m.d.comb += [
            Assert(tracker["outstanding"][number] == (unanswered != 0)),
            Assert(tracker["full"][number] == (unanswered == STORES_LIMIT)),
            Assert((issued - returned)[:4] == unanswered),
            Assert(~(asks & ~request.payload.write) | reading),
            Assert(~(asks & request.payload.write) | (unanswered != 0)),
            # A walk that is over, or begins, has no store on its way.
            Assert(~(free | begins) | (unanswered == 0)),
            Assert(~begins | ~work.store),
            Assert(~(offered & done) | (unanswered == 0)),
            Assert(~ending | done),
            Assert(~yielding | yields),
        ]

        # -- What is known ahead is so of this launch, and of this instruction --
        final = stages[-1]
        launched = self.launches & block.launch.ready & mine(self.launch.context)
        begun = Signal(name=f"begun_{number}")
        m.d.sync += begun.eq(launched)
        checked = inner["launch_checked"] & mine(self.launch.context)
        null = self.launch.address == 0
        m.d.comb += [
            Assert(begun == begins),
            Assert(~checked | (inner["inside"] == within(self.launch.address))),
            Assert(~checked | (inner["budget"] == said["budget"])),
            Assert(~final | (inner["inside"] == within(inner[f"address_{_FINAL}"]))),
            Assert(~launched | (commit["loads"] == (within(self.launch.address) & ~null))),
            Assert(~launched | (commit["concludes"] == ~commit["loads"])),
        ]
        status = Mux(null, WalkStatus.NULL_POINTER, WalkStatus.OUT_OF_WINDOW)
        fails = (ended.kind == VerdictKind.DONE) & (Value.cast(ended.status) == status) & (ended.code == 0)
        m.d.comb += Assert(~launched | commit["loads"] | (fails & (commit["value"] == 0)))

        # -- Window and permission --
        for there, what in ((slot, work), (pending, deferred)):
            loads = there & (what.after == ExitKind.LOAD)
            m.d.comb += [
                Assert(~(there & (what.after == ExitKind.DONE)) | done),
                Assert(~(there & (what.after == ExitKind.YIELD)) | yields),
                Assert(~loads | (within(target) & (target != 0))),
                Assert(~(there & what.store) | (within(address) & said["writable"])),
            ]
        m.d.comb += [
            Assert(~(slot & (work.after == ExitKind.LOAD)) | (inner["slot_target"] == target)),
            Assert(~slot | (inner["slot_current"] == address)),
            Assert(~asks | within(request.payload.address)),
            Assert(~asks | request.payload.write | (request.payload.address != 0)),
            Assert(~(asks & request.payload.write) | said["writable"]),
        ]

        # -- Budget, and the count of reads --
        steps, reads = Signal(25, name=f"steps_{number}"), Signal(32, name=f"reads_{number}")
        step = final & commit["steps"] & inner["advance"]
        m.d.sync += [
            steps.eq(Mux(launched, 0, steps + step)),
            reads.eq(Mux(launched, 0, reads + send_load)),
        ]
        load_waits = (slot & (work.after == ExitKind.LOAD)) | (pending & (deferred.after == ExitKind.LOAD))
        m.d.comb += [
            Assert(free | (steps + remaining == said["budget"])),
            Assert(free | (spent == (remaining == 0))),
            Assert(free | (hops == (reads + load_waits)[:32])),
        ]
        if self.false:
            m.d.comb += Assert(~asks | (request.payload.address + 1 < said["limit"]))


PROOFS = [
    Proof(
        name="walks of a walker of six stages",
        build=lambda false: AheadProperty(false=false),
        depth=2,
        cover_depth=16,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name.replace(" ", "_"))
def test_proof(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
