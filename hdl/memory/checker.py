"""The protocol checker: RTL that listens to a channel's command buses and names every rule they break.

It knows the timing table and nothing of the controller. For every kind of command that a rule counts
from, it keeps the time of the last one (of the last n for a windowed rule) per bank, bank group, pseudo
channel or channel, and compares only when a command that the rule counts to is there.

* ACT takes effect in the row-bus slot that the table counts, `activate_lag` after its first.
* Commands of one cycle have an order: column command, ACT in that slot, other row command. A pair at
  distance 0 is therefore judged once, and always breaks something if both address one bank.
* An undefined command (an operation without a row in the table, or an address that the memory does not
  have) is reported and otherwise ignored.
* Time is 48 bits and does not wrap in practice: 78 hours of a 1 ns clock, years of simulation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import DesignConfig
from ..layouts import ColumnOp, RowBus, RowOp
from .checker_rules import REFRESH_LIMIT, Check, Order, Stamp, checks, published_rules
from .timing import COLUMN_COMMANDS, Command, Organisation, Scope

__all__ = ["RULE_WIDTH", "Checker", "ColumnMonitor", "published_rules"]

#: Bits of an index into `published_rules`.
RULE_WIDTH = 6

_TIME_WIDTH = 48
_ROW_OPS = {
    RowOp.ACTIVATE: Command.ACT,
    RowOp.PRECHARGE: Command.PRE,
    RowOp.PRECHARGE_ALL: Command.PREA,
    RowOp.REFRESH_ALL: Command.REFAB,
    RowOp.REFRESH_BANK: Command.REFPB,
}
_COLUMN_OPS = {
    ColumnOp.READ: Command.RD,
    ColumnOp.READ_AUTO: Command.RDA,
    ColumnOp.WRITE: Command.WR,
    ColumnOp.WRITE_AUTO: Command.WRA,
}


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


def _cat(*values: Any) -> Value:
    return Value.cast(Cat(*values))


def _bits(count: int) -> int:
    return count.bit_length() - 1


@dataclass(kw_only=True)
class _Place:
    """The command that takes effect in this cycle at one `Order`, one bit a kind."""

    organisation: Organisation
    active: dict[Command, Value]
    pseudo_channel: Value
    bank: Value
    broken: dict[str, list[Value]]
    """What breaks each rule."""
    lag: int = 0
    """Cycles from the command's slot on the bus to its effect."""

    def any(self, commands: frozenset[Command]) -> Value:
        return _cat(*(active for command, active in self.active.items() if command in commands)).any()

    def key(self, scope: Scope) -> Value:
        """Number of the bank, bank group or pseudo channel addressed; zero bits wide for the channel."""
        pseudo_channel = self.pseudo_channel[: _bits(self.organisation.pseudo_channels)]
        match scope:
            case Scope.BANK:
                return _cat(self.bank[: _bits(self.organisation.banks)], pseudo_channel)
            case Scope.BANK_GROUP:
                return _cat(self.bank[: _bits(self.organisation.bank_groups)], pseudo_channel)
            case Scope.PSEUDO_CHANNEL:
                return _cat(pseudo_channel)
            case Scope.CHANNEL:
                return Const(0, 0)


class _Stamps:
    """The storage of one `Stamp`: a small memory, or a register where the scope has one member."""

    def __init__(self, m: Module, name: str, *, depth: int, width: int) -> None:
        self._m, self._depth, self._name = m, depth, name
        if depth > 1:
            m.submodules[name] = self._memory = memory.Memory(shape=unsigned(width), depth=depth, init=[])
        else:
            self._register = Signal(width, name=name)

    def read(self, key: Value) -> Value:
        """The word of `key` as it was before this cycle."""
        if self._depth == 1:
            return self._register
        port = self._memory.read_port(domain="comb")
        self._m.d.comb += port.addr.eq(key)
        return port.data

    def write(self, key: Value, data: Value, enable: Value) -> None:
        """Set the word of `key` at the end of this cycle."""
        if self._depth == 1:
            with self._m.If(enable):
                self._m.d.sync += self._register.eq(data)
        else:
            port = self._memory.write_port()
            self._m.d.comb += [port.en.eq(enable), port.addr.eq(key), port.data.eq(data)]


class Checker(wiring.Component):
    """A listener on one channel's command buses that reports each broken rule one cycle later.

    Several rules may break in one cycle: `violation` reports one (the column command's before ACT's
    before the other row command's, then by order of `published_rules`), `broken` shows all of them.

    Members
    -------
    row : In(RowBus())
    column : In(ColumnMonitor())
    refresh_enable : In(1)
        High while refresh is due: low in a restart. What banks owe, and their rounds, begin anew when it
        rises.
    violation : Out(1)
        A rule was broken in the cycle before.
    rule : Out(6)
        Index into `published_rules(config.memory.timing)`.
    pseudo_channel : Out(1)
    bank : Out(6)
        What the command addressed, 0 for all-bank commands; the bank whose refresh is overdue.
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
        comparisons = checks(self._timing)
        # Time starts late enough for the initial stamp 0 to be long ago.
        start = max(check.cycles for check in comparisons) + self._timing.activate_slots
        now = Signal(_TIME_WIDTH, init=start)
        m.d.sync += now.eq(now + 1)

        places = self._places(m)
        for index, stamp in enumerate(dict.fromkeys(check.stamp for check in comparisons)):
            self._timing_rules(m, index, stamp, [c for c in comparisons if c.stamp == stamp], places, now)
        self._state_rules(m, places)
        self._refresh_rules(m, places)
        self._report(m, places, now, start)
        return m

    def _place(
        self, active: dict[Command, Value], pseudo_channel: Value, bank: Value, lag: int = 0
    ) -> _Place:
        return _Place(
            organisation=self._organisation,
            active=active,
            pseudo_channel=pseudo_channel,
            bank=bank,
            broken=defaultdict(list),
            lag=lag,
        )

    def _places(self, m: Module) -> dict[Order, _Place]:
        """Decode both buses; delay ACT to the slot that counts."""
        row, column, organisation = self.row, self.column, self._organisation
        lag = self._timing.activate_lag
        row_ops = {op: command for op, command in _ROW_OPS.items() if command in self._timing.commands}

        def beyond(value: Value, count: int) -> Value:
            return value[_bits(count) :].any() if len(value) > _bits(count) else Const(0, 1)

        all_banks = (row.op == RowOp.PRECHARGE_ALL) | (row.op == RowOp.REFRESH_ALL)
        row_defined = (
            Cat(row.op == op for op in row_ops).any()
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
        slot = _cat((row.op == RowOp.ACTIVATE) & row_defined, row.pseudo_channel, row.bank)
        for index in range(lag):
            delayed = Signal(len(slot), name=f"activate_slot_{index + 1}")
            m.d.sync += delayed.eq(slot)
            slot = delayed
        places = {
            Order.COLUMN: self._place(
                {command: (column.op == op) & column_defined for op, command in _COLUMN_OPS.items()},
                column.pseudo_channel,
                column.bank,
            ),
            Order.ACTIVATE: self._place({Command.ACT: _cat(slot[0])}, _cat(slot[1:2]), _cat(slot[2:]), lag),
            Order.ROW: self._place(
                {
                    command: (row.op == op) & row_defined
                    for op, command in row_ops.items()
                    if command is not Command.ACT
                },
                row.pseudo_channel,
                Mux(all_banks, 0, row.bank),
            ),
        }
        places[Order.COLUMN].broken["undefined command"].append((column.op != ColumnOp.NOP) & ~column_defined)
        places[Order.ROW].broken["undefined command"].append((row.op != RowOp.NOP) & ~row_defined)
        return places

    def _timing_rules(
        self,
        m: Module,
        index: int,
        stamp: Stamp,
        comparisons: list[Check],
        places: dict[Order, _Place],
        now: Signal,
    ) -> None:
        """Keep one stamp and compare with it all that count from it."""
        writer = places[stamp.order]
        key = writer.key(stamp.scope)
        width = _TIME_WIDTH * stamp.window
        stamps = _Stamps(m, f"stamp_{index}", depth=1 << len(key), width=width)
        enable = Signal(name=f"stamp_{index}_enable")
        m.d.comb += enable.eq(writer.any(stamp.commands))
        stamps.write(key, _cat(_cat(now, stamps.read(key))[:width]), enable)

        for order in sorted({Order.of(check.after) for check in comparisons}):
            place = places[order]
            word = stamps.read(place.key(stamp.scope))
            oldest = word[-_TIME_WIDTH:]
            if stamp.order < order:
                # The earlier command may be of this very cycle.
                same = enable & (key == place.key(stamp.scope)) if len(key) else enable
                oldest = Mux(same, _cat(now, word)[width - _TIME_WIDTH : width], oldest)
            distance = Signal(_TIME_WIDTH, name=f"stamp_{index}_to_{order.name.lower()}")
            m.d.comb += distance.eq(now - oldest)
            for check in comparisons:
                if Order.of(check.after) == order:
                    place.broken[check.name].append(place.active[check.after] & (distance < check.cycles))

    def _one(self, place: _Place, enable: Value) -> Value:
        """The bank addressed, if `enable`, as a vector of banks."""
        units = self._organisation.pseudo_channels * self._organisation.banks
        return _cat((enable << place.key(Scope.BANK))[:units])

    def _every(self, place: _Place, enable: Value) -> Value:
        """The banks of the pseudo channel addressed, if `enable`."""
        key, organisation = place.key(Scope.PSEUDO_CHANNEL), self._organisation
        return _cat(
            *(
                (enable & (key == p)).replicate(organisation.banks)
                for p in range(organisation.pseudo_channels)
            )
        )

    def _state_rules(self, m: Module, places: dict[Order, _Place]) -> None:
        """Follow which banks are open through the cycle: column command, ACT, other row command."""
        column, activate, row = places[Order.COLUMN], places[Order.ACTIVATE], places[Order.ROW]
        banks = self._organisation.banks
        opened = Signal(self._organisation.pseudo_channels * banks)
        after_column, after_activate = Signal.like(opened), Signal.like(opened)

        one, every = self._one, self._every
        m.d.comb += [
            after_column.eq(opened & ~one(column, column.any(frozenset({Command.RDA, Command.WRA})))),
            after_activate.eq(after_column | one(activate, activate.active[Command.ACT])),
        ]
        m.d.sync += opened.eq(
            after_activate & ~one(row, row.active[Command.PRE]) & ~every(row, row.active[Command.PREA])
        )
        column.broken["RD or WR to a closed bank"].append(
            column.any(COLUMN_COMMANDS) & ~Value.cast(opened.bit_select(column.key(Scope.BANK), 1))
        )
        activate.broken["ACT to an open bank"].append(
            activate.active[Command.ACT] & after_column.bit_select(activate.key(Scope.BANK), 1)
        )
        row.broken["REFpb to an open bank"].append(
            row.any(frozenset({Command.REFPB}))
            & Value.cast(after_activate.bit_select(row.key(Scope.BANK), 1))
        )
        row.broken["REFab with an open bank"].append(
            (after_activate & every(row, row.active[Command.REFAB])).any()
        )

    def _refresh_rules(self, m: Module, places: dict[Order, _Place]) -> None:
        """Follow what each bank owes, and which banks have had their REFpb of the round."""
        row, enable = places[Order.ROW], self.refresh_enable
        units = self._organisation.pseudo_channels * self._organisation.banks
        one = self._one(row, row.any(frozenset({Command.REFPB})))
        every = self._every(row, row.active[Command.REFAB])

        # The first cycle after every tREFI.
        elapsed = Signal(range(self._timing["tREFI"] + 1))
        passed = Signal()
        wraps = elapsed == self._timing["tREFI"]
        m.d.sync += [
            elapsed.eq(Mux(enable, Mux(wraps, 1, elapsed + 1), 0)),
            passed.eq(enable & wraps),
        ]
        # Bit k of what every bank owes, plus the limit: 0 to twice the limit, a power of two.
        bits = [
            Signal(units, name=f"owed_{k}", init=-(REFRESH_LIMIT >> k & 1) & (1 << units) - 1)
            for k in range((2 * REFRESH_LIMIT).bit_length())
        ]
        overdue = Signal(units)
        m.d.comb += overdue.eq(bits[-1] & (passed & enable).replicate(units))
        carry: Value = ~bits[-1] & passed.replicate(units)
        more: list[Value] = []
        for bit in bits:
            more.append(bit ^ carry)
            carry = bit & carry
        borrow: Value = (one | every) & reduce(or_, more)
        for bit, value in zip(bits, more, strict=True):
            m.d.sync += bit.eq(Mux(enable, value ^ borrow, bit.init))
            borrow = ~value & borrow

        had, after = Signal(units), Signal(units)
        m.d.comb += after.eq((had | one) & ~every)
        row.broken["REFpb out of round"].append((one & had).any() & enable)
        for p in range(self._organisation.pseudo_channels):
            span = slice(self._organisation.banks * p, self._organisation.banks * (p + 1))
            m.d.sync += had[span].eq(Mux(after[span].all() | ~enable, 0, after[span]))

        # Reported is the lowest bank of those overdue.
        unit = Signal(range(units))
        for k in reversed(range(units)):
            with m.If(overdue[k]):
                m.d.comb += unit.eq(k)
        bank_bits = _bits(self._organisation.banks)
        places[Order.REFRESH] = self._place({}, _cat(unit[bank_bits:]), _cat(unit[:bank_bits]))
        places[Order.REFRESH].broken["refresh overdue"].append(overdue.any())

    def _report(self, m: Module, places: dict[Order, _Place], now: Signal, start: int) -> None:
        """Choose what to show of the cycle, and remember it all."""
        shown = Signal(len(self._rules))
        vectors: list[Signal] = []
        for order in reversed(Order):
            place = places[order]
            vector = Signal(len(self._rules), name=f"broken_{order.name.lower()}")
            m.d.comb += vector.eq(_cat(*(_cat(*place.broken[name]).any() for name in self._rules)))
            with m.If(vector.any()):
                m.d.comb += shown.eq(vector)
                m.d.sync += [
                    self.pseudo_channel.eq(place.pseudo_channel),
                    self.bank.eq(place.bank),
                    self.cycle.eq(now - (start + place.lag)),
                ]
            vectors.append(vector)
        broken = reduce(or_, vectors)
        m.d.sync += [
            self.violation.eq(broken.any()),
            self.broken.eq(broken),
            self.seen.eq(self.seen | broken),
        ]
        for index in reversed(range(len(self._rules))):
            with m.If(shown[index]):
                m.d.sync += self.rule.eq(index)
