"""The whole design with several channels: placement, parallel walks, independence, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.batches import ring_size
from firmware_py.bench.design import isolated_loops
from firmware_py.commands import Atoms
from firmware_py.design import design_for
from firmware_py.driver import Accelerator
from firmware_py.image import CreationOrder
from firmware_py.loop_parts import RowState, loop_parts
from firmware_py.paths import crossing_cycles, far_path
from firmware_py.placement import FewestSearches
from firmware_py.programs import default_image
from firmware_py.records import PARENT
from firmware_py.replay import Plan, make_plan, run_plan
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig
from hdl.layouts import RowClass, WalkStatus
from hdl.memory.stack import StackMap
from sim.compiled import CompiledModel
from sim.model.command_checker import check
from sim.trace.importers import import_file

from .replays import write_traces

PROGRAM = default_image()
CLIMB = PROGRAM.entries["climb"]
#: Records of a chain: long enough that launch, refresh and the end do not decide.
LENGTH = 200


class Machine:
    """A running stack with its driver; chains of records are laid by the backdoor."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model
        self.config: DesignConfig = model.config
        self.stack = StackMap(model.config.memory)
        self.accelerator = Accelerator(InProcessTransport(model))
        self.reset()

    def reset(self) -> None:
        """Program, link and windows as the tests expect them."""
        self.accelerator.load_program(PROGRAM.words)
        self.accelerator.set_link(latency_up=20, latency_down=20)
        for channel in range(self.stack.channels):
            for context in range(self.accelerator.contexts):
                self.open(context, channel)

    def open(self, context: int, channel: int, *, budget: int = 1 << 20) -> None:
        """The whole stack is the window of a context."""
        self.accelerator.configure_context(
            context, base=1, limit=(1 << 32) - 1, writable=False, budget=budget, channel=channel
        )

    def chain(self, channel: int, *, seed: int, last: int = 0) -> int:
        """Records at random places of a channel, each pointing to the next and the last one to `last`."""
        places = np.random.default_rng(seed).choice(self.stack.channel_atoms - 1, LENGTH, replace=False) + 1
        addresses = [self.stack.first(channel) + int(place) for place in places]
        for address, parent in zip(addresses, [*addresses[1:], last], strict=True):
            atom = np.zeros((1, 8), dtype=np.uint32)
            atom[0, PARENT.word] = parent
            self.accelerator.load_image(address, atom)
        return addresses[0]


@pytest.fixture(scope="module", params=[2, 4])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with CompiledModel(design_for("hbm2_2000", channels=request.param)) as model:
        machine = Machine(model)
        yield machine
        machine.accelerator.run_batch(commands.fence())
        for channel in range(machine.stack.channels):
            memory = machine.config.memory
            assert check(model.commands(channel), memory.timing, memory.organisation).by_rule() == {}


def _walks(walks: list[tuple[int, int]], *, place: int = 0) -> Atoms:
    """A climb for each (context, start)."""
    return np.concatenate(
        [commands.walk(place=place, entry=CLIMB, context=context, address=start) for context, start in walks]
    )


def test_the_host_sees_the_whole_stack_as_the_backdoor_does(machine: Machine) -> None:
    accelerator, stack = machine.accelerator, machine.stack
    assert accelerator.channels == stack.channels
    assert accelerator.memory_atoms == stack.atoms
    atoms = np.arange(8 * 8, dtype=np.uint32).reshape(8, 8) + 1
    for channel in range(1, stack.channels + 1):
        # Around every boundary, and up to the very end.
        address = min(stack.channel_atoms * channel - 4, stack.atoms - 8)
        accelerator.write_memory(address, atoms * channel)
        assert np.array_equal(accelerator.read_memory(address, 8), atoms * channel)
        accelerator.run_batch(commands.fence())
        assert np.array_equal(machine.model.fetch(address, 8), atoms * channel)


def test_an_isolated_loop_takes_the_cycles_of_one_channel(machine: Machine) -> None:
    """Routers, queues and merges cost no cycle: the loops are those that the table and the link say."""
    config, far = machine.config, far_path("v100_hbm2", machine.config)
    near_loops, far_loops = (
        isolated_loops(machine.model, machine.accelerator, config, place=place, far=far) for place in (0, 1)
    )
    states: tuple[tuple[RowClass, RowState], ...] = ((RowClass.HIT, "hit"), (RowClass.CLOSED, "closed"))
    for row_class, state in states:
        near = sum(loop_parts(config, state).values())
        assert near_loops[row_class] == near
        assert far_loops[row_class] == near + 2 * crossing_cycles(config) + far.latency_up + far.latency_down
    machine.reset()


def test_walks_in_different_channels_run_side_by_side(machine: Machine) -> None:
    """One walk in each channel takes the cycles of the slowest alone; so do walks in every context."""
    channels = machine.stack.channels
    chains = [machine.chain(channel, seed=5) for channel in range(channels)]
    for contexts in (1, machine.accelerator.contexts):
        alone = [
            machine.accelerator.run_batch(_walks([(context, chain) for context in range(contexts)])).cycles
            for chain in chains
        ]
        together = machine.accelerator.run_batch(
            _walks([(context, chain) for chain in chains for context in range(contexts)])
        )
        assert np.array_equal(
            np.bincount(together.records["channel"], minlength=channels), np.full(channels, contexts)
        )
        assert (together.records["hops"] == LENGTH).all()
        # Launches and verdicts share the link, one a cycle; they cost at most that.
        assert together.cycles <= max(alone) + 4 * channels * contexts
        assert max(alone) > LENGTH * machine.config.memory.timing.row_hit


def test_traffic_of_another_channel_does_not_touch_a_walk(machine: Machine) -> None:
    accelerator, stack = machine.accelerator, machine.stack
    quiet, busy = machine.chain(1, seed=6), machine.chain(0, seed=7)
    alone = accelerator.run_batch(_walks([(3, quiet)])).records
    traffic = np.concatenate(
        [
            _walks([(3, quiet)]),
            commands.copy(to_memory=True, memory_address=64, scratchpad_address=0, count=1500),
            _walks([(context, busy) for context in range(accelerator.contexts)]),
            _walks([(context, busy) for context in range(accelerator.contexts)], place=1),
            commands.copy(to_memory=False, memory_address=64, scratchpad_address=1024, count=500),
        ]
    )
    found = accelerator.run_batch(traffic).records
    (mine,) = found[(found["place"] == 0) & (found["channel"] == 1)]
    assert mine["walker_cycles"] == alone["walker_cycles"][0]
    assert mine["hops"] == LENGTH
    # Traffic in the walk's own channel does.
    own = commands.copy(to_memory=True, memory_address=stack.first(1), scratchpad_address=0, count=1500)
    (disturbed,) = accelerator.run_batch(np.concatenate([_walks([(3, quiet)]), own])).records
    assert disturbed["walker_cycles"] > alone["walker_cycles"][0]


def test_a_near_walk_cannot_leave_its_channel_and_a_far_one_can(machine: Machine) -> None:
    stack = machine.stack
    target = stack.first(1) + 77
    atom = np.zeros((1, 8), dtype=np.uint32)
    machine.accelerator.load_image(target, atom)
    start = machine.chain(0, seed=8, last=target)
    (near,) = machine.accelerator.run_batch(_walks([(0, start)])).records
    (far,) = machine.accelerator.run_batch(_walks([(0, start)], place=1)).records
    assert (near["status"], near["hops"]) == (WalkStatus.OUT_OF_WINDOW.value, LENGTH + 1)
    assert (far["status"], far["hops"]) == (WalkStatus.NULL_POINTER.value, LENGTH + 1)


@pytest.mark.parametrize("place", [0, 1])
def test_a_start_beyond_the_stack_is_refused(machine: Machine, place: int) -> None:
    stack = machine.stack
    for address in (stack.atoms, stack.atoms + stack.first(1) + 5, (1 << 32) - 2):
        (record,) = machine.accelerator.run_batch(_walks([(2, address)], place=place)).records
        assert record["status"] == WalkStatus.OUT_OF_WINDOW.value
    # The context is free again.
    chain = machine.chain(1, seed=9)
    (record,) = machine.accelerator.run_batch(_walks([(2, chain)], place=place)).records
    assert record["status"] == WalkStatus.NULL_POINTER.value and record["hops"] == LENGTH


def test_a_context_is_configured_for_one_channel(machine: Machine) -> None:
    """The same context of another channel keeps its own budget; the far walker has what was written last."""
    chains = [machine.chain(channel, seed=10) for channel in range(2)]
    machine.open(5, 0)
    machine.open(5, 1, budget=20)
    records = machine.accelerator.run_batch(_walks([(5, chain) for chain in chains])).records
    statuses = {int(record["channel"]): int(record["status"]) for record in records}
    assert statuses == {0: WalkStatus.NULL_POINTER.value, 1: WalkStatus.BUDGET_SPENT.value}
    (far,) = machine.accelerator.run_batch(_walks([(5, chains[0])], place=1)).records
    assert far["status"] == WalkStatus.BUDGET_SPENT.value
    machine.open(5, 1)


def test_counters_count_all_channels_or_those_chosen(machine: Machine) -> None:
    accelerator = machine.accelerator
    chains = [machine.chain(channel, seed=11) for channel in range(machine.stack.channels)]
    walks = _walks([(0, chain) for chain in chains[1:]] + [(context, chains[0]) for context in (1, 2)])
    counted = {}
    for channels in ((0,), (1,), range(machine.stack.channels)):
        accelerator.count_channels(channels)
        accelerator.reset_counters()
        accelerator.run_batch(walks)
        counted[tuple(channels)] = accelerator.counters()["reads"]
    accelerator.count_channels(range(machine.stack.channels))
    everything = (machine.stack.channels + 1) * LENGTH
    assert counted == {(0,): 2 * LENGTH, (1,): LENGTH, tuple(range(machine.stack.channels)): everything}


def test_a_batch_repeats_itself_whatever_ran_before(machine: Machine) -> None:
    chains = [machine.chain(channel, seed=12) for channel in range(machine.stack.channels)]
    batch = np.concatenate(
        [
            _walks([(context, chain) for context in range(4) for chain in chains]),
            _walks([(context, chain) for context, chain in enumerate(chains)], place=1),
            commands.copy(
                to_memory=False,
                memory_address=machine.stack.first(1) - 100,
                scratchpad_address=1024,
                count=200,
            ),
        ]
    )
    first = machine.accelerator.run_batch(batch)
    for channel in range(machine.stack.channels):
        machine.accelerator.run_batch(_walks([(7, chains[channel])]))
        again = machine.accelerator.run_batch(batch)
        assert again.cycles == first.cycles
        assert np.array_equal(again.records, first.records)


def _plan(path: Path, config: DesignConfig, *, concurrent: int) -> Plan:
    return make_plan(
        import_file(path),
        program=PROGRAM,
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.atoms,
        contexts=config.walker.contexts,
        concurrent=concurrent,
        channels=config.memory.channels,
        placement=FewestSearches(),
    )


def test_a_replay_gives_the_verdicts_of_one_channel(machine: Machine, tmp_path: Path) -> None:
    traces = tmp_path / "random.jsonl"
    write_traces(traces, seed=20261130, nodes=60)
    plan = _plan(traces, machine.config, concurrent=3)
    single = _plan(traces, design_for("hbm2_2000"), concurrent=3)
    assert {planned.channel for planned in plan.traces} == set(range(min(3, machine.stack.channels)))
    for place in (0, 1):
        run = run_plan(plan, program=PROGRAM, place=place, driver=machine.accelerator, monitor=machine.model)
        assert run.wrong == run.not_golden == run.memory_differs == []
        # What one channel answers, but for where the trees lie.
        assert [(answer.status, answer.code, answer.hops) for answer in run.answers] == [
            (walk.golden.status, walk.golden.code, walk.golden.hops) for walk in single.walks
        ]
    machine.reset()
