"""The burst collector: requests for consecutive atoms become one burst."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...fabric.arbiter import Arbiter
from ...fabric.axi4 import BURST_BEATS

__all__ = ["COLLECT_CYCLES", "BurstCollector", "burst_layout"]

#: Cycles for which a burst waits for its next atom: so long walks may keep the arbiter from bulk requests.
COLLECT_CYCLES = Arbiter.BULK_WAIT

_BEAT_BITS = BURST_BEATS.bit_length() - 1


def burst_layout(address_bits: int) -> data.StructLayout:
    """A burst: the atom address of its first beat, and its beats - 1."""
    return data.StructLayout({"address": address_bits, "length": _BEAT_BITS})


class BurstCollector(wiring.Component):
    """Joins a request to the burst before it when its atom is the next one.

    A burst stays within a block of `BURST_BEATS` atoms, 512 bytes on their own boundary, so that it never
    crosses the 4 KiB that AXI forbids. It is put out when the next request is of another place, when its
    block ends, or when nothing that could join it was there for `COLLECT_CYCLES`.

    Parameters
    ----------
    address_bits : int
        Of an atom address.

    Members
    -------
    offered : In(1), address : In(address_bits)
        A request is there.
    alone : In(1)
        It shall not wait for others: its burst has one beat.
    room : Out(1)
        It can be taken. Does not depend on `take`.
    joins : Out(1)
        It belongs to the burst that is being collected.
    take : In(1)
        It is taken. Not without `offered` and `room`.
    flush : In(1)
        What is there is complete.
    burst : Out(stream of burst_layout())
        In the cycle of its transfer the burst is over: a request that is taken then begins the next one.
    empty : Out(1)
    """

    def __init__(self, *, address_bits: int) -> None:
        self._address_bits = address_bits
        super().__init__(
            {
                "offered": In(1),
                "address": In(address_bits),
                "alone": In(1),
                "room": Out(1),
                "joins": Out(1),
                "take": In(1),
                "flush": In(1),
                "burst": Out(stream.Signature(burst_layout(address_bits))),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        burst = self.burst
        occupied = Signal()
        closed = Signal()  # nothing may join: a single one, or the block has ended
        first = Signal(self._address_bits)
        last = Signal(_BEAT_BITS)  # the place of the last beat in the block
        waited = Signal(range(COLLECT_CYCLES + 1))
        complete, following, leaves = Signal(), Signal(), Signal()
        block = first[_BEAT_BITS:]
        m.d.comb += [
            complete.eq(closed | self.flush | (waited == COLLECT_CYCLES)),
            following.eq(self.address == Cat((last + 1)[:_BEAT_BITS], block)),
            # An address that nobody offers joins nothing: it would keep the burst from ending.
            self.joins.eq(self.offered & occupied & ~complete & ~self.alone & following),
            burst.valid.eq(occupied & (complete | (self.offered & ~self.joins))),
            burst.payload.address.eq(first),
            burst.payload.length.eq(last - first[:_BEAT_BITS]),
            leaves.eq(burst.valid & burst.ready),
            self.room.eq(~occupied | self.joins | leaves),
            self.empty.eq(~occupied),
        ]
        m.d.sync += occupied.eq(self.take | (occupied & ~leaves))
        with m.If(self.take):
            m.d.sync += [
                closed.eq(self.alone | self.address[:_BEAT_BITS].all()),
                last.eq(self.address[:_BEAT_BITS]),
                waited.eq(0),
            ]
            with m.If(~self.joins):
                m.d.sync += first.eq(self.address)
        with m.Elif((waited != COLLECT_CYCLES) & ~self.joins):
            m.d.sync += waited.eq(waited + 1)
        return m
