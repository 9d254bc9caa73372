"""The compiled design of the board: the options that make its clock fast cost the cycles that they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from firmware_py.bench.design import isolated_loops
from firmware_py.compare import compare, read_files
from firmware_py.driver import Accelerator
from firmware_py.image import CreationOrder
from firmware_py.loop_parts import RowState, loop_parts
from firmware_py.machine import Machine
from firmware_py.paths import far_path
from firmware_py.programs import default_image
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import CONFIGS
from hdl.layouts import RefreshMode, RowClass
from sim.compiled import CompiledModel

from .pause import pause
from .replays import plan_of, run, write_traces

#: With memory that the host sees at once: the same cycles, and what is compared is all of it.
CONFIG = replace(CONFIGS["ulx3s"], memory=replace(CONFIGS["ulx3s"].memory, storage="dpi"))
FAR = "v100_hbm2"
STATES: dict[RowClass, RowState] = {
    RowClass.HIT: "hit",
    RowClass.CLOSED: "closed",
    RowClass.CONFLICT: "conflict",
}


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(CONFIG) as model:
        yield model


@pytest.fixture
def accelerator(model: CompiledModel) -> Accelerator:
    return Accelerator(InProcessTransport(model))


def test_the_isolated_loops_are_the_sums_of_their_parts(
    model: CompiledModel, accelerator: Accelerator
) -> None:
    far = far_path(FAR, CONFIG)
    near_loops, far_loops = (
        isolated_loops(model, accelerator, CONFIG, place=place, far=far) for place in (0, 1)
    )
    assert near_loops == {row: sum(loop_parts(CONFIG, state).values()) for row, state in STATES.items()}
    assert far_loops[RowClass.CLOSED] == far.isolated_cycles


@pytest.mark.parametrize("refresh", [RefreshMode.ALL_BANK, RefreshMode.PER_BANK])
def test_near_and_far_find_the_same_and_break_no_rule(
    refresh: RefreshMode, model: CompiledModel, accelerator: Accelerator, tmp_path: Path
) -> None:
    trace = tmp_path / "search.jsonl"
    write_traces(trace, seed=5, nodes=60)

    @contextmanager
    def open_machine(*_: object) -> Iterator[Machine]:
        yield Machine(driver=accelerator, monitor=model)

    found = compare(
        read_files([trace]),
        config=CONFIG,
        far=FAR,
        concurrent=2,
        program=default_image(),
        layout=CreationOrder(),
        refresh=refresh,
        open_machine=open_machine,
        announce=lambda _: None,
        progress=lambda *_: None,
    )
    assert not found.failures
    assert found.violations == 0
    assert found.files[0].verdicts.checked > 0


def test_the_same_replay_takes_the_same_cycles_whatever_was_before(
    model: CompiledModel, accelerator: Accelerator, tmp_path: Path
) -> None:
    """What is on the way between two blocks counts as not idle."""
    trace = tmp_path / "search.jsonl"
    write_traces(trace, seed=6, nodes=30)
    plan = plan_of(trace, config=CONFIG, concurrent=2)
    for place in (0, 1):
        first = run(plan, place=place, accelerator=accelerator, monitor=model)
        assert not first.wrong and not first.not_golden and not first.memory_differs
        pause(accelerator, model, 7)
        assert run(plan, place=place, accelerator=accelerator, monitor=model) == first
