"""The page predictor against its counter of two bits in Python."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hdl.memory.page_policy import PagePredictor

from ..streams import run

UNITS = 4


@pytest.mark.parametrize("seed", range(3))
def test_two_misses_in_a_row_close_and_hits_open_again(seed: int) -> None:
    dut = PagePredictor(units=UNITS)
    rng = random.Random(seed)
    counters, known = [0] * UNITS, [False] * UNITS
    states: set[int] = set()

    async def bench(ctx: Any) -> None:
        for cycle in range(2000):
            assert ctx.get(dut.close) == sum((counters[u] >= 2) << u for u in range(UNITS)), f"cycle {cycle}"
            arrival, unit, same_row = rng.random() < 0.7, rng.randrange(UNITS), rng.random() < 0.5
            activated = 1 << rng.randrange(UNITS) if cycle > 20 and rng.random() < 0.1 else 0
            for port, value in (
                (dut.arrival, arrival),
                (dut.unit, unit),
                (dut.same_row, same_row),
                (dut.activated, activated),
            ):
                ctx.set(port, int(value))
            if arrival and known[unit]:
                counters[unit] = max(0, counters[unit] - 1) if same_row else min(3, counters[unit] + 1)
                states.add(counters[unit])
            for u in range(UNITS):
                known[u] |= bool(activated >> u & 1)
            await ctx.tick()

    run(dut, bench)
    assert states == {0, 1, 2, 3}
