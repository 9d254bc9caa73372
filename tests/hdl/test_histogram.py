"""The histograms against the ledger's loops of the same events; clearing; and what may meet in one cycle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from firmware_py.ledger import loops
from hdl.config import DesignConfig, HistogramConfig, MemoryConfig, WalkerConfig
from hdl.histogram import Bins, Histograms
from hdl.layouts import HopEvent
from tests.hdl.streams import run

BINS = 32
CONTEXTS = 4


def _config(channels: int = 1) -> DesignConfig:
    return DesignConfig(
        walker=WalkerConfig(contexts=CONTEXTS),
        memory=MemoryConfig(channels=channels),
        histogram=HistogramConfig(bins=BINS, walk_bin_cycles=8),
    )


async def _read(ctx: Any, dut: Histograms, *, channel: int = 0, far: int = 0, walks: int = 0) -> list[int]:
    ctx.set(dut.select, {"channel": channel, "far": far, "walks": walks})
    found = []
    for index in range(BINS):
        ctx.set(dut.index, index)
        await ctx.tick().repeat(2)
        found.append(ctx.get(dut.data))
    return found


def test_the_same_bin_in_every_cycle_counts_every_one() -> None:
    dut = Bins(8)
    values = [3, 3, 3, 5, 3, 5, 5, 700, 7, 8, 1 << 31, 0]

    async def bench(ctx: Any) -> None:
        ctx.set(dut.add, 1)
        for value in values:
            ctx.set(dut.value, value)
            await ctx.tick()
        ctx.set(dut.add, 0)
        ctx.set(dut.look, 1)
        await ctx.tick().repeat(3)
        for index in range(8):
            ctx.set(dut.index, index)
            await ctx.tick()
            assert ctx.get(dut.data) == sum(min(value, 7) == index for value in values), index

    run(dut, bench)


@pytest.mark.parametrize("seed", range(3))
def test_loops_are_those_of_the_ledger_and_outside_batches_none(seed: int) -> None:
    """Two near walkers and the far one at once, over three batches with events between them."""
    chance = random.Random(seed)
    dut = Histograms(_config(channels=2))
    logs: list[list[tuple[int, int, int, int]]] = [[], [], []]  # batch, cycle, context, event, by walker

    def next_event(busy: set[int], *, stop: bool) -> tuple[HopEvent, int]:
        """An event that may come now: a context requests, stores, and ends; the last ones end all."""
        context = chance.choice(sorted(busy)) if stop and busy else chance.randrange(CONTEXTS)
        if stop and not busy:
            return HopEvent.NONE, context
        event = HopEvent.VERDICT if stop else chance.choice((*[HopEvent.REQUEST] * 4, *HopEvent))
        if event is HopEvent.REQUEST:
            busy.add(context)
        elif event is HopEvent.VERDICT:
            # Also of a context without a request: a walk whose first check fails has no loop.
            busy.discard(context)
        return event, context

    async def bench(ctx: Any) -> None:
        for batch in range(3):
            busy: list[set[int]] = [set(), set(), set()]
            ctx.set(dut.active, 1)
            for cycle in range(400):
                for walker, hop in enumerate(dut.hop):
                    quiet = chance.random() < (0.8 if walker else 0.2)
                    event, context = (
                        (HopEvent.NONE, 1) if quiet else next_event(busy[walker], stop=cycle > 300)
                    )
                    ctx.set(hop.event, event)
                    ctx.set(hop.context, context)
                    if event is not HopEvent.NONE:
                        logs[walker].append((batch, cycle, context, event.value))
                await ctx.tick()
            assert not any(busy)
            ctx.set(dut.active, 0)
            for _ in range(50):
                for hop in dut.hop:
                    ctx.set(hop.event, chance.choice(list(HopEvent)))
                await ctx.tick()
        for walker, log in enumerate(logs):
            batches, cycles, contexts, events = zip(*log, strict=True)
            taken = loops(
                batch=batches, cycle=cycles, context=contexts, event=events, address=np.zeros(len(log))
            ).cycles
            assert len(taken) > 20 and (taken >= BINS).any(), walker
            expected = np.bincount(np.minimum(taken, BINS - 1), minlength=BINS).tolist()
            assert await _read(ctx, dut, channel=walker % 2, far=walker // 2) == expected

    run(dut, bench)


def test_walks_are_counted_by_place_in_bins_of_some_cycles() -> None:
    dut = Histograms(_config())

    async def bench(ctx: Any) -> None:
        for active, far, cycles in [(1, 0, 7), (1, 0, 8), (1, 0, 15), (1, 1, 16), (1, 1, 1 << 20), (0, 0, 8)]:
            ctx.set(dut.active, active)
            ctx.set(dut.walk.ended, 1)
            ctx.set(dut.walk.far, far)
            ctx.set(dut.walk.cycles, cycles)
            await ctx.tick()
        ctx.set(dut.walk.ended, 0)
        ctx.set(dut.active, 0)
        await ctx.tick().repeat(2)
        assert await _read(ctx, dut, walks=1) == [1, 2, *[0] * 30]
        assert await _read(ctx, dut, walks=1, far=1) == [0, 0, 1, *[0] * 28, 1]
        assert sum(await _read(ctx, dut)) == 0

    run(dut, bench)


def test_clearing_takes_a_cycle_for_each_bin_and_reads_as_zero_meanwhile() -> None:
    dut = Histograms(_config())

    async def bench(ctx: Any) -> None:
        ctx.set(dut.active, 1)
        ctx.set(dut.walk.ended, 1)
        ctx.set(dut.walk.cycles, 8 * (BINS - 1))
        await ctx.tick().repeat(5)
        ctx.set(dut.active, 0)
        await ctx.tick().repeat(2)
        ctx.set(dut.select.walks, 1)
        ctx.set(dut.index, BINS - 1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.data) == 5
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        for _ in range(BINS):
            assert ctx.get(dut.clearing) and ctx.get(dut.data) == 0
            await ctx.tick()
        assert not ctx.get(dut.clearing) and ctx.get(dut.data) == 0
        for walks in (0, 1):
            assert sum(await _read(ctx, dut, walks=walks)) == 0

    run(dut, bench)
