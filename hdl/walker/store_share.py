"""What two tenants of one walker owe each other in stores: none may keep the other's reads out of memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ADDRESS_WIDTH
from .contexts import context_bits

__all__ = ["StoreShare"]


class StoreShare(wiring.Component):
    """Says which requests wait in their contexts because of stores while contexts of two tenants walk; with
    one tenant alone none does.

    A request that a memory port does not take keeps all behind it out, the reads of the other tenant too.
    What a port might not take is therefore not put out:

    * a store while the memory is `crowded`, for it may have no room for another write;
    * a store that depends on what is there while the one before is not decided (see `AtomicUnit`): of the
      walker's dependent stores one is under way at most. A context that has other stores out waits for their
      answers first: so the next answer to a store of its own is that to the dependent one;
    * a request for the atom of the dependent store that is under way.

    Members
    -------
    contested : In(1)
        Contexts of both tenants walk.
    crowded : In(1)
        The memory is about to run out of room for writes.
    context : In, address : In(32), store : In(1), dependent : In(1)
        A context, and what it is about to ask for: a store to, or a read of, the atom at `address`.
    issue : In(1)
        It puts its store out.
    waits : In(1)
        It has to wait with it.
    outstanding : In(contexts)
        Contexts with unanswered stores.
    answer_context : In, answer : In(1)
        A store is answered.
    holds : Out(1)
        It must wait.
    held : Out(contexts)
        Contexts that waited, and still must.
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
                "address": In(ADDRESS_WIDTH),
                "store": In(1),
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

        def vector(name: str) -> Signal:
            return Signal(count, name=name)

        # The context whose dependent store is under way, one hot, and the store's atom.
        owner, owned_address = vector("owner"), Signal(ADDRESS_WIDTH)
        # What waits: a store, a dependent one, a request for the owned atom.
        stores, dependents, followers = vector("stores"), vector("dependents"), vector("followers")
        here, ends = vector("here"), vector("ends")
        full, owned, follows, may_wait = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            here.eq(1 << self.context),
            ends.eq(owner & (self.answer << self.answer_context)[:count]),
            full.eq(self.contested & self.crowded),
            owned.eq(self.contested & owner.any()),
            follows.eq(owned & (self.address == owned_address)),
            may_wait.eq(self.contested & ((owner | self.outstanding) & here).any()),
            self.holds.eq(
                follows
                | (self.store & (full | (owner & here).any()))
                | (self.store & self.dependent & (owned | may_wait))
            ),
            self.held.eq(
                (stores & (owner | full.replicate(count)))
                | (
                    dependents
                    & (owned.replicate(count) | (self.outstanding & self.contested.replicate(count)))
                )
                | (followers & owned.replicate(count))
            ),
            self.presses.eq(full & stores.any()),
        ]
        m.d.sync += [owner.eq(owner & ~ends), followers.eq(Mux(ends.any(), 0, followers))]
        with m.If(self.issue & self.dependent & self.contested):
            m.d.sync += [owner.eq(here), owned_address.eq(self.address)]
        with m.If(self.issue | self.waits):
            for waiting, waits in (
                (stores, self.waits & self.store & ~self.issue),
                (dependents, self.waits & self.store & ~self.issue & self.dependent),
                (followers, self.waits & follows & ~ends.any()),
            ):
                m.d.sync += waiting.eq((waiting & ~here) | (here & waits.replicate(count)))
        return m
