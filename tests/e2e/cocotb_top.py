"""cocotb tests of the whole design: the driver that runs everywhere, over an AXI4-Lite manager not ours."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.task import bridge

from firmware_py.driver import Accelerator
from firmware_py.transport.axi_lite import AxiLiteTransport
from firmware_py.transport.base import TransportError
from hdl.config import named_config
from hdl.registers import MEMORY_WINDOW, REGISTERS, SCRATCHPAD_WINDOW
from sim.bench.backdoor import StorageBackdoor
from sim.bench.monitor import MemoryMonitor
from sim.bench.testbench import Testbench

from .replays import plan_of, run

CONFIG = named_config("testbench")


async def _start(dut: Any, *, watchdog_cycles: int) -> tuple[Testbench, AxiLiteTransport, StorageBackdoor]:
    bench = Testbench(dut, clock_ns=CONFIG.memory.timing.clock_ns, watchdog_cycles=watchdog_cycles)
    await bench.start()
    backdoor = StorageBackdoor(CONFIG)
    assert bench.manager is not None
    transport = AxiLiteTransport(
        bench.manager, interrupt=dut.interrupt, clock_ns=bench.clock_ns, backdoor=backdoor
    )
    return bench, transport, backdoor


@cocotb.test()
async def host_port(dut: Any) -> None:
    """Identity, refused accesses, scratchpad window, and the memory window against the backdoor."""
    bench, transport, backdoor = await _start(dut, watchdog_cycles=200_000)
    chance = random.Random(cocotb.RANDOM_SEED)

    def body() -> None:
        accelerator = Accelerator(transport)
        assert accelerator.config_hash == CONFIG.hash
        assert accelerator.contexts == CONFIG.walker.contexts
        assert accelerator.memory_atoms == CONFIG.memory.organisation.atoms

        for address in (4 * len(REGISTERS), SCRATCHPAD_WINDOW - 4):
            try:
                transport.read32(address)
            except TransportError:
                continue
            raise AssertionError(f"a read of {address:#x}, where nothing is, was answered")

        words = np.array([chance.getrandbits(32) for _ in range(64)], dtype=np.uint32)
        transport.write_block(SCRATCHPAD_WINDOW + 0x400, words)
        assert (transport.read_block(SCRATCHPAD_WINDOW + 0x400, 64) == words).all()

        for _ in range(4):
            address = chance.randrange(accelerator.memory_atoms - 5)
            atoms = np.array([[chance.getrandbits(32) for _ in range(8)] for _ in range(5)], dtype=np.uint32)
            backdoor.load(address, atoms)
            assert (accelerator.read_memory(address, 5) == atoms).all()
            accelerator.write_memory(address + 1, atoms[:3])
            assert (accelerator.read_memory(address, 5) == [atoms[0], *atoms[:3], atoms[4]]).all()
        accelerator.write_memory(7, np.full((1, 8), 0xFFFFFFFF, dtype=np.uint32))

    await bridge(body)()
    # Bytes in the middle of two words, by write strobes; the last page written is still chosen.
    assert bench.manager is not None
    await bench.manager.write(MEMORY_WINDOW + 7 * 32 + 6, bytes([1, 2, 3]))
    answer = await bench.manager.read(MEMORY_WINDOW + 7 * 32, 12)
    assert answer.data == bytes([255] * 6 + [1, 2, 3] + [255] * 3)
    assert not bench.violations


@cocotb.test()
async def replay(dut: Any) -> None:
    """The replay named in CLEW_REPLAY, near and far; the outcomes go to the file it names."""
    order = json.loads(os.environ["CLEW_REPLAY"])
    bench, transport, backdoor = await _start(dut, watchdog_cycles=20_000_000)

    def body() -> dict[str, Any]:
        accelerator = Accelerator(transport)
        plan = plan_of(Path(order["traces"]), config=CONFIG, concurrent=order["concurrent"])
        monitor = MemoryMonitor(backdoor)
        outcomes = {}
        for place, name in enumerate(("near", "far")):
            began = time.perf_counter()
            outcome = run(plan, place=place, accelerator=accelerator, monitor=monitor)
            outcomes[name] = dataclasses.asdict(outcome)
            cocotb.log.info("%s: %d batches in %.1f s", name, len(plan.batches), time.perf_counter() - began)
        outcomes["violations"] = accelerator.read_register("COUNT_VIOLATIONS")
        return outcomes

    outcomes = await bridge(body)()
    assert not bench.violations
    assert outcomes["violations"] == 0
    Path(order["outcome"]).write_text(json.dumps(outcomes))
