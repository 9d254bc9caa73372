"""The event counters against a plain count of random events, with batches and clears at random times."""

import random
from collections import Counter

import pytest
from amaranth.sim import Simulator

from hdl.counters import EventCounters
from hdl.layouts import RowClass, RowOp

NAMES = ("cycles", "reads", "writes", "row_hits", "row_closed", "row_conflicts", "refreshes", "violations")


@pytest.mark.parametrize("seed", range(4))
def test_counts_what_happens_inside_batches_until_cleared(seed: int) -> None:
    choose = random.Random(seed)
    dut = EventCounters()
    expected: Counter[str] = Counter()

    async def bench(ctx) -> None:
        active = 0
        for _ in range(1500):
            if choose.random() < 0.02:
                active = 1 - active
            clear = int(choose.random() < 0.005)
            row_class = choose.choice(list(RowClass))
            write = choose.getrandbits(1)
            row_op = choose.choice(list(RowOp))
            violation = int(choose.random() < 0.1)
            ctx.set(dut.active, active)
            ctx.set(dut.clear, clear)
            ctx.set(dut.access.row_class, row_class)
            ctx.set(dut.access.write, write)
            ctx.set(dut.row_op, row_op)
            ctx.set(dut.violation, violation)
            await ctx.tick()
            if clear:
                expected.clear()
            else:
                if active:
                    expected["cycles"] += 1
                    expected["refreshes"] += row_op in (RowOp.REFRESH_ALL, RowOp.REFRESH_BANK)
                    if row_class != RowClass.NONE:
                        expected["writes" if write else "reads"] += 1
                        expected[
                            {
                                RowClass.HIT: "row_hits",
                                RowClass.CLOSED: "row_closed",
                                RowClass.CONFLICT: "row_conflicts",
                            }[row_class]
                        ] += 1
                expected["violations"] += violation
            assert {name: ctx.get(getattr(dut, name)) for name in NAMES} == {
                name: expected[name] for name in NAMES
            }

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
