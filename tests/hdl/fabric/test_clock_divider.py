"""The clock divider: one enable in `ratio` cycles, and its alignment."""

import pytest
from amaranth.sim import Simulator

from hdl.fabric.clock_divider import ClockDivider


def run(ratio, align):
    """(first, enable) of every cycle of the sequence `align`."""
    dut, seen = ClockDivider(ratio), []

    async def bench(ctx):
        for value in align:
            ctx.set(dut.align, value)
            seen.append((ctx.get(dut.first), ctx.get(dut.enable)))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


@pytest.mark.parametrize("ratio", [2, 3, 4])
def test_the_enable_is_high_in_the_last_of_every_ratio_cycles(ratio):
    seen = run(ratio, [0] * 5 * ratio)
    assert [enable for _, enable in seen] == ([0] * (ratio - 1) + [1]) * 5
    assert [first for first, _ in seen] == ([1] + [0] * (ratio - 1)) * 5


@pytest.mark.parametrize("before", range(6))
def test_a_slow_cycle_begins_after_an_alignment_whatever_was_before(before):
    seen = run(4, [0] * before + [1, 1, 1] + [0] * 8)
    assert [enable for _, enable in seen[before : before + 3]] == [0, 0, 0]
    assert [enable for _, enable in seen[before + 3 :]] == [0, 0, 0, 1] * 2
    assert [first for first, _ in seen[before + 3 :]] == [1, 0, 0, 0] * 2


@pytest.mark.parametrize("ratio", [0, 1])
def test_a_clock_that_is_no_slower_has_no_divider(ratio):
    with pytest.raises(ValueError, match=f"ratio is {ratio}: expected at least 2"):
        ClockDivider(ratio)
