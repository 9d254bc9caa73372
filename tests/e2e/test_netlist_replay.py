"""The comparison that holds a netlist against its RTL; netlists themselves take minutes (`make netlist`)."""

from __future__ import annotations

import copy
import dataclasses

import pytest

from firmware_py.compare import ReplayComparison, read_files
from firmware_py.errors import InternalError
from firmware_py.fpga import netlist_replay
from firmware_py.fpga.netlist_replay import (
    NetlistReplay,
    RtlReplay,
    replay_on_netlist,
    replay_on_rtl,
    require_same,
)
from hdl.config import named_config
from sim.board import BoardModel, board_library

from .replays import write_traces

_NAME = "small"


@pytest.fixture(scope="module")
def rtl(tmp_path_factory: pytest.TempPathFactory) -> RtlReplay:
    trace = tmp_path_factory.mktemp("traces") / "random.jsonl"
    write_traces(trace, seed=3, nodes=8)
    return replay_on_rtl(
        read_files([trace]), _NAME, announce=lambda text: None, progress=lambda name, done, total: None
    )


def _replayed(rtl: RtlReplay) -> NetlistReplay:
    """The replay, with the RTL in place of a netlist."""
    return replay_on_netlist(
        rtl,
        board_library(named_config(_NAME)),
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )


def test_the_rtl_is_itself(rtl: RtlReplay) -> None:
    found = _replayed(rtl)
    near, far = rtl.comparison.near, rtl.comparison.far
    assert found.walks == 2 * len(near.run.answers) >= 10
    assert found.batch_cycles == near.replay_cycles + far.replay_cycles > 1000
    assert found.cycles_per_second > 0


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("answers", "netlist: far, answers"),
        ("walk_cycles", "netlist: far, cycles of walks"),
        ("batch_cycles", "netlist: far, cycles of batches"),
        ("memory_differs", "netlist: far, memory afterwards"),
        ("files", "netlist: verdicts"),
    ],
)
def test_any_difference_is_an_error(what: str, message: str, rtl: RtlReplay) -> None:
    other = copy.deepcopy(rtl.comparison)
    require_same(rtl.comparison, other, "netlist")
    run = other.far.run
    if what == "answers":
        run.answers[-1] = dataclasses.replace(run.answers[-1], hops=run.answers[-1].hops + 1)
    elif what == "memory_differs":
        run.memory_differs.append(1)
    elif what == "files":
        other.files[0].verdicts.wrong += 1
    else:
        getattr(run, what)[-1] += 1
    with pytest.raises(InternalError, match=message):
        require_same(rtl.comparison, other, "netlist")


def test_a_figure_of_the_document_alone_is_an_error(rtl: RtlReplay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The netlist counts a read more."""

    def spoiled(*arguments: object, **options: object) -> ReplayComparison:
        far = rtl.comparison.far
        counters = {**far.counters, "reads": far.counters["reads"] + 1}
        return dataclasses.replace(rtl.comparison, far=dataclasses.replace(far, counters=counters))

    monkeypatch.setattr(netlist_replay, "_driven", spoiled)
    with pytest.raises(InternalError, match="the netlist is not the RTL: the documents differ"):
        _replayed(rtl)


def test_a_hang_is_an_error(rtl: RtlReplay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A netlist that takes more than twice the cycles that the RTL took in all has its line cut."""
    stuck: list[bool] = []

    class Stuck(BoardModel):
        """A board that is in its first batch for ever."""

        @property
        def cycle(self) -> int:
            if self.busy:
                stuck.append(True)
            return super().cycle + (2 * rtl.cycles if stuck else 0)

    monkeypatch.setattr(netlist_replay, "BoardModel", Stuck)
    with pytest.raises(InternalError, match=r"the netlist is not the RTL: .*: the line is gone"):
        _replayed(rtl)
    assert stuck
