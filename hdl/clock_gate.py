"""The clock gate: leaves the clock edges out at which nothing would change but the counts of passing time."""

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CLOCK_GATE_MODULE", "SLEPT_BITS", "ClockGate"]

#: The Verilog module of a clock gate: `clk`, `enable`, and `gated_clk`, with the edges of enabled cycles.
CLOCK_GATE_MODULE = "clew_clock_gate"
#: Bits of the number of edges left out in a row. The controller counts the ages of requests in periods of
#: 256 cycles (`age_cap` / 2), and is awake for a cycle of each.
SLEPT_BITS = 9


class ClockGate(wiring.Component):
    """A clock that sleeps while the blocks on it only wait: for time to pass, or for the host.

    Every block says in `sleeps` whether this cycle's edge may be left out, when the last `slept` edges were:
    none of its registers would have changed at any of them, but those that count cycles, and none of its
    outputs depends on those. Registers that count cycles then count `slept` + 1 at the next edge. So with
    the gate and without it every cycle that matters finds the same state. A block that waits for a time (a
    message that arrives, an interval that ends) stops sleeping an edge before, and is awake in that cycle.

    The gate itself is a cell of the module `CLOCK_GATE_MODULE`: an ASIC has one in its library, simulations
    have that of `sim/native`. What it is asked depends on registers, and on `wake`, which may come as late.

    Members
    -------
    sleeps : In(1)
        Of all blocks: this edge may be left out, too.
    wake : In(1)
        It may not, because of something that comes from outside.
    slept : Out(SLEPT_BITS)
        Edges left out since the last one that was not.
    clk : Out(1)
        The gated clock.
    """

    sleeps: In(1)
    wake: In(1)
    slept: Out(SLEPT_BITS)
    clk: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # A reset counts, too: the design's own is registered on the gated clock.
        wakes = self.wake | self.slept.all() | ResetSignal()
        m.submodules.cell = Instance(
            CLOCK_GATE_MODULE, i_clk=ClockSignal(), i_enable=~self.sleeps | wakes, o_gated_clk=self.clk
        )
        m.d.sync += self.slept.eq(0)
        # Two readers of `sleeps`: a simulator then keeps it, and does not compute all of it where it looks at
        # `wake`, which is twice a cycle.
        with m.If(self.sleeps):
            with m.If(~wakes):
                m.d.sync += self.slept.eq(self.slept + 1)
        return m
