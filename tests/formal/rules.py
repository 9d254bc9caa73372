"""The timing table as a formal specification: a listener with the age of every command at every bank.

It is the third statement of the table, beside the controller's counters and the protocol checker: ages that
saturate, so that k-induction forgets whatever state it started from.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import reduce
from operator import add, or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring

from hdl.config import MemoryConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.timing import COLUMN_COMMANDS, Command, Rule, Scope
from tests.protocol import ALL_BANKS, CLOSING, COLUMN_OPS, ROW_OPS

__all__ = ["TableSpec", "named"]


def named(m: Module, name: str, value: Value) -> Signal:
    """`value` as a signal: Amaranth writes an expression out wherever it is used."""
    signal = Signal(len(value), name=re.sub(r"\W+", "_", name))
    m.d.comb += signal.eq(value)
    return signal


def _order(command: Command) -> int:
    """The place of a command among those of one cycle: column command, ACT, other row command."""
    return 0 if command in COLUMN_COMMANDS else 1 if command is Command.ACT else 2


class TableSpec:
    """What the table and the state of the banks say to the commands on a channel's buses.

    `events[command]` has one bit a bank: the command takes effect there in this cycle (ACT: in the slot that
    counts; `activated`: in its first). `broken[name]` is high in the cycle in which a rule of that name is
    broken; `tight[name]` in one in which a command comes at the first cycle that a row of that name allows,
    `tight_after[name, command]` in one in which it is that command. `opened`: the banks with an open row,
    before this cycle's commands; `following`: those with one after all that is on the buses.
    """

    def __init__(
        self, m: Module, memory: MemoryConfig, *, row: wiring.PureInterface, column: wiring.PureInterface
    ) -> None:
        self._m = m
        self._timing = memory.timing
        organisation = memory.organisation
        self._channels, self._groups = organisation.pseudo_channels, organisation.bank_groups
        self._banks = organisation.banks
        self.units = self._channels * self._banks
        self.broken: dict[str, Signal] = {}
        self.tight: dict[str, Signal] = {}
        self.tight_after: dict[tuple[str, Command], Signal] = {}
        self.events = {
            command: self._event(command, row, column)
            for command in Command
            if command in self._timing.commands
        }
        self._undefined(row, column)
        self._state()
        self._distances()

    def _event(self, command: Command, row: wiring.PureInterface, column: wiring.PureInterface) -> Signal:
        is_column = command in COLUMN_COMMANDS
        bus = column if is_column else row
        active = bus.op == (COLUMN_OPS if is_column else ROW_OPS)[command]
        places = [
            active
            & (bus.pseudo_channel == unit // self._banks)
            & (Const(1) if command in ALL_BANKS else bus.bank == unit % self._banks)
            for unit in range(self.units)
        ]
        event = named(self._m, f"{command.value}_here", Value.cast(Cat(places)))
        if command is Command.ACT:
            self.activated = self._pending = event
        for slot in range(self._timing.activate_lag if command is Command.ACT else 0):
            later = Signal(self.units, name=f"ACT_slot{slot + 1}")
            self._m.d.sync += later.eq(event)
            event = later
            self._pending = self._pending | event
        return event

    def _undefined(self, row: wiring.PureInterface, column: wiring.PureInterface) -> None:
        """A command that the memory does not have, or to a bank that it does not have."""
        row_known = Cat(row.op == op for command, op in ROW_OPS.items() if command in self._timing.commands)
        column_known = Cat(column.op == op for op in COLUMN_OPS.values())

        def wrong(bus: wiring.PureInterface, known: Value, nop: RowOp | ColumnOp) -> Value:
            beyond = (bus.pseudo_channel >= self._channels) | (bus.bank >= self._banks)
            return (bus.op != nop) & (~known.any() | beyond)

        self.broken["undefined command"] = named(
            self._m,
            "broken_undefined",
            wrong(row, row_known, RowOp.NOP) | wrong(column, column_known, ColumnOp.NOP),
        )

    def _state(self) -> None:
        m, events = self._m, self.events
        self.opened = Signal(self.units, name="spec_opened")

        def closing(commands: frozenset[Command]) -> Value:
            return reduce(or_, (events[c] for c in commands if c in events), Const(0, self.units))

        after_column = named(m, "after_column", self.opened & ~closing(CLOSING & COLUMN_COMMANDS))
        after_activate = named(m, "after_activate", after_column | events[Command.ACT])
        after_row = after_activate & ~closing(CLOSING - COLUMN_COMMANDS)
        m.d.sync += self.opened.eq(after_row)
        # An ACT whose slot that counts is still to come is in `_pending`, and in `after_activate` afterwards.
        self.following = named(m, "spec_following", after_row | (self._pending & ~events[Command.ACT]))
        columns = reduce(or_, (events[c] for c in COLUMN_COMMANDS))
        wrong = {
            "RD or WR to a closed bank": columns & ~self.opened,
            "ACT to an open bank": events[Command.ACT] & after_column,
            "REFab with an open bank": events[Command.REFAB] & after_activate,
            "REFpb to an open bank": events.get(Command.REFPB, Const(0, self.units)) & after_activate,
        }
        for name, banks in wrong.items():
            self.broken[name] = named(m, f"broken_{name}", banks.any())

    def related(self, scope: Scope, banks: Value) -> Value:
        """The banks that `scope` relates to any bank of `banks`."""
        members: dict[object, list[int]] = defaultdict(list)
        for unit in range(self.units):
            channel, bank = divmod(unit, self._banks)
            key = {
                Scope.BANK: unit,
                Scope.BANK_GROUP: (channel, bank % self._groups),
                Scope.PSEUDO_CHANNEL: channel,
                Scope.CHANNEL: 0,
            }[scope]
            members[key].append(unit)
        hits: dict[int, Value] = {}
        for member in members.values():
            hits |= dict.fromkeys(member, Cat(banks[unit] for unit in member).any())
        return Value.cast(Cat(hits[unit] for unit in range(self.units)))

    def _distances(self) -> None:
        m, rules = self._m, self._timing.rules()
        ages: dict[Command, list[Signal]] = {}
        for command, event in self.events.items():
            longest = max((r.cycles for r in rules if r.before is command and r.window == 1), default=1)
            # One more than the longest distance: an age that is exactly that long is one of an event.
            forgotten = longest + 1
            ages[command] = []
            for unit in range(self.units):
                age = Signal(range(forgotten + 1), init=forgotten, name=f"{command.value}_age{unit}")
                m.d.sync += age.eq(Mux(event[unit], 1, Mux(age >= forgotten, forgotten, age + 1)))
                ages[command].append(age)
        by_name: dict[str, list[tuple[Value, Value]]] = defaultdict(list)
        by_pair: dict[tuple[str, Command], list[Value]] = defaultdict(list)
        for index, rule in enumerate(rules):
            if rule.before not in self.events or rule.after not in self.events:
                continue
            if rule.window > 1:
                early, exact = self._window(rule, f"rule{index}")
            else:
                recent = Value.cast(Cat(age < rule.cycles for age in ages[rule.before]))
                if _order(rule.before) < _order(rule.after):
                    recent = recent | self.events[rule.before]
                early = self.related(rule.scope, named(m, f"rule{index}_recent", recent))
                at_limit = Value.cast(Cat(age == rule.cycles for age in ages[rule.before]))
                exact = self.related(rule.scope, named(m, f"rule{index}_limit", at_limit))
            after = self.events[rule.after]
            early = named(m, f"rule{index}_early", early & after)
            exactly = named(m, f"rule{index}_exact", exact & after & ~early).any()
            by_name[rule.name].append((early.any(), exactly))
            by_pair[rule.name, rule.after].append(exactly)
        for name, pairs in by_name.items():
            self.broken[name] = named(m, f"broken_{name}", Cat(early for early, _ in pairs).any())
            self.tight[name] = named(m, f"tight_{name}", Cat(exact for _, exact in pairs).any())
        for (name, command), exacts in by_pair.items():
            self.tight_after[name, command] = named(m, f"tight_{name}_{command.value}", Cat(exacts).any())

    def _window(self, rule: Rule, name: str) -> tuple[Value, Value]:
        """Where `rule` forbids its `after`, and where it would, were it one cycle longer."""
        history = [self.events[rule.before]]
        for age in range(1, rule.cycles + 1):
            older = Signal(self.units, name=f"{name}_history{age}")
            self._m.d.sync += older.eq(history[-1])
            history.append(older)
        places = [
            named(self._m, f"{name}_place{age}", self.related(rule.scope, event))
            for age, event in enumerate(history)
        ]

        def full(ages: int) -> Value:
            counts = [
                reduce(add, (place[unit] for place in places[1 : ages + 1])) for unit in range(self.units)
            ]
            return named(
                self._m, f"{name}_full{ages}", Value.cast(Cat(count >= rule.window for count in counts))
            )

        return full(rule.cycles - 1), full(rule.cycles)
