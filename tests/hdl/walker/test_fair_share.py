"""The fair share of two tenants against a model in plain Python, on random walks."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from hdl.walker.fair_share import READS_LIMIT, FairShare

CONTEXTS = 48


class Model:
    """What the docstring of `FairShare` promises, by the lists of what happened."""

    def __init__(self) -> None:
        self.tenant = [0] * CONTEXTS
        self.busy: set[int] = set()
        self.under_way: list[int] = []
        self.stores: set[int] = set()
        self.contested = False

    def priority(self, context: int, answered: int | None) -> bool:
        """Whether requests of `context` go first when the record of `answered` arrives."""
        under_way = [each for each in self.under_way if each != answered]
        mine = [each for each in under_way if self.tenant[each] == self.tenant[context]]
        stores_alone = {self.tenant[each] for each in self.stores} == {self.tenant[context]}
        first = not stores_alone and (not mine or 2 * len(mine) < len(under_way))
        return not self.contested or first

    def priority_without_stores(self, context: int, answered: int | None) -> bool:
        """The same if nobody had stores under way."""
        kept, self.stores = self.stores, set()
        try:
            return self.priority(context, answered)
        finally:
            self.stores = kept

    def holds(self, context: int) -> bool:
        """Whether a read of `context` has to wait."""
        mine = [each for each in self.under_way if self.tenant[each] == self.tenant[context]]
        return self.contested and len(mine) >= READS_LIMIT

    def step(self, issued: int | None, answered: int | None) -> None:
        """One cycle in which a read was put out, and one answered."""
        if issued is not None:
            self.under_way.append(issued)
        if answered is not None:
            self.under_way.remove(answered)
        self.contested = len({self.tenant[context] for context in self.busy}) == 2


async def _configure(ctx: Any, dut: FairShare, model: Model, rng: random.Random, share: float) -> None:
    assert not model.busy and not model.under_way
    for context in range(CONTEXTS + 3):
        tenant = int(rng.random() < share)
        ctx.set(dut.configure.enable, 1)
        ctx.set(dut.configure.index, context)
        ctx.set(dut.configure.tenant, tenant)
        if context < CONTEXTS:
            model.tenant[context] = tenant
        await ctx.tick()
        model.step(None, None)
    ctx.set(dut.configure.enable, 0)


@pytest.mark.parametrize("seed", range(4))
def test_priority_and_limit(seed: int) -> None:
    rng = random.Random(seed)
    dut, model = FairShare(CONTEXTS), Model()
    seen = set[tuple[str, bool]]()

    async def drive(ctx: Any) -> None:
        for share, contexts, answers in itertools.product((0.1, 0.5), (4, CONTEXTS), (0.1, 0.5, 0.7)):
            await _configure(ctx, dut, model, rng, share)
            ctx.set(dut.issue, 0)
            ctx.set(dut.answer, 0)
            walking = contexts
            for cycle in range(400):
                if cycle == 300:
                    walking = 0
                model.busy = {n for n in range(walking) if rng.random() < 0.97} | set(model.under_way)
                free = [n for n in model.busy if n not in model.under_way]
                context = rng.choice(free) if free else 0
                issues = bool(free) and walking > 0 and not model.holds(context) and rng.random() < 0.8
                answered = rng.choice(model.under_way) if model.under_way else 0
                answers_now = bool(model.under_way) and rng.random() < (answers if walking else 1)
                storing = rng.choice((0, 0, 0.02, 0.3))
                model.stores = {n for n in model.busy if rng.random() < storing}
                ctx.set(dut.stores, sum(1 << n for n in model.stores))
                ctx.set(dut.busy, sum(1 << n for n in model.busy))
                ctx.set(dut.context, context)
                ctx.set(dut.issue, issues)
                ctx.set(dut.answer_context, answered)
                ctx.set(dut.answer, answers_now)
                priority = model.priority(context, answered if answers_now else None)
                assert ctx.get(dut.priority) == priority
                assert ctx.get(dut.holds) == model.holds(context)
                held = ctx.get(dut.held)
                assert [held >> n & 1 for n in range(CONTEXTS)] == [model.holds(n) for n in range(CONTEXTS)]
                assert ctx.get(dut.second) == sum(t << n for n, t in enumerate(model.tenant))
                assert ctx.get(dut.contested) == model.contested
                seen.add(("priority", priority))
                if priority != model.priority_without_stores(context, answered if answers_now else None):
                    seen.add(("stores decide", True))
                seen.add(("holds", model.holds(context)))
                await ctx.tick()
                model.step(context if issues else None, answered if answers_now else None)
            model.busy.clear()
            model.stores.clear()
            ctx.set(dut.busy, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(drive)
    simulator.run()
    assert len(seen) == 5, seen
