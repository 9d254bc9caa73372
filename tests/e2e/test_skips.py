"""`climb_compressed` on the RTL: every context of a walker climbs one tree at once, while nodes are killed,
revived and re-armed between the batches."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.driver import Accelerator
from firmware_py.programs import climb, replay_image
from firmware_py.programs.climb_compressed import launch_registers
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.layouts import WalkStatus
from sim.compiled import CompiledModel
from tests.firmware_py.test_skips import Tree

_SEED = 20261130
_NODES = 150
_ROUNDS = 80


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[CompiledModel, Accelerator]]:
    with CompiledModel(named_config("simulation")) as model:
        accelerator = Accelerator(InProcessTransport(model))
        accelerator.load_program(replay_image("climb_compressed").words)
        accelerator.set_link(latency_up=20, latency_down=30)
        yield model, accelerator


@pytest.mark.parametrize("place", (0, 1), ids=("near", "far"))
@pytest.mark.parametrize("new_stamps", (True, False), ids=("stamps", "without_new_stamps"))
def test_all_contexts_climb_one_tree_that_changes_between_batches(machine, place, new_stamps) -> None:
    model, accelerator = machine
    chance = random.Random(f"{_SEED} {place}")  # printed by pytest with the case when a test fails
    # Deep and broad in turn.
    tree = Tree([None, *(chance.randrange(max(0, index - 9), index) for index in range(1, _NODES))])
    if not new_stamps:
        tree.skips.opened = lambda node: None
    for context in range(accelerator.contexts):
        accelerator.configure_context(
            context, base=tree.image.base, limit=tree.image.limit, writable=True, budget=10 * _NODES
        )
    accelerator.load_image(tree.image.base, tree.image.words)
    tree.grow()
    wrong = stored = 0
    for _ in range(_ROUNDS):
        for _ in range(5):
            tree.grow()
        for _ in range(chance.randrange(3)):
            tree.change(
                chance.randrange(tree.made),
                dead=chance.choice((None, True, False)),
                untried=chance.choice((None, 0, 0, 1)),
            )
        tree.skips.settle()
        for run in tree.image.flush():
            accelerator.run_batch(commands.write(address=run.address, data=run.data, mask=run.mask))
        starts = [chance.randrange(tree.made) for _ in range(2 * accelerator.contexts)]
        done = accelerator.run_batch(np.concatenate([_walk(tree, place, *one) for one in enumerate(starts)]))
        for record in done.records:
            start = tree.image.address(starts[record["tag"]])
            expected = climb.reference(tree.image, start=start)
            status = WalkStatus.DONE if expected else WalkStatus.NULL_POINTER
            wrong += (record["status"], record["registers"][0]) != (status.value, expected)
        memory = model.fetch(tree.image.base, tree.image.size)
        stored += int(np.count_nonzero(memory != tree.image.words))
        # What was stored is skips, and nothing else.
        assert np.array_equal(np.delete(memory, 5, axis=1), np.delete(tree.image.words, 5, axis=1))
        tree.image.words[:, 5] = memory[:, 5]
    assert stored, "no walk left a skip: the case tests nothing"
    assert wrong == 0 if new_stamps else wrong > 0


def _walk(tree: Tree, place: int, number: int, node: int) -> np.ndarray:
    address = tree.image.address(node)
    return commands.walk(
        place=place,
        entry=replay_image("climb_compressed").entries["climb_compressed"],
        context=number % 16,
        address=address,
        registers=launch_registers(start=address, stamp=tree.skips.stamp),
    )
