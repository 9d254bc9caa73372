"""Images reach memory by the backdoor; the front door, the host port's memory window, gives the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.commands import Atoms
from firmware_py.design import design_for
from firmware_py.driver import Accelerator, MemoryErrors
from firmware_py.programs import default_image
from firmware_py.records import DEPTH, PARENT, UNTRIED
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig
from hdl.layouts import WalkStatus
from hdl.memory.stack import StackMap
from hdl.registers import MEMORY_WINDOW_BYTES
from sim.compiled import CompiledModel

PROGRAM = default_image()
#: Records of each path from a leaf to the root; nothing is left to try but at the root.
LENGTH = 12
#: An image that crosses a page of the memory window, so that its pages are turned as well.
FIRST = MEMORY_WINDOW_BYTES // 32 - 100
COUNT = 200


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a machine showed of an image, by one door."""

    stored: Atoms
    """By the backdoor, past correction."""
    read: Atoms
    """By the front door."""
    records: np.ndarray
    """Completion records of both places, whole: verdicts, registers, hops, cycles."""
    cycles: list[int]
    hops: np.ndarray
    """The hop log, cycles counted from the beginning of the batch."""
    errors: MemoryErrors


def _image(first: int, seed: int) -> Atoms:
    """Random records, and among them one path whose records follow one another in a random order."""
    chance = np.random.default_rng(seed)
    image = chance.integers(0, 1 << 32, (COUNT, 8), dtype=np.uint32)
    path = np.concatenate([[0], 1 + chance.permutation(COUNT - 1)[: LENGTH - 1]])
    for depth, (here, above) in enumerate(zip(path, [*path[1:], None], strict=True)):
        image[here, PARENT.word] = 0 if above is None else first + above
        image[here, DEPTH.word] = (LENGTH - 1 - depth) << DEPTH.low | (above is None) << UNTRIED.low
    return image


def _see(config: DesignConfig, *, front: bool) -> Seen:
    stack = StackMap(config.memory)
    images = {stack.first(channel) + FIRST: channel for channel in range(config.memory.channels)}
    with CompiledModel(config) as model:
        accelerator = Accelerator(InProcessTransport(model))
        accelerator.load_program(PROGRAM.words)
        accelerator.set_link(latency_up=20, latency_down=30)
        accelerator.reset_counters()
        for first, channel in images.items():
            image = _image(first, seed=channel)
            (accelerator.write_memory if front else accelerator.load_image)(first, image)
            for context in range(len(images)):
                accelerator.configure_context(
                    context, base=1, limit=stack.atoms, writable=False, channel=channel
                )
        records, cycles, logs = [], [], []
        for place in (0, 1):
            walks = [
                commands.walk(
                    place=place, entry=PROGRAM.entries["climb"], context=channel, address=first, registers=()
                )
                for first, channel in images.items()
            ]
            model.clear_logs()
            done = accelerator.run_batch(np.concatenate([*walks, commands.fence()]))
            records.append(done.records)
            cycles.append(done.cycles)
            hops = model.hops()
            hops["cycle"] -= model.batch_windows()["begin"][0]
            logs.append(hops)
            statuses = {WalkStatus(int(record["status"])) for record in done.records}
            assert statuses == {WalkStatus.DONE} and set(done.records["hops"].tolist()) == {LENGTH}
        return Seen(
            stored=np.concatenate([model.fetch(first, COUNT) for first in images]),
            read=np.concatenate([accelerator.read_memory(first, COUNT) for first in images]),
            records=np.concatenate(records),
            cycles=cycles,
            hops=np.concatenate(logs),
            errors=accelerator.memory_errors(),
        )


@pytest.mark.parametrize(
    "config",
    [design_for("hbm2_2000"), design_for("hbm2_2000", ecc=True), design_for("hbm2_2000", channels=2)],
    ids=["plain", "ecc", "two channels"],
)
def test_both_doors_give_the_same_memory_verdicts_and_cycles(config: DesignConfig) -> None:
    front, back = _see(config, front=True), _see(config, front=False)
    assert np.array_equal(front.stored, back.stored)
    assert np.array_equal(front.read, back.read) and np.array_equal(front.read, front.stored)
    assert np.array_equal(front.records, back.records)
    assert front.cycles == back.cycles
    assert np.array_equal(front.hops, back.hops)
    # With ECC the check bits that the backdoor made are those that the controller makes.
    assert front.errors == back.errors and (front.errors.corrected, front.errors.uncorrectable) == (0, 0)
    expected = [
        _image(StackMap(config.memory).first(channel) + FIRST, seed=channel)
        for channel in range(config.memory.channels)
    ]
    assert np.array_equal(front.stored, np.concatenate(expected))
