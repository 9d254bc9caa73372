"""The stream merge: every payload once, each input in order, in turn, and nothing is taken back."""

import random
from functools import partial

import pytest

from hdl.fabric.stream_merge import StreamMerge
from tests.hdl.streams import check_stream_rule, collect, drive, never, randomly, run

INPUTS = 4


def _run(seed: int, *, inputs: int = INPUTS, count: int = 60, idle=0.5, stall=0.5) -> list[int]:
    """What comes out when each input sends `count` payloads, 1000 * input + number."""
    rng = random.Random(seed)
    dut = StreamMerge(16, inputs=inputs)
    found: list[int] = []

    async def sender(index, ctx):
        payloads = [1000 * index + number for number in range(count)]
        await drive(ctx, dut.input[index], payloads, randomly(rng, share=idle) if idle else never)

    async def taker(ctx):
        wait = randomly(rng, share=stall) if stall else never
        await collect(ctx, dut.output, inputs * count, found, wait)

    senders = [partial(sender, index) for index in range(inputs)]
    run(dut, *senders, taker, processes=[check_stream_rule(dut.output, "output")])
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inputs", [2, 3, 16])
def test_every_payload_comes_out_once_and_each_input_in_order(seed: int, inputs: int) -> None:
    found = _run(seed, inputs=inputs, count=30)
    for index in range(inputs):
        assert [value for value in found if value // 1000 == index] == [1000 * index + n for n in range(30)]
    assert len(found) == 30 * inputs


def test_inputs_take_turns() -> None:
    found = _run(5, idle=0, stall=0)
    for at in range(0, len(found) - INPUTS):
        assert {value // 1000 for value in found[at : at + INPUTS]} == set(range(INPUTS))


def test_an_offer_stays_when_another_input_wakes_up() -> None:
    """Input 1 is offered and refused; then input 0, whose turn comes first, wants to send as well."""
    dut = StreamMerge(8, inputs=2)

    async def bench(ctx):
        ctx.set(dut.input[1].payload, 11)
        ctx.set(dut.input[1].valid, 1)
        await ctx.tick()
        ctx.set(dut.input[0].payload, 10)
        ctx.set(dut.input[0].valid, 1)
        for _ in range(3):
            await ctx.delay(1e-10)
            assert (ctx.get(dut.output.valid), ctx.get(dut.output.payload)) == (1, 11)
            await ctx.tick()
        ctx.set(dut.output.ready, 1)
        await ctx.delay(1e-10)
        assert (ctx.get(dut.input[0].ready), ctx.get(dut.input[1].ready)) == (0, 1)
        await ctx.tick()
        ctx.set(dut.input[1].valid, 0)
        await ctx.delay(1e-10)
        assert (ctx.get(dut.output.payload), ctx.get(dut.input[0].ready)) == (10, 1)

    run(dut, bench)


def test_costs_no_cycle() -> None:
    dut = StreamMerge(8, inputs=2)

    async def bench(ctx):
        ctx.set(dut.output.ready, 1)
        for number in range(20):
            ctx.set(dut.input[number % 2].payload, number)
            ctx.set(dut.input[number % 2].valid, 1)
            await ctx.delay(1e-10)
            assert (ctx.get(dut.output.valid), ctx.get(dut.output.payload)) == (1, number)
            assert ctx.get(dut.input[number % 2].ready)
            await ctx.tick()
            ctx.set(dut.input[number % 2].valid, 0)

    run(dut, bench)


def test_refuses_a_single_input() -> None:
    with pytest.raises(ValueError, match="inputs is 1: expected 2 or more"):
        StreamMerge(8, inputs=1)
