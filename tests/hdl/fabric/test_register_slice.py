"""The register slice: a fast source and a sink on the enable, both with pauses."""

import itertools
import random

import pytest
from amaranth.sim import Simulator

from hdl.fabric.register_slice import RegisterSlice

RATIO = 4


def run(seed, *, count=200, busy=0.5, ready=0.5):
    """Cycles of (offered, taken in, visible, taken out) by payload, each in order."""
    choose = random.Random(seed)
    dut = RegisterSlice(16)
    entered, left, seen, state = {}, {}, {}, {"cycle": 0}

    async def clock(ctx):
        while len(left) < count:
            ctx.set(dut.enable, state["cycle"] % RATIO == RATIO - 1)
            if state["cycle"] % RATIO == 0:
                # A sink on the enable decides once in a slow cycle.
                ctx.set(dut.output.ready, choose.random() < ready)
            *_, enable, valid, payload, taken, empty = await ctx.tick().sample(
                dut.enable, dut.output.valid, dut.output.payload, dut.output.ready, dut.empty
            )
            assert empty == (not valid)
            if valid:
                seen.setdefault(payload, state["cycle"])
                if enable and taken:
                    assert payload not in left, f"{payload} leaves twice"
                    left[payload] = state["cycle"]
            state["cycle"] += 1
            assert state["cycle"] < 100 * count, "watchdog"

    async def source(ctx):
        for number in range(count):
            while choose.random() > busy:
                await ctx.tick()
            ctx.set(dut.input.payload, number)
            ctx.set(dut.input.valid, 1)
            await ctx.tick().until(dut.input.ready)
            entered[number] = state["cycle"]
            ctx.set(dut.input.valid, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(clock)
    simulator.add_testbench(source)
    simulator.run()
    return entered, seen, left


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("busy", "ready"), [(0.1, 1), (1, 1), (0.5, 0.5), (1, 0.2)])
def test_every_payload_passes_once_in_order_and_is_there_for_a_slow_cycle(seed, busy, ready):
    print(f"seed {seed}")
    _, seen, left = run(seed, busy=busy, ready=ready)
    assert list(left) == list(range(200))
    for number, cycle in left.items():
        assert cycle % RATIO == RATIO - 1
        assert seen[number] % RATIO == 0 and cycle - seen[number] >= RATIO - 1


def test_one_payload_passes_in_every_slow_cycle():
    _, _, left = run(1, busy=1, ready=1)
    cycles = list(left.values())
    assert {later - earlier for earlier, later in itertools.pairwise(cycles)} == {RATIO}
