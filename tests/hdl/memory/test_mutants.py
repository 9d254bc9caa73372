"""A controller with one timer a cycle too short is caught by the checker: the tests above can fail."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.memory import timers
from hdl.memory.address import AddressMap, Place
from hdl.memory.checker import published_rules
from hdl.memory.timing import Command, Scope
from sim.bench.memory import MemorySubsystem

from ..streams import run

CONFIG = DesignConfig(
    controller=ControllerConfig(bank_queue=2, write_buffer=8, drain_high=4, drain_low=0, drain_idle=8),
    memory=MemoryConfig(rows=4, columns=4),
)

#: Waits whose loss is seen as the rule of that name.
MUTANTS = [
    ("tRCDRD", Scope.BANK, Command.ACT, Command.RD),
    ("tRCDWR", Scope.BANK, Command.ACT, Command.WR),
    ("tRAS", Scope.BANK, Command.ACT, Command.PRE),
    ("tRP", Scope.BANK, Command.PRE, Command.ACT),
    ("tWR", Scope.BANK, Command.WR, Command.PRE),
    ("tRRDS", Scope.PSEUDO_CHANNEL, Command.ACT, Command.ACT),
    ("tCCDL", Scope.BANK_GROUP, Command.RD, Command.RD),
    ("tCCDS", Scope.PSEUDO_CHANNEL, Command.RD, Command.RD),
    ("tRTW", Scope.PSEUDO_CHANNEL, Command.RD, Command.WR),
    ("tWTRL", Scope.BANK_GROUP, Command.WR, Command.RD),
]


def _first_violation(seed: int, cycles: int) -> str | None:
    """The rule that random traffic to a few rows breaks first."""
    dut = MemorySubsystem(CONFIG)
    rng = random.Random(seed)
    broken: list[str] = []

    async def traffic(ctx: Any) -> None:
        request = dut.memory.request
        ctx.set(dut.memory.response.ready, 1)
        for _ in range(cycles):
            if not ctx.get(request.valid) or ctx.get(request.ready):
                ctx.set(request.valid, rng.random() < 0.5)
                ctx.set(
                    request.payload,
                    {
                        "address": AddressMap(CONFIG.memory).encode(
                            Place(rng.randrange(2), rng.randrange(4), rng.randrange(4), rng.randrange(4))
                        ),
                        "write": rng.random() < 0.4,
                        "conditional": 0,
                        "expected": 0,
                        "data": 0,
                        "mask": 0,
                        "tag": {"source": 1, "context": 0},
                        "priority": 0,
                    },
                )
            _, _, violation, rule = await ctx.tick().sample(dut.violation, dut.violation_rule)
            if violation:
                broken.append(published_rules(CONFIG.memory.timing)[rule])
                return

    run(dut, traffic, watchdog=cycles + 10)
    return broken[0] if broken else None


def test_the_controller_breaks_nothing() -> None:
    assert _first_violation(1, 600) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}")
def test_a_short_timer_is_caught(
    mutant: tuple[str, Scope, Command, Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, scope, before, after = mutant
    table = timers.waits
    # The page policy decides which of the two is issued.
    plain = {Command.RDA: Command.RD, Command.WRA: Command.WR}
    changed = []

    def shortened(*arguments: Any) -> tuple[timers.Wait, ...]:
        rows = []
        for wait in table(*arguments):
            if (wait.scope, plain.get(wait.before, wait.before), wait.after) == (scope, before, after):
                wait = dataclasses.replace(wait, cycles=wait.cycles - 1)
                changed.append(wait)
            rows.append(wait)
        return tuple(rows)

    monkeypatch.setattr(timers, "waits", shortened)
    assert _first_violation(1, 1500) == name
    assert changed
