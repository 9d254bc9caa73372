"""What two tenants of one walker owe each other in stores: none may keep the other's reads out of memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .contexts import context_bits

__all__ = ["StoreShare"]


class StoreShare(wiring.Component):
    """Says which stores wait in their contexts while contexts of two tenants walk; with one tenant alone none
    does.

    A request that a memory port does not take keeps all behind it out, the reads of the other tenant too.
    There are two reasons for which a port does not take a store, so such stores are not put out:

    * The memory has no room for another write. While it is `crowded` all stores wait.
    * The store depends on what is there, and the one before it is not decided (see `AtomicUnit`). One
      dependent store of the walker is under way at most. A context that has other stores out waits for their
      answers first: so the next answer to a store of its own is that to the dependent one.

    Members
    -------
    contested : In(1)
        Contexts of both tenants walk.
    crowded : In(1)
        The memory is about to run out of room for writes.
    context : In
        The context of `dependent`, `issue`, `waits` and `holds`.
    dependent : In(1)
        Its store depends on what is there.
    issue : In(1)
        Its store is put out.
    waits : In(1)
        Its store has to wait.
    outstanding : In(contexts)
        Contexts with unanswered stores.
    answer_context : In, answer : In(1)
        A store is answered.
    holds : Out(1)
        `context` must not put out a store.
    held : Out(contexts)
        Contexts with a store that waits, and must go on waiting.
    presses : Out(1)
        Stores wait for the memory to be less crowded.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        bits = context_bits(contexts)
        super().__init__(
            {
                "contested": In(1),
                "crowded": In(1),
                "context": In(bits),
                "dependent": In(1),
                "issue": In(1),
                "waits": In(1),
                "outstanding": In(contexts),
                "answer_context": In(bits),
                "answer": In(1),
                "holds": Out(1),
                "held": Out(contexts),
                "presses": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self._contexts
        # One hot: the context whose dependent store is under way.
        owner = Signal(count)
        waiting, waiting_dependent = Signal(count), Signal(count)
        here, answered = Signal(count), Signal(count)
        full, owned = Signal(), Signal()
        m.d.comb += [
            here.eq(1 << self.context),
            answered.eq(self.answer << self.answer_context),
            full.eq(self.contested & self.crowded),
            owned.eq(self.contested & owner.any()),
            self.presses.eq(full & waiting.any()),
            self.holds.eq(
                full
                | (owner & here).any()
                | (self.dependent & (owned | (self.contested & (self.outstanding & here).any())))
            ),
            self.held.eq(
                owner
                | (waiting & full.replicate(count))
                | (waiting_dependent & owned.replicate(count))
                | (waiting_dependent & self.outstanding & self.contested.replicate(count))
            ),
        ]
        m.d.sync += owner.eq(owner & ~answered)
        with m.If(self.issue & self.dependent & self.contested):
            m.d.sync += owner.eq(here)
        with m.If(self.issue | self.waits):
            dependent = (self.waits & self.dependent).replicate(count)
            m.d.sync += [
                waiting.eq((waiting & ~here) | (here & self.waits.replicate(count))),
                waiting_dependent.eq((waiting_dependent & ~here) | (here & dependent)),
            ]
        return m
