"""The checks that an instruction or a launch has to pass: budget, permission and window."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ADDRESS_WIDTH, MemoryStatus, VerdictKind, WalkStatus, access_failed
from .contexts import Deferred, Outcome
from .datapath import Step
from .isa import ExitKind

__all__ = ["Commit", "in_window"]


def in_window(place: Value, base: Value, limit: Value) -> Value:
    """`place` is in the window [base, limit)."""
    return (place >= base) & (place < limit)


class Commit(wiring.Component):
    """Decides, combinationally, what a step of the datapath or a launch may do and how the walk goes on.

    In this order: a record that could not be read ends the walk, a spent budget ends it before the
    instruction has any effect, a store checks the permission and then the window (the current record was
    inside when it was loaded, but nothing else stands between a store and memory), the exit's load checks
    for null and then the window. The register update of an instruction that is ended by its store or load
    stays.

    Members
    -------
    executing : In(1), step : In(Step), address : In(32), status : In(MemoryStatus)
        An instruction on the record at `address`, which was read with `status`.
    launching : In(1), start : In(32)
        A launch, whose first load is `start`. At most one of `executing` and `launching`.
    inside : In(1)
        The record at `address`, or `start` of a launch, is in the context's window.
    base, limit, writable, spent : In
        Of the context that executes.
    steps : Out(1)
        The instruction takes effect and is counted.
    stores : Out(1)
        Its store is done.
    loads : Out(1)
        A record read is issued.
    target : Out(32)
        Its address.
    work : Out(Deferred)
        What the context has to put out.
    outcome : Out(Outcome), value : Out(32), concludes : Out(1)
        The verdict, of kind YIELD or DONE, if there is one.
    """

    executing: In(1)
    step: In(Step())
    address: In(ADDRESS_WIDTH)
    status: In(MemoryStatus)
    launching: In(1)
    start: In(ADDRESS_WIDTH)
    inside: In(1)
    base: In(ADDRESS_WIDTH)
    limit: In(ADDRESS_WIDTH)
    writable: In(1)
    spent: In(1)

    steps: Out(1)
    stores: Out(1)
    loads: Out(1)
    target: Out(ADDRESS_WIDTH)
    work: Out(Deferred)
    outcome: Out(Outcome)
    value: Out(32)
    concludes: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        step = self.step
        within = Signal()
        null = Signal()
        load = Signal()
        after = Signal(ExitKind)
        end = Signal(WalkStatus)
        m.d.comb += [
            self.target.eq(Mux(self.executing, step.exit_value, self.start)),
            null.eq(Mux(self.executing, step.exit_value == 0, self.start == 0)),
            within.eq(Mux(self.executing, in_window(step.exit_value, self.base, self.limit), self.inside)),
            after.eq(Mux(self.executing, step.exit_kind, ExitKind.LOAD)),
        ]

        readable = Signal()
        stopped = Signal()
        m.d.comb += [
            readable.eq(~access_failed(self.status)),
            self.steps.eq(self.executing & readable & ~self.spent),
            self.stores.eq(self.steps & step.store & self.writable & self.inside),
            # Everything before the exit that ends the walk.
            stopped.eq((self.executing & ~self.steps) | (self.steps & step.store & ~self.stores)),
            load.eq((self.launching | (self.steps & ~stopped)) & (after == ExitKind.LOAD)),
            self.loads.eq(load & ~null & within),
        ]
        with m.If(self.launching):
            m.d.comb += end.eq(Mux(null, WalkStatus.NULL_POINTER, WalkStatus.OUT_OF_WINDOW))
        with m.Elif(~readable):
            with m.Switch(self.status):
                with m.Case(MemoryStatus.POISONED):
                    m.d.comb += end.eq(WalkStatus.POISONED)
                with m.Case(MemoryStatus.BUS_ERROR):
                    m.d.comb += end.eq(WalkStatus.BUS_ERROR)
                with m.Default():
                    m.d.comb += end.eq(WalkStatus.OUT_OF_WINDOW)
        with m.Elif(self.spent):
            m.d.comb += end.eq(WalkStatus.BUDGET_SPENT)
        with m.Elif(stopped):
            m.d.comb += end.eq(Mux(self.writable, WalkStatus.OUT_OF_WINDOW, WalkStatus.WRITE_DENIED))
        with m.Elif(load):
            m.d.comb += end.eq(Mux(null, WalkStatus.NULL_POINTER, WalkStatus.OUT_OF_WINDOW))
        with m.Else():
            m.d.comb += end.eq(WalkStatus.DONE)

        yields = Signal()
        m.d.comb += [
            self.work.store.eq(self.stores),
            self.work.after.eq(Mux(stopped | (load & ~self.loads), ExitKind.DONE, after)),
            self.work.conditional.eq(step.store_conditional),
            self.work.word.eq(step.store_word),
            self.work.value.eq(step.store_value),
            self.work.expected.eq(step.store_expected),
            yields.eq(~stopped & (after == ExitKind.YIELD)),
            self.concludes.eq(
                (self.executing | self.launching) & (yields | (self.work.after == ExitKind.DONE))
            ),
            self.outcome.kind.eq(Mux(yields, VerdictKind.YIELD, VerdictKind.DONE)),
            self.outcome.status.eq(Mux(yields, WalkStatus.DONE, end)),
            self.outcome.code.eq(Mux(~yields & (end == WalkStatus.DONE), step.exit_code, 0)),
        ]
        with m.If(yields):
            m.d.comb += self.value.eq(step.exit_value)
        with m.Elif(self.launching | (end == WalkStatus.NULL_POINTER)):
            m.d.comb += self.value.eq(0)
        with m.Else():
            m.d.comb += self.value.eq(self.address)
        return m
