"""The width converter: a 256-bit AXI4 manager on a memory whose port has half the width (LiteDRAM)."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .axi4 import Axi4, AxiReply

__all__ = ["AxiWidthConverter"]


class AxiWidthConverter(wiring.Component):
    """Each beat of the wide side is two of the narrow side, the low half first; bursts have twice the beats.

    It takes what our managers send: INCR bursts of whole beats, at most 128 of them. A beat that fails in one
    half fails. The memory must not mix the beats of several reads, which AXI4 lets it do; LiteDRAM answers in
    order.

    Parameters
    ----------
    id_bits, address_bits : int
    data_bits : int
        Of the wide side.

    Members
    -------
    s_axi : In(Axi4(data_bits=data_bits))
        The wide side, where the manager is.
    m_axi : Out(Axi4(data_bits=data_bits // 2))
        The narrow side, where the memory is.
    """

    def __init__(self, *, id_bits: int, address_bits: int, data_bits: int = 256) -> None:
        self._half_bits = data_bits // 2
        widths = {"id_bits": id_bits, "address_bits": address_bits}
        super().__init__(
            {
                "s_axi": In(Axi4(**widths, data_bits=data_bits)),
                "m_axi": Out(Axi4(**widths, data_bits=self._half_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wide: Any = self.s_axi
        narrow: Any = self.m_axi
        bits = self._half_bits
        for channel in ("aw", "ar"):

            def pair(name: str, channel: str = channel) -> tuple[Any, Any]:
                return getattr(wide, f"{channel}{name}"), getattr(narrow, f"{channel}{name}")

            for name in ("id", "addr", "burst", "cache", "prot", "valid"):
                source, sink = pair(name)
                m.d.comb += sink.eq(source)
            (wide_ready, ready), (wide_length, length) = pair("ready"), pair("len")
            m.d.comb += [
                wide_ready.eq(ready),
                length.eq(Cat(1, wide_length)),
                pair("size")[1].eq((bits // 8).bit_length() - 1),
            ]

        # -- Write data: the low half, then the high one --
        high = Signal()
        m.d.comb += [
            narrow.wvalid.eq(wide.wvalid),
            narrow.wdata.eq(Mux(high, wide.wdata[bits:], wide.wdata[:bits])),
            narrow.wstrb.eq(Mux(high, wide.wstrb[bits // 8 :], wide.wstrb[: bits // 8])),
            narrow.wlast.eq(wide.wlast & high),
            wide.wready.eq(narrow.wready & high),
        ]
        with m.If(narrow.wvalid & narrow.wready):
            m.d.sync += high.eq(~high)

        # -- Read data: the low half waits for the high one --
        waiting = Signal()
        low = Signal(bits)
        reply = Signal(AxiReply)
        m.d.comb += [
            wide.rvalid.eq(narrow.rvalid & waiting),
            narrow.rready.eq(wide.rready | ~waiting),
            wide.rid.eq(narrow.rid),
            wide.rdata.eq(Cat(low, narrow.rdata)),
            wide.rlast.eq(narrow.rlast),
            wide.rresp.eq(Mux(reply == AxiReply.OKAY, narrow.rresp, reply)),
        ]
        with m.If(narrow.rvalid & narrow.rready):
            m.d.sync += [waiting.eq(~waiting), low.eq(narrow.rdata), reply.eq(narrow.rresp)]

        m.d.comb += [
            wide.bvalid.eq(narrow.bvalid),
            wide.bid.eq(narrow.bid),
            wide.bresp.eq(narrow.bresp),
            narrow.bready.eq(wide.bready),
        ]
        return m
