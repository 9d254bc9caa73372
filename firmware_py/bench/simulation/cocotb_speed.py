"""How fast cocotb simulates the whole design, by a replay of the same driver in a process of its own."""

from __future__ import annotations

import io
import json
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from hdl.config import named_config
from sim.compiled import design_verilog
from sim.verilator import STORAGE_SOURCES, run_cocotb

from .replay import write_replay

__all__ = ["REPLAY_VARIABLE", "cocotb_speed"]

#: Environment variable with the cocotb replay's order: the trace file and where its figure goes.
REPLAY_VARIABLE = "CLEW_BENCH_REPLAY"
#: Levels of the tree that is searched.
_DEPTH = 4


def cocotb_speed(announce: Callable[[str], None]) -> float:
    """Simulated cycles for each processor second of waiting for batches, wake-ups sparse."""
    announce("replaying a depth-first search under cocotb")
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder) / "replay.jsonl", Path(folder) / "speed.json"
        write_replay(path, depth=_DEPTH)
        with _quiet():
            run_cocotb(
                design_verilog(named_config("testbench")).read_text(encoding="utf-8"),
                toplevel="clew",
                module="firmware_py.bench.simulation.cocotb_replay",
                env={REPLAY_VARIABLE: json.dumps({"trace": str(path), "result": str(result)})},
                extra_sources=STORAGE_SOURCES,
            )
        return json.loads(result.read_text(encoding="utf-8"))["cycles_per_second"]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the log of build and testbench off the terminal; a failure still says what it was."""
    logging.disable(logging.INFO)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
