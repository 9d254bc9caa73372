"""The stream buffer: order, one a cycle, and no path through it."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.fabric.stream_buffer import StreamBuffer


def run(seed, *, count=200, busy=0.5, ready=0.5):
    """Cycles of (taken in, taken out) by payload, each in order."""
    choose = random.Random(seed)
    dut = StreamBuffer(16)
    entered, left = {}, {}

    async def bench(ctx):
        cycle, offered = 0, None
        while len(left) < count:
            if offered is None and len(entered) < count and choose.random() < busy:
                offered = len(entered)
            # What is offered or taken changes neither side's answer in the same cycle.
            ctx.set(dut.output.ready, 0)
            ctx.set(dut.input.valid, 0)
            before = ctx.get(dut.input.ready), ctx.get(dut.output.valid)
            ctx.set(dut.input.valid, offered is not None)
            ctx.set(dut.input.payload, offered or 0)
            takes = choose.random() < ready
            ctx.set(dut.output.ready, takes)
            assert (ctx.get(dut.input.ready), ctx.get(dut.output.valid)) == before
            assert ctx.get(dut.empty) == (len(entered) == len(left))
            if takes and before[1]:
                left[ctx.get(dut.output.payload)] = cycle
            if offered is not None and before[0]:
                entered[offered], offered = cycle, None
            await ctx.tick()
            cycle += 1
            assert cycle < 100 * count, "watchdog"

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return entered, left


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("busy", "ready"), [(0.1, 1), (0.5, 0.5), (1, 0.2), (0.9, 0.9)])
def test_every_payload_passes_once_in_order(seed, busy, ready):
    print(f"seed {seed}")
    entered, left = run(seed, busy=busy, ready=ready)
    assert list(left) == list(range(200))
    assert all(left[number] > cycle for number, cycle in entered.items())


def test_one_payload_a_cycle_and_one_cycle_each():
    entered, left = run(1, busy=1, ready=1)
    assert list(entered.values()) == list(range(200))
    assert list(left.values()) == list(range(1, 201))
