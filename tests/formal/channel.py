"""A whole controller with free requesters and a memory that answers in time: what its proofs share."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assume, Cat, Module, Signal, Value
from amaranth.lib.wiring import In

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RefreshMode, Source
from hdl.memory.address import AddressMap
from hdl.memory.controller import Controller
from tests.formal.harness import Internals, Property

__all__ = ["ChannelProperty"]


class ChannelProperty(Property):
    """A controller whose every input is free, but for what its documentation asks of them.

    A request on offer stands until it is taken; its source is not the controller's own; the mask of a
    conditional write selects one word (the first). Refresh changes only in a restart that is done, and a
    restart lasts until it is. The memory answers a read after CL + burst cycles; one bit of the data is free
    and the others are 0, for no rule looks at them.
    """

    def __init__(self, config: DesignConfig, *, false: bool, signature: dict[str, Any] | None = None) -> None:
        self.config = config
        self.address_bits = AddressMap(config.memory).width + 1
        super().__init__(
            {
                "valid": In(1),
                "address": In(self.address_bits),
                "write": In(1),
                "conditional": In(1),
                "expected": In(1),
                "source": In(Source),
                "context": In(6),
                "priority": In(1),
                "response_ready": In(1),
                "read_bit": In(1),
                "refresh": In(RefreshMode),
                "restart": In(1),
                **(signature or {}),
            },
            false=false,
        )

    def environment(self, m: Module) -> Controller:
        """Add the controller and what surrounds it; `inner` then shows what is inside it."""
        controller = Controller(self.config)
        self.inner = Internals(controller)
        m.submodules.controller = self.inner.fragment
        request, response = controller.memory.request, controller.memory.response
        offered = Value.cast(
            Cat(
                self.address,
                self.write,
                self.conditional,
                self.expected,
                Value.cast(self.source),
                self.context,
                self.priority,
            )
        )
        m.d.comb += [
            request.valid.eq(self.valid),
            request.payload.address.eq(self.address),
            request.payload.write.eq(self.write),
            request.payload.conditional.eq(self.conditional),
            request.payload.expected.eq(self.expected),
            request.payload.mask.eq(0xF),
            request.payload.tag.source.eq(self.source),
            request.payload.tag.context.eq(self.context),
            request.payload.priority.eq(self.priority),
            response.ready.eq(self.response_ready),
            controller.refresh.eq(self.refresh),
            controller.restart.eq(self.restart),
        ]
        waiting, last = Signal(name="offer_waits"), Signal.like(offered, name="offer_before")
        m.d.sync += [waiting.eq(self.valid & ~request.ready), last.eq(offered)]
        m.d.comb += [
            Assume(~waiting | (self.valid & (offered == last))),
            Assume(Value.cast(self.source) <= Source.HOST.value),
        ]

        restarting, mode = Signal(name="restarting"), Signal(RefreshMode, name="mode_before")
        changeable, started = Signal(name="mode_may_change"), Signal(name="started")
        m.d.sync += [
            restarting.eq(self.restart & ~controller.restarted),
            mode.eq(self.refresh),
            changeable.eq(self.restart & controller.restarted),
            started.eq(1),
        ]
        m.d.comb += [
            Assume(~restarting | self.restart),
            Assume(~started | changeable | (self.refresh == mode)),
            Assume(Value.cast(self.refresh) <= RefreshMode.PER_BANK.value),
        ]

        column = controller.column
        # One bit for every cycle that a read may be on its way.
        self.flight = flight = Signal(self.config.memory.timing.row_hit, name="flight")
        read = (column.op == ColumnOp.READ) | (column.op == ColumnOp.READ_AUTO)
        m.d.sync += flight.eq(Cat(read, flight[:-1]))
        m.d.comb += [column.read_valid.eq(flight[-1]), column.read_data.eq(self.read_bit)]
        return controller
