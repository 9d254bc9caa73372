"""What two tenants of one walker owe each other in stores: none may keep the other's reads out of memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ADDRESS_WIDTH
from .contexts import context_bits

__all__ = ["CROWD_PATIENCE", "StoreShare"]

#: Cycles after which a store goes although the memory is crowded: those of others may keep it so for ever.
CROWD_PATIENCE = 255


class StoreShare(wiring.Component):
    """Says which requests wait in their contexts because of stores while contexts of two tenants walk; with
    one tenant alone none does.

    A request that a memory port does not take keeps all behind it out, the reads of the other tenant too.
    What a port might not take is therefore not put out:

    * a store while the memory is `crowded`, for it may have no room for another write; one goes after
      CROWD_PATIENCE cycles;
    * a store that depends on what is there while the one before is not decided (see `AtomicUnit`): of the
      walker's dependent stores one is under way at most. A context that has other stores out waits for their
      answers first: so the next answer to a store of its own is that to the dependent one;
    * any other request for the atom of the dependent store that is under way. Those that waited for it go
      before the next dependent store.

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
    goes : In(1)
        It puts its read out.
    waits : In(1)
        It has to wait.
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
    sleeps : Out(1)
        See `ClockGate`.
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
                "goes": In(1),
                "waits": In(1),
                "outstanding": In(contexts),
                "answer_context": In(bits),
                "answer": In(1),
                "holds": Out(1),
                "held": Out(contexts),
                "presses": Out(1),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = self._contexts

        def vector(name: str) -> Signal:
            return Signal(count, name=name)

        # The context whose dependent store is under way, one hot, and the store's atom.
        owner, owned_address = vector("owner"), Signal(ADDRESS_WIDTH)
        # What waits: a store, a dependent one, a request for the owned atom; and such requests that may go.
        stores, dependents, followers, woken = (
            vector(name) for name in ("stores", "dependents", "followers", "woken")
        )
        here, ends = vector("here"), vector("ends")
        crowd, full, owned, follows, unanswered = (
            Signal(name=name) for name in ("crowd", "full", "owned", "follows", "unanswered")
        )
        patience = Signal(range(CROWD_PATIENCE + 1))
        m.d.comb += [
            here.eq(1 << self.context),
            ends.eq(owner & (self.answer << self.answer_context)[:count]),
            crowd.eq(self.contested & self.crowded),
            full.eq(crowd & (patience != CROWD_PATIENCE)),
            owned.eq(self.contested & (owner | woken).any()),
            follows.eq(self.contested & owner.any() & (self.address == owned_address)),
            unanswered.eq(self.contested & (self.outstanding & here).any()),
            self.holds.eq(
                follows
                | (self.store & (full | (owner & here).any()))
                | (self.store & self.dependent & (owned | unanswered))
            ),
            self.held.eq(
                (stores & (owner | full.replicate(count)))
                | (
                    dependents
                    & (owned.replicate(count) | (self.outstanding & self.contested.replicate(count)))
                )
                | followers
            ),
            self.presses.eq(crowd & stores.any()),
            self.sleeps.eq(~self.presses & (patience == 0)),
        ]
        with m.If(self.issue | ~self.presses):
            m.d.sync += patience.eq(0)
        with m.Elif(patience != CROWD_PATIENCE):
            m.d.sync += patience.eq(patience + 1)
        m.d.sync += owner.eq(owner & ~ends)
        with m.If(self.issue & self.dependent & self.contested):
            m.d.sync += [owner.eq(here), owned_address.eq(self.address)]
        acts = self.issue | self.goes | self.waits
        for waiting, waits in (
            (stores, self.waits & self.store & ~self.issue),
            (dependents, self.waits & self.store & ~self.issue & self.dependent),
        ):
            with m.If(acts):
                m.d.sync += waiting.eq((waiting & ~here) | (here & waits.replicate(count)))
        follower = here & (self.waits & follows & ~(self.store & self.dependent)).replicate(count)
        gone = here & acts.replicate(count)
        m.d.sync += [
            followers.eq(Mux(ends.any(), 0, followers | follower)),
            woken.eq(Mux(ends.any(), followers | follower, woken & ~gone)),
        ]
        return m
