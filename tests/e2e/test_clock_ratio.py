"""The compiled design with a memory side on a slower clock: cycles, verdicts, and the same replay twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from firmware_py.bench.design import isolated_loops
from firmware_py.bench.simulation.replay import replay_plan, write_replay
from firmware_py.bench.walker.latency import bank_chains, measured_parts
from firmware_py.bench.walker.machine import climb_chains, walker_design
from firmware_py.compare import compare, read_files
from firmware_py.driver import Accelerator
from firmware_py.image import CreationOrder
from firmware_py.loop_parts import RowState, loop_parts
from firmware_py.machine import compiled_machine
from firmware_py.paths import far_path
from firmware_py.programs import default_image
from firmware_py.replay import run_plan
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig
from hdl.layouts import HopEvent, RefreshMode, RowClass
from sim.compiled import CompiledModel

from .pause import pause

FAR = "v100_hbm2"
STATES: dict[RowClass, RowState] = {
    RowClass.HIT: "hit",
    RowClass.CLOSED: "closed",
    RowClass.CONFLICT: "conflict",
}
#: One build each: the headline's ratio, and the other one with everything else that adds cycles.
DESIGNS = {
    "ratio_4": walker_design(clock_ratio=4),
    "ratio_2_stages_2_ecc": walker_design(clock_ratio=2, stages=2, ecc=True),
}


@dataclass(frozen=True)
class Machine:
    config: DesignConfig
    model: CompiledModel
    accelerator: Accelerator


@pytest.fixture(scope="module", params=DESIGNS)
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    config = DESIGNS[request.param]
    with CompiledModel(config) as model:
        yield Machine(config, model, Accelerator(InProcessTransport(model)))


def test_the_isolated_near_loop_is_the_sum_of_its_parts(machine: Machine) -> None:
    config = machine.config
    measured = isolated_loops(machine.model, machine.accelerator, config, place=0, far=far_path(FAR, config))
    assert measured == {row: sum(loop_parts(config, state).values()) for row, state in STATES.items()}


@pytest.mark.parametrize("preset", [FAR, "seed_conventional"])
def test_the_isolated_far_loop_takes_the_time_of_its_preset(machine: Machine, preset: str) -> None:
    config = machine.config
    far = far_path(preset, config)
    assert abs(far.isolated_cycles * far.clock_ns - far.path.published_ns) <= config.clock_ratio / 2
    machine.accelerator.set_link(latency_up=far.latency_up, latency_down=far.latency_down)
    for chain in islice(bank_chains(config), 2):
        run = climb_chains(machine.model, [chain], RefreshMode.NONE, place=1)
        closed = run.accesses["row_class"] == RowClass.CLOSED.value
        loops = np.diff(run.hops["cycle"].astype(np.int64))[closed]
        # The first request comes at any time within a slow cycle, later ones when it is best.
        assert set(loops[1:].tolist()) == {far.isolated_cycles} and len(loops) == len(chain) // 2
        assert far.isolated_cycles <= loops[0] < far.isolated_cycles + config.clock_ratio


def test_every_hop_is_logged_once_and_takes_its_parts(machine: Machine) -> None:
    for chain in islice(bank_chains(machine.config), 3):
        run = climb_chains(machine.model, [chain], RefreshMode.NONE)
        assert run.hops["event"].tolist() == [HopEvent.REQUEST.value] * len(chain) + [HopEvent.VERDICT.value]
        found = list(measured_parts(machine.config, run))
        assert {row for row, _ in found} == {RowClass.HIT, RowClass.CLOSED} and len(found) == len(chain)
        for row, parts in found:
            assert parts == loop_parts(machine.config, STATES[row])


def test_the_walker_reports_its_cycles_in_cycles_of_the_memory(machine: Machine) -> None:
    """From the launch's slow cycle, the one before the first request, to that of the verdict."""
    chain = next(bank_chains(machine.config))
    run = climb_chains(machine.model, [chain], RefreshMode.NONE)
    span = int(run.hops["cycle"][-1] - run.hops["cycle"][0])
    assert run.records["walker_cycles"].tolist() == [span + machine.config.clock_ratio]


def test_near_and_far_find_the_same_and_break_no_rule(machine: Machine, tmp_path: Path) -> None:
    trace = tmp_path / "search.jsonl"
    write_replay(trace, depth=4)
    for refresh in (RefreshMode.ALL_BANK, RefreshMode.PER_BANK):
        found = compare(
            read_files([trace]),
            config=machine.config,
            far=FAR,
            concurrent=1,
            program=default_image(),
            layout=CreationOrder(),
            refresh=refresh,
            open_machine=compiled_machine,
            announce=lambda _: None,
            progress=lambda *_: None,
        )
        assert not found.failures
        assert found.files[0].verdicts.checked == found.files[0].walks > 0


def test_the_same_replay_takes_the_same_cycles_whatever_was_before(machine: Machine, tmp_path: Path) -> None:
    trace = tmp_path / "search.jsonl"
    write_replay(trace, depth=3)
    plan = replay_plan(trace, machine.config)
    for place in (0, 1):
        cycles = []
        for before in range(2 * machine.config.clock_ratio):
            pause(machine.accelerator, machine.model, before)
            run = run_plan(
                plan, program=default_image(), place=place, driver=machine.accelerator, monitor=machine.model
            )
            cycles.append(run.batch_cycles.tolist())
            assert not run.wrong and not run.not_golden
        assert all(each == cycles[0] for each in cycles)
