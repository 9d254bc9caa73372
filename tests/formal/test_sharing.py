"""Blocks that share one memory port: one grant, held offers, bounded waits, and responses that find home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hdl.config import DesignConfig
from hdl.fabric.arbiter import Arbiter
from hdl.fabric.merge import BulkMerge
from hdl.layouts import Source
from tests.formal.harness import Proof, Property, quick

WORD = 4


@dataclass(frozen=True, kw_only=True)
class Sharer:
    """One requester of a shared port: the source of its responses, and how many others may pass it."""

    source: Source
    wait: int


class SharingProperty(Property):
    """A block with free requesters that obey the stream rule, and a free memory.

    With `waits`, the bounds on waiting: their counters are inside the block, so that is checked from reset.
    """

    def __init__(
        self,
        build: Callable[[], wiring.Component],
        sharers: Mapping[str, Sharer],
        *,
        waits: bool,
        false: bool,
    ) -> None:
        self._build, self._sharers, self._waits = build, sharers, waits
        signature = {"memory_ready": In(1), "response_valid": In(1), "source": In(Source)}
        for name in sharers:
            signature |= {f"{name}_valid": In(1), f"{name}_word": In(WORD), f"{name}_response_ready": In(1)}
        super().__init__(signature, false=false)

    def contents(self, m: Module) -> None:
        m.submodules.block = block = self._build()
        out, back = block.memory.request, block.memory.response
        m.d.comb += [
            out.ready.eq(self.memory_ready),
            back.valid.eq(self.response_valid),
            back.payload.tag.source.eq(self.source),
        ]
        taken = out.valid & out.ready
        granted = []
        for name, sharer in self._sharers.items():
            request, response = getattr(block, name).request, getattr(block, name).response
            valid, word = getattr(self, f"{name}_valid"), getattr(self, f"{name}_word")
            m.d.comb += [
                request.valid.eq(valid),
                request.payload.address.eq(word),
                request.payload.tag.source.eq(sharer.source),
                response.ready.eq(getattr(self, f"{name}_response_ready")),
            ]
            # The stream rule: an offer stands until it is taken.
            waiting, offered = Signal(name=f"{name}_waiting"), Signal(WORD, name=f"{name}_offered")
            m.d.sync += [waiting.eq(valid & ~request.ready), offered.eq(word)]
            m.d.comb += Assume(~waiting | (valid & (word == offered)))

            # Who is granted reaches the memory unchanged.
            grant = Signal(name=f"{name}_grant")
            m.d.comb += grant.eq(valid & request.ready)
            granted.append(grant)
            own = (out.payload.address == word) & (out.payload.tag.source == sharer.source)
            m.d.comb += Assert(~grant | (taken & own))

            # Responses go home and nowhere else.
            home = self.source == sharer.source
            m.d.comb += [
                Assert(~home | (response.valid == back.valid) & (back.ready == response.ready)),
                Assert(home | ~response.valid),
                Cover(grant),
                Cover(response.valid & response.ready),
            ]

            # Requests of others taken while this one waits.
            passed = Signal(range(sharer.wait + 3), name=f"{name}_passed")
            m.d.sync += passed.eq(Mux(valid & ~request.ready, passed + taken, 0))
            if self._waits:
                limit = sharer.wait - (1 if self.false else 0)
                m.d.comb += [Assert(passed <= limit), Cover(grant & (passed == sharer.wait))]
        m.d.comb += Assume(Cat(self.source == sharer.source for sharer in self._sharers.values()).any())

        # One grant for each transfer; nobody waits while the memory is idle; an offer to it stands.
        requests = Cat(getattr(self, f"{name}_valid") for name in self._sharers)
        m.d.comb += [
            Assert(sum(granted) == taken),
            Assert(out.valid == requests.any()),
        ]
        standing, last = Signal(), Signal.like(Cat(out.payload.address, out.payload.tag.source))
        m.d.sync += [
            standing.eq(out.valid & ~out.ready),
            last.eq(Cat(out.payload.address, out.payload.tag.source)),
        ]
        if self._waits:
            m.d.comb += Assert(
                ~standing | (out.valid & (Cat(out.payload.address, out.payload.tag.source) == last))
            )
            m.d.comb += Cover(standing & requests.all())
        elif self.false:
            m.d.comb += Assert(~(granted[0] & requests[1]))


def arbiter() -> wiring.Component:
    return Arbiter(DesignConfig())


ARBITER = {
    "near": Sharer(source=Source.NEAR_WALKER, wait=Arbiter.WALK_WAIT),
    "far": Sharer(source=Source.FAR_WALKER, wait=Arbiter.WALK_WAIT),
    "bulk": Sharer(source=Source.MOVER, wait=Arbiter.BULK_WAIT),
}
MERGE = {
    "sequencer": Sharer(source=Source.SEQUENCER, wait=2),
    "mover": Sharer(source=Source.MOVER, wait=2),
    "host": Sharer(source=Source.HOST, wait=2),
}


def sharing(
    name: str,
    build: Callable[[], wiring.Component],
    sharers: Mapping[str, Sharer],
    *,
    waits: bool,
    mode: str,
    depth: int,
) -> Proof:
    """The proof of one block that shares a port."""
    return Proof(
        name=name,
        build=lambda false: SharingProperty(build, sharers, waits=waits, false=false),
        mode=mode,
        depth=depth,
        cover_depth=max(depth, 4),
    )


PROOFS = [
    sharing("arbiter", arbiter, ARBITER, waits=False, mode="prove", depth=3),
    sharing("arbiter waits", arbiter, ARBITER, waits=True, mode="bmc", depth=16),
    sharing("merge waits", BulkMerge, MERGE, waits=True, mode="bmc", depth=12),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_a_shared_port(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
