"""The choice of the context whose instruction enters the walker's datapath."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .contexts import context_bits
from .tenant_robin import TenantRobin

__all__ = ["PATIENCE", "Selection"]

#: Cycles that a launch or an executable context gives way to others before it goes first, once.
PATIENCE = 15


class Selection(wiring.Component):
    """A record that arrives goes first, then contexts that continue without a load: those of two tenants in
    turn, and those of one round robin.

    Nobody waits for ever: after PATIENCE cycles an executable context holds an arriving record back for
    one selection, and a launch, which needs a commit slot that nobody uses, holds everything back.

    Members
    -------
    advance : In(1)
        The pipeline takes an instruction.
    record_valid : In(1), record_context : In
        A record arrives. It is written to its context when it is taken, selected or not.
    hold : In(1)
        No record can be written in this cycle. Nothing else is selected before a record that this holds.
    runnable : In(contexts)
        Contexts that could execute.
    second : In(contexts)
        Contexts of tenant 1.
    launch_waits : In(1)
        A launch could be taken if the commit slot were unused.
    restart : In(1)
        The round robin begins anew.
    ready : Out(1)
        Responses are taken.
    taken : Out(1)
        A record is taken.
    direct : Out(1), picked : Out(1), context : Out
        An instruction is selected: for the record that is taken, or for an executable context. The context
        is that of a record that is taken, selected or not.
    picked_one_hot : Out(contexts)
        The executable context that is selected; 0 if none is.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        bits = context_bits(contexts)
        super().__init__(
            {
                "advance": In(1),
                "record_valid": In(1),
                "record_context": In(bits),
                "hold": In(1),
                "runnable": In(contexts),
                "second": In(contexts),
                "launch_waits": In(1),
                "restart": In(1),
                "ready": Out(1),
                "taken": Out(1),
                "direct": Out(1),
                "picked": Out(1),
                "context": Out(bits),
                "picked_one_hot": Out(contexts),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = TenantRobin(self._contexts)
        runnable_urgent, runnable_waited = self._patience(m, "runnable_waited", arbiter.any & ~self.picked)
        launch_urgent, launch_waited = self._patience(m, "launch_waited", self.launch_waits)
        m.d.comb += [
            arbiter.requests.eq(self.runnable),
            arbiter.second.eq(self.second),
            arbiter.restart.eq(self.restart),
            arbiter.used.eq(self.picked),
            self.ready.eq(~(runnable_urgent | launch_urgent | self.hold)),
            self.taken.eq(self.record_valid & self.ready),
            self.direct.eq(self.taken & self.advance),
            self.picked.eq(
                self.advance & arbiter.any & ~launch_urgent & (runnable_urgent | ~self.record_valid)
            ),
            self.context.eq(Mux(self.taken, self.record_context, arbiter.grant)),
            self.picked_one_hot.eq(Mux(self.picked, arbiter.one_hot, 0)),
            self.sleeps.eq(
                ~(arbiter.any | self.record_valid | self.launch_waits)
                & (runnable_waited == 0)
                & (launch_waited == 0)
            ),
        ]
        return m

    def _patience(self, m: Module, name: str, waits: Value) -> tuple[Signal, Signal]:
        """Whether something has waited for PATIENCE cycles, this one not included, and how long it has."""
        waited = Signal(range(PATIENCE + 1), name=name)
        urgent = Signal(name=f"{name}_enough")
        m.d.comb += urgent.eq(waited == PATIENCE)
        with m.If(~waits):
            m.d.sync += waited.eq(0)
        with m.Elif(~urgent):
            m.d.sync += waited.eq(waited + 1)
        return urgent, waited
