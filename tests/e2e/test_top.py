"""The whole design on both simulators: the same driver, the same replay, the same cycles."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from firmware_py.driver import Accelerator
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.registers import REGISTER_BY_NAME
from sim.compiled import CompiledModel, design_verilog
from sim.verilator import STORAGE_SOURCES, run_cocotb

from .pause import pause
from .replays import plan_of, run, write_traces

pytestmark = pytest.mark.cocotb


def _cocotb(testcase: str, **env: str) -> None:
    run_cocotb(
        design_verilog(named_config("testbench")).read_text(),
        toplevel="clew",
        module="tests.e2e.cocotb_top",
        testcase=testcase,
        env=env,
        extra_sources=STORAGE_SOURCES,
    )


def test_host_port() -> None:
    _cocotb("host_port")


@pytest.mark.parametrize("concurrent", [1, 3])
def test_both_simulators_take_the_same_cycles(tmp_path: Path, concurrent: int) -> None:
    traces = tmp_path / "random.jsonl"
    write_traces(traces, seed=20261130, nodes=60)
    config = named_config("simulation")
    plan = plan_of(traces, config=config, concurrent=concurrent)
    assert len(plan.walks) > 40
    with CompiledModel(config) as model:
        accelerator = Accelerator(InProcessTransport(model))
        compiled = {
            name: dataclasses.asdict(run(plan, place=place, accelerator=accelerator, monitor=model))
            for place, name in enumerate(("near", "far"))
        }
    outcome = tmp_path / "outcome.json"
    order = {"traces": str(traces), "concurrent": concurrent, "outcome": str(outcome)}
    _cocotb("replay", CLEW_REPLAY=json.dumps(order))
    other = json.loads(outcome.read_text())
    for name, run_of in compiled.items():
        assert run_of["wrong"] == run_of["not_golden"] == run_of["memory_differs"] == []
        assert other[name] == run_of
    assert compiled["near"]["batch_cycles"] != compiled["far"]["batch_cycles"]


def test_a_replay_repeats_itself_exactly(tmp_path: Path) -> None:
    """On one model a second time, where refresh and bank state differ beforehand, and on a new model."""
    traces = tmp_path / "random.jsonl"
    write_traces(traces, seed=7, nodes=40)
    config = named_config("simulation")
    plan = plan_of(traces, config=config, concurrent=2)
    outcomes = []
    for repeats in (2, 1):
        with CompiledModel(config) as model:
            accelerator = Accelerator(InProcessTransport(model))
            for _ in range(repeats):
                outcomes.append(run(plan, place=0, accelerator=accelerator, monitor=model))
                pause(accelerator, model, 12_345)
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_interrupt_is_the_only_wait() -> None:
    """`run` stops at the interrupt, and without one after the given cycles."""
    with CompiledModel(named_config("simulation")) as model:
        before = model.cycle
        assert not model.run(1000)
        assert model.cycle - before == 1000
        assert model.read_block(REGISTER_BY_NAME["STATUS"].offset, 1)[0] == 0
