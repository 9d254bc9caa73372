"""Half a million cycles of the soak; `make soak` runs ten million and other configurations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hdl.config import named_config
from hdl.layouts import MemoryStatus, RefreshMode, RowOp
from hdl.memory.wait_bound import wait_bound
from sim.compiled_memory import NEVER, CompiledMemory, requests

from .soak import Soak, Wait, dependent_writes

_CYCLES = 500_000
_SEED = int(os.environ.get("CLEW_SEED") or 20_26)


@pytest.fixture
def memory() -> Iterator[CompiledMemory]:
    with CompiledMemory(named_config("simulation")) as memory:
        yield memory


def test_mixed_traffic_breaks_no_rule_and_is_answered_right(memory: CompiledMemory) -> None:
    print(f"seed {_SEED} (repeat with CLEW_SEED={_SEED})")
    soak = Soak(memory, _SEED)
    soak.run(_CYCLES)
    # The soak was none if it did not come to these.
    assert soak.cycles >= _CYCLES
    assert set(soak.statuses) == {MemoryStatus.OK, MemoryStatus.MISMATCH, MemoryStatus.OUT_OF_RANGE}
    assert soak.statuses[MemoryStatus.OK] > _CYCLES // 20
    assert soak.reads is not None and soak.writes is not None
    assert soak.reads.cycles > 500 and soak.writes.cycles > 500
    assert min(soak.row_ops[op] for op in (RowOp.ACTIVATE, RowOp.REFRESH_ALL, RowOp.REFRESH_BANK)) > 0


def test_the_same_seed_takes_the_same_cycles(memory: CompiledMemory) -> None:
    first = Soak(memory, _SEED)
    first.run(20_000)
    with CompiledMemory(named_config("simulation")) as fresh:
        second = Soak(fresh, _SEED)
        second.run(20_000)
        # All but the restart at the start, which finds another state of the timers.
        assert (second.statuses, second.row_ops) == (first.statuses, first.row_ops)


def test_a_flipped_bit_in_the_storage_is_found(memory: CompiledMemory) -> None:
    soak = Soak(memory, _SEED)
    soak.run(1)
    memory.flip(soak.traffic.universe, 7)
    with pytest.raises(AssertionError, match=r"wrong data|holds"):
        soak.run(20_000)


def test_a_lost_refresh_is_found(memory: CompiledMemory) -> None:
    # The commands come from a memory without refresh; the run says that it was on.
    interval = memory.config.memory.timing["tREFI"]
    run = memory.run(requests(np.arange(8)), cycles=20 * interval, refresh=RefreshMode.NONE)
    soak = Soak(memory, _SEED)
    soak.record(dataclasses.replace(run, refresh_window=(run.begin, run.end)), restarted=True, stalled=False)
    with pytest.raises(AssertionError, match="refresh overdue"):
        soak.check()


def test_what_the_harness_finds_is_not_passed_over(memory: CompiledMemory) -> None:
    run = memory.run(requests(np.arange(8)))
    for fault in ({"faults": ("cycle 5: wrong data",)}, {"violations": ("cycle 5: tRP",)}):
        with pytest.raises(AssertionError, match="cycle 5"):
            Soak(memory, _SEED).record(dataclasses.replace(run, **fault), restarted=True, stalled=False)
    late = run.answers.copy()
    late["answered"][3] += wait_bound(memory.config, run.refresh)
    with pytest.raises(AssertionError, match="a read waited"):
        Soak(memory, _SEED).record(dataclasses.replace(run, answers=late), restarted=True, stalled=False)
    unanswered = run.answers.copy()
    unanswered["answered"][3] = NEVER
    with pytest.raises(AssertionError, match="without an answer"):
        Soak(memory, _SEED).record(
            dataclasses.replace(run, answers=unanswered), restarted=True, stalled=False
        )


def test_writes_that_depend_on_what_is_there() -> None:
    masks = [0xFFFFFFFF, 0xFF00FF00, 0, 0xFFFFFF01, 0x80000000, 0xFFFFFFFF]
    writes = requests(np.arange(6), write=1, mask=masks, conditional=[0, 0, 0, 0, 0, 1])
    assert dependent_writes(writes, ecc=False).tolist() == [False] * 5 + [True]
    assert dependent_writes(writes, ecc=True).tolist() == [False, False, False, True, True, True]
    # A round may hold no write at all.
    assert dependent_writes(writes[:0], ecc=True).tolist() == []


def test_a_write_that_is_late_or_lost_or_comes_twice_is_found(memory: CompiledMemory) -> None:
    promised = wait_bound(memory.config, RefreshMode.NONE)
    memory.run(requests([]), cycles=promised)
    # Silence behind them, so that none is left in the write buffer.
    run = memory.run(requests(np.arange(8), write=1), cycles=10_000)
    written = np.flatnonzero((run.accesses["cycle"] >= run.begin) & (run.accesses["write"] == 1))
    assert len(written) == 8

    def check(*, stalled: bool = False, **logs: NDArray[np.void]) -> Wait | None:
        soak = Soak(memory, _SEED)
        soak.record(dataclasses.replace(run, **logs), restarted=True, stalled=stalled)
        soak.check()
        return soak.writes

    wait = check()
    assert wait is not None and 0 < wait.cycles < wait.promised == promised
    for accesses in (
        np.delete(run.accesses, written[5]),
        np.insert(run.accesses, written[5], run.accesses[written[5]]),
    ):
        with pytest.raises(AssertionError, match="those of 8 writes"):
            check(accesses=accesses)
    late = run.answers.copy()
    late["accepted"][3] -= promised
    with pytest.raises(AssertionError, match="a write waited"):
        check(answers=late)
    # Who does not take answers may wait for longer.
    assert check(answers=late, stalled=True) is None


@pytest.mark.parametrize("ratio", [2, 4])
def test_the_bounds_hold_with_a_slower_front_end(ratio: int) -> None:
    config = dataclasses.replace(named_config("simulation"), clock_ratio=ratio)
    for mode in RefreshMode:
        # A slow cycle is as much as the memory's own needs at most, and is needed in part.
        fast = wait_bound(named_config("simulation"), mode)
        assert fast < wait_bound(config, mode) <= ratio * (fast + 2)
    with CompiledMemory(config) as memory:
        soak = Soak(memory, _SEED)
        soak.run(_CYCLES // 5)
        assert soak.reads is not None and soak.writes is not None
        assert soak.reads.cycles > 500 and soak.writes.cycles > 500
