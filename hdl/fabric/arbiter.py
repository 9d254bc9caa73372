"""The arbiter: near walker, far walker and bulk traffic share the port of one memory channel."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import MemoryPort, Source

__all__ = ["Arbiter"]


class _Grant(enum.Enum, shape=2):
    """Whose request is offered to the memory."""

    NEAR = 0
    FAR = 1
    BULK = 2


class Arbiter(wiring.Component):
    """Merges near walker, far walker and bulk requests into one memory port; walks go first.

    A request passes combinationally: it costs no cycle. Near and far take turns when both wait. A request
    that was offered to the memory stays offered until the memory takes it. Responses go back by
    `tag.source`, combinationally; each requester must have room for its own responses, because one that
    does not take them stops the others'.

    Members
    -------
    near, far, bulk : In(MemoryPort)
    memory : Out(MemoryPort)
    sleeps : Out(1)
        See `ClockGate`.
    """

    #: Walk requests that may pass a bulk request that waits.
    BULK_WAIT = 8
    #: Requests of others that may pass a walk request that waits: one of the other walker, one of bulk.
    WALK_WAIT = 2

    near: In(MemoryPort())
    far: In(MemoryPort())
    bulk: In(MemoryPort())
    memory: Out(MemoryPort())
    sleeps: Out(1)

    def __init__(self, config: DesignConfig) -> None:
        self.config = config
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        near, far, bulk = self.near.request, self.far.request, self.bulk.request
        out = self.memory.request

        # Walk requests taken since the bulk request began to wait.
        passed = Signal(range(self.BULK_WAIT + 1))
        far_is_next = Signal()
        held = Signal()
        held_grant = Signal(_Grant)
        grant = Signal(_Grant)

        with m.If(held):
            m.d.comb += grant.eq(held_grant)
        with m.Elif(bulk.valid & ((passed == self.BULK_WAIT) | ~(near.valid | far.valid))):
            m.d.comb += grant.eq(_Grant.BULK)
        with m.Else():
            m.d.comb += grant.eq(Mux(far.valid & (far_is_next | ~near.valid), _Grant.FAR, _Grant.NEAR))

        for choice, request in ((_Grant.NEAR, near), (_Grant.FAR, far), (_Grant.BULK, bulk)):
            with m.If(grant == choice):
                m.d.comb += [
                    out.valid.eq(request.valid),
                    out.payload.eq(request.payload),
                    request.ready.eq(out.ready),
                ]

        taken = out.valid & out.ready
        m.d.sync += held.eq(out.valid & ~out.ready)
        with m.If(out.valid):
            m.d.sync += held_grant.eq(grant)
        m.d.comb += self.sleeps.eq(
            ~(near.valid | far.valid | bulk.valid | held | self.memory.response.valid) & (passed == 0)
        )
        with m.If(taken & (grant != _Grant.BULK)):
            m.d.sync += far_is_next.eq(grant == _Grant.NEAR)
        with m.If(~bulk.valid | (taken & (grant == _Grant.BULK))):
            m.d.sync += passed.eq(0)
        with m.Elif(taken):
            m.d.sync += passed.eq(passed + 1)

        response = self.memory.response
        for port in (self.near, self.far, self.bulk):
            m.d.comb += port.response.payload.eq(response.payload)
        with m.Switch(response.p.tag.source):
            for port, case in (
                (self.near, m.Case(Source.NEAR_WALKER)),
                (self.far, m.Case(Source.FAR_WALKER)),
                (self.bulk, m.Default()),
            ):
                with case:
                    m.d.comb += [
                        port.response.valid.eq(response.valid),
                        response.ready.eq(port.response.ready),
                    ]
        return m
