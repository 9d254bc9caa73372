"""The whole design behind an AXI port, compiled: isolated loops, copies in bursts, and a comparison."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware_py import commands
from firmware_py.axi_port import AXI_PORT, axi_rows, axi_times, behind_axi_port, isolated_cycles
from firmware_py.bench.design import isolated_loops
from firmware_py.compare import read_files
from firmware_py.design import design_for
from firmware_py.driver import Accelerator
from firmware_py.errors import InputError
from firmware_py.machine import compiled_machine
from firmware_py.paths import far_path
from firmware_py.report.document import document
from firmware_py.report.outputs import Outputs
from firmware_py.report.table import print_comparison
from firmware_py.settings import ReplaySettings
from firmware_py.transport.inprocess import InProcessTransport
from hdl.layouts import RefreshMode, RowClass
from hdl.registers import SCRATCHPAD_WINDOW
from sim.compiled import CompiledModel
from tests.compare_schema import require_schema

from .replays import write_traces

CONFIG = design_for("hbm2_2000")
BEHIND = behind_axi_port(CONFIG)


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[CompiledModel, Accelerator]]:
    with CompiledModel(BEHIND) as model:
        yield model, Accelerator(InProcessTransport(model))


def test_the_isolated_loop_is_the_published_latency_and_what_the_port_takes(
    machine: tuple[CompiledModel, Accelerator],
) -> None:
    model, accelerator = machine
    model.set_axi_times(axi_times(BEHIND, RefreshMode.NONE))
    far = far_path("v100_hbm2", CONFIG)
    measured = isolated_loops(model, accelerator, BEHIND, place=0, far=far)
    assert measured == {
        row_class: isolated_cycles(BEHIND, state)
        for row_class, state in (
            (RowClass.HIT, "hit"),
            (RowClass.CLOSED, "closed"),
            (RowClass.CONFLICT, "conflict"),
        )
    }
    assert measured[RowClass.CLOSED] == round(axi_rows()["closed"].published_ns) + 7


def test_the_isolated_loop_of_a_slower_walker() -> None:
    """Measured like the one above, on a design that no other test compiles."""
    slower = behind_axi_port(design_for("hbm2_2000", clock_ratio=2))
    assert [isolated_cycles(slower, state) for state in ("hit", "closed", "conflict")] == [118, 132, 148]


def test_copies_cross_the_port_and_back(machine: tuple[CompiledModel, Accelerator]) -> None:
    """In bursts: three times as many atoms as may be on the way take less than three latencies each way."""
    model, accelerator = machine
    model.set_axi_times(axi_times(BEHIND, RefreshMode.NONE))
    accelerator.set_link(latency_up=0, latency_down=0)
    count, there, here = 192, 1000 + 7, 300
    data = np.random.default_rng(7).integers(1 << 32, size=(count, 8), dtype=np.uint32)
    model.write_block(SCRATCHPAD_WINDOW + 32 * here, data)
    for to_memory, scratchpad in ((True, here), (False, here + count)):
        copy = commands.copy(
            to_memory=to_memory, memory_address=there, scratchpad_address=scratchpad, count=count
        )
        done = accelerator.run_batch(copy)
        # 450 million beats a second: 2.22 cycles each.
        assert 2.22 * count < done.cycles < 2.22 * count + 400
    assert np.array_equal(model.fetch(there, count), data)
    copied = model.read_block(SCRATCHPAD_WINDOW + 32 * (here + count), data.size)
    assert np.array_equal(copied.reshape(-1, 8), data)
    accelerator.reset_counters()
    accelerator.run_batch(
        commands.copy(to_memory=False, memory_address=there, scratchpad_address=here, count=count)
    )
    assert accelerator.counters()["reads"] == count


@pytest.mark.parametrize("program", ["climb", "climb_compressed"])
def test_a_comparison(program: str, tmp_path: Path) -> None:
    """Every verdict right; what nobody sees there is null; every output is written."""
    traces = tmp_path / "searches.jsonl"
    write_traces(traces, seed=5, nodes=40)
    names = {
        "json": "c.json",
        "html": "c.html",
        "perfetto": "c.perfetto",
        "commands": "c.csv",
        "plot": "c.svg",
    }
    outputs = Outputs(**{option: tmp_path / name for option, name in names.items()})
    comparison = ReplaySettings(near=AXI_PORT, program=program, concurrent=3).compare(
        read_files([traces]),
        config=CONFIG,
        bare_far=True,
        open_machine=compiled_machine,
        announce=lambda text: None,
        progress=lambda place, done, of: None,
    )
    assert comparison.failures == []
    assert comparison.near.run.answers == comparison.far.run.answers
    least = round(axi_rows()["hit"].published_ns) + 7
    assert comparison.near.loop.min is not None and comparison.near.loop.min >= least
    outputs.write(comparison, announce=lambda text: None)
    assert all((tmp_path / name).exists() or list(tmp_path.glob("c*.svg")) for name in names.values())
    found: dict[str, Any] = document(comparison)
    require_schema(found)
    near, details = found["paths"]["near"], found["details"]
    assert near["bound_ns"]["mean"] is near["ratio_to_bound"] is near["row"]["hit"] is None
    assert details["banks"]["near"] is details["energy"]["near"] is None
    assert "device" not in details["layers"]["near"] and details["layers"]["near"]["loop"]["ns"]["mean"]
    assert details["near_place"]["published_ns_input"] == {"hit": 106.7, "closed": 122.2, "conflict": 137.8}
    assert details["channels"][0]["near"]["reads"] == details["channels"][0]["far"]["reads"] > 0
    text = io.StringIO()
    print_comparison(comparison, Console(file=text, width=200))
    assert "near: axi4" in text.getvalue() and "not seen behind an AXI port" in text.getvalue()


@pytest.mark.parametrize(
    ("memory", "options", "message"),
    [
        ("hbm3_6400", {}, "near 'axi4' was measured on hbm2_2000: expected that memory, not hbm3_6400"),
        ("hbm2_2000", {"ecc": True}, "near 'axi4': controller.ecc is True: expected False"),
        ("hbm2_2000", {"refresh": "per_bank"}, "near 'axi4' has no per-bank refresh"),
    ],
)
def test_what_such_a_place_cannot_have(memory: str, options: dict[str, Any], message: str) -> None:
    refresh = options.pop("refresh", "all_bank")
    far = "v100_hbm2" if memory == "hbm2_2000" else "gh200_hbm3"
    with pytest.raises(InputError, match=message):
        ReplaySettings(near=AXI_PORT, far=far, refresh=refresh).require_usable(design_for(memory, **options))
