"""A walk keeps to its window, its permission and its budget, whatever program, records and registers it has.

One context of a walker in one stage. Its program memory may change at any time, so every instruction may be
any word; memory answers what it is asked with any data and any status, whenever it likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value

from hdl.config import WalkerConfig
from hdl.layouts import VerdictKind, WalkStatus
from hdl.walker.contexts import Deferred, Outcome
from hdl.walker.isa import ExitKind
from hdl.walker.stores import STORES_LIMIT
from hdl.walker.walker import Walker
from tests.formal.harness import Proof, quick
from tests.formal.walker import WalkerProperty

#: In `prompt` memory and the taker of verdicts wait for at most so many cycles more than they have to.
SLOW = 1
#: Cycles from a launch, a step or the answer to a store to the next of them, or to the verdict.
PROGRESS = 8


class WalkProperty(WalkerProperty):
    """A walker of one context between a free host and a free memory; `prompt`: neither waits for ever."""

    def __init__(self, *, prompt: bool, false: str) -> None:
        self._prompt = prompt
        self._false = false
        super().__init__(WalkerConfig(contexts=1), false=bool(false))

    def contents(self, m: Module) -> None:
        block, inner = self.walker(m)
        request, response = block.memory.request, block.memory.response
        context = Const(0, 1)
        state = inner.inside("contexts")
        base, limit, writable, budget, address, target, remaining, spent, deferred_bits, outcome_bits = (
            state.word(m, name, context, f"kept_{name}")
            for name in (
                *("base", "limit", "writable", "budget"),
                *("address", "target", "remaining", "spent", "deferred", "outcome"),
            )
        )
        deferred = Signal(Deferred)
        outcome = Signal(Outcome)
        m.d.comb += [Value.cast(deferred).eq(deferred_bits), Value.cast(outcome).eq(outcome_bits)]

        # -- What the host said --
        said = {
            name: Signal(len(getattr(self, name)), name=f"said_{name}")
            for name in ("base", "limit", "writable", "budget")
        }
        with m.If(self.configures & (self.index == 0)):
            m.d.sync += [signal.eq(getattr(self, name)) for name, signal in said.items()]
        for name, kept in (("base", base), ("limit", limit), ("writable", writable), ("budget", budget)):
            m.d.comb += Assert(kept == said[name])

        def within(place: Value) -> Value:
            return (place >= said["base"]) & (place < said["limit"])

        # -- What was asked and not answered --
        commit = inner.inside("commit")
        send_load, send_store = inner["send_load"], inner["send_store"]
        taken = Signal()
        reading = Signal()
        unanswered = Signal(range(STORES_LIMIT + 1))
        at_output = Signal()
        stored = Signal()
        m.d.comb += [
            taken.eq(self.answers & response.ready),
            stored.eq(taken & self.answer.write),
            at_output.eq(request.valid & ~self.request_ready),
            # An answer is one to a request that the memory has.
            Assume(
                ~self.answers
                | Mux(
                    self.answer.write,
                    unanswered > (request.valid & request.payload.write),
                    reading & ~(request.valid & ~request.payload.write),
                )
            ),
        ]
        m.d.sync += [
            reading.eq((reading & ~(taken & ~self.answer.write)) | send_load),
            unanswered.eq(unanswered + send_store - stored),
        ]

        # -- Where the context is: in one place at a time --
        verdicts = inner.inside("verdicts")
        free, runnable, pending = block.free, inner["runnable"], inner["pending"]
        ending, yielding, offered = verdicts["ending"], verdicts["yielding"], block.verdict.valid
        places = Cat(free, runnable, pending, reading, ending, yielding, offered)
        m.d.comb += Assert((places != 0) & ((places & (places - 1)) == 0))
        tracker = inner.inside("stores")
        share, fair = inner.inside("store_share"), inner.inside("fair_share")
        issued, answered = (
            tracker.word(m, name, context, f"stores_{name}") for name in ("issued", "answered")
        )
        m.d.comb += [
            Assert(tracker["outstanding"] == (unanswered != 0)),
            # One context is of one tenant: it has no other's stores to wait for, but its own.
            Assert(~fair["contested"]),
            Assert((share["owner"] & ~tracker["outstanding"]) == 0),
            Assert((share["followers"] == 0) | (share["owner"] != 0)),
            Assert(tracker["full"] == (unanswered == STORES_LIMIT)),
            Assert((issued - answered)[:4] == unanswered),
            Assert(~(request.valid & ~request.payload.write) | reading),
            Assert(~(request.valid & request.payload.write) | (unanswered != 0)),
            Assert(unanswered <= STORES_LIMIT),
            # A walk that is over has no store on its way.
            Assert(~free | (unanswered == 0)),
            Assert(~(offered & (outcome.kind == VerdictKind.DONE)) | (unanswered == 0)),
            Assert(~ending | (outcome.kind == VerdictKind.DONE)),
            Assert(~yielding | (outcome.kind == VerdictKind.YIELD)),
            Assert(~(pending & (deferred.after == ExitKind.DONE)) | (outcome.kind == VerdictKind.DONE)),
            Assert(~(pending & (deferred.after == ExitKind.YIELD)) | (outcome.kind == VerdictKind.YIELD)),
        ]

        # -- Window and permission --
        load_waits = pending & (deferred.after == ExitKind.LOAD)
        store_waits = pending & deferred.store
        m.d.comb += [
            Assert(~request.valid | within(request.payload.address)),
            Assert(~request.valid | request.payload.write | (request.payload.address != 0)),
            Assert(~(request.valid & request.payload.write) | said["writable"]),
            # What is put off was checked.
            Assert(~load_waits | (within(target) & (target != 0))),
            Assert(~store_waits | (within(address) & said["writable"])),
            Assert(
                ~pending | store_waits | (deferred.after == ExitKind.LOAD) | (deferred.after == ExitKind.DONE)
            ),
        ]

        # -- Budget --
        steps, reads, stores = Signal(25), Signal(25), Signal(25)
        launched = self.launches & block.launch.ready
        step = Signal()
        m.d.comb += step.eq(commit["steps"] & inner["advance"])
        with m.If(launched):
            m.d.sync += [steps.eq(0), reads.eq(send_load), stores.eq(0)]
        with m.Else():
            m.d.sync += [steps.eq(steps + step), reads.eq(reads + send_load), stores.eq(stores + send_store)]
        m.d.comb += [
            Assert(free.all() | (steps + remaining == said["budget"])),
            Assert(free.all() | (spent == (remaining == 0))),
            Assert(free.all() | (steps <= said["budget"])),
            Assert(free.all() | (reads + load_waits <= steps + 1)),
            Assert(free.all() | (stores + store_waits <= steps)),
        ]
        if self._prompt:
            self._progress(m, block, reading, unanswered, launched | step | stored)
        # -- What can happen --
        end = block.verdict.payload
        ends = block.verdict.valid & (end.kind == VerdictKind.DONE)
        m.d.comb += [
            Cover(ends & (end.status == WalkStatus.BUDGET_SPENT) & (steps == 3)),
            Cover(ends & (end.status == WalkStatus.OUT_OF_WINDOW) & (steps == 1)),
            Cover(ends & (end.status == WalkStatus.WRITE_DENIED)),
            Cover(ends & (end.status == WalkStatus.DONE) & (stores == 1)),
            Cover(request.valid & request.payload.write & (request.payload.address == said["limit"] - 1)),
        ]
        if self._false == "window":
            m.d.comb += Assert(~request.valid | (request.payload.address + 1 < said["limit"]))
        elif self._false == "budget":
            m.d.comb += Assert(free.all() | (steps < said["budget"]) | (steps == 0))

    def _progress(self, m: Module, block: Walker, reading: Value, unanswered: Value, moves: Value) -> None:
        """While it walks a context steps, or has a store answered, at least every PROGRESS cycles.

        Neighbours wait for at most SLOW cycles: a request is taken, and memory answers something of what it
        has, a read before the stores.
        """
        request, response = block.memory.request, block.memory.response
        stores_there = unanswered > (request.valid & request.payload.write)
        read_there = reading & ~(request.valid & ~request.payload.write)
        for name, waits, goes in (
            ("request", request.valid, self.request_ready),
            ("verdict", block.verdict.valid, self.verdict_ready),
            ("answer", read_there | stores_there, self.answers & response.ready),
        ):
            waited = Signal(range(SLOW + 1), name=f"{name}_waited")
            m.d.sync += waited.eq(Mux(waits & ~goes & (waited != SLOW), waited + 1, 0))
            m.d.comb += Assume(~(waits & (waited == SLOW)) | (self.answers if name == "answer" else goes))
        m.d.comb += Assume(~self.answers | ~read_there | ~self.answer.write)
        since = Signal(range(PROGRESS + 2))
        m.d.sync += since.eq(Mux(moves | block.idle, 0, since + (since <= PROGRESS)))
        m.d.comb += Assert(since <= PROGRESS)
        if self._false == "progress":
            m.d.comb += Assert(since < SLOW + 2)


PROOFS = [
    Proof(
        name="window and permission of a walk",
        build=lambda false: WalkProperty(prompt=False, false="window" if false else ""),
        depth=2,
        cover_depth=14,
    ),
    Proof(
        name="budget of a walk",
        build=lambda false: WalkProperty(prompt=False, false="budget" if false else ""),
        depth=2,
        cover_depth=14,
        quick=False,
    ),
    Proof(
        name="progress of a walk",
        build=lambda false: WalkProperty(prompt=True, false="progress" if false else ""),
        depth=PROGRESS + 2,
        cover_depth=16,
        quick=False,
    ),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name.replace(" ", "_"))
def test_proof(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
