"""The bound on a walk's time: it holds with ideal neighbours, and is what its docstring adds up."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from hdl.config import WalkerConfig, named_config
from hdl.layouts import RefreshMode, WalkStatus
from hdl.memory.wait_bound import wait_bound
from hdl.walker.isa import Exit, ExitKind, Instruction, Update, UpdateKind
from hdl.walker.walk_bound import near_walk_bound, walk_bound

from .harness import Harness

_SPIN = Instruction(taken=Exit(target=0))
_STORE = Instruction(
    update=Update(kind=UpdateKind.ADD, register=1, source_index=0),
    store=True,
    store_word=7,
    store_register=1,
    taken=Exit(kind=ExitKind.LOAD, target=1),
)
_YIELD = Instruction(taken=Exit(kind=ExitKind.YIELD, target=2))


@pytest.mark.parametrize("stages", [1, 3, 6])
def test_no_walk_takes_longer(stages: int) -> None:
    """Walks that jump, store and load, and yield beside one another, on a memory of one latency."""
    rng = random.Random(stages)
    latency, budget, contexts = 20, 25, 8
    harness = Harness(
        contexts=contexts,
        stages=stages,
        program=[_SPIN, _STORE, _YIELD],
        memory={n: [n] * 8 for n in range(1, 40)},
        windows={n: (1, 40, True, budget) for n in range(contexts)},
        tenants={n: n & 1 for n in range(contexts)},
        latency=lambda _: latency,
        request_ready=lambda _: rng.random() < 0.5,
        verdict_ready=lambda _: rng.random() < 0.5,
        watchdog=20_000,
    )
    for turn in range(4 * contexts):
        harness.launch(turn % contexts, 1 + turn % 30, entry=turn % 3)
    verdicts = harness.run()
    walker = WalkerConfig(contexts=contexts, execute_stages=stages)
    # A coin decides whether a neighbour takes something: 30 times the same side never comes.
    bound = walk_bound(
        walker, steps=budget, wait=latency, dependent_wait=latency, port=30 * contexts, verdict=30
    )
    assert {verdict.status for verdict in verdicts} == {WalkStatus.BUDGET_SPENT}
    longest = max(verdict.cycles for verdict in verdicts)
    assert budget < longest <= bound


def test_a_step_more_is_a_step_more() -> None:
    walker = WalkerConfig(contexts=4)
    usual = {"wait": 40, "dependent_wait": 90, "port": 50, "verdict": 8}
    bounds = [walk_bound(walker, steps=steps, **usual) for steps in range(4)]
    assert len({after - before for before, after in pairwise(bounds)}) == 1
    assert bounds[1] - bounds[0] > 40 + 50
    for name, longer in (("wait", 41), ("dependent_wait", 91), ("port", 51), ("verdict", 10_000)):
        assert walk_bound(walker, steps=3, **(usual | {name: longer})) > bounds[3]


@pytest.mark.parametrize("mode", list(RefreshMode))
def test_the_bound_of_a_design_is_over_that_of_its_reads(mode: RefreshMode) -> None:
    config = named_config("simulation")
    reads = [near_walk_bound(config, mode, steps=steps, verdict=64) for steps in (0, 10)]
    assert reads[0] > wait_bound(config, mode)
    assert reads[1] - reads[0] > 10 * wait_bound(config, mode)
