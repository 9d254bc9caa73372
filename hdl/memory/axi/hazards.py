"""The hazard table: keeps the order of one atom on a bus that promises none between reads and writes."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["HazardTable"]


class HazardTable(wiring.Component):
    """Counts the reads and the writes under way by address, and says which request may join them.

    A read may begin while no write of its atom is under way, a write while no read is. Writes may follow one
    another: they all have one AXI ID, and AXI keeps the order of those. Addresses are told apart by a hash;
    two that share a bucket wait for each other in vain, which costs time and nothing else.

    Each count is two counters, each in a memory that one side writes: begun and done. Memories have no reset,
    so the table is cleared bucket by bucket after a reset.

    Parameters
    ----------
    address_bits : int
        Of an atom address.
    buckets : int
        A power of two.
    outstanding : int
        Reads, and writes, under way at most.

    Members
    -------
    clearing : Out(1)
        Nothing may begin.
    bucket : Out(log2 buckets)
        Of `address`.
    address : In(address_bits)
        Of the request that asks.
    read_free, write_free : Out(1)
        It may begin as a read; as a write.
    begin_read, begin_write : In(1)
        It does.
    done_read, done_write : In(1), done_read_bucket, done_write_bucket : In(log2 buckets)
        One of that bucket is over.
    """

    def __init__(self, *, address_bits: int, buckets: int, outstanding: int) -> None:
        self._buckets = buckets
        self._index_bits = bits = buckets.bit_length() - 1
        self._count_bits = outstanding.bit_length()
        super().__init__(
            {
                "clearing": Out(1, init=1),
                "address": In(address_bits),
                "bucket": Out(bits),
                **{f"{kind}_free": Out(1) for kind in ("read", "write")},
                **{f"begin_{kind}": In(1) for kind in ("read", "write")},
                **{f"done_{kind}": In(1) for kind in ("read", "write")},
                **{f"done_{kind}_bucket": In(bits) for kind in ("read", "write")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._index_bits
        folded: Value = self.address[:bits]
        for low in range(bits, len(self.address), bits):
            folded = folded ^ self.address[low : low + bits]
        m.d.comb += self.bucket.eq(folded)

        cleared = Signal(bits)
        with m.If(self.clearing):
            m.d.sync += [cleared.eq(cleared + 1), self.clearing.eq(~cleared.all())]

        free: dict[str, Value] = {}
        for kind in ("read", "write"):
            begin, done = getattr(self, f"begin_{kind}"), getattr(self, f"done_{kind}")
            over = getattr(self, f"done_{kind}_bucket")
            counts = [memory.Memory(shape=self._count_bits, depth=self._buckets, init=[]) for _ in range(2)]
            m.submodules[f"{kind}s_begun"], m.submodules[f"{kind}s_done"] = begun, ended = counts
            begun_write, ended_write = begun.write_port(), ended.write_port()
            begun_here, ended_here = begun.read_port(domain="comb"), ended.read_port(domain="comb")
            ended_there = ended.read_port(domain="comb")
            m.d.comb += [
                begun_here.addr.eq(self.bucket),
                ended_here.addr.eq(self.bucket),
                ended_there.addr.eq(over),
                begun_write.en.eq(self.clearing | begin),
                begun_write.addr.eq(Mux(self.clearing, cleared, self.bucket)),
                begun_write.data.eq(Mux(self.clearing, 0, begun_here.data + 1)),
                ended_write.en.eq(self.clearing | done),
                ended_write.addr.eq(Mux(self.clearing, cleared, over)),
                ended_write.data.eq(Mux(self.clearing, 0, ended_there.data + 1)),
            ]
            free[kind] = begun_here.data == ended_here.data
        m.d.comb += [
            self.read_free.eq(~self.clearing & free["write"]),
            self.write_free.eq(~self.clearing & free["read"]),
        ]
        return m
