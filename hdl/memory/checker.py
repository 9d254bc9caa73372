"""The protocol checker: RTL that listens to a channel's command buses and names every rule they break.

It knows the timing table and nothing of the controller. For every kind of command that a rule counts
from, it keeps the time of the last one (of the last n for a windowed rule) per bank, bank group, pseudo
channel or channel, and compares only when a command that the rule counts to is there.

* ACT takes effect in its last row-bus slot, as the table counts it.
* Commands of one cycle have an order: column command, ACT in its last slot, other row command. A pair at
  distance 0 is therefore judged once, and always breaks something if both address one bank.
* PREA and REFab address every bank of their pseudo channel. A rule of scope "same bank" to or from one of
  them is broken by some bank exactly if it is broken by the latest such command of the pseudo channel.
* An undefined command (an operation without a row in the table, or an address that the memory does not
  have) is reported and otherwise ignored.
* Time is 48 bits and does not wrap in practice: 78 hours of a 1 ns clock, years of simulation.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import ColumnOp, RowBus, RowOp
from .timing import COLUMN_COMMANDS, Command, Organisation, Scope, TimingPreset

__all__ = ["REFRESH_LIMIT", "RULE_WIDTH", "STATE_RULES", "Checker", "ColumnMonitor", "published_rules"]

#: Rules on the state of banks and buses that have no row in the timing table.
STATE_RULES = (
    "ACT to an open bank",
    "RD or WR to a closed bank",
    "REFab with an open bank",
    "refresh overdue",
    "undefined command",
)
#: A pseudo channel may go this many tREFI without REFab: JEDEC lets eight be postponed.
REFRESH_LIMIT = 9
#: Bits of an index into `published_rules`.
RULE_WIDTH = 6

_TIME_WIDTH = 48
_ALL_BANKS = frozenset({Command.PREA, Command.REFAB})
_ROW_OPS = {
    RowOp.ACTIVATE: Command.ACT,
    RowOp.PRECHARGE: Command.PRE,
    RowOp.PRECHARGE_ALL: Command.PREA,
    RowOp.REFRESH_ALL: Command.REFAB,
}
_COLUMN_OPS = {
    ColumnOp.READ: Command.RD,
    ColumnOp.READ_AUTO: Command.RDA,
    ColumnOp.WRITE: Command.WR,
    ColumnOp.WRITE_AUTO: Command.WRA,
}


def published_rules(timing: TimingPreset) -> tuple[str, ...]:
    """The names that `Checker.rule` indexes: each name of the table once, in its order, then STATE_RULES."""
    return tuple(dict.fromkeys(rule.name for rule in timing.rules())) + STATE_RULES


class ColumnMonitor(wiring.Signature):
    """The command part of a `ColumnBus`, seen by a listener.

    Members
    -------
    op : Out(ColumnOp)
    pseudo_channel : Out(1)
    bank : Out(6)
    column : Out(6)
    """

    def __init__(self) -> None:
        super().__init__({"op": Out(ColumnOp), "pseudo_channel": Out(1), "bank": Out(6), "column": Out(6)})


class _Order(enum.IntEnum):
    """Where a command comes from, in the order in which commands of one cycle are judged."""

    COLUMN = 0
    ACTIVATE = 1
    ROW = 2
    REFRESH = 3


def _order(command: Command) -> _Order:
    if command in COLUMN_COMMANDS:
        return _Order.COLUMN
    return _Order.ACTIVATE if command is Command.ACT else _Order.ROW


@dataclass(frozen=True, kw_only=True)
class _Stamp:
    """The times of the last `window` commands out of `commands` (all of one place), per `scope`."""

    scope: Scope
    commands: frozenset[Command]
    window: int

    @property
    def order(self) -> _Order:
        return _order(next(iter(self.commands)))


@dataclass(frozen=True, kw_only=True)
class _Check:
    """Rows of the table that share one comparison."""

    name: str
    stamp: _Stamp
    after: Command
    cycles: int


def _checks(timing: TimingPreset) -> list[_Check]:
    """The table's rows as comparisons. Rows that differ only in `before` share one."""
    befores: dict[tuple[str, Scope, Command, int, int, _Order], set[Command]] = defaultdict(set)
    for rule in timing.rules():
        order, scope = _order(rule.before), rule.scope
        if order == _order(rule.after) and rule.cycles <= 1:
            continue  # One bus carries one command a cycle: nothing on it can break this.
        if scope in (Scope.BANK, Scope.BANK_GROUP) and _ALL_BANKS & {rule.before, rule.after}:
            if rule.window > 1:
                raise ValueError(
                    f"rule {rule.name!r} counts {rule.window} commands to or from an all-bank command: "
                    "expected a window of 1"
                )
            scope = Scope.PSEUDO_CHANNEL
        befores[rule.name, scope, rule.after, rule.cycles, rule.window, order].add(rule.before)
    return [
        _Check(
            name=name,
            stamp=_Stamp(scope=scope, commands=frozenset(commands), window=window),
            after=after,
            cycles=cycles,
        )
        for (name, scope, after, cycles, window, _), commands in befores.items()
    ]


@dataclass(kw_only=True)
class _Place:
    """The command that takes effect in this cycle at one place (`_Order`), one bit a kind."""

    active: dict[Command, Value]
    pseudo_channel: Value
    bank: Value
    broken: Signal
    """One bit a published rule."""
    lag: int = 0
    """Cycles from the command's slot on the bus to its effect."""

    def any(self, commands: frozenset[Command]) -> Value:
        return Cat(self.active[command] for command in sorted(commands, key=lambda c: c.value)).any()

    def key(self, scope: Scope, organisation: Organisation) -> Value:
        """Number of the bank, bank group or pseudo channel addressed; zero bits wide for the channel."""
        pseudo_channel = self.pseudo_channel[: _bits(organisation.pseudo_channels)]
        match scope:
            case Scope.BANK:
                return Cat(self.bank[: _bits(organisation.banks)], pseudo_channel)
            case Scope.BANK_GROUP:
                return Cat(self.bank[: _bits(organisation.bank_groups)], pseudo_channel)
            case Scope.PSEUDO_CHANNEL:
                return pseudo_channel
            case Scope.CHANNEL:
                return Const(0, 0)


def _bits(count: int) -> int:
    return count.bit_length() - 1


class Checker(wiring.Component):
    """A listener on one channel's command buses that reports each broken rule one cycle later.

    Several rules may break in one cycle: `violation` reports one (the column command's before ACT's
    before the other row command's, then by order of `published_rules`), `broken` shows all of them.

    Members
    -------
    row : In(RowBus())
    column : In(ColumnMonitor())
    refresh_enable : In(1)
        High while refresh is due: low in a restart. The limit counts anew from the cycle it rises.
    violation : Out(1)
        A rule was broken in the cycle before.
    rule : Out(6)
        Index into `published_rules(config.memory.timing)`.
    pseudo_channel : Out(1)
    bank : Out(6)
        What the command addressed; 0 for all-bank commands and overdue refresh.
    cycle : Out(48)
        Cycle since reset in which the command was on its bus (ACT: its first slot).
    broken : Out(rules)
        One bit a published rule: broken in the cycle before.
    seen : Out(rules)
        One bit a published rule: broken since reset.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._timing = config.memory.timing
        self._organisation = config.memory.organisation
        self._rules = published_rules(self._timing)
        count = len(self._rules)
        if count > 1 << RULE_WIDTH:
            raise ValueError(f"{count} rules: expected at most {1 << RULE_WIDTH}")
        super().__init__(
            {
                "row": In(RowBus()),
                "column": In(ColumnMonitor()),
                "refresh_enable": In(1),
                "violation": Out(1),
                "rule": Out(RULE_WIDTH),
                "pseudo_channel": Out(1),
                "bank": Out(6),
                "cycle": Out(_TIME_WIDTH),
                "broken": Out(count),
                "seen": Out(count),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        checks = _checks(self._timing)
        # Times start late enough for the initial stamp 0 to be long ago.
        start = max(check.cycles for check in checks) + self._timing.activate_slots
        now = Signal(_TIME_WIDTH, init=start)
        m.d.sync += now.eq(now + 1)

        broken: dict[_Order, dict[str, list[Value]]] = {order: defaultdict(list) for order in _Order}
        places = self._places(m, broken)
        for check, value in self._timing_rules(m, checks, places, now):
            broken[_order(check.after)][check.name].append(value)
        self._state_rules(m, places, broken)
        self._refresh_rule(m, places, broken)
        for order, place in places.items():
            m.d.comb += place.broken.eq(Cat(Cat(broken[order][name]).any() for name in self._rules))
        self._report(m, places, now, start)
        return m

    def _places(self, m: Module, broken: dict[_Order, dict[str, list[Value]]]) -> dict[_Order, _Place]:
        """Decode both buses; delay ACT to its last slot."""
        row, column, organisation = self.row, self.column, self._organisation
        lag = self._timing.activate_slots - 1

        def beyond(value: Value, count: int) -> Value:
            return value[_bits(count) :].any() if len(value) > _bits(count) else Const(0, 1)

        all_banks = (row.op == RowOp.PRECHARGE_ALL) | (row.op == RowOp.REFRESH_ALL)
        row_defined = (
            Cat(row.op == op for op in _ROW_OPS).any()
            & ~beyond(row.pseudo_channel, organisation.pseudo_channels)
            & ~(~all_banks & beyond(row.bank, organisation.banks))
            & ~((row.op == RowOp.ACTIVATE) & beyond(row.row, organisation.rows))
        )
        column_defined = (
            Cat(column.op == op for op in _COLUMN_OPS).any()
            & ~beyond(column.pseudo_channel, organisation.pseudo_channels)
            & ~beyond(column.bank, organisation.banks)
            & ~beyond(column.column, organisation.columns)
        )
        broken[_Order.ROW]["undefined command"].append((row.op != RowOp.NOP) & ~row_defined)
        broken[_Order.COLUMN]["undefined command"].append((column.op != ColumnOp.NOP) & ~column_defined)

        slot = Cat((row.op == RowOp.ACTIVATE) & row_defined, row.pseudo_channel, row.bank)
        for index in range(lag):
            delayed = Signal(len(slot), name=f"activate_slot_{index + 1}")
            m.d.sync += delayed.eq(slot)
            slot = delayed
        count = len(self._rules)
        return {
            _Order.COLUMN: _Place(
                active={command: (column.op == op) & column_defined for op, command in _COLUMN_OPS.items()},
                pseudo_channel=column.pseudo_channel,
                bank=column.bank,
                broken=Signal(count, name="broken_column"),
            ),
            _Order.ACTIVATE: _Place(
                active={Command.ACT: slot[0]},
                pseudo_channel=slot[1:2],
                bank=slot[2:],
                broken=Signal(count, name="broken_activate"),
                lag=lag,
            ),
            _Order.ROW: _Place(
                active={
                    command: (row.op == op) & row_defined
                    for op, command in _ROW_OPS.items()
                    if command is not Command.ACT
                },
                pseudo_channel=row.pseudo_channel,
                bank=Mux(all_banks, 0, row.bank),
                broken=Signal(count, name="broken_row"),
            ),
        }

    def _timing_rules(
        self, m: Module, checks: list[_Check], places: dict[_Order, _Place], now: Signal
    ) -> list[tuple[_Check, Value]]:
        """Keep the stamps and compare; every stamp is written once and read once for each place."""
        distances: dict[tuple[_Stamp, _Order], Value] = {}
        for index, stamp in enumerate(dict.fromkeys(check.stamp for check in checks)):
            writer = places[stamp.order]
            write_key = writer.key(stamp.scope, self._organisation)
            width = _TIME_WIDTH * stamp.window
            enable = Signal(name=f"stamp_{index}_enable")
            m.d.comb += enable.eq(writer.any(stamp.commands))
            words = memory.Memory(shape=unsigned(width), depth=1 << len(write_key), init=[])
            register = Signal(width, name=f"stamp_{index}")
            if len(write_key):
                m.submodules[f"stamp_{index}"] = words

            def read(key: Value, words: memory.Memory = words, register: Signal = register) -> Value:
                if not len(key):
                    return register
                port = words.read_port(domain="comb")
                m.d.comb += port.addr.eq(key)
                return port.data

            data = now if stamp.window == 1 else Cat(now, read(write_key))[:width]
            if len(write_key):
                port = words.write_port()
                m.d.comb += [port.en.eq(enable), port.addr.eq(write_key), port.data.eq(data)]
            else:
                with m.If(enable):
                    m.d.sync += register.eq(data)

            for order in sorted({_order(check.after) for check in checks if check.stamp == stamp}):
                key = places[order].key(stamp.scope, self._organisation)
                word = read(key)
                oldest = word[-_TIME_WIDTH:]
                if stamp.order < order:
                    same_cycle = enable & (write_key == key if len(key) else 1)
                    oldest = Mux(same_cycle, Cat(now, word)[width - _TIME_WIDTH : width], oldest)
                distance = Signal(_TIME_WIDTH, name=f"stamp_{index}_to_{order.name.lower()}")
                m.d.comb += distance.eq(now - oldest)
                distances[stamp, order] = distance
        return [
            (
                check,
                places[_order(check.after)].active[check.after]
                & (distances[check.stamp, _order(check.after)] < check.cycles),
            )
            for check in checks
        ]

    def _state_rules(
        self, m: Module, places: dict[_Order, _Place], broken: dict[_Order, dict[str, list[Value]]]
    ) -> None:
        """Follow which banks are open through the cycle: column command, ACT, other row command."""
        organisation = self._organisation
        column, activate, row = places[_Order.COLUMN], places[_Order.ACTIVATE], places[_Order.ROW]
        banks = organisation.banks
        opened = Signal(organisation.pseudo_channels * banks)
        after_column, after_activate = Signal.like(opened), Signal.like(opened)

        def one(place: _Place, enable: Value) -> Value:
            return (enable << place.key(Scope.BANK, organisation))[: len(opened)]

        def every(place: _Place, enable: Value) -> Value:
            key = place.key(Scope.PSEUDO_CHANNEL, organisation)
            return Cat((enable & (key == index)).replicate(banks) for index in range(len(opened) // banks))

        auto = column.any(frozenset({Command.RDA, Command.WRA}))
        m.d.comb += [
            after_column.eq(opened & ~one(column, auto)),
            after_activate.eq(after_column | one(activate, activate.active[Command.ACT])),
        ]
        m.d.sync += opened.eq(
            after_activate & ~one(row, row.active[Command.PRE]) & ~every(row, row.active[Command.PREA])
        )
        broken[_Order.COLUMN]["RD or WR to a closed bank"].append(
            column.any(COLUMN_COMMANDS) & ~opened.bit_select(column.key(Scope.BANK, organisation), 1)
        )
        broken[_Order.ACTIVATE]["ACT to an open bank"].append(
            activate.active[Command.ACT] & after_column.bit_select(activate.key(Scope.BANK, organisation), 1)
        )
        broken[_Order.ROW]["REFab with an open bank"].append(
            (after_activate & every(row, row.active[Command.REFAB])).any()
        )

    def _refresh_rule(
        self, m: Module, places: dict[_Order, _Place], broken: dict[_Order, dict[str, list[Value]]]
    ) -> None:
        """Count the cycles since each pseudo channel's last REFab, and report once for every limit passed."""
        limit = REFRESH_LIMIT * self._timing["tREFI"]
        row = places[_Order.ROW]
        overdue = Signal(self._organisation.pseudo_channels)
        for index in range(self._organisation.pseudo_channels):
            age = Signal(range(limit + 2), name=f"refresh_age_{index}")
            m.d.comb += overdue[index].eq(self.refresh_enable & (age == limit + 1))
            refreshed = row.active[Command.REFAB] & (
                row.key(Scope.PSEUDO_CHANNEL, self._organisation) == index
            )
            with m.If(~self.refresh_enable):
                m.d.sync += age.eq(0)
            with m.Elif(refreshed | overdue[index]):
                m.d.sync += age.eq(1)
            with m.Else():
                m.d.sync += age.eq(age + 1)
        broken[_Order.REFRESH]["refresh overdue"].append(overdue.any())
        places[_Order.REFRESH] = _Place(
            active={},
            pseudo_channel=~overdue[0],
            bank=Const(0, 6),
            broken=Signal(len(self._rules), name="broken_refresh"),
        )

    def _report(self, m: Module, places: dict[_Order, _Place], now: Signal, start: int) -> None:
        broken = Signal(len(self._rules))
        reported = Signal.like(broken)
        m.d.comb += broken.eq(
            places[_Order.COLUMN].broken
            | places[_Order.ACTIVATE].broken
            | places[_Order.ROW].broken
            | places[_Order.REFRESH].broken
        )
        m.d.sync += [
            self.violation.eq(broken.any()),
            self.broken.eq(broken),
            self.seen.eq(self.seen | broken),
        ]
        for order in reversed(_Order):
            place = places[order]
            with m.If(place.broken.any()):
                m.d.comb += reported.eq(place.broken)
                m.d.sync += [
                    self.pseudo_channel.eq(place.pseudo_channel),
                    self.bank.eq(place.bank),
                    self.cycle.eq(now - (start + place.lag)),
                ]
        for index in reversed(range(len(self._rules))):
            with m.If(reported[index]):
                m.d.sync += self.rule.eq(index)
