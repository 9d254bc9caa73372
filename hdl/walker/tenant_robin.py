"""A round robin in which two tenants take turns."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..round_robin import RoundRobin
from .contexts import context_bits

__all__ = ["TenantRobin"]


class TenantRobin(wiring.Component):
    """Grants one of the contexts that ask, combinationally: those of two tenants in turn, and those of one
    round robin. With one tenant it is a `RoundRobin`.

    Each tenant has a round of its own: one for both would begin anew whenever the turn changes.

    Members
    -------
    requests : In(contexts)
    second : In(contexts)
        Contexts of tenant 1.
    used : In(1)
        The grant is taken in this cycle.
    restart : In(1)
        Begin again at context 0 of tenant 0.
    any : Out(1)
        There is a request.
    grant : Out
        The chosen one. 0 without a request.
    one_hot : Out(contexts)
        The same, as a bit of the vector.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        super().__init__(
            {
                "requests": In(contexts),
                "second": In(contexts),
                "used": In(1),
                "restart": In(1),
                "any": Out(1),
                "grant": Out(context_bits(contexts)),
                "one_hot": Out(contexts),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.first = first = RoundRobin(self._contexts)
        m.submodules.other = other = RoundRobin(self._contexts)
        turn = Signal()
        chosen = Signal()
        m.d.comb += [
            first.requests.eq(self.requests & ~self.second),
            other.requests.eq(self.requests & self.second),
            chosen.eq(other.any & (turn | ~first.any)),
            first.used.eq(self.used & ~chosen),
            other.used.eq(self.used & chosen),
            first.restart.eq(self.restart),
            other.restart.eq(self.restart),
            self.any.eq(self.requests.any()),
            self.grant.eq(Mux(chosen, other.grant, first.grant)),
            self.one_hot.eq(Mux(chosen, other.one_hot, first.one_hot)),
        ]
        with m.If(self.restart):
            m.d.sync += turn.eq(0)
        with m.Elif(self.used & self.any):
            m.d.sync += turn.eq(~chosen)
        return m
