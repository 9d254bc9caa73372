"""The AXI4 port to a memory: its signature as the manager sees it, and what our transactions always are."""

from typing import Any

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BURST_BEATS", "Axi4", "AxiBurstType", "AxiReply", "always"]

#: Beats of our longest burst: what AXI3 allows too.
BURST_BEATS = 16


class AxiBurstType(enum.Enum, shape=2):
    """How the address goes on from beat to beat, as AMBA encodes it."""

    FIXED = 0
    INCR = 1
    WRAP = 2


class AxiReply(enum.Enum, shape=2):
    """The outcome that `bresp` and `rresp` carry, as AMBA encodes it."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Axi4(wiring.Signature):
    """AXI4 as its manager sees it, without what a memory does not need: no LOCK, QOS, REGION and USER.

    Parameters
    ----------
    id_bits, address_bits, data_bits : int
        Widths of AxID, of AxADDR (a byte address) and of the data.

    Members
    -------
    awid, awaddr, awlen, awsize, awburst, awcache, awprot, awvalid : Out; awready : In
    wdata, wstrb, wlast, wvalid : Out; wready : In
    bid, bresp, bvalid : In; bready : Out
    arid, araddr, arlen, arsize, arburst, arcache, arprot, arvalid : Out; arready : In
    rid, rdata, rresp, rlast, rvalid : In; rready : Out
    """

    def __init__(self, *, id_bits: int, address_bits: int, data_bits: int = 256) -> None:
        self.id_bits = id_bits
        self.address_bits = address_bits
        self.data_bits = data_bits
        members: dict[str, Any] = {}
        for channel in ("aw", "ar"):
            members |= {
                f"{channel}id": Out(id_bits),
                f"{channel}addr": Out(address_bits),
                f"{channel}len": Out(8),
                f"{channel}size": Out(3),
                f"{channel}burst": Out(AxiBurstType),
                f"{channel}cache": Out(4),
                f"{channel}prot": Out(3),
                f"{channel}valid": Out(1),
                f"{channel}ready": In(1),
            }
        super().__init__(
            {
                **members,
                "wdata": Out(data_bits),
                "wstrb": Out(data_bits // 8),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bid": In(id_bits),
                "bresp": In(AxiReply),
                "bvalid": In(1),
                "bready": Out(1),
                "rid": In(id_bits),
                "rdata": In(data_bits),
                "rresp": In(AxiReply),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


def always(axi: Any, *, data_bits: int = 256) -> list[Any]:
    """Statements for what is the same in all our transactions: whole beats, INCR, normal memory.

    AxCACHE is normal, non-cacheable, bufferable; AxPROT unprivileged, secure, data.
    """
    size = (data_bits // 8).bit_length() - 1
    return [
        statement
        for channel in ("aw", "ar")
        for statement in (
            getattr(axi, f"{channel}size").eq(size),
            getattr(axi, f"{channel}burst").eq(AxiBurstType.INCR),
            getattr(axi, f"{channel}cache").eq(0b0011),
            getattr(axi, f"{channel}prot").eq(0),
        )
    ]
