"""One direction of one channel of the link: a time-stamped queue of messages."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from ..clock_gate import SLEPT_BITS
from .message import LONGEST_BYTES

__all__ = ["Channel"]


class Channel(wiring.Component):
    """Carries messages of one or two kinds, each kind in order, a set time after they were sent.

    A message accepted in cycle t whose channel is free is offered at the far end in cycle
    t + `minimum_latency` + `latency` + its own cycles on the channel - 1: when all of it is there. It
    occupies the channel for its cycles; a later one starts when the channel is free, in order of
    acceptance. Messages wait in the queue for their turn, so a narrow channel does not stall the sender
    while its kind has a credit. Delivery waits for the taker, as long as it likes; one kind that is not taken
    holds nothing of the other back.

    Each entry carries the cycle of its arrival. Arrivals are at least a cycle apart, so one pointer that
    follows the queue and compares one stamp for equality is enough: however long a message waits to be
    taken, its stamp is not looked at again and cannot wrap. Each kind lies in a memory of its own, as wide
    as itself and read asynchronously: no wide multiplexer, and an offer in the cycle after acceptance.

    Parameters
    ----------
    kinds : mapping of names to shapes of messages
        One or two. Two kinds that both wait take turns.
    credits : int
        Messages of one kind that may be sent and not yet taken; a power of two.
    latency_bits : int
        Width of `latency`.

    Members
    -------
    <kind> : In(stream)
    <kind>_cycles : In
        Cycles for which the offered message occupies the channel, from 1.
    far_<kind> : Out(stream)
    latency : In(latency_bits)
        Cycles; constant while a message is in the channel.
    idle : Out(1)
        No message is in the channel.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    #: Cycles from acceptance to the offer at the far end, with latency 0.
    minimum_latency = 1

    def __init__(self, kinds: Mapping[str, Any], *, credits: int, latency_bits: int = 16) -> None:
        if len(kinds) not in (1, 2):
            raise ValueError(f"kinds are {list(kinds)!r}: expected one or two")
        if credits < 2 or credits & (credits - 1):
            raise ValueError(f"credits is {credits!r}: expected a power of two from 2")
        self.kinds = dict(kinds)
        self.credits = credits
        self.latency_bits = latency_bits
        members: dict[str, Any] = {
            "latency": In(latency_bits),
            "idle": Out(1),
            "slept": In(SLEPT_BITS),
            "sleeps": Out(1),
        }
        for kind, shape in self.kinds.items():
            members[kind] = In(stream.Signature(shape))
            members[f"{kind}_cycles"] = In(range(LONGEST_BYTES + 1))
            members[f"far_{kind}"] = Out(stream.Signature(shape))
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        two = len(self.kinds) == 2
        depth = self.credits * len(self.kinds)
        # The last message of a full queue arrives this long after its acceptance; the clock must not come
        # round to its stamp before. It is a cycle ahead: that a message arrives is known before it does.
        coming = Signal(bits_for(2**self.latency_bits + depth * LONGEST_BYTES))
        # The same when edges were left out; it wraps like the stamps.
        awaited = Signal.like(coming)
        m.d.comb += awaited.eq(coming + self.slept)
        m.d.sync += coming.eq(awaited + 1)

        # Pointers have a bit more than an index, so that a full queue differs from an empty one. Between
        # `arrived` and `tail` messages travel, in one queue; then each waits in that of its kind to be taken.
        tail, arrived = (Signal(range(2 * depth), name=name) for name in ("tail", "arrived"))
        arrives, accepted = Signal(), Signal()
        # The kind of the message that the pointer `tail` is about to number, and of the one at `arrived`.
        sent_second, arrives_second = Signal(), Signal()

        m.submodules.stamps = stamps = memory.Memory(shape=coming.shape(), depth=depth, init=[])
        stamp_write, stamp_read = stamps.write_port(), stamps.read_port(domain="comb")
        # The message that arrives next, and one that is accepted now and arrives in the coming cycle.
        travelling, passes = Signal.like(arrived), Signal()
        m.d.comb += [
            travelling.eq(arrived + arrives),
            stamp_read.addr.eq(travelling),
        ]
        m.d.sync += [
            arrives.eq(Mux(travelling == tail, passes, stamp_read.data == awaited)),
            arrived.eq(travelling),
            tail.eq(tail + accepted),
        ]

        rooms, waiting, empty = [], [], []
        for index, (kind, shape) in enumerate(self.kinds.items()):
            near, far = getattr(self, kind), getattr(self, f"far_{kind}")
            m.submodules[f"messages_{kind}"] = queue = memory.Memory(shape=shape, depth=self.credits, init=[])
            write, read = queue.write_port(), queue.read_port(domain="comb")
            put = Signal(range(2 * self.credits), name=f"{kind}_put")
            there = Signal(range(2 * self.credits), name=f"{kind}_there")
            take = Signal(range(2 * self.credits), name=f"{kind}_take")
            room, comes = Signal(name=f"{kind}_room"), Signal(name=f"{kind}_comes")
            m.d.comb += [
                room.eq((put ^ take) != self.credits),
                write.addr.eq(put),
                write.data.eq(near.payload),
                # Not only when it is ready: what is not taken is written over.
                write.en.eq(near.valid & room),
                read.addr.eq(take),
                far.payload.eq(read.data),
                comes.eq(arrives & (arrives_second == index)),
                far.valid.eq((there != take) | comes),
            ]
            m.d.sync += there.eq(there + comes)
            with m.If(near.valid & near.ready):
                m.d.comb += [accepted.eq(1), sent_second.eq(index)]
                m.d.sync += put.eq(put + 1)
            with m.If(far.valid & far.ready):
                m.d.sync += take.eq(take + 1)
            rooms.append(room)
            waiting.append(there != take)
            empty.append(put == take)
        m.d.comb += self.idle.eq(Cat(empty).all())

        near = [getattr(self, kind) for kind in self.kinds]
        last_second = Signal()
        if two:
            # The kind sent last waits when both could be sent. An empty channel forgets which that was: what
            # follows must not depend on what was before.
            with m.If(accepted):
                m.d.sync += last_second.eq(sent_second)
            with m.Elif(self.idle):
                m.d.sync += last_second.eq(0)
            m.d.comb += [
                near[0].ready.eq(rooms[0] & (last_second | ~(near[1].valid & rooms[1]))),
                near[1].ready.eq(rooms[1] & (~last_second | ~(near[0].valid & rooms[0]))),
            ]
            m.submodules.order = order = memory.Memory(shape=1, depth=depth, init=[])
            order_write, order_read = order.write_port(), order.read_port(domain="comb")
            m.d.comb += [
                order_write.addr.eq(tail),
                order_write.data.eq(sent_second),
                order_write.en.eq(accepted),
                order_read.addr.eq(arrived),
                arrives_second.eq(order_read.data),
            ]
        else:
            m.d.comb += near[0].ready.eq(rooms[0])

        # Cycles from this one until the channel is free.
        backlog = Signal(range(depth * LONGEST_BYTES + 1))
        cycles = [getattr(self, f"{kind}_cycles") for kind in self.kinds]
        behind = Signal.like(backlog)
        m.d.comb += [
            behind.eq(backlog + Mux(sent_second, cycles[-1], cycles[0]) - 1),
            stamp_write.addr.eq(tail),
            stamp_write.data.eq(coming + self.latency + behind),
            passes.eq(accepted & (self.latency == 0) & (behind == 0)),
            stamp_write.en.eq(accepted),
        ]
        # The stamp of the message that arrives next may not have come by the edge after this one.
        early, rests = Signal(), Signal()
        m.d.comb += [
            early.eq((arrived == tail) | ((stamp_read.data - coming)[: len(coming)] > self.slept)),
            rests.eq(~(last_second & self.idle) if two else 1),
            self.sleeps.eq(
                early
                & rests
                & ~Cat(waiting).any()
                & ~arrives
                & (backlog == 0)
                & ~Cat(getattr(self, kind).valid for kind in self.kinds).any()
            ),
        ]
        with m.If(accepted):
            m.d.sync += backlog.eq(behind)
        with m.Elif(backlog != 0):
            m.d.sync += backlog.eq(backlog - 1)
        return m
