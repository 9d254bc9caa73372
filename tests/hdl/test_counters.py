"""The event counters against a plain count of random events, with batches and clears at random times."""

import random
from collections import Counter

import pytest
from amaranth.sim import Simulator

from hdl.counters import EventCounters
from hdl.layouts import RowClass, RowOp

NAMES = ("cycles", "reads", "writes", "row_hits", "row_closed", "row_conflicts", "refreshes", "violations")
CLASSES = {RowClass.HIT: "row_hits", RowClass.CLOSED: "row_closed", RowClass.CONFLICT: "row_conflicts"}


@pytest.mark.parametrize(("seed", "channels"), [(0, 1), (1, 1), (2, 2), (3, 8)])
def test_counts_what_happens_inside_batches_until_cleared(seed: int, channels: int) -> None:
    choose = random.Random(seed)
    dut = EventCounters(channels=channels)
    expected: Counter[str] = Counter()

    def event(ctx, channel: int, *, counts: bool) -> None:
        row_class = choose.choice(list(RowClass))
        write, row_op = choose.getrandbits(1), choose.choice(list(RowOp))
        violation = int(choose.random() < 0.1)
        accessed = row_class != RowClass.NONE
        ctx.set(dut.read[channel], accessed and not write)
        ctx.set(dut.write[channel], accessed and write)
        ctx.set(dut.row_class[channel], row_class)
        ctx.set(dut.row_op[channel], row_op)
        ctx.set(dut.violation[channel], violation)
        expected["violations"] += violation
        if counts:
            expected["refreshes"] += row_op in (RowOp.REFRESH_ALL, RowOp.REFRESH_BANK)
            if accessed:
                expected["writes" if write else "reads"] += 1
                expected[CLASSES[row_class]] += 1

    async def bench(ctx) -> None:
        active, enabled = 0, (1 << channels) - 1
        for _ in range(1500):
            if choose.random() < 0.02:
                active = 1 - active
            if choose.random() < 0.01:
                enabled = choose.getrandbits(channels)
            clear = int(choose.random() < 0.005)
            ctx.set(dut.active, active)
            ctx.set(dut.enabled, enabled)
            ctx.set(dut.clear, clear)
            for channel in range(channels):
                event(ctx, channel, counts=bool(active and enabled >> channel & 1))
            expected["cycles"] += active
            await ctx.tick()
            if clear:
                expected.clear()
            assert {name: ctx.get(getattr(dut, name)) for name in NAMES} == {
                name: expected[name] for name in NAMES
            }

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
