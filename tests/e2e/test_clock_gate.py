"""The design with its clock gate beside the one without: the same in every cycle of every batch."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hdl.config import named_config
from hdl.layouts import RefreshMode
from hdl.registers import SCRATCHPAD_WINDOW
from sim.compiled import CompiledModel

from .pause import pause
from .soak import ERRORS, PAD, Soak
from .test_soak import Machine

GATED = named_config("simulation")
FREE = dataclasses.replace(GATED, clock_gate=False)
_SEEDS, _BATCHES = 4, 6


@pytest.fixture(scope="module")
def models() -> Iterator[tuple[CompiledModel, CompiledModel]]:
    with CompiledModel(GATED) as gated, CompiledModel(FREE) as free:
        yield gated, free


def test_which_designs_have_a_clock_gate() -> None:
    assert GATED.sleeps and not FREE.sleeps
    memory = dataclasses.replace(GATED.memory, channels=2)
    assert not dataclasses.replace(GATED, memory=memory).sleeps
    assert not named_config("testbench").sleeps


@pytest.mark.parametrize("seed", range(_SEEDS))
def test_random_batches_are_the_same_with_and_without_it(
    models: tuple[CompiledModel, CompiledModel], seed: int
) -> None:
    """Commands, accesses, events of walkers, completion records and counters, all by cycle."""
    print(f"seed {seed}")
    chance = random.Random(f"clock gate {seed}")
    machines = [Machine(model, Soak(seed, GATED)) for model in models]
    for machine in machines:
        machine.restore()
    for number in range(_BATCHES):
        error = chance.choice(ERRORS) if chance.random() < 0.2 else None
        link = {
            "latency_up": chance.choice((0, 1, chance.randrange(150), chance.randrange(1500))),
            "latency_down": chance.choice((0, 1, chance.randrange(150), chance.randrange(1500))),
            "bytes_per_cycle": chance.choice((0, 1, 7, 64)),
        }
        refresh, silence = chance.choice(list(RefreshMode)), chance.randrange(3000)
        seen = []
        for machine, model in zip(machines, models, strict=True):
            machine.accelerator.set_link(**link)
            machine.accelerator.set_refresh(refresh)
            pause(machine.accelerator, model, silence)
            failed, atoms, cycles = machine.run(machine.soak.batch(error=error))
            seen.append((failed, cycles, machine.history(), machine.accelerator.counters()))
            seen[-1] += (atoms.tolist(), _batch_commands(machine.model).tolist())
        assert seen[0] == seen[1], f"batch {number}"
    left = [
        [
            *(machine.model.fetch(region[0], len(region)) for region in machine.soak.regions),
            machine.accelerator.transport.read_block(SCRATCHPAD_WINDOW + 32 * PAD[0], 8 * len(PAD)),
        ]
        for machine in machines
    ]
    for with_gate, without in zip(*left, strict=True):
        np.testing.assert_array_equal(with_gate, without)


def test_an_access_of_the_host_wakes_it_in_any_cycle(models: tuple[CompiledModel, CompiledModel]) -> None:
    """The host looks at a register while a batch runs a second time, after each number of cycles."""
    found = []
    for model in models:
        machine = Machine(model, Soak(7, GATED))
        machine.restore()
        accelerator = machine.accelerator
        accelerator.set_link(latency_up=900, latency_down=900)
        machine.run(machine.soak.batch())
        looks = []
        accelerator.write_register("INTERRUPT_PENDING", 1)
        accelerator.write_register("START", 1)
        for silence in range(40):
            looks.append(
                [accelerator.read_register(name) for name in ("BATCH_CYCLES", "CYCLES_LOW", "STATUS")]
            )
            model.run(silence)
        assert accelerator.transport.wait_interrupt(2_000_000)
        found.append([*looks, accelerator.read_register("BATCH_CYCLES")])
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", [RefreshMode.ALL_BANK, RefreshMode.PER_BANK])
def test_refresh_falls_due_while_nothing_else_happens(
    models: tuple[CompiledModel, CompiledModel], mode: RefreshMode
) -> None:
    """Every command of an idle design, by cycle: refresh wakes it, and is not late."""
    intervals, found = 6, []
    for model in models:
        machine = Machine(model, Soak(3, GATED))
        machine.restore()
        machine.accelerator.set_refresh(RefreshMode.NONE)
        machine.accelerator.set_refresh(mode)
        begin = model.cycle
        pause(machine.accelerator, model, intervals * GATED.memory.timing["tREFI"])
        bus = model.commands()
        bus = bus[bus["cycle"] >= begin]
        bus["cycle"] -= begin
        found.append(bus.tolist())
    assert found[0] == found[1]
    assert len(found[0]) >= intervals - 1


def _batch_commands(model: CompiledModel) -> NDArray[np.void]:
    """The commands on the buses in the last batch, by its cycles."""
    batch, bus = model.batch_windows()[-1], model.commands()
    bus = bus[(bus["cycle"] >= batch["begin"]) & (bus["cycle"] < batch["end"])]
    bus["cycle"] -= batch["begin"]
    return bus
