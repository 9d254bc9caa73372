"""The walks that were launched and have not ended: how many in each context of each place, and since when."""

import functools
import operator

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from .clock_gate import SLEPT_BITS
from .config import DesignConfig
from .layouts import CONTEXT_WIDTH, LAUNCH_WALKS_MAX
from .memory.stack import StackMap

__all__ = ["OutstandingWalks"]


class OutstandingWalks(wiring.Component):
    """What the Sequencer keeps of its outstanding walks: up to `config.walker.outstanding_each` in a context.

    A place is one that a walk can run in: the near walker of each channel, then the far walker. Walks of one
    context in one place run, and end, in the order of their launches, so their times are a queue.

    The queues take one walk a cycle: those of one launch are noted one after another, all with its time, and
    so long there is room for no other. A walker begins no walk sooner, so none ends before it is noted.

    Members
    -------
    place : In, context : In(6), count_minus_1 : In(3)
        A launch of walks in `context` and those that follow it.
    room : Out(1)
        It has room in every one of its contexts. Combinational.
    launch : In(1)
        It leaves in this cycle; only with `room`.
    verdict_place : In, verdict_context : In(6)
        Whose verdict has come.
    cycles : Out(32)
        Cycles since the launch of the walk that it belongs to. Combinational.
    ends : In(1)
        It ends that walk.
    none : Out(1)
        Every walk has ended.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._contexts = config.walker.contexts
        self._slots = config.walker.outstanding_each
        self._places = StackMap(config.memory).channels + 1
        place = range(self._places)
        super().__init__(
            {
                "place": In(place),
                "context": In(CONTEXT_WIDTH),
                "count_minus_1": In(range(LAUNCH_WALKS_MAX + 1)),
                "room": Out(1),
                "launch": In(1),
                "verdict_place": In(place),
                "verdict_context": In(CONTEXT_WIDTH),
                "cycles": Out(32),
                "ends": In(1),
                "none": Out(1),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        contexts, slots, places = self._contexts, self._slots, range(self._places)
        clock = Signal(32)  # wraps, differences stay right
        m.d.sync += clock.eq(clock + self.slept + 1)

        # By place and context, the walks noted and ended: a bit more than the index of a slot, so that a full
        # queue differs from an empty one.
        pointer = range(2 * slots)
        noted, ended = (
            [
                [Signal(pointer, name=f"{name}_{place}_{number}") for number in range(contexts)]
                for place in places
            ]
            for name in ("noted", "ended")
        )
        context_bits = ceil_log2(contexts)

        def slot(pointers: list[list[Signal]], place: Value, context: Value) -> Value:
            """Where a context's entry lies in the memory of times, by its pointer."""
            index = exact_log2(slots)
            row = Cat(place_pointers[:index] for p in pointers for place_pointers in _padded(p, context_bits))
            chosen = row.word_select(Cat(context[:context_bits], place), index) if index else Const(0, 0)
            return Cat(chosen, context[:context_bits], place)

        # -- What is launched --
        left = Signal(range(LAUNCH_WALKS_MAX))
        next_place, next_context, time = Signal.like(self.place), Signal.like(self.context), Signal(32)
        place, context = Signal.like(self.place), Signal.like(self.context)
        note = Signal()
        m.d.comb += [
            note.eq(self.launch | (left != 0)),
            self.sleeps.eq(~(note | self.ends)),
            place.eq(Mux(left != 0, next_place, self.place)),
            context.eq(Mux(left != 0, next_context, self.context)),
        ]
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), next_context.eq(next_context + 1)]
        with m.Elif(self.launch):
            m.d.sync += [
                left.eq(self.count_minus_1),
                next_place.eq(self.place),
                next_context.eq(self.context + 1),
                time.eq(clock),
            ]

        # One-hot by comparison: contexts are few and `1 << index` is slow to convert.
        first = Cat(self.context == number for number in range(contexts))
        later = [
            Mux(self.count_minus_1 >= number, Cat(Const(0, number), first[:-number]), 0)
            for number in range(1, min(LAUNCH_WALKS_MAX, contexts))
        ]
        launched = Signal(contexts)
        m.d.comb += launched.eq(first)
        with m.If(self.count_minus_1 != 0):
            m.d.comb += launched.eq(functools.reduce(operator.or_, later, first))
        with m.Switch(self.place):
            for number in places:
                full = Cat((n ^ e) == slots for n, e in zip(noted[number], ended[number], strict=True))
                with m.Case(number):
                    m.d.comb += self.room.eq(~(full & launched).any() & (left == 0))

        # -- Times --
        m.submodules.times = times = memory.Memory(
            shape=32, depth=len(places) * slots << context_bits, init=[]
        )
        write, read = times.write_port(), times.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(note),
            write.addr.eq(slot(noted, place, context)),
            write.data.eq(Mux(left != 0, time, clock)),
            read.addr.eq(slot(ended, self.verdict_place, self.verdict_context)),
            self.cycles.eq(clock - read.data),
        ]
        outstanding = []
        for number in places:
            for other in range(contexts):
                put, taken = noted[number][other], ended[number][other]
                with m.If(note & (place == number) & (context == other)):
                    m.d.sync += put.eq(put + 1)
                with m.If(self.ends & (self.verdict_place == number) & (self.verdict_context == other)):
                    m.d.sync += taken.eq(taken + 1)
                outstanding.append(put != taken)
        m.d.comb += self.none.eq(~Cat(outstanding).any() & (left == 0))
        return m


def _padded(pointers: list[Signal], bits: int) -> list[Value]:
    """As many as `bits` can number."""
    return [*pointers, *[Const(0, len(pointers[0]))] * ((1 << bits) - len(pointers))]
