"""The order in which a walker's verdicts go out."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..clock_gate import SLEPT_BITS
from .contexts import context_bits
from .tenant_robin import TenantRobin

__all__ = ["VerdictQueue"]


class VerdictQueue(wiring.Component):
    """Contexts with a verdict to put out, as bits; the verdict itself stays in the context's state.

    A verdict that nothing holds back is valid in the next cycle. One that ends a walk waits for the answers
    to its stores; several wait round robin, those of two tenants in turn.

    Parameters
    ----------
    registered : bool
        No path from `ready`: a verdict leaves in every other cycle at most.

    Members
    -------
    context : In, ends : In(1), yields : In(1)
        A context that from now on has an end, or a yielded value, to put out.
    outstanding : In(contexts)
        Contexts with unanswered stores.
    second : In(contexts)
        Contexts of tenant 1.
    restart : In(1)
        The round robin begins anew.
    now : Out(32)
        Cycles since reset.
    valid : Out(1), ready : In(1), offered : Out, time : Out(32)
        The output: the context whose verdict is offered, and the first cycle of the offer.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, contexts: int, *, registered: bool = False) -> None:
        self._contexts = contexts
        self._registered = registered
        bits = context_bits(contexts)
        super().__init__(
            {
                "context": In(bits),
                "ends": In(1),
                "yields": In(1),
                "outstanding": In(contexts),
                "second": In(contexts),
                "restart": In(1),
                "now": Out(32),
                "valid": Out(1),
                "ready": In(1),
                "offered": Out(bits),
                "time": Out(32),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = TenantRobin(self._contexts)
        ending = Signal(self._contexts)
        yielding = Signal(self._contexts)
        room = Signal()
        passes = Signal()
        here = Signal(self._contexts)
        put_out = Signal(self._contexts)
        m.d.comb += [
            room.eq(~self.valid if self._registered else ~self.valid | self.ready),
            arbiter.second.eq(self.second),
            arbiter.requests.eq((ending & ~self.outstanding) | yielding),
            arbiter.restart.eq(self.restart),
            arbiter.used.eq(room),
            passes.eq(
                room
                & ~arbiter.any
                & (self.yields | (self.ends & ~self.outstanding.bit_select(self.context, 1)))
            ),
            here.eq(Mux(passes, 0, 1 << self.context)),
            put_out.eq(Mux(room, arbiter.one_hot, 0)),
        ]
        m.d.sync += [
            self.now.eq(self.now + self.slept + 1),
            ending.eq((ending & ~put_out) | Mux(self.ends, here, 0)),
            yielding.eq((yielding & ~put_out) | Mux(self.yields, here, 0)),
        ]
        offers = Signal()
        m.d.comb += [
            offers.eq(room & (arbiter.any | passes)),
            self.sleeps.eq(~(self.valid | arbiter.any | self.ends | self.yields)),
        ]
        m.d.sync += self.valid.eq(offers | (self.valid & ~self.ready))
        with m.If(offers):
            m.d.sync += [
                self.offered.eq(Mux(arbiter.any, arbiter.grant, self.context)),
                self.time.eq(self.now + 1),
            ]
        return m
