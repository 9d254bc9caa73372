"""The stores of a walker that are not answered yet, counted by context."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .contexts import context_bits

__all__ = ["STORES_LIMIT", "StoreTracker"]

_COUNT_BITS = 4
#: Stores of one context that may be unanswered.
STORES_LIMIT = (1 << _COUNT_BITS) - 1


class StoreTracker(wiring.Component):
    """Counts stores out and answers back; says which contexts wait and which must hold further stores.

    Two counters a context, each written from one side, instead of one that both sides write.

    Members
    -------
    context : In
        Context of `begin` and `issue`.
    begin : In(1)
        A walk begins: it has no store out and none failed.
    issue : In(1)
        A store is put out. Not for a context that is `full`.
    answer_context : In, answer : In(1), answer_failed : In(1)
        A store is answered. An answer that nobody waits for is ignored.
    outstanding : Out(contexts)
        Contexts with unanswered stores.
    full : Out(contexts)
        Contexts with STORES_LIMIT of them.
    failed : Out(contexts)
        Contexts of whose stores, in this walk, one failed.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        bits = context_bits(contexts)
        super().__init__(
            {
                "context": In(bits),
                "begin": In(1),
                "issue": In(1),
                "answer_context": In(bits),
                "answer": In(1),
                "answer_failed": In(1),
                "outstanding": Out(contexts),
                "full": Out(contexts),
                "failed": Out(contexts),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counts = {}
        for name in ("issued", "answered"):
            m.submodules[name] = memory = Memory(shape=_COUNT_BITS, depth=max(2, self._contexts), init=[])
            at_context, at_answer = memory.read_port(domain="comb"), memory.read_port(domain="comb")
            m.d.comb += [at_context.addr.eq(self.context), at_answer.addr.eq(self.answer_context)]
            counts[name] = memory.write_port(), at_context.data, at_answer.data
        write_issued, issued, issued_there = counts["issued"]
        write_answered, answered, answered_there = counts["answered"]

        answer = Signal()
        same = Signal()
        answered_next = Signal(_COUNT_BITS)
        m.d.comb += [
            answer.eq(self.answer & self.outstanding.bit_select(self.answer_context, 1)),
            same.eq(answer & (self.context == self.answer_context)),
            answered_next.eq(answered_there + 1),
            write_issued.addr.eq(self.context),
            write_issued.en.eq(self.issue | self.begin),
            # Memories have no reset: a walk begins with equal counters, whatever they are.
            write_issued.data.eq(Mux(self.begin, answered, issued + 1)),
            write_answered.addr.eq(self.answer_context),
            write_answered.en.eq(answer),
            write_answered.data.eq(answered_next),
        ]
        issuer = Signal(self._contexts)
        answerer = Signal(self._contexts)
        last_answer = Signal()
        fills = Signal()
        m.d.comb += [
            issuer.eq(1 << self.context),
            answerer.eq(Mux(answer, 1 << self.answer_context, 0)),
            last_answer.eq(answer & (issued_there == answered_next)),
            fills.eq(self.issue & ((issued - answered)[:_COUNT_BITS] == STORES_LIMIT - 1) & ~same),
        ]
        m.d.sync += [
            self.outstanding.eq(
                (self.outstanding & ~Mux(last_answer, answerer, 0)) | Mux(self.issue, issuer, 0)
            ),
            self.full.eq((self.full & ~answerer) | Mux(fills, issuer, 0)),
            self.failed.eq(
                (self.failed & ~Mux(self.begin, issuer, 0)) | Mux(self.answer_failed, answerer, 0)
            ),
        ]
        return m
