"""The whole design under random batches of every command, against a host-side model."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.commands import Atoms
from firmware_py.completion import parse
from firmware_py.driver import Accelerator
from firmware_py.transport.base import TransportError
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.layouts import RefreshMode, RowClass, RowOp
from hdl.registers import MEMORY_WINDOW, MEMORY_WINDOW_BYTES, SCRATCHPAD_WINDOW
from sim.compiled import CompiledModel
from sim.model.command_checker import ROW_BUS, check

from .soak import ERRORS, PAD, Record, Soak, SoakBatch

CONFIG = named_config("simulation")
TIMING = CONFIG.memory.timing
_WATCHDOG = 2_000_000
#: Where the completion ring begins, and what it holds before a batch.
_RING, _UNTOUCHED = 1536, 0xA5A5A5A5
_BATCHES = 6


def _seeds(count: int) -> list[int]:
    chosen = os.environ.get("CLEW_SEED")
    return [int(chosen)] if chosen else list(range(count))


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(CONFIG) as model:
        yield model


class Machine:
    """The compiled design, and the state of a `Soak` put into it."""

    def __init__(self, model: CompiledModel, soak: Soak) -> None:
        self.model, self.soak = model, soak
        self.accelerator = Accelerator(InProcessTransport(model))
        self.accelerator.load_program([instruction.encode() for instruction in soak.program])

    def restore(self) -> None:
        """Puts the model's memory and scratchpad into the design; every other way through the window."""
        for number, region in enumerate(self.soak.regions):
            put = self.accelerator.write_memory if number % 4 == 0 else self.accelerator.load_image
            put(region[0], self.soak.image(region))
        self.accelerator.transport.write_block(SCRATCHPAD_WINDOW + 32 * PAD[0], self.soak.pad_image().ravel())

    def run(self, batch: SoakBatch, *, base: int = 0, room: int = 512) -> tuple[bool, Atoms, int]:
        """Runs a batch whose commands lie at `base`: (error bit, completion atoms, cycles)."""
        accelerator, transport = self.accelerator, self.accelerator.transport
        for number, context in enumerate(batch.contexts):
            accelerator.configure_context(
                number,
                base=context.window[0],
                limit=context.window[1],
                writable=context.writable,
                budget=context.budget,
            )
        ring = SCRATCHPAD_WINDOW + 32 * _RING
        # What is expected, and some room after it that must stay as it is.
        ring_atoms = min(room, len(batch.records)) + 4
        transport.write_block(ring, np.full(8 * ring_atoms, _UNTOUCHED, dtype=np.uint32))
        transport.write_block(SCRATCHPAD_WINDOW + 32 * base, batch.atoms.ravel())
        for name, value in (
            ("COMMAND_BASE", base),
            ("COMMAND_COUNT", len(batch.atoms)),
            ("COMPLETION_BASE", _RING),
            ("COMPLETION_SIZE", room),
            ("INTERRUPT_PENDING", 1),
            ("RESET_COUNTERS", 1),
        ):
            accelerator.write_register(name, value)
        self.model.clear_logs()
        accelerator.write_register("START", 1)
        assert transport.wait_interrupt(_WATCHDOG), "watchdog: the batch never ended"
        status = accelerator.read_register("STATUS")
        assert status & 3 == 2
        count = accelerator.read_register("COMPLETION_COUNT")
        assert count <= room
        atoms = transport.read_block(ring, 8 * max(count, ring_atoms)).reshape(-1, 8)
        assert (atoms[count:] == _UNTOUCHED).all(), "atoms beyond the completion records were written"
        return bool(status & 4), atoms[:count], accelerator.read_register("BATCH_CYCLES")

    def history(self) -> list[tuple[int, ...]]:
        """Every column access and every event of a walker in the batch, by cycles since the first of them."""
        events = [
            (place, *map(int, record.tolist()))
            for place, log in enumerate((self.model.accesses(), self.model.hops()))
            for record in log
        ]
        begin = min((cycle for _, cycle, *_ in events), default=0)
        return [(place, cycle - begin, *what) for place, cycle, *what in events]

    def require_outcome(self) -> None:
        """Memory, past the design and through its window, and the scratchpad are what they must be."""
        for number, region in enumerate(self.soak.regions):
            expected = self.soak.image(region)
            np.testing.assert_array_equal(
                self.model.fetch(region[0], len(region)), expected, f"region {number}"
            )
            if number % 4 == 1:
                through = self.accelerator.read_memory(region[0], len(region))
                np.testing.assert_array_equal(through, expected, f"region {number} through the window")
        found = self.accelerator.transport.read_block(SCRATCHPAD_WINDOW + 32 * PAD[0], 8 * len(PAD))
        np.testing.assert_array_equal(found.reshape(-1, 8), self.soak.pad_image(), "scratchpad")

    def require_counts(self, cycles: int, *, refresh: RefreshMode) -> None:
        """The counters say what the logs of the monitors say, and refresh came in time."""
        accesses, bus = self.model.accesses(), self.model.commands()
        counters = self.accelerator.counters()
        assert counters["cycles"] == cycles
        assert counters["reads"] == (accesses["write"] == 0).sum()
        assert counters["writes"] == (accesses["write"] == 1).sum()
        for name, row_class in (
            ("row_hits", RowClass.HIT),
            ("row_closed", RowClass.CLOSED),
            ("row_conflicts", RowClass.CONFLICT),
        ):
            assert counters[name] == (accesses["row_class"] == row_class.value).sum()
        organisation = CONFIG.memory.organisation
        if refresh is RefreshMode.NONE:
            assert counters["refreshes"] == 0
            refreshes = (bus["bus"] == ROW_BUS) & np.isin(
                bus["op"], (RowOp.REFRESH_ALL.value, RowOp.REFRESH_BANK.value)
            )
            assert not refreshes[bus["cycle"] > self.model.cycle - cycles].any()
            return
        # Walks may postpone eight intervals.
        commands = organisation.pseudo_channels
        commands *= organisation.banks if refresh is RefreshMode.PER_BANK else 1
        due = cycles // TIMING["tREFI"]
        assert commands * (due - CONFIG.controller.refresh_postpone) <= counters["refreshes"]
        assert counters["refreshes"] <= commands * (due + 1)


def _sorted(records: list[Record]) -> dict[int, list[Record]]:
    """Records by walk, each walk's in order."""
    walks: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        walks[record.tag].append(record)
    return dict(walks)


def _parsed(atoms: Atoms) -> list[Record]:
    names = ("tag", "context", "place", "kind", "status", "hops", "code", "value")
    return [
        Record(**{name: int(record[name]) for name in names}, registers=tuple(map(int, record["registers"])))
        for record in parse(atoms)
    ]


def _require_records(atoms: Atoms, expected: list[Record]) -> None:
    found = _parsed(atoms)
    assert _sorted(found) == _sorted(expected)
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for record in found:
        lanes[record.context, record.place].append(record.tag)
    assert all(tags == sorted(tags) for tags in lanes.values()), "walks of one context overtook each other"
    times = parse(atoms)
    near = times["place"] == 0
    assert (times["walker_cycles"][near] < times["walk_cycles"][near]).all(), "no time on the link"
    assert (times["walker_cycles"] <= times["walk_cycles"]).all()


@pytest.mark.parametrize("seed", _seeds(8))
def test_random_batches_leave_what_the_model_says(model: CompiledModel, seed: int) -> None:
    """Every batch twice, from the same memory but after something else: the same to the cycle."""
    print(f"seed {seed} (repeat with CLEW_SEED={seed})")
    chance = random.Random(f"soak {seed}")
    soak = Soak(seed, CONFIG)
    machine = Machine(model, soak)
    machine.restore()
    for number in range(_BATCHES):
        error = chance.choice(ERRORS) if chance.random() < 0.3 else None
        machine.accelerator.set_link(
            latency_up=chance.choice((0, 1, chance.randrange(150))),
            latency_down=chance.choice((0, 1, chance.randrange(150))),
            bytes_per_cycle=chance.choice((0, 1, 7, 8, 64)),
        )
        refresh = chance.choice(list(RefreshMode))
        machine.accelerator.set_refresh(refresh)
        base = chance.randrange(100)
        before = dict(soak.memory), dict(soak.pad)
        batch = soak.batch(error=error)
        after = soak.memory, soak.pad
        failed, atoms, cycles = machine.run(batch, base=base)
        machine.require_counts(cycles, refresh=refresh)
        history = machine.history()
        assert failed == batch.error, f"batch {number}: {error}"
        _require_records(atoms, batch.records)
        machine.require_outcome()

        # Something else in between, which leaves other requesters as the last ones that were served.
        other = Soak(1000 + seed, CONFIG)
        soak.memory, soak.pad = dict(before[0]), dict(before[1])
        machine.run(SoakBatch(atoms=_stir(other, chance), contexts=batch.contexts, error=False))
        machine.restore()
        again = machine.run(batch, base=base)
        assert again[2] == cycles, f"batch {number} took {cycles} cycles, then {again[2]}"
        assert machine.history() == history, f"batch {number} ran otherwise the second time"
        np.testing.assert_array_equal(again[1], atoms)
        assert again[0] == failed
        soak.memory, soak.pad = after
        machine.require_outcome()
        report = check(model.commands(), TIMING, CONFIG.memory.organisation)
        assert report.by_rule() == {}


def _stir(soak: Soak, chance: random.Random) -> Atoms:
    """A few commands of one kind, elsewhere in memory."""
    far = 1 << 16
    kind = chance.randrange(4)
    if kind == 0:
        return commands.copy(to_memory=True, memory_address=far, scratchpad_address=PAD[0], count=3)
    if kind == 1:
        return commands.write(address=far, data=np.zeros((3, 8), dtype=np.uint32))
    return np.concatenate(
        [
            commands.walk(place=kind - 2, entry=0, context=context, address=soak.shared[0])
            for context in range(9, 9 + chance.randint(1, 3))
        ]
    )


@pytest.mark.parametrize("seed", _seeds(2))
def test_a_full_completion_ring_ends_the_batch_and_harms_nothing_else(
    model: CompiledModel, seed: int
) -> None:
    """What the batch wrote before it was ended is not promised, so the memory is put back afterwards."""
    print(f"seed {seed} (repeat with CLEW_SEED={seed})")
    soak = Soak(2000 + seed, CONFIG)
    machine = Machine(model, soak)
    machine.restore()
    for room in (0, 1, 7):
        batch = soak.batch()
        while len(batch.records) <= room:
            batch = soak.batch()
        failed, atoms, _ = machine.run(batch, room=room)
        assert failed and len(atoms) == room
        machine.restore()
        batch = soak.batch()
        failed, atoms, _ = machine.run(batch, room=len(batch.records))
        assert not failed, "a ring with room for every record is an error"
        _require_records(atoms, batch.records)
        machine.require_outcome()


def test_refused_accesses_harm_nothing(model: CompiledModel) -> None:
    """Windows are closed while a batch runs, and beyond the memory; the batch takes the same cycles."""
    soak = Soak(3000, CONFIG)
    machine = Machine(model, soak)
    machine.restore()
    accelerator, transport = machine.accelerator, machine.accelerator.transport
    accelerator.set_link(latency_up=200, latency_down=200)
    chain = np.concatenate(
        [
            commands.walk(place=place, entry=0, context=9, address=soak.shared[0])
            for place in (0, 1)
            for _ in range(8)
        ]
    )
    batch = SoakBatch(atoms=chain, contexts=soak.batch().contexts, error=False)
    _, atoms, cycles = machine.run(batch)
    accelerator.write_register("INTERRUPT_PENDING", 1)
    accelerator.write_register("START", 1)
    for address in (SCRATCHPAD_WINDOW + 32 * _RING, MEMORY_WINDOW):
        with pytest.raises(TransportError):
            transport.read32(address)
        with pytest.raises(TransportError):
            transport.write32(address, 0)
    assert accelerator.read_register("STATUS") == 1, "the batch ended before it was disturbed"
    # A start while a batch runs is ignored.
    accelerator.write_register("START", 1)
    assert transport.wait_interrupt(_WATCHDOG)
    assert accelerator.read_register("BATCH_CYCLES") == cycles
    again = transport.read_block(SCRATCHPAD_WINDOW + 32 * _RING, 8 * len(atoms)).reshape(-1, 8)
    np.testing.assert_array_equal(again, atoms)

    accelerator.write_register("MEMORY_PAGE", 32 * accelerator.memory_atoms // MEMORY_WINDOW_BYTES)
    for address in (MEMORY_WINDOW, MEMORY_WINDOW + MEMORY_WINDOW_BYTES - 4):
        with pytest.raises(TransportError):
            transport.write32(address, 1)
        with pytest.raises(TransportError):
            transport.read32(address)
    last = np.arange(8, dtype=np.uint32).reshape(1, 8)
    accelerator.write_memory(accelerator.memory_atoms - 1, last)
    np.testing.assert_array_equal(model.fetch(accelerator.memory_atoms - 1, 1), last)


def test_a_batch_begins_when_the_link_is_settled(model: CompiledModel) -> None:
    """A new width takes the link some cycles; a batch that is started meanwhile waits for it."""
    soak = Soak(4000, CONFIG)
    machine = Machine(model, soak)
    accelerator = machine.accelerator
    atoms = commands.write(address=soak.plain[0], data=np.zeros((3, 8), dtype=np.uint32))
    batch = SoakBatch(atoms=atoms, contexts=soak.batch().contexts, error=False)
    accelerator.set_link(latency_up=3, latency_down=5, bytes_per_cycle=1)
    _, _, cycles = machine.run(batch)
    accelerator.set_link(latency_up=3, latency_down=5, bytes_per_cycle=0)
    assert machine.run(batch)[2] < cycles
    for name, value in (("INTERRUPT_PENDING", 1), ("LINK_BYTES_PER_CYCLE", 1), ("START", 1)):
        accelerator.write_register(name, value)
    assert accelerator.transport.wait_interrupt(_WATCHDOG)
    assert accelerator.read_register("BATCH_CYCLES") == cycles
