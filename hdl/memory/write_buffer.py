"""The write buffer: data and byte mask of every write that waits for its column command."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import ControllerConfig
from ..layouts import ATOM_BYTES, ATOM_WIDTH

__all__ = ["WriteBuffer"]


class WriteBuffer(wiring.Component):
    """A pool of write data: an entry is taken when a write is accepted, given back when it is issued.

    Members
    -------
    take : In(1)
        Store `data` and `mask` in the free entry `entry`; needs `room`.
    entry : Out(entries)
    room : Out(1)
    give : In(1)
        Free entry `read_entry`.
    read_entry : In(entries)
    read_data : Out(256), read_mask : Out(32)
        Contents of `read_entry`, in the same cycle.
    drain : Out(1)
        From `drain_high` taken entries down to `drain_low`.
    crowded : Out(1)
        From half of the way to `drain_high` down to `drain_low`.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        entry = range(config.write_buffer)
        super().__init__(
            {
                "take": In(1),
                "data": In(ATOM_WIDTH),
                "mask": In(ATOM_BYTES),
                "entry": Out(entry),
                "room": Out(1),
                "give": In(1),
                "read_entry": In(entry),
                "read_data": Out(ATOM_WIDTH),
                "read_mask": Out(ATOM_BYTES),
                "drain": Out(1),
                "crowded": Out(1),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entries = self._config.write_buffer
        m.submodules.contents = contents = memory.Memory(
            shape=unsigned(ATOM_WIDTH + ATOM_BYTES), depth=entries, init=[]
        )
        write, read = contents.write_port(), contents.read_port(domain="comb")
        free = Signal(entries, init=(1 << entries) - 1)
        lowest = Signal(entries)
        given = Signal(entries)
        count = Signal(range(entries + 1))
        m.d.comb += [
            lowest.eq(free & (~free + 1)[:entries]),
            given.eq((self.give << self.read_entry)[:entries]),
            self.room.eq(free.any()),
            write.en.eq(self.take),
            write.addr.eq(self.entry),
            write.data.eq(Cat(self.data, self.mask)),
            read.addr.eq(self.read_entry),
            Cat(self.read_data, self.read_mask).eq(read.data),
        ]
        for k in range(len(self.entry)):
            mask = sum(1 << entry for entry in range(entries) if entry >> k & 1)
            m.d.comb += self.entry[k].eq((lowest & mask).any())
        m.d.comb += self.sleeps.eq((count == 0) & ~(self.take | self.give | self.drain | self.crowded))
        low, high = self._config.drain_low, self._config.drain_high

        def from_to(state: Value, mark: int) -> Value:
            """`state` in the next cycle, which begins at `mark` entries and ends at `drain_low`."""
            return Mux(state, count > low, count >= mark)

        m.d.sync += [
            free.eq((free & ~(lowest & self.take.replicate(entries))) | given),
            count.eq(count + self.take - self.give),
            self.drain.eq(from_to(self.drain, high)),
            self.crowded.eq(from_to(self.crowded, (low + high + 1) // 2)),
        ]
        return m
