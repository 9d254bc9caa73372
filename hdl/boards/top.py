"""The top module of a board: the whole design behind the serial line, its clock and its reset."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..serial_top import SerialClew
from .board import Board

__all__ = ["BoardTop"]

#: Bits of the counter whose highest one blinks: about once a second at 50 MHz.
_BLINK_BITS = 26


class BoardTop(wiring.Component):
    """`SerialClew` on a board with an ECP5: one clock from the PLL, in reset until the PLL has locked.

    Members
    -------
    clock : In(1)
        The board's oscillator.
    reset : In(1)
        A button, high while it is pressed; asynchronous.
    rx : In(1), tx : Out(1)
        The serial line.
    led : Out(8)
        From bit 0: blinking while the clock runs, a batch is active, a batch is done (interrupt), the line
        is sending, the line is receiving, 0, 0, in reset.
    """

    clock: In(1)
    reset: In(1)
    rx: In(1)
    tx: Out(1)
    led: Out(8)

    def __init__(self, board: Board, config: DesignConfig) -> None:
        self._board = board
        self._config = config
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        locked, output = Signal(), Signal()
        m.domains.sync = ClockDomain()
        m.submodules.pll = self._pll(output, locked)
        m.d.comb += ClockSignal().eq(output)
        m.submodules.reset_synchronizer = ResetSynchronizer(~locked | self.reset)
        # One register more, near what it resets.
        m.submodules.design = design = SerialClew(self._config, divisor=self._board.divisor)
        blink = Signal(_BLINK_BITS)
        m.d.sync += blink.eq(blink + 1)
        m.d.comb += [
            design.rx.eq(self.rx),
            self.tx.eq(design.tx),
            self.led.eq(
                Cat(
                    blink[-1],
                    design.batch_active,
                    design.interrupt,
                    ~design.tx,
                    ~self.rx,
                    0,
                    0,
                    ResetSignal(),
                )
            ),
        ]
        return m

    def _pll(self, output: Signal, locked: Signal) -> Instance:
        """The PLL, as `ecppll` of Project Trellis sets one up whose output is its feedback."""
        pll = self._board.pll
        attributes = {
            "FREQUENCY_PIN_CLKI": f"{float(self._board.clock_mhz):g}",
            "FREQUENCY_PIN_CLKOP": f"{float(self._board.design_clock_mhz):g}",
            "ICP_CURRENT": "12",
            "LPF_RESISTOR": "8",
            "MFG_ENABLE_FILTEROPAMP": "1",
            "MFG_GMCREF_SEL": "2",
        }
        disabled = ("PLLRST_ENA", "INTFB_WAKE", "STDBY_ENABLE", "DPHASE_SOURCE")
        low = ("RST", "STDBY", "PHASESEL0", "PHASESEL1", "PLLWAKESYNC", "ENCLKOP")
        high = ("PHASEDIR", "PHASESTEP", "PHASELOADREG")
        return Instance(
            "EHXPLLL",
            *(("a", name, value) for name, value in attributes.items()),
            *(("p", name, "DISABLED") for name in disabled),
            *(("p", f"OUTDIVIDER_MUX{letter}", f"DIV{letter}") for letter in "ABCD"),
            p_CLKI_DIV=pll.reference,
            p_CLKFB_DIV=pll.feedback,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=pll.output,
            p_CLKOP_CPHASE=pll.output // 2 - 1,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_CLKI=self.clock,
            i_CLKFB=output,
            **{f"i_{name}": 0 for name in low},
            **{f"i_{name}": 1 for name in high},
            o_CLKOP=output,
            o_LOCK=locked,
        )
