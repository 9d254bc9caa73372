"""What two tenants of one walker owe each other: whose requests go first, and how many may be under way."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ContextWrite
from .contexts import context_bits

__all__ = ["READS_LIMIT", "FairShare"]

#: Reads that a tenant may have under way while the other one walks too. With more of them waiting in the
#: memory some grow old there, and what is old goes before everything.
READS_LIMIT = 32
#: Reads by which one tenant may be ahead before it is as far ahead as it can be.
_AHEAD = 7


class FairShare(wiring.Component):
    """Keeps two tenants apart while contexts of both walk; with one tenant alone it changes nothing.

    A tenant that has put out more reads than the other, counted up to _AHEAD, is ahead: its requests have no
    priority in the memory, where those of the other one pass them. So a tenant of one walk is never ahead of
    one with many, and two that ask for as much as they can get half of the memory each. A tenant that has
    READS_LIMIT reads under way waits with further ones.

    Members
    -------
    configure : In(ContextWrite)
        A context that does not exist is ignored.
    busy : In(contexts)
        Contexts that walk.
    context : In
        The context that `priority` and `holds` are about, and `issue`.
    issue : In(1)
        A read of `context` is put out.
    answer_context : In, answer : In(1)
        A record arrives.
    priority : Out(1)
        Requests of `context` go first in the memory.
    holds : Out(1)
        `context` must not put out a read.
    second : Out(contexts)
        Contexts of tenant 1.
    held : Out(contexts)
        Contexts that must not put out a read.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        bits = context_bits(contexts)
        super().__init__(
            {
                "configure": In(ContextWrite()),
                "busy": In(contexts),
                "context": In(bits),
                "issue": In(1),
                "answer_context": In(bits),
                "answer": In(1),
                "priority": Out(1),
                "holds": Out(1),
                "second": Out(contexts),
                "held": Out(contexts),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configure, second = self.configure, self.second
        member = Signal(self._contexts)
        m.d.comb += member.eq(1 << configure.index)
        with m.If(configure.enable):
            m.d.sync += second.eq(Mux(configure.tenant, second | member, second & ~member))

        # When nobody walks this is 0, so no walk depends on those before it.
        contested = Signal()
        m.d.sync += contested.eq((self.busy & second).any() & (self.busy & ~second).any())

        tenant, answered = Signal(), Signal()
        m.d.comb += [
            tenant.eq(second.bit_select(self.context, 1)),
            answered.eq(second.bit_select(self.answer_context, 1)),
        ]
        #: Reads of tenant 1 less those of tenant 0.
        ahead = Signal(signed(_AHEAD.bit_length() + 1))
        with m.If(~contested):
            m.d.sync += ahead.eq(0)
        with m.Elif(self.issue & tenant & (ahead != _AHEAD)):
            m.d.sync += ahead.eq(ahead + 1)
        with m.Elif(self.issue & ~tenant & (ahead != -_AHEAD)):
            m.d.sync += ahead.eq(ahead - 1)
        m.d.comb += self.priority.eq(Mux(tenant, ahead <= 0, ahead >= 0))

        full: list[Value] = []
        for number in range(2):
            under_way = Signal(range(self._contexts + 1), name=f"under_way_{number}")
            issues = self.issue & (tenant == number)
            arrives = self.answer & (answered == number)
            m.d.sync += under_way.eq(under_way + issues - arrives)
            full.append(contested & (under_way >= READS_LIMIT))
        m.d.comb += [
            self.holds.eq(Mux(tenant, full[1], full[0])),
            self.held.eq(
                (second & full[1].replicate(self._contexts)) | (~second & full[0].replicate(self._contexts))
            ),
        ]
        return m
