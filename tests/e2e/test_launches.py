"""Several walks in one launch, on the compiled design: the same answers, sooner where the link is narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.commands import Atoms
from firmware_py.completion import Records
from firmware_py.driver import Accelerator, BatchError
from firmware_py.programs import default_image
from firmware_py.records import PARENT
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from sim.compiled import CompiledModel

CLIMB = default_image().entries["climb"]
#: Nodes of the chains that the walks climb: seven, told apart by their length.
LENGTHS = (1, 2, 3, 5, 8, 13, 21)


@pytest.fixture(scope="module")
def accelerator() -> Iterator[Accelerator]:
    with CompiledModel(named_config("simulation")) as model:
        machine = Accelerator(InProcessTransport(model))
        machine.load_program(default_image().words)
        atoms = np.zeros((1 + 100 * len(LENGTHS), 8), dtype=np.uint32)
        for chain, length in enumerate(LENGTHS):
            atoms[_start(chain) : _start(chain) + length - 1, PARENT.word] = np.arange(1, length) + _start(
                chain
            )
        machine.load_image(0, atoms)
        for context in range(machine.contexts):
            machine.configure_context(context, base=1, limit=len(atoms), writable=False)
        yield machine


def _start(chain: int) -> int:
    return 1 + 100 * chain


def _starts(count: int) -> list[int]:
    return [_start(chain) for chain in range(count)]


def _alone(place: int, count: int) -> Atoms:
    return np.concatenate(
        [
            commands.walk(place=place, entry=CLIMB, context=2 + chain, address=address)
            for chain, address in enumerate(_starts(count))
        ]
    )


def _at_once(place: int, count: int, context: int = 2) -> Atoms:
    return commands.walks(place=place, entry=CLIMB, context=context, addresses=_starts(count))


def _answers(records: Records) -> list[tuple[int, ...]]:
    names: Sequence[str] = ("context", "status", "code", "hops", "value", "place")
    return sorted(tuple(int(record[name]) for name in names) for record in records)


@pytest.mark.parametrize("place", [0, 1], ids=["near", "far"])
@pytest.mark.parametrize("width", [0, 16, 3])
def test_walks_of_one_launch_answer_as_walks_of_their_own(
    accelerator: Accelerator, place: int, width: int
) -> None:
    accelerator.set_link(latency_up=40, latency_down=40, bytes_per_cycle=width)
    for count in (1, 4, 7):
        alone = accelerator.run_batch(_alone(place, count))
        at_once = accelerator.run_batch(_at_once(place, count))
        assert _answers(at_once.records) == _answers(alone.records)
        assert sorted(at_once.records["hops"].tolist()) == list(LENGTHS[:count])
        assert set(at_once.records["tag"].tolist()) == {0}
        # Times are from the departure of the message, beyond what the walker took.
        assert (at_once.records["walk_cycles"] >= at_once.records["walker_cycles"]).all()
        if count == 1:
            assert at_once.cycles == alone.cycles
            assert np.array_equal(at_once.records["walk_cycles"], alone.records["walk_cycles"])
        else:
            # A launch is 32 bytes: on a narrow link those after the first delay the walks behind them.
            assert at_once.cycles <= alone.cycles
            assert (at_once.cycles < alone.cycles) == (width == 3 and place == 0)


def test_walks_of_one_launch_begin_one_a_cycle_and_count_from_its_message(accelerator: Accelerator) -> None:
    accelerator.set_link(latency_up=40, latency_down=40)
    for place in (0, 1):
        (alone,) = accelerator.run_batch(_at_once(place, 1)).records
        outside = int(alone["walk_cycles"]) - int(alone["walker_cycles"])
        records = np.sort(accelerator.run_batch(_at_once(place, 4)).records, order="context")
        waited = records["walk_cycles"].astype(int) - records["walker_cycles"] - outside
        assert waited.tolist() == [0, 1, 2, 3]


def test_launches_in_a_row_wait_for_contexts_and_lose_nothing(accelerator: Accelerator) -> None:
    """Seven and four walks in overlapping contexts, near and far, over a link of a byte a cycle."""
    accelerator.set_link(latency_up=5, latency_down=5, bytes_per_cycle=1)
    batch = np.concatenate(
        [
            part
            for _ in range(5)
            for place in (0, 1)
            for part in (_at_once(place, 7, context=1), _at_once(place, 4, context=6), _alone(place, 1))
        ]
    )
    done = accelerator.run_batch(batch)
    assert len(done.records) == 5 * 2 * 12
    hops = np.bincount(done.records["tag"], weights=done.records["hops"])
    assert hops.tolist() == [sum(LENGTHS), sum(LENGTHS[:4]), LENGTHS[0]] * 10


def test_a_launch_beyond_the_contexts_is_refused(accelerator: Accelerator) -> None:
    with pytest.raises(BatchError, match="expected defined commands"):
        accelerator.run_batch(_at_once(0, 7, context=accelerator.contexts - 6))
    assert accelerator.run_batch(_at_once(0, 7, context=accelerator.contexts - 7)).records.size == 7
