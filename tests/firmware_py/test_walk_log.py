"""Every walk of a run in time, from the hop log of the fake accelerator."""

import dataclasses

import numpy as np
import pytest

from firmware_py.walk_log import replay_span, walk_log
from hdl.config import named_config

from .fake_accelerator import CROSSING_CYCLES, HOP_CYCLES, FakeAccelerator
from .test_replay import beam, depth_first, plan_of, run

MEMORY = named_config("simulation").memory


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("concurrent", [1, 3])
def test_every_walk_has_its_reads_and_its_verdict(place, concurrent):
    plan = plan_of(depth_first("a"), beam(), depth_first("b"), concurrent=concurrent)
    result, _ = run(plan, place)
    walks = walk_log(plan, result, MEMORY)
    assert [walk.number for walk in walks] == list(range(len(plan.walks)))
    for walk in walks:
        answer = result.answers[walk.number]
        assert len(walk.requested) == len(walk.address) == answer.hops
        assert walk.address[0] == plan.walks[walk.number].question.start
        assert np.all(np.diff(walk.requested) == HOP_CYCLES[place])
        assert walk.verdict - walk.requested[-1] == HOP_CYCLES[place]
        assert walk.outside == 2 * CROSSING_CYCLES


def test_a_log_without_a_verdict_is_an_error():
    plan = plan_of(depth_first())
    result, _ = run(plan)
    logs = result.logs
    short = dataclasses.replace(logs, hops=logs.hops[:-1], hop_batch=logs.hop_batch[:-1])
    with pytest.raises(ValueError, match="1 verdicts: expected 2 by the plan"):
        walk_log(plan, dataclasses.replace(result, logs=short), MEMORY)


def test_the_span_of_a_replay_leaves_the_control_out():
    plan = plan_of(depth_first())
    result, _ = run(plan, accelerator=FakeAccelerator(named_config("simulation")))
    windows = np.zeros(len(plan.batches) + 2, dtype=[("begin", "<u8"), ("end", "<u8")])
    windows["begin"] = 100 * np.arange(1, len(windows) + 1)
    windows["end"] = windows["begin"] + 50
    windowed = dataclasses.replace(result, logs=dataclasses.replace(result.logs, windows=windows))
    assert replay_span(plan, windowed) == (100, int(windows["end"][len(plan.batches) - 1]))
    assert replay_span(plan, result)[1] == max(log["cycle"][-1] for log in result.logs.commands) + 1
