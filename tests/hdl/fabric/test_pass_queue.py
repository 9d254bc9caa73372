"""The pass queue against a plain queue: order, no cycle while empty, and room for all that it promises."""

import random
from collections import deque

import pytest

from hdl.fabric.pass_queue import PassQueue
from tests.hdl.streams import check_stream_rule, collect, drive, randomly, run


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [2, 8])
def test_everything_comes_out_in_order(seed: int, depth: int) -> None:
    rng = random.Random(seed)
    dut = PassQueue(16, depth=depth)
    found: list[int] = []

    async def sender(ctx):
        await drive(ctx, dut.input, range(300), randomly(rng, share=0.3))

    async def taker(ctx):
        await collect(ctx, dut.output, 300, found, randomly(rng, share=0.3))

    run(dut, sender, taker, processes=[check_stream_rule(dut.output, "output")])
    assert found == list(range(300))


def test_every_cycle_is_that_of_a_queue_that_costs_none() -> None:
    """Cycle by cycle, full and empty included: what is offered, and whether more is taken."""
    rng = random.Random(20261130)
    depth = 4
    dut = PassQueue(16, depth=depth)
    held: deque[int] = deque()
    seen = {"empty": 0, "full": 0, "passed": 0}

    async def bench(ctx):
        number, offered = 0, False
        for cycle in range(3000):
            # Stretches with a slow taker fill it, others empty it.
            share = 0.2 if cycle // 100 % 2 else 0.8
            offered = offered or rng.random() < 0.6
            ready = int(rng.random() < share)
            ctx.set(dut.input.valid, int(offered))
            ctx.set(dut.input.payload, number)
            ctx.set(dut.output.ready, ready)
            await ctx.delay(1e-10)
            taken = offered and len(held) < depth
            assert ctx.get(dut.input.ready) == (len(held) < depth)
            head = held[0] if held else number if offered else None
            assert ctx.get(dut.output.valid) == (head is not None)
            if head is not None:
                assert ctx.get(dut.output.payload) == head
            seen["empty"] += not held
            seen["full"] += len(held) == depth
            seen["passed"] += not held and offered and ready
            if taken:
                held.append(number)
            if head is not None and ready:
                held.popleft()
            if taken:
                number, offered = number + 1, False
            await ctx.tick()

    run(dut, bench)
    assert all(count > 50 for count in seen.values()), seen


@pytest.mark.parametrize("depth", [1, 3])
def test_refuses_a_depth_that_is_no_power_of_two(depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth is {depth}: expected a power of two from 2"):
        PassQueue(8, depth=depth)
