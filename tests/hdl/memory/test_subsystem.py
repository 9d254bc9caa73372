"""The memory subsystem under Verilator: controller, device and checker together."""

from __future__ import annotations

from functools import cache

import pytest

from hdl.generate import verilog
from sim.bench.memory import MemorySubsystem
from sim.verilator import STORAGE_SOURCES, run_cocotb

from .subsystem import CONFIG

pytestmark = pytest.mark.cocotb


@cache
def _design() -> str:
    return verilog(MemorySubsystem(CONFIG), name="memory_subsystem")


@pytest.mark.parametrize(
    "testcase",
    [
        "soak",
        "latencies",
        "refresh_all_bank",
        "refresh_per_bank",
        "restart",
        "write_drain",
        "response_back_pressure",
        "row_hit_cap",
        "age_cap",
        "bandwidth",
    ],
)
def test_subsystem(testcase: str) -> None:
    run_cocotb(
        _design(),
        toplevel="memory_subsystem",
        module="tests.hdl.memory.cocotb_memory",
        testcase=testcase,
        extra_sources=STORAGE_SOURCES,
    )
