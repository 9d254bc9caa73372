"""The public Python API on the compiled design."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firmware_py import Accelerator, InputError, SimulatedAccelerator, TraceError
from firmware_py.compare import read_files
from firmware_py.driver import Accelerator as Driver
from firmware_py.machine import compiled_machine
from firmware_py.report.document import document
from firmware_py.settings import ReplaySettings
from sim.trace.recorder import Recorder
from sim.trace.searches.game24 import Game24, beam


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "game24.jsonl"
    with Recorder(path) as trace:
        trace.begin("4 5 6 10", algorithm="beam")
        trace.end(beam(trace, Game24((4, 5, 6, 10)), width=3).status)
    return path


def test_comparing_twice_on_one_accelerator_is_comparing_on_a_new_one(trace_file: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    with Accelerator.simulate("hbm2_2000") as clew:
        assert isinstance(clew, SimulatedAccelerator) and isinstance(clew, Driver)
        assert repr(clew) == (
            "<SimulatedAccelerator: 1 channel of memory, 512 MiB in all, 16 contexts a walker, "
            "1 cycle = 1 ns, hbm2_2000, simulated>"
        )
        clew.write_memory(1, np.full((4, 8), 0xDEADBEEF, dtype=np.uint32))
        first = clew.compare(
            str(trace_file),
            concurrent=2,
            progress=lambda name, done, total: steps.append((name, done, total)),
        )
        clew.compare([trace_file], far="pcie3_dma_read", program="climb_compressed", refresh="none")
        again = clew.compare([trace_file], concurrent=2)
    assert first.good and {name for name, _, _ in steps} == {"near", "far"}
    fresh = ReplaySettings(concurrent=2).compare(
        read_files([trace_file]),
        config=clew.config,
        open_machine=compiled_machine,
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    assert first.to_dict() == again.to_dict() == document(fresh)


def test_errors_are_those_that_are_documented(trace_file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown memory preset 'sram'"):
        Accelerator.simulate("sram")
    with Accelerator.simulate() as clew:
        # A bad setting is told before a file is read.
        with pytest.raises(InputError, match="unknown far preset 'moon'"):
            clew.compare(tmp_path / "no.jsonl", far="moon")
        with pytest.raises(FileNotFoundError):
            clew.compare(tmp_path / "no.jsonl")
        with pytest.raises(InputError, match="no trace file was given"):
            clew.compare([])
        (tmp_path / "bad.jsonl").write_text("nothing")
        with pytest.raises(TraceError, match=r"bad\.jsonl: content: expected one of the known kinds"):
            clew.compare(tmp_path / "bad.jsonl")
    clew.close()
