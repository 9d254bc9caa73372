"""The launch group: makes single walks of a launch that carries several."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ADDRESS_WIDTH, CONTEXT_WIDTH, LAUNCH_WALKS_MAX, Launch, Walk

__all__ = ["LaunchGroup"]


class LaunchGroup(wiring.Component):
    """Single walks of the launches that come in, in order, one a cycle.

    The first walk of a launch passes combinationally, so a launch of one walk costs no cycle. The others are
    kept here and follow, each in the next context, before another launch is taken.

    Members
    -------
    input : In(stream of Launch)
    output : Out(stream of Walk)
    idle : Out(1)
        No walk is kept.
    sleeps : Out(1)
        See `ClockGate`.
    """

    input: In(stream.Signature(Launch))
    output: Out(stream.Signature(Walk))
    idle: Out(1, init=1)
    sleeps: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        launch, walk = self.input.payload, self.output.payload
        left = Signal(range(LAUNCH_WALKS_MAX))
        # What the walks that are kept have in common, the next one's context, and their start addresses.
        entry, tag = Signal.like(launch.entry), Signal.like(launch.tag)
        context = Signal(CONTEXT_WIDTH)
        addresses = Signal(data.ArrayLayout(ADDRESS_WIDTH, LAUNCH_WALKS_MAX - 1))

        m.d.comb += [
            self.idle.eq(left == 0),
            self.sleeps.eq(~self.output.valid),
            self.output.valid.eq(self.input.valid | ~self.idle),
            self.input.ready.eq(self.output.ready & self.idle),
        ]
        # Nothing is offered in most cycles, and then a simulation need not move a walk.
        with m.If(~self.idle):
            m.d.comb += [
                walk.context.eq(context),
                walk.entry.eq(entry),
                walk.tag.eq(tag),
                walk.address.eq(addresses[0]),
            ]
        with m.Elif(self.input.valid):
            m.d.comb += [
                walk.context.eq(launch.context),
                walk.entry.eq(launch.entry),
                walk.tag.eq(launch.tag),
                walk.address.eq(launch.address),
            ]
            with m.If(launch.count_minus_1 == 0):
                m.d.comb += walk.registers.eq(launch.words.as_value())
        with m.If(self.output.valid & self.output.ready):
            with m.If(self.idle):
                m.d.sync += [
                    left.eq(launch.count_minus_1),
                    entry.eq(launch.entry),
                    tag.eq(launch.tag),
                    context.eq(launch.context + 1),
                    addresses.eq(launch.words.as_value()),
                ]
            with m.Else():
                m.d.sync += [
                    left.eq(left - 1),
                    context.eq(context + 1),
                    addresses.eq(addresses.as_value() >> ADDRESS_WIDTH),
                ]
        return m
