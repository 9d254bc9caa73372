"""A memory behind an AXI4 port, under Verilator: against cocotbext-axi's RAM and a hostile memory."""

from __future__ import annotations

import pytest

from hdl.generate import verilog
from sim.verilator import run_cocotb

from .axi_subsystem import AxiSubsystem

pytestmark = pytest.mark.cocotb


@pytest.mark.parametrize("testcase", ["cocotbext_ram", "hostile_memory", "bursts", "width_converter"])
def test_axi_memory(testcase: str) -> None:
    run_cocotb(
        verilog(AxiSubsystem(), name="axi_subsystem"),
        toplevel="axi_subsystem",
        module="tests.hdl.memory.cocotb_axi",
        testcase=testcase,
    )
