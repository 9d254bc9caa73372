"""The error log against a plain count of random errors, with clears at random times."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.error_log import ErrorLog

KINDS = ("corrected", "uncorrectable")


@pytest.mark.parametrize("channels", [1, 4])
def test_counts_and_remembers_the_last_address_of_each_kind(channels: int) -> None:
    choose = random.Random(20261130)
    dut = ErrorLog(channels=channels)
    counts, addresses = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    clears = 0

    async def bench(ctx) -> None:
        nonlocal clears
        for _ in range(1500):
            clear = int(choose.random() < 0.02)
            for errors in dut.errors:
                kind = choose.choice((*KINDS, None))
                address = choose.getrandbits(32)
                for name in KINDS:
                    ctx.set(getattr(errors, name), int(kind == name))
                ctx.set(errors.address, address)
                if kind:
                    counts[kind] += 1
                    addresses[kind] = address
            ctx.set(dut.clear, clear)
            await ctx.tick()
            if clear:
                clears += 1
                counts.update(dict.fromkeys(KINDS, 0))
            for name in KINDS:
                assert ctx.get(getattr(dut, name)) == counts[name]
                assert ctx.get(getattr(dut, f"{name}_address")) == addresses[name]

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    assert clears > 10
