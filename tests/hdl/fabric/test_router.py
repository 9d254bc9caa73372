"""The router: every payload once, to its output, in order, with idle senders and stalling takers."""

import random
from collections import defaultdict
from functools import partial

import pytest
from amaranth.hdl import Module, Signal

from hdl.fabric.router import Router
from tests.hdl.streams import check_stream_rule, collect, put, randomly, run

OUTPUTS = 4


def _clocked(dut: Router) -> Module:
    """The router, which has no register, in a design that has a clock."""
    m = Module()
    m.submodules.dut = dut
    tick = Signal()
    m.d.sync += tick.eq(~tick)
    return m


def _run(seed: int, *, count: int = 200, stalls: tuple[float, ...] = (0.5,) * OUTPUTS):
    """Numbers sent with random outputs; what each output was meant to get, and got."""
    rng = random.Random(seed)
    dut = Router(16, outputs=OUTPUTS)
    targets = [rng.randrange(OUTPUTS) for _ in range(count)]
    expected, found = defaultdict(list), defaultdict(list)
    for number, target in enumerate(targets):
        expected[target].append(number)

    async def sender(ctx):
        idle = randomly(rng, share=0.4)
        for number, target in enumerate(targets):
            for _ in range(idle()):
                await ctx.tick()
            ctx.set(dut.select, target)
            await put(ctx, dut.input, number)

    async def taker(index, ctx):
        stall = randomly(rng, share=stalls[index])
        await collect(ctx, dut.output[index], len(expected[index]), found[index], stall)

    takers = [partial(taker, index) for index in range(OUTPUTS)]
    rules = [check_stream_rule(output, f"output {i}") for i, output in enumerate(dut.output)]
    run(_clocked(dut), sender, *takers, processes=rules)
    return expected, found


@pytest.mark.parametrize("seed", range(4))
def test_every_payload_goes_once_to_its_output_in_order(seed: int) -> None:
    expected, found = _run(seed)
    assert found == expected


def test_an_output_that_stalls_holds_back_its_own_and_those_behind() -> None:
    expected, found = _run(9, stalls=(1.0, 0.0, 0.0, 0.0))
    assert found == expected


def test_costs_no_cycle() -> None:
    dut = Router(8, outputs=2)

    async def bench(ctx):
        for target in (0, 1):
            ctx.set(dut.select, target)
            ctx.set(dut.input.payload, 5)
            ctx.set(dut.input.valid, 1)
            ctx.set(dut.output[target].ready, 1)
            await ctx.delay(1e-10)
            assert [ctx.get(output.valid) for output in dut.output] == [1 - target, target]
            assert ctx.get(dut.output[target].payload) == 5 and ctx.get(dut.input.ready)
            ctx.set(dut.output[target].ready, 0)
            await ctx.delay(1e-10)
            assert not ctx.get(dut.input.ready)

    run(_clocked(dut), bench)


@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_refuses_a_number_of_outputs_that_is_no_power_of_two(outputs: int) -> None:
    with pytest.raises(ValueError, match=f"outputs is {outputs}: expected a power of two from 2"):
        Router(8, outputs=outputs)
