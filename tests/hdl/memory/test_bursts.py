"""The burst collector alone: what it puts out, whatever lies at its inputs while nothing is offered."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.fabric.axi4 import BURST_BEATS
from hdl.memory.axi.bursts import COLLECT_CYCLES, BurstCollector


def collect(requests, *, idle_address, alone=(), seed=0):
    """The bursts (first atom, beats) of requests for these atoms, offered at random with ten cycles' silence
    at the end; `idle_address(last)` is what the address shows while nothing is offered."""
    choose = random.Random(seed)
    dut = BurstCollector(address_bits=12)
    bursts = []

    async def requester(ctx):
        for number, address in enumerate(requests):
            while choose.random() < 0.3:
                await ctx.tick()
            ctx.set(dut.offered, 1)
            ctx.set(dut.address, address)
            ctx.set(dut.alone, number in alone)
            while True:
                ctx.set(dut.take, ctx.get(dut.room))
                taken = ctx.get(dut.take)
                await ctx.tick()
                if taken:
                    break
            ctx.set(dut.offered, 0)
            ctx.set(dut.take, 0)
            ctx.set(dut.alone, 0)
            ctx.set(dut.address, idle_address(address))
        await ctx.tick().repeat(COLLECT_CYCLES + 10)

    async def taker(ctx):
        ctx.set(dut.burst.ready, 1)
        while True:
            *_, valid, burst = await ctx.tick().sample(dut.burst.valid, dut.burst.payload)
            if valid:
                bursts.append((burst.address, burst.length + 1))

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(requester)
    simulator.add_testbench(taker, background=True)
    simulator.run()
    return bursts


@pytest.mark.parametrize("ahead", range(-1, 3))
def test_a_burst_ends_whatever_the_idle_address_shows(ahead: int) -> None:
    """A requester may leave the next atom's address there without asking for it: that is nobody who joins."""
    assert collect([4], idle_address=lambda last: last + ahead) == [(4, 1)]
    assert collect([4, 5, 6], idle_address=lambda last: last + ahead) == [(4, 3)]


def test_a_burst_ends_with_its_block() -> None:
    """Neither the next block nor its own beginning, which has the place after the last, joins it."""
    idle = BURST_BEATS // 2
    for first in (0, 3 * BURST_BEATS):
        last = first + BURST_BEATS - 1
        for following in (first, last + 1):
            requests = [last - 1, last, following, following + 1]
            assert collect(requests, idle_address=lambda last: idle) == [(last - 1, 2), (following, 2)]


@pytest.mark.parametrize("seed", range(4))
def test_every_atom_is_in_one_burst_in_order(seed: int) -> None:
    choose = random.Random(seed)
    requests = []
    while len(requests) < 200:
        first = choose.randrange(4000)
        requests += range(first, min(first + choose.randrange(1, 40), 4096))
    alone = {number for number in range(len(requests)) if choose.random() < 0.05}
    bursts = collect(requests, idle_address=lambda last: last + 1, alone=alone, seed=seed)
    assert [first + beat for first, beats in bursts for beat in range(beats)] == requests
    for first, beats in bursts:
        assert first // BURST_BEATS == (first + beats - 1) // BURST_BEATS
    assert any(beats == BURST_BEATS for _, beats in bursts)
