"""The clock divider: the enable of logic that is slower than the command clock of the memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ClockDivider"]


class ClockDivider(wiring.Component):
    """An enable that is high in the last of every `ratio` cycles: one cycle of a slower clock.

    Registers that change only where `enable` is high give the logic between them `ratio` cycles. What such
    logic takes from faster logic must go through a `RegisterSlice`, or it would have one cycle for it.

    Parameters
    ----------
    ratio : int
        From 2.

    Members
    -------
    align : In(1)
        A slow cycle begins in the cycle after this one. While it is high, `enable` is low.
    first, enable : Out(1)
        The first and the last cycle of a slow cycle.
    """

    def __init__(self, ratio: int) -> None:
        if ratio < 2:
            raise ValueError(f"ratio is {ratio!r}: expected at least 2")
        self._ratio = ratio
        super().__init__({"align": In(1), "first": Out(1), "enable": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase = Signal(range(self._ratio))
        last = phase == self._ratio - 1
        m.d.comb += [self.first.eq(phase == 0), self.enable.eq(last & ~self.align)]
        with m.If(last | self.align):
            m.d.sync += phase.eq(0)
        with m.Else():
            m.d.sync += phase.eq(phase + 1)
        return m
