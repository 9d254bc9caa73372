"""What two tenants of one walker owe each other in stores that read before they write."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .contexts import context_bits

__all__ = ["DependentStores"]


class DependentStores(wiring.Component):
    """Keeps all but one dependent store of a walker back while contexts of two tenants walk.

    A memory port takes the next write that depends on what is there only when the one before is decided, and
    the next request of its atom as well (see `AtomicUnit`). One that waited there would keep the reads of both
    tenants out, so it waits in its context. With one tenant alone nothing is kept back.

    A context that has other stores out waits for their answers first: so the next answer to one of its stores
    is that to the dependent one.

    Members
    -------
    contested : In(1)
        Contexts of both tenants walk.
    context : In
        The context of `holds`, `issue` and `waits`.
    dependent : In(1)
        Its store depends on what is there.
    issue : In(1)
        A store of `context` is put out.
    waits : In(1)
        A store of `context` has to wait.
    outstanding : In(contexts)
        Contexts with unanswered stores.
    answer_context : In, answer : In(1)
        A store is answered.
    holds : Out(1)
        `context` must not put out its store.
    held : Out(contexts)
        Contexts whose store had to wait and still must not be put out.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        bits = context_bits(contexts)
        super().__init__(
            {
                "contested": In(1),
                "context": In(bits),
                "dependent": In(1),
                "issue": In(1),
                "waits": In(1),
                "outstanding": In(contexts),
                "answer_context": In(bits),
                "answer": In(1),
                "holds": Out(1),
                "held": Out(contexts),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The context whose dependent store is under way, one hot, and those whose dependent store waits.
        owner, waiting, here = (Signal(self._contexts, name=name) for name in ("owner", "waiting", "here"))
        answered = Signal(self._contexts)
        keeps_back = Signal()
        m.d.comb += [
            here.eq(1 << self.context),
            answered.eq(self.answer << self.answer_context),
            keeps_back.eq(self.contested & owner.any()),
            self.holds.eq(
                (owner & here).any()
                | (self.dependent & (keeps_back | (self.contested & (self.outstanding & here).any())))
            ),
            self.held.eq(
                owner
                | (
                    waiting
                    & (keeps_back.replicate(self._contexts) | self.outstanding)
                    & self.contested.replicate(self._contexts)
                )
            ),
        ]
        m.d.sync += owner.eq(owner & ~answered)
        with m.If(self.issue & self.dependent & self.contested):
            m.d.sync += owner.eq(here)
        with m.If(self.issue | self.waits):
            m.d.sync += waiting.eq(
                (waiting & ~here) | (here & (self.waits & self.dependent).replicate(self._contexts))
            )
        return m
