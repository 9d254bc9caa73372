"""The round robin of two tenants against a model in plain Python."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from hdl.walker.tenant_robin import TenantRobin


@pytest.mark.parametrize("contexts", [1, 5, 16])
def test_tenants_take_turns_and_contexts_go_round(contexts: int) -> None:
    rng = random.Random(contexts)
    dut = TenantRobin(contexts)

    async def drive(ctx: Any) -> None:
        for _ in range(6):
            second = rng.choice((0, rng.getrandbits(contexts)))
            last, turn = [-1, -1], 0
            ctx.set(dut.second, second)
            ctx.set(dut.restart, 1)
            await ctx.tick()
            ctx.set(dut.restart, 0)
            for _ in range(200):
                asking = {n for n in range(contexts) if rng.random() < 0.6}
                used = rng.random() < 0.8
                ctx.set(dut.requests, sum(1 << n for n in asking))
                ctx.set(dut.used, used)
                own = [[n for n in sorted(asking) if second >> n & 1 == tenant] for tenant in range(2)]
                assert ctx.get(dut.any) == bool(asking)
                if asking:
                    tenant = turn if own[turn] else 1 - turn
                    later = [n for n in own[tenant] if n > last[tenant]]
                    chosen = (later or own[tenant])[0]
                    assert (ctx.get(dut.grant), ctx.get(dut.one_hot)) == (chosen, 1 << chosen)
                    if used:
                        last[tenant], turn = chosen, 1 - tenant
                else:
                    assert (ctx.get(dut.grant), ctx.get(dut.one_hot)) == (0, 0)
                await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
