"""The fault injector: which reads it disturbs, for how long, and with which bits."""

from __future__ import annotations

import random
from typing import Any

from hdl.config import MemoryConfig
from hdl.memory.address import AddressMap
from hdl.memory.injector import LANE_WIDTH, LANES, FaultInjector

from ..streams import run

CONFIG = MemoryConfig(rows=4, columns=4)
MAP = AddressMap(CONFIG)


async def _set_flips(ctx: Any, dut: FaultInjector, pattern: int) -> None:
    ctx.set(dut.control.set_flips, 1)
    for lane in range(LANES):
        ctx.set(dut.control.lane, lane)
        ctx.set(dut.control.flips, pattern >> LANE_WIDTH * lane & (1 << LANE_WIDTH) - 1)
        await ctx.tick()
    ctx.set(dut.control.set_flips, 0)


async def _arm(ctx: Any, dut: FaultInjector, address: int, *, arm: int = 1, sticky: int = 0) -> None:
    ctx.set(dut.control.address, address)
    ctx.set(dut.control.arm, arm)
    ctx.set(dut.control.sticky, sticky)
    ctx.set(dut.control.set_armed, 1)
    await ctx.tick()
    ctx.set(dut.control.set_armed, 0)


async def _flips(ctx: Any, dut: FaultInjector, address: int, *, read: int = 1) -> int:
    """The flips of what is returned for an access of `address`."""
    ctx.set(dut.index, MAP.storage_index(address))
    ctx.set(dut.read, read)
    assert ctx.get(dut.flips) == 0
    await ctx.tick()
    ctx.set(dut.read, 0)
    found = ctx.get(dut.flips)
    await ctx.tick()
    return found


def test_one_read_of_the_atom_is_disturbed_and_no_other() -> None:
    rng = random.Random(3)
    dut = FaultInjector(CONFIG)

    async def bench(ctx: Any) -> None:
        for _ in range(20):
            pattern = rng.getrandbits(LANES * LANE_WIDTH)
            victim, *others = rng.sample(range(MAP.atoms), 8)
            await _set_flips(ctx, dut, pattern)
            assert not ctx.get(dut.control.armed)
            assert await _flips(ctx, dut, victim) == 0, "not armed yet"
            await _arm(ctx, dut, victim)
            assert ctx.get(dut.control.armed)
            for other in others:
                assert await _flips(ctx, dut, other) == 0, "another atom"
            assert await _flips(ctx, dut, victim, read=0) == 0, "not a read"
            assert ctx.get(dut.control.armed)
            assert await _flips(ctx, dut, victim) == pattern
            assert not ctx.get(dut.control.armed)
            assert await _flips(ctx, dut, victim) == 0, "armed for one read"

    run(dut, bench)


def test_a_sticky_fault_disturbs_every_read_until_it_is_withdrawn() -> None:
    dut = FaultInjector(CONFIG)

    async def bench(ctx: Any) -> None:
        await _set_flips(ctx, dut, 1 << 287 | 1)
        await _arm(ctx, dut, 9, sticky=1)
        for _ in range(5):
            assert await _flips(ctx, dut, 9) == 1 << 287 | 1
            assert await _flips(ctx, dut, 8) == 0
        await _arm(ctx, dut, 9, arm=0, sticky=1)
        assert not ctx.get(dut.control.armed)
        assert await _flips(ctx, dut, 9) == 0

    run(dut, bench)


def test_an_address_beyond_the_memory_disturbs_nothing() -> None:
    """Its low bits name an atom that exists."""
    dut = FaultInjector(CONFIG)

    async def bench(ctx: Any) -> None:
        await _set_flips(ctx, dut, 1)
        await _arm(ctx, dut, MAP.atoms + 5)
        assert await _flips(ctx, dut, 5) == 0

    run(dut, bench)
