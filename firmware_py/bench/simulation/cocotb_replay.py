"""The cocotb side of `clew bench simulation`: one replay by the same driver, and its speed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.simtime import get_sim_time
from cocotb.task import bridge

from hdl.config import named_config
from sim.bench.backdoor import StorageBackdoor
from sim.bench.monitor import MemoryMonitor
from sim.bench.testbench import Testbench

from ...driver import Accelerator
from ...programs import default_image
from ...replay import run_plan
from ...transport.axi_lite import AxiLiteTransport
from .cocotb_speed import REPLAY_VARIABLE
from .replay import replay_plan

__all__ = ["speed"]

_WATCHDOG_CYCLES = 20_000_000


class _TimedTransport(AxiLiteTransport):
    """Adds up the processor time and the cycles of waiting for batches."""

    seconds = 0.0
    cycles = 0.0

    async def _wait(self, timeout_cycles: int) -> bool:
        began, then = time.process_time(), get_sim_time("ns")
        raised = await super()._wait(timeout_cycles)
        self.seconds += time.process_time() - began
        self.cycles += (get_sim_time("ns") - then) / self._clock_ns
        return raised


@cocotb.test()
async def speed(dut: Any) -> None:
    """Replay the trace that the environment names, near and far, and write the speed where it says."""
    order = json.loads(os.environ[REPLAY_VARIABLE])
    config = named_config("testbench")
    bench = Testbench(dut, clock_ns=config.memory.timing.clock_ns, watchdog_cycles=_WATCHDOG_CYCLES)
    await bench.start()
    backdoor = StorageBackdoor(config)
    assert bench.manager is not None
    transport = _TimedTransport(
        bench.manager, interrupt=dut.interrupt, clock_ns=bench.clock_ns, backdoor=backdoor
    )

    def replay() -> None:
        accelerator = Accelerator(transport)
        plan = replay_plan(Path(order["trace"]), config)
        for place in (0, 1):
            run = run_plan(
                plan,
                program=default_image(),
                place=place,
                driver=accelerator,
                monitor=MemoryMonitor(backdoor),
            )
            assert not run.wrong and not run.not_golden

    await bridge(replay)()
    assert not bench.violations
    result = {"cycles_per_second": transport.cycles / transport.seconds}
    Path(order["result"]).write_text(json.dumps(result), encoding="utf-8")
