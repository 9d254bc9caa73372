"""The comparison that holds a netlist against its RTL; netlists themselves take minutes (`make netlist`)."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_py.compare import ReplayComparison, read_files
from firmware_py.errors import InternalError
from firmware_py.fpga import netlist_replay
from firmware_py.fpga.netlist_replay import NetlistReplay, replay_on_netlist, require_same
from hdl.config import named_config
from sim.board import BoardModel, board_library

from .replays import write_traces


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "random.jsonl"
    write_traces(path, seed=3, nodes=8)
    return path


def _replayed(trace: Path) -> NetlistReplay:
    """The replay, with the RTL in place of a netlist."""
    return replay_on_netlist(
        read_files([trace]),
        "small",
        library=board_library(named_config("small")),
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )


@contextmanager
def _kept() -> Iterator[list[ReplayComparison]]:
    """The comparisons that a replay makes on boards."""
    driven = netlist_replay._driven
    kept: list[ReplayComparison] = []

    def keep(*arguments, **options) -> ReplayComparison:
        kept.append(driven(*arguments, **options))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(netlist_replay, "_driven", keep)
        yield kept


@pytest.fixture(scope="module")
def comparison(trace: Path) -> ReplayComparison:
    """That of a board; the RTL is itself."""
    with _kept() as kept:
        found = _replayed(trace)
    rtl, netlist = kept
    assert found.walks == 2 * len(rtl.near.run.answers) >= 10
    assert found.batch_cycles == rtl.near.replay_cycles + rtl.far.replay_cycles > 1000
    assert found.cycles_per_second > 0
    require_same(rtl, netlist, "itself")
    return rtl


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
def test_any_difference_is_an_error(what: str, message: str, comparison: ReplayComparison) -> None:
    other = copy.deepcopy(comparison)
    require_same(comparison, other, "netlist")
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
        require_same(comparison, other, "netlist")


def test_a_figure_of_the_document_alone_is_an_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second board counts a read more."""
    driven = netlist_replay._driven
    found: list[ReplayComparison] = []

    def spoiled(*arguments, **options) -> ReplayComparison:
        found.append(driven(*arguments, **options))
        far = found[-1].far
        counters = {**far.counters, "reads": far.counters["reads"] + 1}
        changed = dataclasses.replace(found[-1], far=dataclasses.replace(far, counters=counters))
        return changed if len(found) == 2 else found[0]

    monkeypatch.setattr(netlist_replay, "_driven", spoiled)
    with pytest.raises(InternalError, match="the netlist is not the RTL: the documents differ"):
        _replayed(trace)


def test_a_hang_is_an_error(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A netlist that takes more than twice the cycles that the RTL took in all has its line cut."""
    made: list[BoardModel] = []

    class Slow(BoardModel):
        """A board; the second, which is the netlist, is in its first batch for ever."""

        def __init__(self, library: Path) -> None:
            made.append(self)
            self.stuck = False
            super().__init__(library)

        @property
        def cycle(self) -> int:
            self.stuck = self.stuck or (self is made[-1] and len(made) == 2 and self.busy)
            return super().cycle + (1 << 40 if self.stuck else 0)

    monkeypatch.setattr(netlist_replay, "BoardModel", Slow)
    with pytest.raises(InternalError, match=r"the netlist is not the RTL: .*: the line is gone"):
        _replayed(trace)
    assert len(made) == 2 and made[1].stuck
