"""What a board gives of a replay, on the fake accelerator: loops by histogram, counts, and what it lacks."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from firmware_py.board import Board, board_machine, not_measured
from firmware_py.compare import compare, read_files
from firmware_py.errors import InputError
from firmware_py.far_help import parse_help
from firmware_py.image import CreationOrder
from firmware_py.ledger import loops
from firmware_py.machine import Machine
from firmware_py.place import Place
from firmware_py.programs import default_image
from hdl.config import DesignConfig, HistogramConfig, named_config
from hdl.layouts import RefreshMode
from tests.e2e.replays import plan_of, write_traces

from .fake_accelerator import FakeAccelerator

CONFIG = dataclasses.replace(named_config("simulation"), histogram=HistogramConfig(bins=512), checker=True)


class FakeBoard(FakeAccelerator):
    """The registers of a board: counters, and histograms made from the hops."""

    violations = 0

    def counters(self) -> dict[str, int]:
        names = ("reads", "writes", "row_hits", "row_closed", "row_conflicts", "refreshes", "cycles")
        return {name: number for number, name in enumerate(names)}

    def read_register(self, name: str) -> int:
        assert name == "COUNT_VIOLATIONS"
        return self.violations

    def loop_histogram(self, place: int, channel: int = 0) -> NDArray[np.int64]:
        hops = self.hops()
        mine = hops[(hops["place"] == place) & (hops["channel"] == channel)]
        found = loops(
            batch=np.zeros(len(mine)),
            **{name: mine[name] for name in ("cycle", "context", "event", "address")},
        )
        return np.bincount(np.minimum(found.cycles, 511), minlength=512)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "random.jsonl"
    write_traces(path, seed=5, nodes=30)
    return path


@pytest.mark.parametrize("place", [0, 1])
def test_a_board_tells_what_a_simulation_does_as_far_as_it_can(traces: Path, place: int) -> None:
    plan = plan_of(traces, config=CONFIG, concurrent=1)
    where = Place.near("memory", "v100_hbm2", CONFIG)
    if place:
        where = Place.far("v100_hbm2", CONFIG, far_help=parse_help(""))
    given = {"name": "here", "program": default_image(), "refresh": RefreshMode.NONE}
    fake = FakeAccelerator(CONFIG)
    model = Machine(driver=fake, monitor=fake).measure(plan, where, **given, progress=lambda *steps: None)
    steps: list[tuple[str, int, int]] = []
    board = Board(accelerator=FakeBoard(CONFIG), config=CONFIG)  # pyright: ignore[reportArgumentType]
    found = board.measure(plan, where, **given, progress=lambda *step: steps.append(step))
    for same in ("walk", "reads_per_walk", "loop", "replay_cycles", "channel_reads"):
        assert getattr(found, same) == getattr(model, same), same
    assert found.run.answers == model.run.answers
    assert found.violations is not None and found.violations.total() == 0
    assert found.counters["row_hits"] == 2 and "cycles" not in found.counters
    assert found.rows is found.bound_mean is found.stores is found.walks_per_second is None
    assert steps[-1] == ("here", len(plan.batches), len(plan.batches))


def test_a_broken_rule_that_the_design_saw_is_a_failure(traces: Path) -> None:
    fake = FakeBoard(CONFIG)
    fake.violations = 3
    board = Board(accelerator=fake, config=CONFIG)  # pyright: ignore[reportArgumentType]
    result = compare(
        read_files([traces]),
        config=CONFIG,
        far="v100_hbm2",
        concurrent=1,
        program=default_image(),
        layout=CreationOrder(),
        open_machine=board_machine(board),
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    assert result.violations == 6
    assert result.failures[0] == "near: 3 protocol violations: seen by the design's checker 3"


def test_a_board_has_one_design(traces: Path) -> None:
    board = Board(accelerator=FakeBoard(CONFIG), config=CONFIG)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="a board has no other design: expected a far place without a cache"):
        with board_machine(board)(DesignConfig(), lambda text: None):
            pass


def test_what_is_missing_depends_on_the_design() -> None:
    assert {"loop_cycles, loop_ns", "violations"} <= not_measured(named_config("small")).keys()
    assert not {"loop_cycles, loop_ns", "violations"} & not_measured(CONFIG).keys()
