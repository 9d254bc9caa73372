"""The whole design with ECC, through the driver: walks, copies, writes and a replay over wrong bits."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from firmware_py import cli, commands
from firmware_py.bench.design import isolated_loops
from firmware_py.commands import Atoms
from firmware_py.compare import compare, read_files
from firmware_py.completion import Completions
from firmware_py.design import design_for
from firmware_py.driver import Accelerator, BatchError, MemoryErrors
from firmware_py.image import CreationOrder
from firmware_py.loop_parts import device_cycles
from firmware_py.machine import Machine
from firmware_py.paths import far_path
from firmware_py.programs import default_image
from firmware_py.records import DEPTH, PARENT, UNTRIED, VISITS
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig
from hdl.layouts import RowClass, WalkStatus
from hdl.registers import SCRATCHPAD_WINDOW, CommandOp
from sim.compiled import CompiledModel
from sim.trace.searches import demonstration_traces
from tests.compare_schema import require_schema

from .replays import write_traces

CONFIG = design_for("hbm2_2000", ecc=True)
PLACES = pytest.mark.parametrize("place", (0, 1), ids=("near", "far"))
#: A path of records from a leaf to the root, and the one that `climb` from the leaf ends at.
PATH = [1000 + 37 * n for n in range(8)]
GOAL = 6


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(CONFIG) as compiled:
        yield compiled


@pytest.fixture
def accelerator(model: CompiledModel) -> Accelerator:
    """The driver, with the path in a memory without errors."""
    driver = Accelerator(InProcessTransport(model))
    driver.withdraw_fault()
    driver.load_program(default_image().words)
    driver.set_link(latency_up=20, latency_down=30)
    driver.configure_context(0, base=1, limit=5000, writable=True)
    driver.load_image(1, np.zeros((5000, 8), dtype=np.uint32))
    for n, address in enumerate(PATH):
        atom = np.zeros((1, 8), dtype=np.uint32)
        atom[0, PARENT.word] = PATH[n + 1] if n + 1 < len(PATH) else 0
        atom[0, DEPTH.word] = len(PATH) - 1 - n << DEPTH.low | (n == GOAL) << UNTRIED.low
        driver.load_image(address, atom)
    driver.reset_counters()
    return driver


def _walk(accelerator: Accelerator, place: int, entry: str = "climb", *registers: int) -> np.void:
    launch = commands.walk(
        place=place, entry=default_image().entries[entry], context=0, address=PATH[0], registers=registers
    )
    (record,) = accelerator.run_batch(launch).records
    return record


def _require_right(record: np.void) -> None:
    assert WalkStatus(int(record["status"])) is WalkStatus.DONE
    assert (record["value"], record["registers"][0], record["hops"]) == (PATH[GOAL], PATH[GOAL], GOAL + 1)


@PLACES
def test_a_walk_over_a_corrected_record_has_the_right_verdict(
    model: CompiledModel, accelerator: Accelerator, place: int
) -> None:
    """One wrong bit in every word of every record on the path, the bits that decide included."""
    chance = random.Random(f"corrected {place}")
    for address in PATH:
        for word in range(4):
            model.flip(address, 64 * word + chance.randrange(64))
    model.flip(PATH[GOAL], 64 * 2 + UNTRIED.low)
    model.flip(PATH[GOAL], 64 * 2 + UNTRIED.low)
    _require_right(_walk(accelerator, place))
    assert accelerator.memory_errors() == MemoryErrors(
        corrected=GOAL + 1,
        corrected_address=PATH[GOAL],
        uncorrectable=0,
        uncorrectable_address=None,
    )


@PLACES
@pytest.mark.parametrize("bits", [(0, 1), (128, 191), (64, 264), (256, 257)])
def test_a_walk_over_an_uncorrectable_record_ends_there(
    model: CompiledModel, accelerator: Accelerator, place: int, bits: tuple[int, int]
) -> None:
    """Two wrong bits of one word: data, data and check bit, or check bits. The walk does not use the record:
    its verdict names the one before, the register of errors the bad one."""
    for bit in bits:
        model.flip(PATH[3], bit)
    record = _walk(accelerator, place)
    assert WalkStatus(int(record["status"])) is WalkStatus.POISONED
    assert (record["value"], record["hops"], *record["registers"]) == (PATH[2], 4, 0, 0, 0)
    errors = accelerator.memory_errors()
    assert (errors.uncorrectable, errors.uncorrectable_address, errors.corrected) == (1, PATH[3], 0)


@PLACES
def test_an_injected_fault_hits_one_read_or_all_of_them(accelerator: Accelerator, place: int) -> None:
    accelerator.inject_fault(PATH[5], [7, 8])
    assert WalkStatus(int(_walk(accelerator, place)["status"])) is WalkStatus.POISONED
    assert not accelerator.fault_armed
    _require_right(_walk(accelerator, place))
    accelerator.inject_fault(PATH[5], [130], sticky=True)
    for _ in range(3):
        _require_right(_walk(accelerator, place))
        assert accelerator.fault_armed
    assert accelerator.memory_errors().corrected == 3
    accelerator.withdraw_fault()
    _require_right(_walk(accelerator, place))
    assert accelerator.memory_errors() == MemoryErrors(
        corrected=3, corrected_address=PATH[5], uncorrectable=1, uncorrectable_address=PATH[5]
    )


@PLACES
def test_stores_of_a_walk_are_read_modify_writes(
    model: CompiledModel, accelerator: Accelerator, place: int
) -> None:
    """A corrected record is stored to, and healed; over an uncorrectable one nothing is stored."""
    before = model.fetch(1, 4999)
    model.flip(PATH[2], 64 * 3 + 2)  # beside the visits, which `backup` counts
    record = _walk(accelerator, place, "backup", 5)
    assert WalkStatus(int(record["status"])) in (WalkStatus.DONE, WalkStatus.NULL_POINTER)
    visited = model.fetch(PATH[2], 1)[0, VISITS.word] >> VISITS.low
    assert visited == before[PATH[2] - 1, VISITS.word] + 1
    after = accelerator.read_memory(PATH[2], 1)
    accelerator.reset_counters()
    assert (accelerator.read_memory(PATH[2], 1) == after).all()
    assert accelerator.memory_errors().corrected == 0, "the word was written and is still wrong"

    held = model.fetch(PATH[2], 1)
    # Bad after the record was read: the store finds it.
    model.flip(PATH[2], 10)
    model.flip(PATH[2], 11)
    spoiled = model.fetch(PATH[2], 1)
    record = _walk(accelerator, place, "backup", 5)
    assert WalkStatus(int(record["status"])) is WalkStatus.POISONED
    accelerator.run_batch(commands.fence())
    assert (model.fetch(PATH[2], 1) == spoiled).all() and (spoiled != held).any()


def test_a_copy_of_an_uncorrectable_atom_fails_and_leaves_it_out(
    model: CompiledModel, accelerator: Accelerator
) -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(1 << 32, size=(16, 8), dtype=np.uint32)
    mark = rng.integers(1 << 32, size=(16, 8), dtype=np.uint32)
    accelerator.load_image(2000, data)
    where = SCRATCHPAD_WINDOW + 32 * 100
    model.write_block(where, mark)
    model.flip(2003, 100)
    model.flip(2009, 0)
    model.flip(2009, 63)
    copy = commands.copy(to_memory=False, memory_address=2000, scratchpad_address=100, count=16)
    with pytest.raises(BatchError, match="no write or copy that failed"):
        accelerator.run_batch(copy)
    copied = model.read_block(where, 16 * 8).reshape(16, 8)
    expected = data.copy()
    expected[9] = mark[9]
    assert (copied == expected).all()
    assert accelerator.memory_errors() == MemoryErrors(
        corrected=1, corrected_address=2003, uncorrectable=1, uncorrectable_address=2009
    )
    # Whole atoms heal what they overwrite.
    model.write_block(where, data)
    accelerator.run_batch(
        commands.copy(to_memory=True, memory_address=2000, scratchpad_address=100, count=16)
    )
    accelerator.run_batch(copy)
    accelerator.reset_counters()
    assert (accelerator.read_memory(2000, 16) == data).all()
    assert accelerator.memory_errors().corrected == accelerator.memory_errors().uncorrectable == 0


def test_a_partial_write_over_an_uncorrectable_word_fails_and_a_whole_one_heals(
    model: CompiledModel, accelerator: Accelerator
) -> None:
    atom = np.full((1, 8), 0x0BADCAFE, dtype=np.uint32)
    for bit in (4, 5):
        model.flip(3000, bit)
    spoiled = model.fetch(3000, 1)
    with pytest.raises(BatchError, match="no write or copy that failed"):
        accelerator.run_batch(commands.write(address=3000, data=atom, mask=0x0000_000F))
    accelerator.run_batch(commands.fence())
    assert (model.fetch(3000, 1) == spoiled).all()
    accelerator.run_batch(commands.write(address=3000, data=atom))
    accelerator.reset_counters()
    assert (accelerator.read_memory(3000, 1) == atom).all()
    assert accelerator.memory_errors().corrected == 0


def test_the_isolated_loop_takes_one_cycle_more(model: CompiledModel, accelerator: Accelerator) -> None:
    far = far_path("v100_hbm2", CONFIG)
    states = {RowClass.HIT: "hit", RowClass.CLOSED: "closed", RowClass.CONFLICT: "conflict"}
    near = isolated_loops(model, accelerator, CONFIG, place=0, far=far)
    bounds = {
        RowClass.HIT: device_cycles(CONFIG.memory.timing, "hit"),
        RowClass.CLOSED: device_cycles(CONFIG.memory.timing, "closed"),
        RowClass.CONFLICT: device_cycles(CONFIG.memory.timing, "conflict"),
    }
    assert near == {found: bound + 4 for found, bound in bounds.items()}
    # A published far time stays what it is: the link is what is left of it.
    away = isolated_loops(model, accelerator, CONFIG, place=1, far=far)
    assert {states[found]: cycles for found, cycles in away.items()}[
        far.path.row_state
    ] == far.isolated_cycles


def test_a_comparison_with_ecc_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_traces(tmp_path / "traces.jsonl", seed=5, nodes=60)
    out = tmp_path / "out.json"
    arguments = ("compare", tmp_path / "traces.jsonl", "--ecc", "--json", out)
    monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 0
    document = json.loads(out.read_text())
    require_schema(document)
    nothing = dict.fromkeys(("corrected", "uncorrectable"), 0) | dict.fromkeys(
        ("corrected_address", "uncorrectable_address")
    )
    assert document["details"]["ecc"] == {"near": nothing, "far": nothing}
    assert "hbm2_2000 with ECC" in capfd.readouterr().out


class _Disturbed(Accelerator):
    """The driver of a machine on which, in every batch that walks, the first record of one of the walks has a
    wrong bit in each of its words whenever it is read."""

    chance = random.Random(20261130)
    window = (0, 0)

    def run_batch(self, command_atoms: Atoms, *, timeout_cycles: int = 1_000_000_000) -> Completions:
        # Data atoms of a WRITE may look like a WALK, too.
        starts = command_atoms[command_atoms[:, 0] & 15 == CommandOp.WALK, 1]
        starts = starts[(starts >= self.window[0]) & (starts < self.window[1])].tolist()
        if starts:
            bits = [64 * word + self.chance.randrange(64) for word in range(4)]
            self.inject_fault(self.chance.choice(starts), bits, sticky=True)
        return super().run_batch(command_atoms, timeout_cycles=timeout_cycles)

    def configure_context(
        self,
        context: int,
        *,
        base: int,
        limit: int,
        writable: bool,
        budget: int = (1 << 24) - 1,
        channel: int = 0,
    ) -> None:
        self.window = (base, limit)
        super().configure_context(
            context, base=base, limit=limit, writable=writable, budget=budget, channel=channel
        )


def test_a_replay_with_single_faults_has_the_same_verdicts(model: CompiledModel, tmp_path: Path) -> None:
    traces = [path for path in demonstration_traces(tmp_path) if "game24" in path.name]

    def replay(driver: type[Accelerator]):
        @contextmanager
        def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
            assert config == CONFIG
            yield Machine(driver=driver(InProcessTransport(model)), monitor=model)

        return compare(
            read_files(traces),
            config=CONFIG,
            far="v100_hbm2",
            concurrent=4,
            program=default_image(),
            layout=CreationOrder(),
            open_machine=open_machine,
            announce=lambda text: None,
            progress=lambda place, done, total: None,
        )

    clean, disturbed = replay(Accelerator), replay(_Disturbed)
    for result in (clean, disturbed):
        assert not result.failures
        assert sum(file.verdicts.checked for file in result.files) > 200
    for one, other in ((clean.near, disturbed.near), (clean.far, disturbed.far)):
        assert one.run.answers == other.run.answers
        assert one.replay_cycles == other.replay_cycles, "correcting takes no time of its own"
        assert one.errors is not None and other.errors is not None
        assert one.errors.corrected == 0 and other.errors.corrected > 20
        assert other.errors.uncorrectable == 0
