"""The writes of an AXI memory: bursts, their data, and an answer for each atom of a burst."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import DesignConfig
from ...layouts import ATOM_BYTES, ATOM_WIDTH, MemoryResponse, MemoryStatus, Tag
from ..address import AddressMap
from .bursts import BurstCollector
from .crossing import Reply, WriteBeat, address_layout
from .reads import byte_address

__all__ = ["AxiWrites"]


class AxiWrites(wiring.Component):
    """Write requests in, AW transactions with their data and responses out.

    All writes have ID 0: AXI performs and answers them in order, and a memory with AXI3's WID takes 0 there.
    The last atom taken waits for the next one, or for the end of its burst, because only then it is known
    whether it is the last beat. A burst's one answer answers all of its atoms.

    Parameters
    ----------
    channel : int
        Its number in the stack.
    bucket_bits : int
        Of the hazard table.

    Members
    -------
    offered : In(1), address : In, data : In(256), mask : In(32), tag : In(Tag), bucket : In(bucket_bits)
        A write is there; `address` is within the channel.
    single : In(1)
        It is a walk's: it does not wait for others.
    room : Out(1)
        It can be taken.
    take : In(1)
        It is taken.
    flush : In(1)
        What is collected is complete.
    write_address : Out(stream of address_layout()), write_beat : Out(stream of WriteBeat)
        See `AxiCrossing`.
    reply : In(stream of Reply)
    response : Out(stream of MemoryResponse)
    bucket_done : Out(bucket_bits)
        Of the response.
    crowded : Out(1)
        More than half of what may be unanswered is.
    empty : Out(1)
        Every write that was taken is answered.
    """

    def __init__(self, config: DesignConfig, *, channel: int, bucket_bits: int) -> None:
        self._config = config
        self._channel = channel
        self._bucket_bits = bucket_bits
        self._address_bits = AddressMap(config.memory).width
        super().__init__(
            {
                "offered": In(1),
                "address": In(self._address_bits),
                "data": In(ATOM_WIDTH),
                "mask": In(ATOM_BYTES),
                "tag": In(Tag),
                "bucket": In(bucket_bits),
                "single": In(1),
                "room": Out(1),
                "take": In(1),
                "flush": In(1),
                "write_address": Out(stream.Signature(address_layout(config.axi))),
                "write_beat": Out(stream.Signature(WriteBeat)),
                "reply": In(stream.Signature(Reply)),
                "response": Out(stream.Signature(MemoryResponse)),
                "bucket_done": Out(bucket_bits),
                "crowded": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outstanding = self._config.axi.outstanding
        asked = data.StructLayout({"tag": Tag, "bucket": self._bucket_bits, "last": 1})

        # -- Bursts, and the beat that waits to know whether it is the last --
        m.submodules.collector = collector = BurstCollector(address_bits=self._address_bits)
        place_free, ends = Signal(), Signal()
        out, beat = self.write_address, self.write_beat
        waiting = Signal(data.StructLayout({"data": ATOM_WIDTH, "strobe": ATOM_BYTES, "asked": asked}))
        m.d.comb += [
            collector.offered.eq(self.offered),
            collector.address.eq(self.address),
            collector.alone.eq(self.single),
            collector.take.eq(self.take),
            collector.flush.eq(self.flush),
            # There is always room for a beat: the queue holds all that may be unanswered.
            collector.burst.ready.eq(out.ready),
            out.valid.eq(collector.burst.valid),
            out.payload.id.eq(0),
            out.payload.address.eq(
                byte_address(self._config, channel=self._channel, address=collector.burst.payload.address)
            ),
            out.payload.length.eq(collector.burst.payload.length),
            ends.eq(out.valid & out.ready),
            beat.valid.eq(ends | (self.take & collector.joins)),
            beat.payload.data.eq(waiting.data),
            beat.payload.strobe.eq(waiting.strobe),
            beat.payload.last.eq(ends),
            self.room.eq(place_free & collector.room),
        ]
        with m.If(self.take):
            m.d.sync += [
                waiting.data.eq(self.data),
                waiting.strobe.eq(self.mask),
                waiting.asked.tag.eq(self.tag),
                waiting.asked.bucket.eq(self.bucket),
            ]

        # -- Who asked, in order; a burst's last is marked --
        m.submodules.order = order = memory.Memory(shape=asked, depth=outstanding, init=[])
        order_write, order_read = order.write_port(), order.read_port(domain="comb")
        put, answered = Signal(range(outstanding)), Signal(range(outstanding))
        reply, response = self.reply, self.response
        leaves = Signal()
        m.d.comb += [
            order_write.addr.eq(put),
            order_write.en.eq(beat.valid),
            order_write.data.tag.eq(waiting.asked.tag),
            order_write.data.bucket.eq(waiting.asked.bucket),
            order_write.data.last.eq(ends),
            order_read.addr.eq(answered),
            response.valid.eq(reply.valid),
            response.payload.tag.eq(order_read.data.tag),
            response.payload.write.eq(1),
            response.payload.status.eq(Mux(reply.payload.failed, MemoryStatus.BUS_ERROR, MemoryStatus.OK)),
            leaves.eq(reply.valid & response.ready),
            reply.ready.eq(response.ready & order_read.data.last),
            self.bucket_done.eq(order_read.data.bucket),
        ]
        under_way = Signal(range(outstanding + 1))
        m.d.comb += [
            place_free.eq(under_way != outstanding),
            self.crowded.eq(under_way > outstanding // 2),
            self.empty.eq(under_way == 0),
        ]
        m.d.sync += [
            under_way.eq(under_way + self.take - leaves),
            put.eq(put + beat.valid),
            answered.eq(answered + leaves),
        ]
        return m
