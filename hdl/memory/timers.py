"""The controller's timing counters: one per row group of the timing table, generated from it.

All places of one scope count in parallel. A counter is bit-sliced: bit k of every place's counter is one
packed vector, so 32 banks count down in a few vector operations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import MemoryConfig
from ..layouts import ColumnOp, RowOp
from .timing import ROW_COMMANDS, Command, Organisation, Scope, TimingPreset

__all__ = ["Timers", "Wait", "waits"]

_SCOPES = (Scope.BANK, Scope.BANK_GROUP, Scope.PSEUDO_CHANNEL, Scope.CHANNEL)
_ALL_BANKS = (Command.PREA, Command.REFAB)
_ROW_OPS = {
    Command.ACT: RowOp.ACTIVATE,
    Command.PRE: RowOp.PRECHARGE,
    Command.PREA: RowOp.PRECHARGE_ALL,
    Command.REFAB: RowOp.REFRESH_ALL,
    Command.REFPB: RowOp.REFRESH_BANK,
}
_COLUMN_OPS = {
    Command.RD: ColumnOp.READ,
    Command.RDA: ColumnOp.READ_AUTO,
    Command.WR: ColumnOp.WRITE,
    Command.WRA: ColumnOp.WRITE_AUTO,
}


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A row of the table as bus slots: `after` may be put on its bus `cycles` after `before` was.

    It differs from `Rule` where ACT is involved, whose time there is `activate_lag` after the first slot.
    """

    scope: Scope
    before: Command
    after: Command
    cycles: int
    window: int


def waits(timing: TimingPreset, commands: frozenset[Command]) -> tuple[Wait, ...]:
    """The waits among `commands` that are not implied: by one bus carrying one command a cycle, by a wait
    of wider scope, or (a window) by the distance of its neighbours."""
    extra = timing.activate_lag
    found = [
        Wait(
            scope=rule.scope,
            before=rule.before,
            after=rule.after,
            cycles=rule.cycles + extra * (rule.before is Command.ACT) - extra * (rule.after is Command.ACT),
            window=rule.window,
        )
        for rule in timing.rules()
        if rule.before in commands and rule.after in commands
    ]

    def implied(wait: Wait) -> bool:
        same_bus = (wait.before in ROW_COMMANDS) == (wait.after in ROW_COMMANDS)
        if wait.cycles <= (1 if same_bus else 0):
            return True
        return any(
            other.window == 1
            and (other.before, other.after) == (wait.before, wait.after)
            and _SCOPES.index(other.scope) >= _SCOPES.index(wait.scope)
            and other != wait
            and (other.scope is not wait.scope or wait.window > 1)
            and other.cycles * wait.window >= wait.cycles
            for other in found
        )

    return tuple(wait for wait in dict.fromkeys(found) if not implied(wait))


#: Ready when the same command without auto-precharge is: the table's rows to both are alike.
_WITH_AUTO_PRECHARGE = (Command.RDA, Command.WRA)


class _Counter:
    """A bit-sliced down counter of `units` places: loaded with `cycles` - 1, it rests at zero.

    What is asked of it is in registers that are computed a cycle early, so that a decision does not begin
    with a comparison.
    """

    def __init__(self, m: Module, *, name: str, load: Value, cycles: int) -> None:
        self._m = m
        self._name = name
        self._load = load
        self._cycles = cycles
        self._flags: dict[int, Signal] = {}
        start = cycles - 1
        self._bits = [Signal(len(load), name=f"{name}_bit{k}") for k in range(start.bit_length())]
        self.busy = borrow = self.within(cycles)
        for k, bit in enumerate(self._bits):
            less = bit ^ borrow
            m.d.sync += bit.eq(less | load if start >> k & 1 else less & ~load)
            borrow = ~bit & borrow

    def within(self, cycles: int) -> Value:
        """The places whose last event is less than `cycles` ago, from 1 to those of the counter."""
        if cycles == 1:
            return Const(0, len(self._load))
        if cycles not in self._flags:
            self._flags[cycles] = flag = Signal(len(self._load), name=f"{self._name}_within{cycles}")
            # In the next cycle: what is loaded now is then one of them.
            self._m.d.sync += flag.eq(self._load | self._above(self._cycles - cycles + 1))
        return self._flags[cycles]

    def _above(self, limit: int) -> Value:
        above: Value = Const(0, len(self._load))
        for k, bit in enumerate(self._bits):
            above = above & bit if limit >> k & 1 else above | bit
        return above


class Timers(wiring.Component):
    """The commands that the timing table allows in this cycle, from those decided in earlier cycles.

    `unit` numbers the banks of the channel: bank in the low bits (bank group lowest), pseudo channel above.
    All-bank commands use only the pseudo channel of `row_unit`. Generated for `commands`; a preset's other
    commands must not be decided.

    Members
    -------
    row_op : In(RowOp)
    row_unit : In(unit)
    column_op : In(ColumnOp)
    column_unit : In(unit)
        What is decided in this cycle; it limits the next cycles.
    activate, precharge, read, write : Out(units)
        The banks that may take the command now, as far as time is concerned; a read or a write with
        auto-precharge or without.
    refresh_bank : Out(units)
        Likewise for REFpb; a member only where `commands` has it.
    bank_rested : Out(units)
        Likewise, as far as the rules of the bank alone go.
    precharge_all, refresh_all : Out(pseudo channels)
    idle : Out(1)
        Every counter has run out.
    """

    def __init__(self, config: MemoryConfig, *, commands: frozenset[Command]) -> None:
        self._organisation: Organisation = config.organisation
        self._waits = waits(config.timing, commands)
        self._commands = commands
        pseudo_channels = self._organisation.pseudo_channels
        units = pseudo_channels * self._organisation.banks
        super().__init__(
            {
                "row_op": In(RowOp),
                "row_unit": In(range(units)),
                "column_op": In(ColumnOp),
                "column_unit": In(range(units)),
                "activate": Out(units),
                "precharge": Out(units),
                "read": Out(units),
                "write": Out(units),
                **(
                    {"refresh_bank": Out(units), "bank_rested": Out(units)}
                    if Command.REFPB in commands
                    else {}
                ),
                "precharge_all": Out(pseudo_channels),
                "refresh_all": Out(pseudo_channels),
                "idle": Out(1),
            }
        )

    def _places(self, scope: Scope) -> int:
        organisation = self._organisation
        return {
            Scope.BANK: organisation.pseudo_channels * organisation.banks,
            Scope.BANK_GROUP: organisation.pseudo_channels * organisation.bank_groups,
            Scope.PSEUDO_CHANNEL: organisation.pseudo_channels,
            Scope.CHANNEL: 1,
        }[scope]

    def _key(self, scope: Scope, unit: Value) -> Value:
        bank_bits = self._organisation.banks.bit_length() - 1
        group_bits = self._organisation.bank_groups.bit_length() - 1
        key = {
            Scope.BANK: unit,
            Scope.BANK_GROUP: Cat(unit[:group_bits], unit[bank_bits:]),
            Scope.PSEUDO_CHANNEL: unit[bank_bits:],
            Scope.CHANNEL: Const(0, 0),
        }[scope]
        return Value.cast(key)

    def _expand(self, scope: Scope, vector: Value) -> Value:
        """A vector of places of `scope` as a vector of banks."""
        organisation = self._organisation
        if scope is Scope.BANK:
            return vector
        if scope is Scope.CHANNEL:
            return Value.cast(vector.replicate(self._places(Scope.BANK)))
        size = len(vector) // organisation.pseudo_channels
        copies = organisation.banks // size
        return Value.cast(
            Cat(
                vector[size * p : size * (p + 1)].replicate(copies)
                for p in range(organisation.pseudo_channels)
            )
        )

    def _event(self, m: Module, scope: Scope, commands: tuple[Command, ...], name: str) -> Value:
        """The places of `scope` that one of `commands` addresses in this cycle."""
        places = self._places(scope)
        total: Value = Const(0, places)
        for all_banks in (False, True):
            chosen = [c for c in commands if (c in _ALL_BANKS) is all_banks]
            if not chosen:
                continue
            row = chosen[0] in ROW_COMMANDS
            op = self.row_op if row else self.column_op
            unit = self.row_unit if row else self.column_unit
            ops = _ROW_OPS if row else _COLUMN_OPS
            active = Value.cast(Cat(op == ops[c] for c in chosen)).any()
            if all_banks and scope in (Scope.BANK, Scope.BANK_GROUP):
                size = places // self._organisation.pseudo_channels
                channel = (active << self._key(Scope.PSEUDO_CHANNEL, unit))[
                    : self._organisation.pseudo_channels
                ]
                vector = Value.cast(Cat(bit.replicate(size) for bit in channel))
            else:
                vector = (active << self._key(scope, unit))[:places]
            total = total | vector
        event = Signal(places, name=f"{name}_event")
        m.d.comb += event.eq(total)
        return event

    def elaborate(self, platform: object) -> Module:
        m = Module()
        organisation = self._organisation
        units = self._places(Scope.BANK)
        busy: dict[Command, Value] = {command: Const(0, units) for command in self._commands}
        resting: Value = Const(0, units)  # the part of busy[REFPB] from rules of scope bank
        running: list[Value] = []

        # Commands of one bus with the same waits share a counter.
        tables: dict[tuple[Scope, Command, int], dict[Command, int]] = defaultdict(dict)
        for wait in self._waits:
            if wait.after in _WITH_AUTO_PRECHARGE:
                continue
            table = tables[wait.scope, wait.before, wait.window]
            table[wait.after] = max(wait.cycles, table.get(wait.after, 0))
        shared: dict[tuple[Scope, int, bool, tuple[tuple[Command, int], ...]], list[Command]] = defaultdict(
            list
        )
        for (scope, before, window), table in tables.items():
            shared[scope, window, before in ROW_COMMANDS, tuple(table.items())].append(before)

        for (scope, window, _, table), befores in shared.items():
            name = "_".join((scope.name.lower(), *(before.value.lower() for before in befores)))
            event = self._event(m, scope, tuple(befores), f"{name}_{window}")
            longest = max(cycles for _, cycles in table)
            if window == 1:
                counter = _Counter(m, name=name, load=event, cycles=longest)
                running.append(counter.busy.any())
                for after, cycles in table:
                    busy[after] = busy[after] | self._expand(scope, counter.within(cycles))
                    if scope is Scope.BANK and after is Command.REFPB:
                        resting = resting | counter.within(cycles)
                continue
            # A window of n: n counters take turns, and the next one's last turn was n commands ago.
            turns = [
                Signal(len(event), name=f"{name}_turn{n}", init=-(n == 0) & (1 << len(event)) - 1)
                for n in range(window)
            ]
            for turn, successor in zip(turns, [turns[-1], *turns[:-1]], strict=True):
                m.d.sync += turn.eq((turn & ~event) | (successor & event))
            for n, turn in enumerate(turns):
                counter = _Counter(m, name=f"{name}_window{n}", load=event & turn, cycles=longest)
                running.append(counter.busy.any())
                for after, cycles in table:
                    busy[after] = busy[after] | self._expand(scope, counter.within(cycles) & turn)

        for command, output in (
            (Command.ACT, self.activate),
            (Command.PRE, self.precharge),
            (Command.RD, self.read),
            (Command.WR, self.write),
        ):
            m.d.comb += output.eq(~busy[command])
        if Command.REFPB in self._commands:
            m.d.comb += [self.refresh_bank.eq(~busy[Command.REFPB]), self.bank_rested.eq(~resting)]
        for command, output in ((Command.PREA, self.precharge_all), (Command.REFAB, self.refresh_all)):
            vector = Signal(units, name=f"busy_{command.value.lower()}")
            m.d.comb += vector.eq(busy[command])
            for p in range(organisation.pseudo_channels):
                m.d.comb += output[p].eq(~vector[organisation.banks * p : organisation.banks * (p + 1)].any())
        m.d.comb += self.idle.eq(~Value.cast(Cat(running)).any())
        return m
