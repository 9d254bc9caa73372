"""Every request that the controller accepts is answered: once, as it was asked, and in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Module, Signal, Value

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, Tag
from tests.formal.channel import ChannelProperty
from tests.formal.harness import Proof, quick
from tests.formal.small import SmallMemory, small_design


class AnsweredProperty(ChannelProperty):
    """A controller with one tag watched, whichever it is: no more than one request of it is under way.

    The requester of the watched tag asks again only after his answer; others do as they like. The taker is
    always ready, there is no restart, and then the answer comes within `limit` cycles.
    """

    def __init__(self, config: DesignConfig, *, limit: int, refresh: RefreshMode, false: bool) -> None:
        self._limit, self._mode = limit, refresh
        super().__init__(config, false=false)

    def contents(self, m: Module) -> None:
        controller = self.environment(m)
        request, response = controller.memory.request, controller.memory.response
        watched = AnyConst(len(Value.cast(Signal(Tag))))
        accepted, answered, pending = Signal(), Signal(), Signal()
        waited = Signal(range(self._limit + 2))
        written = Signal()
        limit = self._limit - (1 if self.false else 0)
        m.d.comb += [
            accepted.eq(request.valid & request.ready & (Value.cast(request.payload.tag) == watched)),
            answered.eq(response.valid & response.ready & (Value.cast(response.payload.tag) == watched)),
            Assume(self.refresh == self._mode),
            Assume(~self.restart),
            Assume(self.response_ready),
            Assume(~(self.valid & pending & ~answered) | (Value.cast(request.payload.tag) != watched)),
        ]
        with m.If(accepted):
            m.d.sync += [pending.eq(1), waited.eq(1), written.eq(request.payload.write)]
        with m.Elif(answered):
            m.d.sync += [pending.eq(0), waited.eq(0)]
        with m.Elif(pending & (waited <= self._limit)):
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += [
            Assert(~answered | pending),
            Assert(~answered | (response.payload.write == written)),
            Assert(~pending | (waited <= limit)),
            Cover(answered & (waited == self._limit)),
            Cover(answered & written),
            Cover(answered & ~written & accepted),
        ]


PROOFS = [
    Proof(
        name="every request is answered",
        build=lambda false: AnsweredProperty(
            small_design(SmallMemory(shape=(1, 1, 1), cycles={"tREFI": 30})),
            limit=40,
            refresh=RefreshMode.ALL_BANK,
            false=false,
        ),
        mode="bmc",
        depth=50,
        cover_depth=50,
        timeout=1200,
        quick=False,
    )
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_every_request_is_answered(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
