"""What the flow has to know of an FPGA board: part, clock, pins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Board", "Pin", "Pll"]


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A pin of the part."""

    site: str
    """The ball, as the part's documentation names it."""
    options: str
    """Its `IOBUF` options: I/O standard, pull, drive strength."""


@dataclass(frozen=True, kw_only=True)
class Pll:
    """The dividers of an ECP5 PLL with its output as the feedback: clock in / reference x feedback."""

    #: The range of the oscillator, in MHz: FPGA-DS-02012 (ECP5 family data sheet), sysCLOCK PLL timing.
    OSCILLATOR = (400, 800)

    reference: int
    feedback: int
    output: int
    """Oscillator over clock out."""

    @classmethod
    def between(cls, clock_in: Fraction, clock_out: Fraction) -> Pll:
        """The dividers that make `clock_out` of `clock_in`, both in MHz, exactly. Raises ValueError."""
        ratio = clock_out / clock_in
        reference, feedback = ratio.denominator, ratio.numerator
        low, high = cls.OSCILLATOR
        output = int((low + high) / 2 / clock_out)
        if not (1 <= output <= 128 and low <= output * clock_out <= high and max(reference, feedback) <= 128):
            raise ValueError(
                f"clock of {float(clock_out):g} MHz: the PLL cannot make it of {float(clock_in):g}"
            )
        return cls(reference=reference, feedback=feedback, output=output)


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board with an ECP5, a clock, a serial line, a button and light-emitting diodes."""

    name: str
    device: str
    """Size of the part as nextpnr-ecp5 names it: `12k`, `25k`, `45k` or `85k`."""
    package: str
    speed_grade: int
    clock_mhz: Fraction
    """Of the board's oscillator."""
    pins: dict[str, Pin]
    """By port of `BoardTop`: `clock`, `reset`, `rx`, `tx`, and `led[0]` to `led[7]`."""
    system: str
    """The line of the constraints that says how the part is configured."""
    configuration: str
    """The named configuration that fits and meets timing."""
    design_clock_mhz: Fraction
    """What the PLL makes for the design."""
    baud: int
    """Of the serial line."""
    source: str
    """Where the pins are from."""

    @property
    def pll(self) -> Pll:
        """The dividers from the board's clock to the design's."""
        return Pll.between(self.clock_mhz, self.design_clock_mhz)

    @property
    def divisor(self) -> int:
        """Cycles of the design's clock in a bit of the serial line."""
        return round(self.design_clock_mhz * 1_000_000 / self.baud)

    def constraints(self, *, margin: Fraction = Fraction(0)) -> str:
        """The text of the constraints, in Lattice's preference format (`.lpf`).

        `margin`: by what part the oscillator, and so the clock that the PLL makes of it, is called faster.
        """
        lines = [f"# {self.name}; pins from {self.source}", f"SYSCONFIG {self.system};"]
        for port, pin in self.pins.items():
            lines += [f'LOCATE COMP "{port}" SITE "{pin.site}";', f'IOBUF PORT "{port}" {pin.options};']
        lines.append(f'FREQUENCY PORT "clock" {float(self.clock_mhz * (1 + margin)):g} MHZ;')
        return "\n".join(lines) + "\n"
