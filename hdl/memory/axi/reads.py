"""The reads of an AXI memory: single ones of walks, bursts of everybody else, and what their data answers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import DesignConfig
from ...layouts import ATOM_BYTES, MemoryResponse, MemoryStatus, Tag
from ..address import AddressMap
from .bursts import BurstCollector
from .crossing import address_layout, read_beat_layout

__all__ = ["AxiReads", "byte_address"]


def byte_address(config: DesignConfig, *, channel: int, address: Value) -> Value:
    """The AXI address of an atom of a channel: its byte address in the whole stack."""
    first = channel * AddressMap(config.memory).atoms * ATOM_BYTES
    return Value.cast(Cat(Const(0, ATOM_BYTES.bit_length() - 1), address)) | first


class AxiReads(wiring.Component):
    """Read requests in, AR transactions and responses out.

    A read of a walk is a transaction of its own, put out in the cycle in which it is taken, with the next of
    the IDs from 1 on, so that the memory may answer walks in any order. All others have ID 0, which AXI
    answers in order, and consecutive ones are bursts. A read is taken only with a place for its data.

    Parameters
    ----------
    channel : int
        Its number in the stack.
    bucket_bits : int
        Of the hazard table.

    Members
    -------
    offered : In(1), address : In, tag : In(Tag), bucket : In(bucket_bits), single : In(1)
        A read is there; `address` is within the channel, `single`: it is a walk's.
    room : Out(1)
        It can be taken.
    take : In(1)
        It is taken.
    flush, restart : In(1)
        What is collected is complete; IDs begin anew (while `empty`).
    read_address : Out(stream of address_layout()), read_beat : In(stream of read_beat_layout())
        See `AxiCrossing`.
    response : Out(stream of MemoryResponse)
    bucket_done : Out(bucket_bits)
        Of the response.
    empty : Out(1)
        Every read that was taken is answered.
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
                "tag": In(Tag),
                "bucket": In(bucket_bits),
                "single": In(1),
                "room": Out(1),
                "take": In(1),
                "flush": In(1),
                "restart": In(1),
                "read_address": Out(stream.Signature(address_layout(config.axi))),
                "read_beat": In(stream.Signature(read_beat_layout(config.axi))),
                "response": Out(stream.Signature(MemoryResponse)),
                "bucket_done": Out(bucket_bits),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self._config.axi
        asked = data.StructLayout({"tag": Tag, "bucket": self._bucket_bits})

        # -- Bulk reads become bursts, which go out first: one request a cycle, so few single ones wait --
        m.submodules.collector = collector = BurstCollector(address_bits=self._address_bits)
        place_free = Signal()
        identifier = Signal(axi.id_bits, init=1)  # the next single read's
        busy = Signal(1 << axi.id_bits)  # bit n: a single read with ID n is not answered
        single_room = Signal()
        out = self.read_address
        m.d.comb += [
            collector.offered.eq(self.offered & ~self.single),
            collector.address.eq(self.address),
            collector.take.eq(self.take & ~self.single),
            collector.flush.eq(self.flush),
            collector.burst.ready.eq(out.ready),
            single_room.eq(out.ready & ~collector.burst.valid & ~busy.bit_select(identifier, 1)),
            self.room.eq(place_free & Mux(self.single, single_room, collector.room)),
        ]
        with m.If(collector.burst.valid):
            m.d.comb += [
                out.valid.eq(1),
                out.payload.id.eq(0),
                out.payload.address.eq(self._bytes(collector.burst.payload.address)),
                out.payload.length.eq(collector.burst.payload.length),
            ]
        with m.Else():
            m.d.comb += [
                out.valid.eq(self.take & self.single),
                out.payload.id.eq(identifier),
                out.payload.address.eq(self._bytes(self.address)),
            ]

        # -- Who asked: of bulk reads in order, of single ones by ID --
        m.submodules.order = order = memory.Memory(shape=asked, depth=axi.outstanding, init=[])
        m.submodules.single_reads = singles = memory.Memory(shape=asked, depth=1 << axi.id_bits, init=[])
        order_write, order_read = order.write_port(), order.read_port(domain="comb")
        singles_write, singles_read = singles.write_port(), singles.read_port(domain="comb")
        taken, answered = Signal(range(axi.outstanding)), Signal(range(axi.outstanding))
        for port, at, condition in (
            (order_write, taken, ~self.single),
            (singles_write, identifier, self.single),
        ):
            m.d.comb += [
                port.addr.eq(at),
                port.data.tag.eq(self.tag),
                port.data.bucket.eq(self.bucket),
                port.en.eq(self.take & condition),
            ]

        # -- Data --
        beat, response = self.read_beat, self.response
        bulk, leaves = Signal(), Signal()
        found = Signal(asked)
        m.d.comb += [
            bulk.eq(beat.payload.id == 0),
            order_read.addr.eq(answered),
            singles_read.addr.eq(beat.payload.id),
            found.eq(Mux(bulk, order_read.data.as_value(), singles_read.data.as_value())),
            response.valid.eq(beat.valid),
            beat.ready.eq(response.ready),
            leaves.eq(beat.valid & response.ready),
            response.payload.tag.eq(found.tag),
            response.payload.data.eq(Mux(beat.payload.failed, 0, beat.payload.data)),
            response.payload.status.eq(Mux(beat.payload.failed, MemoryStatus.BUS_ERROR, MemoryStatus.OK)),
            self.bucket_done.eq(found.bucket),
        ]
        under_way = Signal(range(axi.outstanding + 1))
        m.d.comb += [place_free.eq(under_way != axi.outstanding), self.empty.eq(under_way == 0)]
        m.d.sync += [
            under_way.eq(under_way + self.take - leaves),
            taken.eq(taken + (self.take & ~self.single)),
            answered.eq(answered + (leaves & bulk)),
        ]
        begins, ends = Signal(), Signal()
        m.d.comb += [begins.eq(self.take & self.single), ends.eq(leaves & ~bulk)]
        with m.If(begins | ends):
            m.d.sync += busy.eq((busy | begins << identifier) & ~(ends << beat.payload.id))
        with m.If(self.restart):
            m.d.sync += identifier.eq(1)
        with m.Elif(begins):
            m.d.sync += identifier.eq(Mux(identifier.all(), 1, identifier + 1))
        return m

    def _bytes(self, address: Any) -> Value:
        return byte_address(self._config, channel=self._channel, address=address)
