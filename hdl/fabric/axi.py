"""The host's AXI4-Lite port: its signature, and the subordinate that turns it into a simple request bus."""

from amaranth.hdl import Module, Mux, ResetSignal, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..registers import ADDRESS_BITS

__all__ = ["AxiLite", "AxiLiteSubordinate", "AxiResponse", "HostRequest", "HostResponse"]

#: Bits of the data bus; AXI4-Lite allows 32 and 64, and every register of the map is 32 bits.
DATA_BITS = 32


class AxiResponse(enum.Enum, shape=2):
    """The outcome that `bresp` and `rresp` carry, as AMBA encodes it."""

    OKAY = 0
    SLVERR = 2
    """The subordinate refused the access."""


class HostRequest(data.Struct):
    """One 32-bit access of the host."""

    address: ADDRESS_BITS
    """Byte address from the port's base, as the host sent it."""
    write: 1
    data: DATA_BITS
    strobe: DATA_BITS // 8
    """Byte enables of a write."""


class HostResponse(data.Struct):
    """The answer to one `HostRequest`, writes too."""

    data: DATA_BITS
    """Value read; ignored for a write."""
    error: 1
    """The access was refused: the host sees SLVERR."""


class AxiLite(wiring.Signature):
    """AXI4-Lite as its manager sees it: 20-bit byte address, 32-bit data. A subordinate is `In(AxiLite())`.

    Members
    -------
    awaddr, awprot, awvalid : Out
    awready : In
    wdata, wstrb, wvalid : Out
    wready : In
    bresp, bvalid : In
    bready : Out
    araddr, arprot, arvalid : Out
    arready : In
    rdata, rresp, rvalid : In
    rready : Out
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "awaddr": Out(ADDRESS_BITS),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(DATA_BITS),
                "wstrb": Out(DATA_BITS // 8),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(AxiResponse),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(ADDRESS_BITS),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(DATA_BITS),
                "rresp": In(AxiResponse),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class AxiLiteSubordinate(wiring.Component):
    """An AXI4-Lite subordinate that hands the host's accesses on one at a time.

    The address and the data of a write are taken independently, in either order. When a read and a write
    wait, they take turns. No path is combinational from an input to an output of the AXI side, as AMBA
    demands. `awprot` and `arprot` are ignored: the port has no privileges to tell apart.

    Members
    -------
    axi : In(AxiLite())
    request : Out(stream of HostRequest)
    response : In(stream of HostResponse)
        Exactly one for each request, in a cycle after the request's acceptance.
    sleeps : Out(1)
        See `ClockGate`: nothing is under way. A new access has to wake it.
    """

    axi: In(AxiLite())
    request: Out(stream.Signature(HostRequest))
    response: In(stream.Signature(HostResponse))
    sleeps: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi = self.axi

        write_address = Signal(ADDRESS_BITS)
        write_address_full = Signal()
        write_data = Signal(DATA_BITS)
        write_strobe = Signal(DATA_BITS // 8)
        write_data_full = Signal()
        read_address = Signal(ADDRESS_BITS)
        read_address_full = Signal()

        # In reset nothing is taken: the whole design is in reset a cycle longer than its host knows.
        awake = ~ResetSignal(allow_reset_less=True)
        m.d.comb += [
            axi.awready.eq(awake & ~write_address_full),
            axi.wready.eq(awake & ~write_data_full),
            axi.arready.eq(awake & ~read_address_full),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [write_address.eq(axi.awaddr), write_address_full.eq(1)]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [write_data.eq(axi.wdata), write_strobe.eq(axi.wstrb), write_data_full.eq(1)]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [read_address.eq(axi.araddr), read_address_full.eq(1)]

        write_waits = write_address_full & write_data_full
        # The direction of the access that is being served; afterwards, of the last one.
        write = Signal()
        outcome = Signal(AxiResponse)
        read_data = Signal(DATA_BITS)

        m.d.comb += [
            self.request.p.address.eq(Mux(write, write_address, read_address)),
            self.request.p.write.eq(write),
            self.request.p.data.eq(write_data),
            self.request.p.strobe.eq(write_strobe),
            axi.bresp.eq(outcome),
            axi.rresp.eq(outcome),
            axi.rdata.eq(read_data),
        ]

        def next_access() -> None:
            with m.If(write_waits | read_address_full):
                m.d.sync += write.eq(write_waits & ~(read_address_full & write))
                m.next = "REQUEST"

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.sleeps.eq(~(write_address_full | write_data_full | read_address_full))
                next_access()

            with m.State("REQUEST"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    # The buffers were copied by the bus: the next access may already come in.
                    with m.If(write):
                        m.d.sync += [write_address_full.eq(0), write_data_full.eq(0)]
                    with m.Else():
                        m.d.sync += read_address_full.eq(0)
                    m.next = "RESPONSE"

            with m.State("RESPONSE"):
                m.d.comb += self.response.ready.eq(1)
                with m.If(self.response.valid):
                    m.d.sync += [
                        outcome.eq(Mux(self.response.p.error, AxiResponse.SLVERR, AxiResponse.OKAY)),
                        read_data.eq(self.response.p.data),
                    ]
                    m.next = "ANSWER"

            with m.State("ANSWER"):
                m.d.comb += [axi.bvalid.eq(write), axi.rvalid.eq(~write)]
                with m.If(Mux(write, axi.bready, axi.rready)):
                    m.next = "IDLE"
                    next_access()

        return m
