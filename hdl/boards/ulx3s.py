"""The ULX3S: an open board with an ECP5 of four sizes, and a USB serial line (FT231X)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from .board import Board, Pin

__all__ = ["ULX3S_12F", "ULX3S_25F", "ULX3S_45F", "ULX3S_85F"]

_LEDS = ("B2", "C2", "C1", "D2", "D1", "E2", "E1", "H3")

ULX3S_85F = Board(
    name="ulx3s_85f",
    device="85k",
    package="CABGA381",
    speed_grade=6,
    clock_mhz=Fraction(25),
    pins={
        "clock": Pin(site="G2", options="PULLMODE=NONE IO_TYPE=LVCMOS33"),
        # FIRE1: high while it is pressed.
        "reset": Pin(site="R1", options="PULLMODE=DOWN IO_TYPE=LVCMOS33"),
        # `ftdi_txd` and `ftdi_rxd`, named from the other end of the line.
        "rx": Pin(site="M1", options="PULLMODE=UP IO_TYPE=LVCMOS33"),
        "tx": Pin(site="L4", options="PULLMODE=UP IO_TYPE=LVCMOS33 DRIVE=4"),
        **{
            f"led[{number}]": Pin(site=site, options="PULLMODE=NONE IO_TYPE=LVCMOS33 DRIVE=4")
            for number, site in enumerate(_LEDS)
        },
    },
    system="CONFIG_IOVOLTAGE=3.3 COMPRESS_CONFIG=ON MCCLK_FREQ=62 SLAVE_SPI_PORT=DISABLE "
    "MASTER_SPI_PORT=ENABLE SLAVE_PARALLEL_PORT=DISABLE",
    configuration="ulx3s",
    design_clock_mhz=Fraction(50),
    baud=1_000_000,
    source="github.com/emard/ulx3s, doc/constraints/ulx3s_v20.lpf",
)
ULX3S_45F = replace(ULX3S_85F, name="ulx3s_45f", device="45k")
ULX3S_25F = replace(ULX3S_85F, name="ulx3s_25f", device="25k")
ULX3S_12F = replace(ULX3S_85F, name="ulx3s_12f", device="12k")
