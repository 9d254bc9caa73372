"""The clock crossing: AXI's five channels between the design's clock and the memory's."""

from typing import Any

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import AxiConfig
from ...fabric.axi4 import BURST_BEATS, Axi4, AxiReply, always
from ...layouts import ATOM_BYTES, ATOM_WIDTH

__all__ = ["AxiCrossing", "Reply", "WriteBeat", "address_layout", "read_beat_layout"]

#: Bursts whose address may wait for the memory's clock.
_ADDRESSES = 16


class WriteBeat(data.Struct):
    """One beat of write data."""

    data: ATOM_WIDTH
    strobe: ATOM_BYTES
    last: 1


class Reply(data.Struct):
    """The answer to a write burst."""

    failed: 1
    """SLVERR or DECERR."""


def address_layout(config: AxiConfig) -> data.StructLayout:
    """A transaction: its ID, its byte address and its beats - 1."""
    length = BURST_BEATS.bit_length() - 1
    return data.StructLayout({"id": config.id_bits, "address": config.address_bits, "length": length})


def read_beat_layout(config: AxiConfig) -> data.StructLayout:
    """One beat of read data, with the ID of its transaction."""
    return data.StructLayout({"id": config.id_bits, "data": ATOM_WIDTH, "failed": 1})


class AxiCrossing(wiring.Component):
    """Five asynchronous queues, from streams in `sync` to an AXI4 manager in the domain `axi`.

    `rready` and `bready` are low only when a queue is full, and whoever puts addresses in keeps to at most
    `outstanding` unanswered atoms each way, so never. A write's data is offered when its address is offered
    or was taken: not before, which AXI would allow, and without waiting for its `awready`, which it forbids.

    Members
    -------
    read_address, write_address : In(stream of address_layout())
    write_beat : In(stream of WriteBeat)
        The beats of all writes, in the order of their addresses; they may come before their address.
    read_beat : Out(stream of read_beat_layout())
    reply : Out(stream of Reply)
        Of the writes; they share one ID, so in their order.
    m_axi : Out(Axi4)
        In the domain `axi`.
    """

    def __init__(self, config: AxiConfig) -> None:
        self._config = config
        super().__init__(
            {
                "read_address": In(stream.Signature(address_layout(config))),
                "write_address": In(stream.Signature(address_layout(config))),
                "write_beat": In(stream.Signature(WriteBeat)),
                "read_beat": Out(stream.Signature(read_beat_layout(config))),
                "reply": Out(stream.Signature(Reply)),
                "m_axi": Out(Axi4(id_bits=config.id_bits, address_bits=config.address_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi: Any = self.m_axi
        outstanding = self._config.outstanding
        m.d.comb += always(axi)
        for name, source, depth in (
            ("ar", self.read_address, _ADDRESSES),
            ("aw", self.write_address, _ADDRESSES),
            ("w", self.write_beat, outstanding),
        ):
            payload = Value.cast(source.payload)
            queue = fifo.AsyncFIFO(width=len(payload), depth=depth, r_domain="axi", w_domain="sync")
            m.submodules[name] = queue
            m.d.comb += [
                queue.w_data.eq(payload),
                queue.w_en.eq(source.valid),
                source.ready.eq(queue.w_rdy),
            ]
            if name != "w":
                address = data.View(address_layout(self._config), queue.r_data)
                m.d.comb += [
                    getattr(axi, f"{name}valid").eq(queue.r_rdy),
                    getattr(axi, f"{name}id").eq(address.id),
                    getattr(axi, f"{name}addr").eq(address.address),
                    getattr(axi, f"{name}len").eq(address.length),
                    queue.r_en.eq(getattr(axi, f"{name}ready")),
                ]
                continue
            # Addresses taken, less bursts whose data is out: below 0 when the data was faster.
            ahead = Signal(signed(outstanding.bit_length() + 1))
            beat = data.View(WriteBeat, queue.r_data)
            addressed, ended = axi.awvalid & axi.awready, axi.wvalid & axi.wready & axi.wlast
            m.d.axi += ahead.eq(ahead + addressed - ended)
            m.d.comb += [
                axi.wvalid.eq(queue.r_rdy & ((ahead + axi.awvalid) > 0)),
                axi.wdata.eq(beat.data),
                axi.wstrb.eq(beat.strobe),
                axi.wlast.eq(beat.last),
                queue.r_en.eq(axi.wvalid & axi.wready),
            ]
        self._answers(m, axi)
        return m

    def _answers(self, m: Module, axi: Any) -> None:
        beat = Signal(read_beat_layout(self._config))
        reply = Signal(Reply)
        m.d.comb += [
            beat.id.eq(axi.rid),
            beat.data.eq(axi.rdata),
            beat.failed.eq(_failed(axi.rresp)),
            reply.failed.eq(_failed(axi.bresp)),
        ]
        for name, came, sink in (("r", beat, self.read_beat), ("b", reply, self.reply)):
            payload = Value.cast(came)
            queue = fifo.AsyncFIFO(
                width=len(payload), depth=self._config.outstanding, r_domain="sync", w_domain="axi"
            )
            m.submodules[name] = queue
            m.d.comb += [
                queue.w_data.eq(payload),
                queue.w_en.eq(getattr(axi, f"{name}valid")),
                getattr(axi, f"{name}ready").eq(queue.w_rdy),
                sink.valid.eq(queue.r_rdy),
                Value.cast(sink.payload).eq(queue.r_data),
                queue.r_en.eq(sink.ready),
            ]


def _failed(reply: Value) -> Value:
    return Value.cast(reply).matches(AxiReply.SLVERR.value, AxiReply.DECERR.value)
