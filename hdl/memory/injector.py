"""The fault injector: flips bits of what a device's storage returns, on command."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import MemoryConfig
from ..layouts import ATOM_CHECK_WIDTH, ATOM_WIDTH, FaultInjection
from .address import AddressMap

__all__ = ["LANES", "LANE_WIDTH", "FaultInjector"]

#: Bits that one write of `FaultInjection.flips` sets.
LANE_WIDTH = 32
#: Lanes of an atom with its check bits.
LANES = (ATOM_WIDTH + ATOM_CHECK_WIDTH) // LANE_WIDTH


class FaultInjector(wiring.Component):
    """A register of 288 flips that is applied to reads of one atom, while it is armed.

    Any pattern of flips can be set, so that bursts and errors in several words can be tried as well. The
    match is on the storage's index: the injector decodes the atom address as the controller does.

    Members
    -------
    control : In(FaultInjection())
    read : In(1), index : In(32)
        The storage is read at `index` in this cycle.
    flips : Out(288)
        To be applied to what the storage returns in the next cycle: 256 bits of data, 32 check bits above.
    """

    def __init__(self, config: MemoryConfig) -> None:
        self._config = config
        super().__init__(
            {
                "control": In(FaultInjection()),
                "read": In(1),
                "index": In(32),
                "flips": Out(ATOM_WIDTH + ATOM_CHECK_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control = self.control
        place = AddressMap(self._config).wires(control.address)
        index = Cat(place.column, place.row, place.unit)

        pattern = Signal(LANES * LANE_WIDTH)
        for lane in range(LANES):
            with m.If(control.set_flips & (control.lane == lane)):
                m.d.sync += pattern.word_select(lane, LANE_WIDTH).eq(control.flips)

        sticky = Signal()
        strikes = Signal()
        struck = Signal()
        m.d.comb += [
            strikes.eq(control.armed & self.read & (self.index == index) & ~place.out_of_range),
            self.flips.eq(pattern & struck.replicate(len(pattern))),
        ]
        m.d.sync += struck.eq(strikes)
        with m.If(control.set_armed):
            m.d.sync += [control.armed.eq(control.arm), sticky.eq(control.sticky)]
        with m.Elif(strikes & ~sticky):
            m.d.sync += control.armed.eq(0)
        return m
