"""The timing counters against the table, by random commands that they allow."""

from __future__ import annotations

import dataclasses
import random

import pytest
from amaranth.sim import Simulator

from hdl.config import MemoryConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory import timing
from hdl.memory.timers import Timers
from hdl.memory.timing import PRESETS, Command, Scope, Value

PRESET = PRESETS["hbm2_2000"]
COMMANDS = frozenset(Command)
ROW = {
    Command.ACT: RowOp.ACTIVATE,
    Command.PRE: RowOp.PRECHARGE,
    Command.PREA: RowOp.PRECHARGE_ALL,
    Command.REFAB: RowOp.REFRESH_ALL,
    Command.REFPB: RowOp.REFRESH_BANK,
}
COLUMN = {
    Command.RD: ColumnOp.READ,
    Command.RDA: ColumnOp.READ_AUTO,
    Command.WR: ColumnOp.WRITE,
    Command.WRA: ColumnOp.WRITE_AUTO,
}
ALL_BANKS = {Command.PREA, Command.REFAB}
OUTPUTS = {
    Command.ACT: "activate",
    Command.PRE: "precharge",
    Command.RD: "read",
    Command.WR: "write",
    Command.PREA: "precharge_all",
    Command.REFAB: "refresh_all",
    Command.REFPB: "refresh_bank",
}


class Table:
    """The table, looked up the slow way: every rule against every earlier command of its scope."""

    def __init__(self, preset: timing.TimingPreset) -> None:
        self.preset = preset
        self.organisation = preset.organisation
        self.history: list[tuple[Command, int, int]] = []
        self.after: dict[Command, list[timing.Rule]] = {command: [] for command in Command}
        for rule in preset.rules():
            self.after[rule.after].append(rule)
        self.horizon = max(rule.cycles for rule in preset.rules()) + preset.activate_slots

    def time(self, command: Command, cycle: int) -> int:
        return cycle + self.preset.activate_lag * (command is Command.ACT)

    def _meet(self, scope: Scope, one: tuple[Command, int], other: tuple[Command, int]) -> bool:
        (first, a), (second, b) = one, other
        banks, groups = self.organisation.banks, self.organisation.bank_groups
        if scope is Scope.CHANNEL:
            return True
        if a // banks != b // banks:
            return False
        if scope is Scope.PSEUDO_CHANNEL or first in ALL_BANKS or second in ALL_BANKS:
            return True
        return a % groups == b % groups if scope is Scope.BANK_GROUP else a == b

    def allows(self, command: Command, unit: int, cycle: int) -> bool:
        now = self.time(command, cycle)
        for rule in self.after[command]:
            times = [
                self.time(before, when)
                for before, where, when in self.history
                if before is rule.before and self._meet(rule.scope, (before, where), (command, unit))
            ]
            if len(times) >= rule.window and now - sorted(times)[-rule.window] < rule.cycles:
                return False
        return True

    def record(self, command: Command, unit: int, cycle: int) -> None:
        self.history = [entry for entry in self.history if cycle - entry[2] <= self.horizon]
        self.history.append((command, unit, cycle))


def _shorter(**cycles: int) -> timing.TimingPreset:
    values = {name: Value(cycles=count, source="a test") for name, count in cycles.items()}
    organisation = dataclasses.replace(PRESET.organisation, rows=2, columns=2)
    return dataclasses.replace(
        PRESET, name="test", organisation=organisation, values={**PRESET.values, **values}
    )


@pytest.mark.parametrize(
    "preset",
    [
        _shorter(),
        # A preset in which tFAW and tRRDL bind, and ACT takes one slot.
        dataclasses.replace(
            _shorter(tFAW=31, tRRDS=3, tRRDL=5, tRFC=20, tRFCpb=15, tRREFD=6),
            activate_slots=1,
            activate_lag=0,
        ),
    ],
    ids=["hbm2_2000", "tFAW binds"],
)
def test_timers_allow_what_the_table_allows(
    preset: timing.TimingPreset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(timing.PRESETS, "test", preset)
    dut = Timers(MemoryConfig(preset="test"), commands=COMMANDS)
    table = Table(preset)
    rng = random.Random(20261130)
    units = preset.organisation.pseudo_channels * preset.organisation.banks
    banks = preset.organisation.banks
    # Few banks, so that commands meet; phases favour different commands.
    places = [0, 1, 4, 7, banks, banks + 5]
    compared = {command: {True: 0, False: 0} for command in OUTPUTS}

    async def bench(ctx) -> None:
        weights: list[float] = []
        for cycle in range(2500):
            if cycle % 100 == 0:
                weights = [rng.choice((0.02, 0.3, 1)) for _ in OUTPUTS]
            allowed: list[tuple[Command, int]] = []
            for command, name in OUTPUTS.items():
                vector = ctx.get(getattr(dut, name))
                for unit in places:
                    bit = unit // banks if command in ALL_BANKS else unit
                    expected = table.allows(command, unit, cycle)
                    assert vector >> bit & 1 == expected, (cycle, command, unit, table.history[-5:])
                    compared[command][expected] += 1
                    if expected and rng.random() < weights[list(OUTPUTS).index(command)]:
                        allowed.append((command, unit))
            rng.shuffle(allowed)
            row = next((c for c in allowed if c[0] in ROW), None)
            # Commands to one bank in one cycle are the scheduler's to prevent.
            column = next(
                (c for c in allowed if c[0] in COLUMN and (row is None or c[1] // banks != row[1] // banks)),
                None,
            )
            ctx.set(dut.row_op, ROW[row[0]] if row else RowOp.NOP)
            ctx.set(dut.row_unit, row[1] if row else rng.randrange(units))
            ctx.set(dut.column_op, COLUMN[column[0]] if column else ColumnOp.NOP)
            ctx.set(dut.column_unit, column[1] if column else rng.randrange(units))
            for command in (row, column):
                if command:
                    table.record(*command, cycle)
            await ctx.tick()
        ctx.set(dut.row_op, RowOp.NOP)
        ctx.set(dut.column_op, ColumnOp.NOP)
        await ctx.tick().repeat(table.horizon)
        assert ctx.get(dut.idle)

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    for command, counts in compared.items():
        assert counts[True] > 20 and counts[False] > 20, (command, counts)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize(("plain", "closing"), [(Command.RD, Command.RDA), (Command.WR, Command.WRA)])
def test_what_precedes_a_column_command_does_not_depend_on_auto_precharge(
    preset: timing.TimingPreset, plain: Command, closing: Command
) -> None:
    """The counters look only at the command without it."""

    def to(command: Command) -> set[timing.Rule]:
        return {dataclasses.replace(rule, after=plain) for rule in preset.rules() if rule.after is command}

    assert to(closing) == to(plain)
