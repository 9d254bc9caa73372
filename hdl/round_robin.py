"""A round-robin choice among requests."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Grants one of `count` requests, combinationally; the one that was used last comes last.

    It works on the packed vector (lowest set bit, then an OR for each bit of the index), which a compiled
    simulation does in a few word operations whatever the number of contexts.

    Members
    -------
    requests : In(count)
    used : In(1)
        The grant is taken in this cycle.
    restart : In(1)
        Begin again at request 0, so that what follows does not depend on what came before.
    any : Out(1)
        There is a request.
    grant : Out(log2 count, at least 1)
        The chosen one. 0 without a request.
    one_hot : Out(count)
        The same, as a bit of the vector.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        super().__init__(
            {
                "requests": In(count),
                "used": In(1),
                "restart": In(1),
                "any": Out(1),
                "grant": Out(max(1, ceil_log2(count))),
                "one_hot": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        #: The requests after the one that was used last.
        later = Signal(self._count)
        ahead = Signal(self._count)
        field = Signal(self._count)
        m.d.comb += [
            ahead.eq(self.requests & later),
            field.eq(Mux(ahead.any(), ahead, self.requests)),
            self.any.eq(self.requests.any()),
            self.one_hot.eq(field & (~field + 1)),
        ]
        for bit in range(len(self.grant)):
            members = Cat(self.one_hot[number] for number in range(self._count) if number >> bit & 1)
            m.d.comb += self.grant[bit].eq(members.any())
        with m.If(self.restart):
            m.d.sync += later.eq(0)
        with m.Elif(self.used & self.any):
            m.d.sync += later.eq(~((self.one_hot << 1)[: self._count] - 1))
        return m
