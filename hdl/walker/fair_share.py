"""What two tenants of one walker owe each other: whose requests go first, and how many may be under way."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ContextWrite
from .contexts import context_bits

__all__ = ["READS_LIMIT", "FairShare"]

#: Reads that a tenant may have under way while the other one walks too. If all are for one bank, which takes
#: tRC (48 cycles) for each, more of them would grow old there (from 256 cycles on with the controller's usual
#: age cap), and what is old goes before everything.
READS_LIMIT = 6


class FairShare(wiring.Component):
    """Keeps two tenants apart while contexts of both walk; with one tenant alone it changes nothing.

    A tenant with a read under way, and no fewer of them than the other tenant, puts out reads without
    priority: in the memory those of the other one pass them. The record that arrives in this cycle is no
    longer under way. So the requests of a tenant of one walk always have priority, and those of a tenant
    of many walks next to none beside it. A tenant with stores under way has no priority beside one that has
    none: its writes and reads of one bank, taken together, would else fill that bank's queue. A tenant that
    has READS_LIMIT reads under way waits with further ones.

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
    stores : In(contexts)
        Contexts with unanswered stores.
    priority : Out(1)
        Reads of `context` go first in the memory.
    holds : Out(1)
        `context` must not put out a read.
    second : Out(contexts)
        Contexts of tenant 1.
    contested : Out(1)
        Contexts of both walked in the cycle before.
    held : Out(contexts)
        Contexts that must not put out a read.
    sleeps : Out(1)
        See `ClockGate`.
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
                "stores": In(contexts),
                "priority": Out(1),
                "holds": Out(1),
                "second": Out(contexts),
                "contested": Out(1),
                "held": Out(contexts),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configure, second = self.configure, self.second
        member = Signal(self._contexts)
        m.d.comb += member.eq(1 << configure.index)
        with m.If(configure.enable):
            m.d.sync += second.eq(Mux(configure.tenant, second | member, second & ~member))

        # When nobody walks it is 0, so no walk depends on those before it.
        contest = Signal()
        m.d.comb += [
            contest.eq((self.busy & second).any() & (self.busy & ~second).any()),
            self.sleeps.eq(self.contested == contest),
        ]
        m.d.sync += self.contested.eq(contest)

        tenant, answered = Signal(), Signal()
        m.d.comb += [
            tenant.eq(second.bit_select(self.context, 1)),
            answered.eq(second.bit_select(self.answer_context, 1)),
        ]
        under_way = [Signal(range(self._contexts + 1), name=f"under_way_{number}") for number in range(2)]
        remaining = [Signal.like(count, name=f"remaining_{n}") for n, count in enumerate(under_way)]
        for number, (count, remains) in enumerate(zip(under_way, remaining, strict=True)):
            m.d.comb += remains.eq(count - (self.answer & (answered == number)))
            m.d.sync += count.eq(remains + (self.issue & (tenant == number)))
        full = [self.contested & (count >= READS_LIMIT) for count in under_way]
        mine, others = (Mux(tenant, remaining[1 - n], remaining[n]) for n in range(2))
        stores = [Signal(name=f"stores_{number}") for number in range(2)]
        m.d.comb += [stores[0].eq((self.stores & ~second).any()), stores[1].eq((self.stores & second).any())]
        stores_alone = Mux(tenant, stores[1] & ~stores[0], stores[0] & ~stores[1])
        m.d.comb += [
            self.priority.eq(~self.contested | (~stores_alone & ((mine == 0) | (mine < others)))),
            self.holds.eq(Mux(tenant, full[1], full[0])),
            self.held.eq(
                (second & full[1].replicate(self._contexts)) | (~second & full[0].replicate(self._contexts))
            ),
        ]
        return m
