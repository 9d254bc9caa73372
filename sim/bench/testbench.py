"""The base of a cocotb testbench of the top: clock, reset, watchdog, host manager and monitors."""

from __future__ import annotations

import logging
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

__all__ = ["Testbench"]


class Testbench:
    """Owns everything around the design under test; await `start` first.

    `dut` has `clk` and `rst`; the host manager is there when it has an `s_axil` port. A testbench that is
    still running after `watchdog_cycles` fails.
    """

    def __init__(self, dut: Any, *, clock_ns: float = 1.0, watchdog_cycles: int = 2_000_000) -> None:
        self.dut = dut
        self.clock_ns = clock_ns
        self._watchdog_cycles = watchdog_cycles
        self.violations: list[int] = []
        """Rules that the RTL checker reported, in order."""
        self.manager: AxiLiteMaster | None = None

    async def start(self) -> None:
        """Starts clock, watchdog and monitors and resets the design."""
        dut = self.dut
        dut.rst.value = 1
        if hasattr(dut, "s_axil_awaddr"):
            # It logs every transfer.
            logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
            self.manager = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        # The simulator toggles it: a clock in Python would wake Python twice a cycle, four times as slow.
        Clock(dut.clk, round(self.clock_ns * 1000), "ps", impl="gpi").start()
        cocotb.start_soon(self._watchdog())
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        # The whole design is still in reset in the cycle after this edge.
        await ClockCycles(dut.clk, 2)
        if hasattr(dut, "violation"):
            cocotb.start_soon(self._watch_violations())

    async def _watchdog(self) -> None:
        await Timer(self._watchdog_cycles * self.clock_ns, "ns")
        raise TimeoutError(f"the testbench still runs after {self._watchdog_cycles} cycles")

    async def _watch_violations(self) -> None:
        # It sleeps until the pin rises: a callback in every cycle would halve the simulation's speed.
        while True:
            await RisingEdge(self.dut.violation)
            await ReadOnly()
            self.violations.append(int(self.dut.violation_rule.value))
