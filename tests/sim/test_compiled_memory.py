"""The compiled memory: what a run offers and when, and that a scoreboard sees what a faulty memory does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hdl.config import named_config
from hdl.layouts import MemoryRequest, MemoryResponse, MemoryStatus, RefreshMode, Source
from hdl.memory.address import Place
from sim.bench.memory_port import Request, Scoreboard
from sim.bench.packing import Packing
from sim.compiled_memory import (
    ANSWER_RECORD,
    EXPECT_HELD,
    NEVER,
    CompiledMemory,
    Pauses,
    chain,
    compile_memory,
    requests,
)
from sim.model.command_checker import check

CONFIG = named_config("simulation")
TIMING = CONFIG.memory.timing
#: Cycles of the memory port over those of the device.
_PORT = 2


@pytest.fixture(scope="module")
def shared() -> Iterator[CompiledMemory]:
    with CompiledMemory(CONFIG) as memory:
        yield memory


@pytest.fixture
def memory(shared: CompiledMemory) -> CompiledMemory:
    shared.run(requests([]))  # nothing is buffered
    shared.clear()
    return shared


def _outstanding(run) -> int:
    """The most requests that were offered and not answered at once."""
    asked, done = np.sort(run.answers["offered"]), np.sort(run.answers["answered"])
    # An answer frees its place for the next cycle.
    return int(np.max(np.arange(1, len(asked) + 1) - np.searchsorted(done, asked, side="left")))


# -- What is offered when ---------------------------------------------------------------------------------


def test_a_lone_read_takes_the_time_of_its_row(memory: CompiledMemory) -> None:
    place = memory.map.encode(Place(np.int64(0), np.int64(3), np.int64(5), np.arange(2)))
    run = memory.run(chain(place, think=5))
    run.require_clean()
    assert run.latencies.tolist() == [TIMING.row_closed + _PORT, TIMING.row_hit + _PORT]
    assert run.answers["offered"][0] == run.answers["accepted"][0] == run.begin
    assert len(run.accesses) == 2 and run.end == run.answers["answered"].max() + 1
    assert not len(check(run.commands, TIMING, CONFIG.memory.organisation))


def test_requests_go_out_in_their_order_one_a_cycle_and_not_before_their_delay(
    memory: CompiledMemory,
) -> None:
    run = memory.run(requests(np.arange(6), delay=[0, 0, 40, 0, 0, 20]))
    run.require_clean()
    assert (run.answers["offered"] - run.begin).tolist() == [0, 1, 40, 2, 3, 20]


def test_a_chain_waits_for_its_answers_and_pauses_where_it_should(memory: CompiledMemory) -> None:
    rng = np.random.default_rng(1)
    asked = chain(rng.integers(1 << 16, size=40), chains=2, think=3, gap=100, every=5)
    run = memory.run(asked)
    run.require_clean()
    for n in range(2, 40):
        pause = 100 if n // 2 % 5 == 0 else 0
        after = run.answers["answered"][n - 2] + 3 + pause
        # One request a cycle: the other chain may be in the way.
        assert after <= run.answers["offered"][n] <= after + 1


@pytest.mark.parametrize("limit", [1, 7, 64, 96])
def test_the_limit_of_outstanding_requests_is_reached_and_kept(memory: CompiledMemory, limit: int) -> None:
    rng = np.random.default_rng(2)
    sources = np.resize([Source.HOST.value, Source.MOVER.value], 500)
    run = memory.run(requests(rng.integers(1 << 16, size=500), source=sources), outstanding=limit)
    run.require_clean()
    assert _outstanding(run) == limit


def test_nothing_is_offered_after_the_cycles_of_a_run(memory: CompiledMemory) -> None:
    run = memory.run(requests(np.arange(1000)), cycles=300)
    run.require_clean()
    offered = run.answers["offered"] != NEVER
    assert 0 < np.count_nonzero(offered) < 1000
    assert int(run.answers["offered"][offered].max()) < run.begin + 300 <= run.end
    assert np.array_equal(offered, run.answered)
    quiet = memory.run(requests([]), cycles=300)
    assert (quiet.end - quiet.begin, quiet.offering) == (300, 300)


def test_pauses_take_their_share_and_length(memory: CompiledMemory) -> None:
    stream = requests(np.arange(20_000) % 4096)
    run = memory.run(stream, cycles=20_000, idle=Pauses(share=0.75, length=20), seed=3)
    run.require_clean()
    offered = np.sort(run.answers["offered"][run.answered].astype(np.int64)) - run.begin
    # Three quarters of all cycles are pauses, and a port that takes one a cycle fills the others.
    assert len(offered) == pytest.approx(5000, rel=0.15)
    gaps = np.diff(offered)
    assert np.mean(gaps[gaps > 1] - 1) == pytest.approx(20, rel=0.2)
    stalled = memory.run(stream, cycles=20_000, stall=Pauses(share=0.75, length=20), seed=3)
    stalled.require_clean()
    taken = np.count_nonzero(stalled.answers["answered"] < stalled.begin + 20_000)
    assert taken == pytest.approx(5000, rel=0.15)


def test_the_same_run_takes_the_same_cycles_whatever_was_before(memory: CompiledMemory) -> None:
    rng = np.random.default_rng(4)
    asked = requests(rng.integers(1 << 12, size=3000), write=rng.random(3000) < 0.4)
    taken = []
    for before in range(3):
        memory.run(requests(rng.integers(1 << 14, size=137 * before), write=1, priority=1))
        run = memory.run(
            asked,
            refresh=RefreshMode.ALL_BANK,
            idle=Pauses(share=0.2),
            stall=Pauses(share=0.1),
            seed=9,
        )
        run.require_clean()
        taken.append(run.answers["answered"] - run.begin)
    assert np.array_equal(taken[0], taken[1]) and np.array_equal(taken[0], taken[2])
    other = memory.run(asked, refresh=RefreshMode.ALL_BANK, idle=Pauses(share=0.2), seed=10)
    assert not np.array_equal(other.answers["answered"] - other.begin, taken[0])


def test_refresh_is_what_a_run_asks_for(memory: CompiledMemory) -> None:
    cycles = 4 * TIMING["tREFI"]
    without = memory.run(requests([]), cycles=cycles)
    assert not len(without.commands[without.commands["cycle"] >= without.begin])
    assert without.refresh_window is None
    refreshed = memory.run(requests([]), cycles=cycles, refresh=RefreshMode.ALL_BANK)
    assert refreshed.refresh_window == (refreshed.begin, refreshed.end)
    assert len(refreshed.commands) >= 3 * 2
    # A run without a restart goes on with the refresh of the one before.
    going_on = memory.run(requests([]), cycles=cycles, restart=False)
    assert going_on.begin == refreshed.end
    assert going_on.refresh_window == (refreshed.begin, going_on.end)
    assert len(going_on.commands) >= 3 * 2


# -- What is answered -------------------------------------------------------------------------------------


def test_answers_are_those_of_the_other_scoreboard(memory: CompiledMemory) -> None:
    rng = np.random.default_rng(5)
    count = 4000
    conditional = rng.random(count) < 0.2
    write = conditional | (rng.random(count) < 0.4)
    word = np.uint32(0xF) << (4 * rng.integers(8, size=count)).astype(np.uint32)
    beyond = rng.random(count) < 0.05
    run = memory.run(
        requests(
            np.where(beyond, memory.map.atoms + 5, rng.integers(30, size=count)),
            write=write,
            conditional=np.where(conditional, rng.choice((1, EXPECT_HELD), size=count), 0),
            expected=rng.integers(2, size=count),
            mask=np.where(conditional, word, rng.integers(1 << 32, size=count, dtype=np.uint32)),
            data=rng.integers(2, size=(count, 8)),
        ),
        stall=Pauses(share=0.1),
    )
    run.require_clean()
    board = Scoreboard(atoms=memory.map.atoms)
    for n in np.argsort(run.answers["accepted"]):
        asked, answer = run.requests[n], run.answers[n]
        board.accept(
            Request(
                address=int(asked["address"]),
                tag=int(n),
                write=bool(asked["write"]),
                # One that expected what was there has expected it: the status says so.
                conditional=asked["conditional"] == 1,
                expected=int(asked["expected"]),
                data=int.from_bytes(asked["data"].tobytes(), "little"),
                mask=int(asked["mask"]),
            ),
            int(answer["accepted"]),
        )
        expectation = board._waiting[int(n)]
        assert answer["status"] == expectation.status.value
        if expectation.data is not None:
            assert int.from_bytes(answer["data"].tobytes(), "little") == expectation.data
    found = {MemoryStatus(int(status)) for status in run.answers["status"]}
    assert found == {MemoryStatus.OK, MemoryStatus.MISMATCH, MemoryStatus.OUT_OF_RANGE}
    memory.run(requests([]))  # the restart drains what is buffered
    assert np.array_equal(memory.fetch(0, 30), memory.reference(0, 30))
    assert memory.reference(0, 30).any()


def test_loaded_atoms_are_read(memory: CompiledMemory) -> None:
    atoms = np.arange(80, dtype=np.uint32).reshape(10, 8)
    memory.load(100, atoms)
    run = memory.run(requests(100 + np.arange(10)))
    run.require_clean()
    assert np.array_equal(run.answers["data"], atoms)
    memory.clear()
    assert not memory.fetch(100, 10).any() and not memory.reference(100, 10).any()


def test_bandwidth_counts_what_is_answered_while_requests_are_offered(memory: CompiledMemory) -> None:
    run = memory.run(requests(np.arange(100)), cycles=1000)
    assert run.bandwidth(TIMING) == pytest.approx(100 * 32 / 1000)
    first = int(run.answers["answered"].min()) - run.begin
    assert run.bandwidth(TIMING, after=first + 1) == pytest.approx(99 * 32 / (999 - first))


# -- A faulty memory --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faulty_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = []
    for name, layout in (("REQUEST", MemoryRequest), ("RESPONSE", MemoryResponse)):
        fields = Packing(layout).fields
        lines.append(f"`define {name}_WIDTH {max(low + width for low, width in fields.values())}")
        lines += [
            f"`define {name}_{path.removesuffix('.source').upper()} {low}"
            for path, (low, _) in fields.items()
            if not path.endswith(".context")
        ]
    design = tmp_path_factory.mktemp("faulty") / "memory_subsystem.v"
    text = Path(__file__).with_name("faulty_memory.v").read_text(encoding="utf-8")
    design.write_text("\n".join([*lines, text]), encoding="utf-8")
    return compile_memory(design)


@pytest.fixture
def faulty(faulty_library: Path) -> Iterator[CompiledMemory]:
    with CompiledMemory(CONFIG, library=faulty_library) as memory:
        yield memory


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        (1, "request 1 (read of atom 0x1): wrong data"),
        (2, "request 1 (read of atom 0x2): wrong status"),
        (3, "request 1 (read of atom 0x3): a write answered as a read, or a read as a write"),
        (4, "an answer to nothing"),
        (5, "request 1 (read of atom 0x5): not answered"),
        (6, "an answer changed before it was taken"),
        (8, "request 1 (read of atom 0x8): wrong status"),
    ],
)
def test_a_fault_of_the_memory_is_found(faulty: CompiledMemory, address: int, fault: str) -> None:
    run = faulty.run(
        requests([0, address, 0]), stall=Pauses(share=0.9, length=3), seed=1, patience=200, outstanding=1
    )
    assert run.faults and run.faults[0].endswith(fault), run.faults
    with pytest.raises(AssertionError, match="cycle"):
        run.require_clean()


def test_a_violation_has_the_cycle_and_the_name_of_its_rule(faulty: CompiledMemory) -> None:
    run = faulty.run(requests([7]))
    rule = list(dict.fromkeys(rule.name for rule in TIMING.rules()))[2]
    # The checker reports in the cycle after.
    assert run.violations == (f"cycle {run.answers['accepted'][0]}: {rule}",)


def test_corrected_data_is_good_and_poison_may_be_expected(faulty: CompiledMemory) -> None:
    faulty.run(requests([0, 9])).require_clean()
    run = faulty.run(requests([0, 8]), poison=True)
    run.require_clean()
    assert run.answers["status"].tolist() == [MemoryStatus.OK.value, MemoryStatus.POISONED.value]


# -- What is refused --------------------------------------------------------------------------------------


def test_requests_that_the_port_does_not_have_are_refused(memory: CompiledMemory) -> None:
    for asked in (
        requests([1, 2], source=Source.CONTROLLER.value),
        requests([1, 2], source=5),
        requests([1, 2], after=[-1, 1], delay=1),
        requests([1, 2], after=[-1, 0], delay=0),
    ):
        with pytest.raises(ValueError, match="expected a source outside the controller"):
            memory.run(asked)
    with pytest.raises(ValueError, match="dtype"):
        memory.run(np.zeros(3, dtype=ANSWER_RECORD))
    with pytest.raises(ValueError, match="outstanding is 0: expected at least 1"):
        memory.run(requests([1]), outstanding=0)
    with pytest.raises(ValueError, match="outstanding is 65: expected at most 64, the tags of the requests"):
        memory.run(requests([1]), outstanding=65)
    with pytest.raises(ValueError, match="unknown field 'bank': expected one of address, "):
        requests([1], bank=3)
    with pytest.raises(ValueError, match=r"share of pauses is 1: expected 0 to 0\.99"):
        Pauses(share=1)
    with pytest.raises(ValueError, match="length of pauses is 0: expected at least 1 cycle"):
        Pauses(length=0)


def test_the_storage_must_be_behind_dpi() -> None:
    config = dataclasses.replace(CONFIG, memory=dataclasses.replace(CONFIG.memory, storage="array"))
    with pytest.raises(ValueError, match="'array': expected dpi"):
        CompiledMemory(config)
