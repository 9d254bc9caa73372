"""Histograms in hardware: what loops and walks took, counted where they happen, without a log."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from .config import DesignConfig
from .layouts import HistogramSelect, HopEvent, HopMonitor, WalkMonitor

__all__ = ["Bins", "Histograms", "LoopHistogram"]


class Bins(wiring.Component):
    """The counts of a histogram, 32 bits each, wrapping, in a memory of one read and one write port.

    A count is in its bin three cycles after `add`. Whatever is wide happens only in a cycle with a count: a
    simulation pays for all that is computed in every one.

    Parameters
    ----------
    count : int
        Bins; a power of two.

    Members
    -------
    add : In(1), value : In(32)
        One more in bin `value`, or in the last one if there is no such bin. One a cycle.
    index : In
        The bin to look at or to clear.
    look : In(1)
        `data` becomes bin `index`, if `add` was low in the cycle before.
    clear : In(1)
        Bin `index` becomes 0; counts of this and of the two last cycles may be lost.
    data : Out(32)
    """

    def __init__(self, count: int) -> None:
        self._bits = exact_log2(count)
        super().__init__(
            {
                "add": In(1),
                "value": In(32),
                "index": In(self._bits),
                "look": In(1),
                "clear": In(1),
                "data": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counts = counts = memory.Memory(shape=32, depth=1 << self._bits, init=[])
        write = counts.write_port()
        # Transparent: what is added to the same bin in the next cycle finds this one counted.
        read = counts.read_port(transparent_for=(write,))
        found, adding = Signal(self._bits), Signal()
        target, writing = Signal(self._bits), Signal()
        with m.If(self.add):
            m.d.sync += found.eq(Mux(self.value[self._bits :].any(), ~0, self.value[: self._bits]))
        with m.If(adding):
            m.d.sync += target.eq(found)
        m.d.sync += [adding.eq(self.add), writing.eq(adding)]
        m.d.comb += [
            read.en.eq(adding | self.look),
            read.addr.eq(Mux(adding, found, self.index)),
            write.en.eq(writing | self.clear),
            write.addr.eq(Mux(self.clear, self.index, target)),
            write.data.eq(Mux(self.clear, 0, read.data + 1)),
            self.data.eq(read.data),
        ]
        return m


class LoopHistogram(wiring.Component):
    """A walker's loops by their cycles: from a request for a record to the context's next one or its verdict.

    Parameters
    ----------
    contexts : int
        Of the walker.
    bins : int
        Of a cycle each: bin n counts loops of n cycles, the last bin those of its number or more.

    Members
    -------
    hop : In(HopMonitor)
    active : In(1)
        A batch executes: only then loops count. Each lies within a batch.
    now : In(32)
        The cycle, from anywhere.
    index, look, clear, data
        As those of `Bins`.
    """

    def __init__(self, *, contexts: int, bins: int) -> None:
        self._contexts = contexts
        self._bins = bins
        super().__init__(
            {
                "hop": In(HopMonitor()),
                "active": In(1),
                "now": In(32),
                "index": In(exact_log2(bins)),
                "look": In(1),
                "clear": In(1),
                "data": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.bins = bins = Bins(self._bins)
        m.submodules.requested = requested = memory.Memory(shape=32, depth=self._contexts, init=[])
        write, read = requested.write_port(), requested.read_port(domain="comb")
        # Contexts that wait for a record, or work on it: their request is in `requested`.
        reading = Signal(self._contexts)
        requests, ends = Signal(), Signal()
        m.d.comb += [
            requests.eq(self.active & (self.hop.event == HopEvent.REQUEST)),
            ends.eq(self.active & (self.hop.event == HopEvent.VERDICT)),
            read.addr.eq(self.hop.context),
            write.addr.eq(self.hop.context),
            write.data.eq(self.now),
            write.en.eq(requests),
            bins.add.eq((requests | ends) & reading.bit_select(read.addr, 1)),
            bins.value.eq(self.now - read.data),
            bins.index.eq(self.index),
            bins.look.eq(self.look),
            bins.clear.eq(self.clear),
            self.data.eq(bins.data),
        ]
        with m.If(requests | ends):
            m.d.sync += reading.bit_select(read.addr, 1).eq(requests)
        return m


class Histograms(wiring.Component):
    """All histograms of the design, of `config.histogram.bins` bins each.

    One of loops for every walker (`LoopHistogram`), and two of walks, near and far: from launch to verdict at
    the compute side, in bins of `config.histogram.walk_bin_cycles`.

    Members
    -------
    hop : In(HopMonitor), an array
        Of the near walker of each channel, then of the far walker.
    walk : In(WalkMonitor)
    active : In(1)
        A batch executes.
    clear : In(1)
        Begin to clear all of them, which takes as many cycles as there are bins.
    clearing : Out(1)
        They are being cleared, and read as 0. No batch may begin.
    select : In(HistogramSelect), index : In
        The histogram and its bin to read. Of a channel that is not there, that of some other.
    data : Out(32)
        That bin, two cycles later; as it was while `active`, when the memories count.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        super().__init__(
            {
                "hop": In(HopMonitor()).array(config.memory.channels + 1),
                "walk": In(WalkMonitor()),
                "active": In(1),
                "clear": In(1),
                "clearing": Out(1),
                "select": In(HistogramSelect),
                "index": In(exact_log2(config.histogram.bins)),
                "data": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        channels, count = self._config.memory.channels, self._config.histogram.bins
        now = Signal(32)
        swept = Signal(exact_log2(count))
        with m.If(self.active):
            m.d.sync += now.eq(now + 1)
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), swept.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [self.clearing.eq(swept != count - 1), swept.eq(swept + 1)]
        index = Mux(self.clearing, swept, self.index)

        data: list[Value] = []
        for number, hop in enumerate(self.hop):
            name = f"loops_{number}" if number < channels else "loops_far"
            loops = LoopHistogram(contexts=self._config.walker.contexts, bins=count)
            m.submodules[name] = loops
            connect(m, flipped(hop), loops.hop)
            m.d.comb += [
                loops.active.eq(self.active),
                loops.now.eq(now),
                loops.index.eq(index),
                loops.look.eq(~self.active),
                loops.clear.eq(self.clearing),
            ]
            data.append(loops.data)
        bin_bits = exact_log2(self._config.histogram.walk_bin_cycles)
        for place, name in enumerate(("near", "far")):
            m.submodules[f"walks_{name}"] = walks = Bins(count)
            m.d.comb += [
                walks.add.eq(self.active & self.walk.ended & (self.walk.far == place)),
                walks.value.eq(self.walk.cycles >> bin_bits),
                walks.index.eq(index),
                walks.look.eq(~self.active),
                walks.clear.eq(self.clearing),
            ]
            data.append(walks.data)

        near = Cat(data[:channels]).word_select(self.select.channel[: exact_log2(channels)], 32)
        loops_far, walks_near, walks_far = data[channels:]
        chosen = Mux(
            self.select.walks,
            Mux(self.select.far, walks_far, walks_near),
            Mux(self.select.far, loops_far, near),
        )
        with m.If(~self.active):
            m.d.sync += self.data.eq(Mux(self.clear | self.clearing, 0, chosen))
        return m
