"""Replays with skips and with every layout on the fake accelerator: the same verdicts, fewer reads."""

from __future__ import annotations

import pytest

from firmware_py.bench.walker.synthetic import deep_searches
from firmware_py.errors import InputError
from firmware_py.image import CreationOrder
from firmware_py.layout import LAYOUTS, layout_named
from firmware_py.programs import CLIMBS, climb_compressed, replay_image
from firmware_py.replay import make_plan, run_plan
from firmware_py.search import Search
from hdl.config import named_config
from sim.trace.events import Backtrack, Backup, Expand

from .fake_accelerator import FakeAccelerator
from .test_replay import RING, node, trace

CONFIG = named_config("simulation")


def plan_of(traces, *, climbing="climb_compressed", layout="creation", concurrent=1):
    return make_plan(
        traces,
        program=replay_image(climbing),
        layout=layout_named(layout, CONFIG.memory),
        climbing=climbing,
        ring=RING,
        memory_atoms=CONFIG.memory.organisation.atoms,
        contexts=CONFIG.walker.contexts,
        concurrent=concurrent,
    )


def run(plan, *, climbing="climb_compressed"):
    fake = FakeAccelerator(CONFIG)
    return run_plan(plan, program=replay_image(climbing), place=0, driver=fake, monitor=fake)


@pytest.mark.parametrize("climbing", CLIMBS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("concurrent", [1, 3])
def test_every_program_and_layout_gives_the_right_verdicts(climbing, layout, concurrent):
    # The same searches twice: what is known of one must not be taken for the other's.
    plan = plan_of(deep_searches(2, seed=11) * 2, climbing=climbing, layout=layout, concurrent=concurrent)
    result = run(plan, climbing=climbing)
    assert len(result.answers) > 40
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []
    assert "climb" in plan.controls


def test_skips_pass_what_is_closed():
    reads = {}
    for climbing in CLIMBS:
        plan = plan_of(deep_searches(2, seed=11), climbing=climbing)
        reads[climbing] = sum(walk.golden.hops for walk in plan.walks)
    assert reads["climb_compressed"] < reads["climb"] / 2


def _reopened():
    """Long climbs over nodes that are armed again later, and climbed over again."""
    chain = [event for n in range(1, 12) for event in (node(n, n - 1, depth=n),)]
    again = [
        event
        for turn in range(40)
        for event in (
            Expand(id=3, untried=turn % 2, untried_source="declared"),
            Backtrack(from_=11, to=3 if turn % 2 else 0),
        )
    ]
    return trace(node(0), Expand(id=0, untried=1, untried_source="declared"), *chain, *again)


def test_nodes_that_are_armed_again_take_new_stamps_until_they_begin_anew():
    search = _reopened()
    plan = plan_of([search])
    result = run(plan)
    assert len(result.answers) == 40
    assert result.wrong == [] and result.not_golden == [] and result.memory_differs == []
    stamps = [walk.question.registers[1] for walk in plan.walks]
    assert set(stamps) == set(range(1, climb_compressed.STAMPS + 1)) and stamps[-1] < stamps[20]


def test_value_sums_and_skips_cannot_share_their_word():
    both = trace(node(0), node(1, 0, depth=1), Backup(path=(1, 0), value=1.0), Backtrack(from_=1, to=None))
    with pytest.raises(InputError, match="backup adds to the word that holds the skips"):
        plan_of([both])
    sums = trace(node(0), node(1, 0, depth=1), Backup(path=(1, 0), value=1.0))
    assert len(plan_of([sums]).walks) == 1
    assert Search(both.events, layout=CreationOrder()).skips is None
