"""One channel of the link: nothing is lost, copied, reordered, early or late, and credits are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib.wiring import In

from hdl.fabric.channel import Channel
from tests.formal.harness import Proof, Property, quick

KINDS = {"request": 2, "launch": 1}
CREDITS = 2
LATENCY = 1
LONGEST = 2
"""Cycles that a message may occupy the channel here."""
TIME = 5


class ChannelProperty(Property):
    """A channel of two kinds with free senders and takers, and an eye on one message, whichever it is.

    If the n-th message of a kind accepted is the n-th taken, whatever n and kind, then none is lost, copied
    or reordered.
    """

    def __init__(self, *, false: bool) -> None:
        signature = {}
        for kind, width in KINDS.items():
            signature |= {
                f"{kind}_valid": In(1),
                f"{kind}_word": In(width),
                f"{kind}_cycles": In(range(LONGEST + 1)),
                f"{kind}_taker": In(1),
            }
        super().__init__(signature, false=false)

    def contents(self, m: Module) -> None:
        m.submodules.channel = channel = Channel(KINDS, credits=CREDITS, latency_bits=1)
        watched, watched_kind = AnyConst(3), AnyConst(1)
        now, free_at = Signal(TIME), Signal(TIME)
        seen = Signal()
        seen_word, arrival = Signal(2), Signal(TIME)
        m.d.sync += now.eq(now + 1)
        m.d.comb += channel.latency.eq(LATENCY)

        ends = Signal(TIME)
        accepts, empty = [], []
        for index, kind in enumerate(KINDS):
            near, far = getattr(channel, kind), getattr(channel, f"far_{kind}")
            valid, word = getattr(self, f"{kind}_valid"), getattr(self, f"{kind}_word")
            cycles, taker = getattr(self, f"{kind}_cycles"), getattr(self, f"{kind}_taker")
            m.d.comb += [
                near.valid.eq(valid),
                near.payload.eq(word),
                getattr(channel, f"{kind}_cycles").eq(cycles),
                far.ready.eq(taker),
                Assume(cycles != 0),
            ]
            waiting, offered = Signal(name=f"{kind}_waiting"), Signal.like(word, name=f"{kind}_offered")
            m.d.sync += [waiting.eq(valid & ~near.ready), offered.eq(word)]
            m.d.comb += Assume(~waiting | (valid & (word == offered)))

            accept, take = Signal(name=f"{kind}_accept"), Signal(name=f"{kind}_take")
            m.d.comb += [accept.eq(valid & near.ready), take.eq(far.valid & taker)]
            sent, taken = Signal(4, name=f"{kind}_sent"), Signal(4, name=f"{kind}_taken")
            m.d.sync += [sent.eq(sent + accept), taken.eq(taken + take)]
            accepts.append(accept)
            empty.append(sent == taken)
            mine = watched_kind == index
            with m.If(accept):
                m.d.comb += ends.eq(Mux(free_at > now, free_at, now) + cycles)
                m.d.sync += free_at.eq(ends)
                with m.If(mine & (sent == watched)):
                    m.d.sync += [
                        seen.eq(1),
                        seen_word.eq(word),
                        arrival.eq(ends + LATENCY),
                    ]

            # The watched message comes out as it went in, when all of it is there and not before, whether or
            # not the other kind is taken.
            turn = seen & mine & (taken == watched)
            m.d.comb += [
                Assert(~(turn & far.valid) | ((far.payload == seen_word) & (now >= arrival))),
                Assert(~(turn & (now >= arrival)) | far.valid),
                Assert(~(far.valid & mine & (taken == watched)) | seen),
                Cover(turn & take & (watched == 3)),
            ]
            if self.false:
                m.d.comb += Assert(~(turn & (now == arrival)))

            # Credits: never more under way than there are, and none withheld.
            inside = Signal(range(CREDITS + 2), name=f"{kind}_inside")
            m.d.sync += inside.eq(inside + accept - take)
            other = next(name for name in KINDS if name != kind)
            m.d.comb += [
                Assert(inside <= CREDITS),
                Assert((inside == CREDITS) | near.ready | getattr(self, f"{other}_valid")),
                Cover((inside == CREDITS) & valid),
            ]
        m.d.comb += [
            Assert(~(accepts[0] & accepts[1])),
            Assert(channel.idle == (empty[0] & empty[1])),
        ]


PROOFS = [
    Proof(
        name="link channel",
        build=lambda false: ChannelProperty(false=false),
        mode="bmc",
        depth=9,
        cover_depth=9,
    )
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_channel_keeps_its_messages(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
