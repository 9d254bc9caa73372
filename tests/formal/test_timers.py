"""The controller's timing counters allow exactly what the timing table does."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import add, or_
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.layouts import ColumnOp, RowOp
from hdl.memory.controller import CONTROLLER_COMMANDS
from hdl.memory.timers import Timers
from hdl.memory.timing import COLUMN_COMMANDS, Command, Rule, Scope
from tests.formal.harness import Proof, Property, quick
from tests.formal.small import SmallMemory
from tests.protocol import ALL_BANKS, COLUMN_OPS, ROW_OPS

BANKS, GROUPS = 4, 2
#: HBM2's table with every distance small and different enough for every rule to bind.
CYCLES = {
    **{"tCL": 2, "tCWL": 1, "tRCDRD": 5, "tRCDWR": 4, "tRP": 4, "tRAS": 6, "tRC": 11, "tRTP": 3, "tWR": 2},
    **{"tCCDS": 2, "tCCDL": 3, "tWTRS": 1, "tWTRL": 2, "tRTW": 4, "tRRDS": 3, "tRRDL": 4, "tFAW": 14},
    **{"tREFI": 100, "tRFC": 9},
}
REDUCED = SmallMemory(cycles=CYCLES).timing
COMMANDS = CONTROLLER_COMMANDS & REDUCED.commands
RULES = [rule for rule in REDUCED.rules() if {rule.before, rule.after} <= COMMANDS]
#: The slot that the table counts, in cycles after a command's first.
LAG = {command: REDUCED.activate_lag if command is Command.ACT else 0 for command in Command}


def wire(m: Module, value: Value) -> Signal:
    """`value` under a name: Amaranth writes an expression out wherever it is used."""
    signal = Signal(len(value))
    m.d.comb += signal.eq(value)
    return signal


def related(scope: Scope, units: Signal) -> Value:
    """The banks that `scope` relates to any bank of `units`."""
    members: dict[object, list[int]] = defaultdict(list)
    for unit in range(len(units)):
        channel, bank = divmod(unit, BANKS)
        key = {
            Scope.BANK: unit,
            Scope.BANK_GROUP: (channel, bank % GROUPS),
            Scope.PSEUDO_CHANNEL: channel,
            Scope.CHANNEL: 0,
        }[scope]
        members[key].append(unit)
    spread: dict[int, Value] = {}
    for member in members.values():
        hit = Cat(units[unit] for unit in member).any()
        spread |= dict.fromkeys(member, hit)
    return Value.cast(Cat(spread[unit] for unit in range(len(units))))


class TimersProperty(Property):
    """The counters beside the history of what was decided, bank by bank and cycle by cycle.

    Without `windows`, all rules of a single distance. With it all rules to ACT, the windowed one included:
    the turns of its counters have states that are never reached, so that is checked from reset on.
    """

    def __init__(self, *, channels: int, windows: bool, false: bool) -> None:
        self._channels, self._units = channels, channels * BANKS
        self._rules = [rule for rule in RULES if (rule.after is Command.ACT if windows else rule.window == 1)]
        self._windows = windows
        super().__init__(
            {
                "row_op": In(RowOp),
                "row_unit": In(range(self._units)),
                "column_op": In(ColumnOp),
                "column_unit": In(range(self._units)),
            },
            false=false,
        )

    def contents(self, m: Module) -> None:
        channels, units = self._channels, self._units
        memory = SmallMemory(shape=(channels, GROUPS, BANKS // GROUPS), cycles=CYCLES)
        m.submodules.timers = timers = Timers(memory, commands=COMMANDS)
        m.d.comb += [
            timers.row_op.eq(self.row_op),
            timers.row_unit.eq(self.row_unit),
            timers.column_op.eq(self.column_op),
            timers.column_unit.eq(self.column_unit),
        ]

        def everywhere(vector: Value) -> Value:
            return Value.cast(Cat(vector[channel].replicate(BANKS) for channel in range(channels)))

        ready = {
            Command.ACT: timers.activate,
            Command.PRE: timers.precharge,
            **{command: timers.read for command in (Command.RD, Command.RDA)},
            **{command: timers.write for command in (Command.WR, Command.WRA)},
            Command.PREA: wire(m, everywhere(timers.precharge_all)),
            Command.REFAB: wire(m, everywhere(timers.refresh_all)),
            **({Command.REFPB: timers.refresh_bank} if Command.REFPB in COMMANDS else {}),
        }
        # What is decided, and that only what is ready may be.
        decided: dict[Command, Signal] = {}
        depth = max(rule.cycles for rule in RULES) + 1
        history: dict[Command, list[Signal]] = {}
        for command in COMMANDS:
            column = command in COLUMN_COMMANDS
            active = self.column_op == COLUMN_OPS[command] if column else self.row_op == ROW_OPS[command]
            unit = self.column_unit if column else self.row_unit
            place = (
                everywhere(Const(1, channels) << (unit >> BANKS.bit_length() - 1))
                if command in ALL_BANKS
                else (Const(1, units) << unit)[:units]
            )
            name = command.value.lower()
            decided[command] = Signal(units, name=f"{name}_now")
            m.d.comb += decided[command].eq(Mux(active, place, 0))
            m.d.comb += Assume((decided[command] & ~ready[command]) == 0)
            history[command] = [Signal(units, name=f"{name}_{age}") for age in range(1, depth + 1)]
            for older, newer in zip(history[command], [decided[command], *history[command]], strict=False):
                m.d.sync += older.eq(newer)
        ops = [ROW_OPS[c].value for c in COMMANDS if c in ROW_OPS]
        m.d.comb += Assume(Cat(self.row_op == op for op in (RowOp.NOP, *map(RowOp, ops))).any())
        columns = [COLUMN_OPS[c].value for c in COMMANDS if c in COLUMN_OPS]
        m.d.comb += Assume(Cat(self.column_op == op for op in (ColumnOp.NOP, *map(ColumnOp, columns))).any())

        def forbidden(rule: Rule, more: int = 0) -> Signal:
            """The banks to which the rule forbids its `after` now (`more`: were it longer by so much)."""
            # Bus distance `age` is a distance of age + lag(after) - lag(before) in the table.
            limit = rule.cycles + more + LAG[rule.before] - LAG[rule.after]
            events = history[rule.before][: max(limit - 1, 0)]
            if rule.window == 1:
                recent = wire(m, reduce(or_, events, Const(0, units)))
                return wire(m, related(rule.scope, recent))
            places = [wire(m, related(rule.scope, event)) for event in events]
            counts = [reduce(add, (place[unit] for place in places)) for unit in range(units)]
            return wire(m, Value.cast(Cat(count >= rule.window for count in counts)))

        banned: dict[Command, Value] = {command: Const(0, units) for command in COMMANDS}
        for rule in self._rules:
            vector = forbidden(rule)
            alone = vector
            if rule.after in ALL_BANKS:
                # An all-bank command waits for every bank of its pseudo channel.
                vector = wire(m, related(Scope.PSEUDO_CHANNEL, vector))
            banned[rule.after] = banned[rule.after] | vector
            m.d.comb += Assert((vector & ready[rule.after]) == 0)
            # What the two pseudo channels of a channel share, one alone never waits for.
            shared = rule.scope is Scope.CHANNEL and channels == 1
            if rule.cycles + LAG[rule.before] - LAG[rule.after] > 1 and not shared:
                at_limit = related(
                    rule.scope, history[rule.before][rule.cycles + LAG[rule.before] - LAG[rule.after] - 1]
                )
                m.d.comb += Cover((at_limit & ready[rule.after] & ~alone).any())
        for command in {Command.ACT} if self._windows else COMMANDS - {Command.ACT}:
            # And no cycle is lost: what no rule forbids is ready.
            m.d.comb += Assert(banned[command] | ready[command] == (1 << units) - 1)
        if self.false:
            longer = next(rule for rule in self._rules if rule.name in ("tWTRL", "tFAW"))
            m.d.comb += Assert((forbidden(longer, 1) & ready[longer.after]) == 0)


PROOFS = [
    Proof(
        name=name,
        build=lambda false, channels=channels, windows=windows: TimersProperty(
            channels=channels, windows=windows, false=false
        ),
        mode="bmc" if windows else "prove",
        depth=18,
        cover_depth=18,
        quick=channels == 1,
    )
    for name, channels, windows in (
        ("timers", 1, False),
        ("timers window", 1, True),
        ("timers, two channels", 2, False),
        ("timers window, two channels", 2, True),
    )
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_counters_allow_what_the_table_allows(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
