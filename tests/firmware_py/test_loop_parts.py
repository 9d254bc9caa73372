"""The parts of an isolated loop: their sums, as they were measured, for every clock ratio."""

import dataclasses

import pytest

from firmware_py.loop_parts import LOOP_PARTS, loop_parts, memory_side_cycles
from hdl.config import ControllerConfig, WalkerConfig, named_config

SIMULATION = named_config("simulation")


def design(*, ratio=1, stages=1, ecc=False):
    return dataclasses.replace(
        SIMULATION,
        clock_ratio=ratio,
        walker=WalkerConfig(execute_stages=stages),
        controller=ControllerConfig(ecc=ecc),
    )


@pytest.mark.parametrize(
    ("options", "hit", "closed"),
    [
        ({}, 19, 34),
        ({"ecc": True}, 20, 35),
        ({"stages": 3}, 21, 36),
        ({"ratio": 2}, 22, 38),
        ({"ratio": 4}, 28, 44),
        ({"ratio": 2, "ecc": True, "stages": 2}, 26, 40),
    ],
)
def test_a_near_loop_is_the_sum_of_its_parts(options, hit, closed):
    config = design(**options)
    assert sum(loop_parts(config, "hit").values()) == hit
    assert sum(loop_parts(config, "closed").values()) == closed
    assert tuple(loop_parts(config, "hit")) == LOOP_PARTS


@pytest.mark.parametrize("ratio", [2, 4])
@pytest.mark.parametrize("state", ["hit", "closed", "conflict"])
def test_what_a_slower_clock_takes_is_whole_cycles_of_it(ratio, state):
    config = design(ratio=ratio)
    assert sum(loop_parts(config, state).values()) % ratio == 0
    assert 1 <= loop_parts(config, state)["capture"] <= ratio
    assert memory_side_cycles(config, state) % ratio == 0
    # A near loop and a far read have the front end in common; the arbiter has the response for a slow cycle.
    assert memory_side_cycles(config, state) == sum(loop_parts(config, state).values())
    assert memory_side_cycles(design(), state) == sum(loop_parts(design(), state).values()) - 1
