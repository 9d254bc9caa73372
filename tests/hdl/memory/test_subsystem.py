"""The memory subsystem under Verilator: controller, device and checker together."""

from __future__ import annotations

import pytest

from sim.compiled_memory import memory_verilog
from sim.verilator import STORAGE_SOURCES, run_cocotb

from .subsystem import CONFIG

pytestmark = pytest.mark.cocotb


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
        "walk_passes_bulk",
        "age_cap",
        "bandwidth",
    ],
)
def test_subsystem(testcase: str) -> None:
    run_cocotb(
        memory_verilog(CONFIG).read_text(encoding="utf-8"),
        toplevel="memory_subsystem",
        module="tests.hdl.memory.cocotb_memory",
        testcase=testcase,
        extra_sources=STORAGE_SOURCES,
    )
