"""The overflow of the bank queues: requests whose bank has no free slot wait here, not at the port."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Overflow"]


class Overflow(wiring.Component):
    """One pool of `depth` requests in which every bank has a first-in first-out list of its own.

    Members
    -------
    append : In(1)
        Put `append_request` (`width` bits) at the end of the list of bank `append_unit`; needs `room`.
    append_write : In(1), append_key : In(key_width)
        It writes the atom `append_key` of its bank.
    writes_key : Out(1)
        A request that waits writes the atom `append_key` of bank `append_unit`.
    room : Out(1)
        The pool has a free entry.
    remove : In(1)
        Take `removed_request` off the list of bank `remove_unit`, which must be in `waiting`.
    removed_seen, removed_old : Out(1)
        Its age, this cycle included: a tick has passed since it came; it was `seen` when `ripen` was high.
    waiting : Out(units)
        The banks whose list is not empty.
    waiting_old : Out(1)
        A request that waits is old.
    waiting_write : Out(1)
        A request that waits is a write.
    tick, ripen : In(1)
    """

    def __init__(self, *, units: int, depth: int, width: int, key_width: int) -> None:
        self._units = units
        self._depth = depth
        self._width = width
        unit = range(units)
        super().__init__(
            {
                "append": In(1),
                "append_unit": In(unit),
                "append_request": In(width),
                "append_write": In(1),
                "append_key": In(key_width),
                "writes_key": Out(1),
                "room": Out(1),
                "remove": In(1),
                "remove_unit": In(unit),
                "removed_request": Out(width),
                "removed_seen": Out(1),
                "removed_old": Out(1),
                "waiting": Out(units),
                "waiting_old": Out(1),
                "waiting_write": Out(1),
                "tick": In(1),
                "ripen": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        depth, units = self._depth, self._units

        def store(name: str, width: int, words: int) -> memory.Memory:
            m.submodules[name] = contents = memory.Memory(shape=unsigned(width), depth=words, init=[])
            return contents

        def read(contents: memory.Memory, address: Value) -> Value:
            port = contents.read_port(domain="comb")
            m.d.comb += port.addr.eq(address)
            return Value.cast(port.data)

        def write(contents: memory.Memory, enable: Value, address: Value, value: Value) -> None:
            port = contents.write_port()
            m.d.comb += [port.en.eq(enable), port.addr.eq(address), port.data.eq(value)]

        # -- The free entry that is filled next --
        free = Signal(depth, init=-1)
        lowest = Signal(depth)
        filled = Signal(depth)
        entry = Signal(range(depth))
        m.d.comb += [
            lowest.eq(free & (~free + 1)[:depth]),
            filled.eq(lowest & self.append.replicate(depth)),
            self.room.eq(free.any()),
        ]
        for k in range(len(entry)):
            m.d.comb += entry[k].eq((lowest & sum(1 << n for n in range(depth) if n >> k & 1)).any())

        # -- The lists: the entries of a bank from its head to its tail, each with the one that follows --
        requests = store("requests", self._width, depth)
        following = store("following", len(entry), depth)
        heads = store("heads", len(entry), units)
        tails = store("tails", len(entry), units)
        head = Signal.like(entry)
        ends, extends, begins = Signal(), Signal(), Signal()
        removed_from, appended_to = Signal(units), Signal(units)
        m.d.comb += [
            head.eq(read(heads, self.remove_unit)),
            removed_from.eq((self.remove << self.remove_unit)[:units]),
            appended_to.eq((self.append << self.append_unit)[:units]),
            # This cycle takes the last entry away, or would, did not another come for that bank.
            ends.eq(head == read(tails, self.remove_unit)),
            extends.eq((removed_from & appended_to).any()),
            begins.eq(~self.waiting.bit_select(self.append_unit, 1)),
        ]
        write(requests, self.append, entry, self.append_request)
        write(following, self.append & ~begins, read(tails, self.append_unit), entry)
        write(tails, self.append, self.append_unit, entry)
        write(heads, self.append & begins, self.append_unit, entry)
        write(heads, self.remove, self.remove_unit, Mux(ends & extends, entry, read(following, head)))
        m.d.sync += self.waiting.eq((self.waiting & ~(removed_from & ends.replicate(units))) | appended_to)

        # -- Who writes what: bit k of every entry's bank and atom is one vector, so all compare at once --
        writing = Signal(depth)
        different: Value = ~writing
        for k, bit in enumerate(Value.cast(Cat(self.append_unit, self.append_key))):
            held = Signal(depth, name=f"key{k}")
            bits = bit.replicate(depth)
            different = different | (held ^ bits)
            m.d.sync += held.eq((held & ~filled) | (bits & filled))
        m.d.comb += [self.writes_key.eq(~different.all()), self.waiting_write.eq(writing.any())]

        # -- Age --
        freed = Signal(depth)
        seen, old = Signal(depth), Signal(depth)
        ticks, ripens = self.tick.replicate(depth), self.ripen.replicate(depth)
        m.d.comb += [
            freed.eq((self.remove << head)[:depth]),
            self.removed_request.eq(read(requests, head)),
            self.removed_seen.eq((freed & (seen | ticks)).any()),
            self.removed_old.eq((freed & (old | (seen & ripens))).any()),
            self.waiting_old.eq((old & ~free).any()),
        ]
        m.d.sync += [
            free.eq((free & ~filled) | freed),
            writing.eq((writing & ~freed) | (filled & self.append_write.replicate(depth))),
            seen.eq((seen | ticks) & ~filled),
            old.eq((old | (seen & ripens)) & ~filled),
        ]
        return m
