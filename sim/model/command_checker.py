"""The command checker: every rule of the timing table over a recorded log of bus commands, in numpy.

It is independent of the RTL checker (which it never imports) and works the other way round: it sorts the
whole log by the bank, bank group or pseudo channel that a rule relates, and finds for every command the
n-th last earlier one by rank. A million commands take about a second.

The log may hold many batches one after the other: cycles are continuous, so it is checked as one. In the
beginning every bank is closed and no command was ever given.

Conventions, the same as the RTL checker's: ACT is logged in its first slot and counts `activate_lag` later;
commands of one cycle are ordered column, ACT (where it counts), other row command; PREA and REFab address
every bank of their pseudo channel; a command without a row in the table, or to an address that the memory
does not have, is an "undefined command" and otherwise ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hdl.layouts import ColumnOp, RowOp
from hdl.memory.timing import Command, Organisation, Scope, TimingPreset

__all__ = [
    "COLUMN_BUS",
    "COMMANDS",
    "COMMAND_DTYPE",
    "POSTPONED_REFRESHES",
    "ROW_BUS",
    "Report",
    "Violation",
    "check",
]

#: One recorded command, 16 bytes. `op` is a `RowOp` or a `ColumnOp`; `row_or_column` what goes with it.
COMMAND_DTYPE = np.dtype(
    [
        ("cycle", "<u8"),
        ("bus", "u1"),
        ("op", "u1"),
        ("pseudo_channel", "u1"),
        ("bank", "u1"),
        ("row_or_column", "<u4"),
    ]
)
#: Values of `bus`.
ROW_BUS, COLUMN_BUS = 0, 1
#: Refreshes that a bank may owe, and that it may have had in advance.
POSTPONED_REFRESHES = 8

_KINDS = tuple(Command)
_CODE = {command: code for code, command in enumerate(_KINDS)}
_UNDEFINED = len(_KINDS)
#: The command by the `bus` and `op` of its record.
COMMANDS = {
    (ROW_BUS, RowOp.ACTIVATE.value): Command.ACT,
    (ROW_BUS, RowOp.PRECHARGE.value): Command.PRE,
    (ROW_BUS, RowOp.PRECHARGE_ALL.value): Command.PREA,
    (ROW_BUS, RowOp.REFRESH_ALL.value): Command.REFAB,
    (ROW_BUS, RowOp.REFRESH_BANK.value): Command.REFPB,
    (COLUMN_BUS, ColumnOp.READ.value): Command.RD,
    (COLUMN_BUS, ColumnOp.READ_AUTO.value): Command.RDA,
    (COLUMN_BUS, ColumnOp.WRITE.value): Command.WR,
    (COLUMN_BUS, ColumnOp.WRITE_AUTO.value): Command.WRA,
}
_COLUMNS = (Command.RD, Command.RDA, Command.WR, Command.WRA)
_CLOSING = (Command.PRE, Command.PREA, Command.RDA, Command.WRA)

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One broken rule."""

    rule: str
    command: Command | None
    """The command that broke it; None for an undefined or a missing command."""
    cycle: int
    """Cycle in which the command was on its bus (ACT: its first slot)."""
    pseudo_channel: int
    bank: int
    """The bank that the rule was broken for."""
    earlier: int | None
    """Cycle of the earlier command that the rule counts from, if there was one."""
    required: int | None
    """Cycles that the table asks for; None for a rule on the state."""
    actual: int | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The violations of a log, by cycle. Iterates as `Violation`."""

    rules: tuple[str, ...]
    """Names that `records["rule"]` indexes."""
    records: npt.NDArray[np.void]
    """Fields rule, command, cycle, pseudo_channel, bank, earlier, required, actual; -1 stands for None.

    `command` is an index into the members of `Command`.
    """

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Violation]:
        for record in self.records:
            earlier, required, actual = (
                None if record[name] < 0 else int(record[name]) for name in ("earlier", "required", "actual")
            )
            yield Violation(
                rule=self.rules[record["rule"]],
                command=None if record["command"] < 0 else _KINDS[record["command"]],
                cycle=int(record["cycle"]),
                pseudo_channel=int(record["pseudo_channel"]),
                bank=int(record["bank"]),
                earlier=earlier,
                required=required,
                actual=actual,
            )

    def by_rule(self) -> dict[str, int]:
        """How often each broken rule was broken."""
        return dict(Counter(self.rules[index] for index in self.records["rule"].tolist()))


_RECORD = np.dtype(
    [
        ("rule", "<i8"),
        ("command", "<i8"),
        ("cycle", "<i8"),
        ("pseudo_channel", "<i8"),
        ("bank", "<i8"),
        ("earlier", "<i8"),
        ("required", "<i8"),
        ("actual", "<i8"),
    ]
)


@dataclass(frozen=True, kw_only=True)
class _Log:
    """Decoded commands in the order in which they take effect."""

    kind: npt.NDArray[np.uint8]
    cycle: Ints
    time: Ints
    pseudo_channel: npt.NDArray[np.uint8]
    bank: npt.NDArray[np.uint8]

    def __getitem__(self, index: npt.NDArray[Any]) -> _Log:
        return _Log(
            kind=self.kind[index],
            cycle=self.cycle[index],
            time=self.time[index],
            pseudo_channel=self.pseudo_channel[index],
            bank=self.bank[index],
        )

    def of(self, *commands: Command) -> Bools:
        """Where one of `commands` is."""
        table = np.zeros(len(_KINDS) + 1, dtype=np.bool_)
        table[[_CODE[command] for command in commands]] = True
        return table[self.kind]


class _Violations:
    """Collects violations as arrays."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.parts: list[npt.NDArray[np.void]] = []

    def add(
        self,
        name: str,
        log: _Log,
        at: Ints,
        *,
        earlier: Ints | int = -1,
        required: int = -1,
        actual: Ints | int = -1,
    ) -> None:
        if not len(at):
            return
        part = np.empty(len(at), dtype=_RECORD)
        part["rule"] = self.names.setdefault(name, len(self.names))
        part["command"] = np.where(log.kind[at] == _UNDEFINED, -1, log.kind[at].astype(np.int64))
        part["cycle"] = log.cycle[at]
        part["pseudo_channel"] = log.pseudo_channel[at]
        part["bank"] = log.bank[at]
        part["earlier"] = earlier
        part["required"] = required
        part["actual"] = actual
        self.parts.append(part)

    def report(self) -> Report:
        records = np.concatenate(self.parts) if self.parts else np.empty(0, dtype=_RECORD)
        return Report(rules=tuple(self.names), records=records[np.argsort(records["cycle"], kind="stable")])


def check(
    log: npt.NDArray[np.void],
    timing: TimingPreset,
    organisation: Organisation | None = None,
    *,
    refresh_windows: npt.ArrayLike | None = None,
) -> Report:
    """Every violation in `log`, an array of COMMAND_DTYPE in the order of its cycles.

    `organisation` is the memory as built (default: the preset's). `refresh_windows` holds pairs [begin,
    end) of cycles in which refresh was enabled: what banks owe and the rounds of REFpb are checked inside
    them only, and begin anew with each. Raises ValueError for another dtype or for cycles that run backwards.
    """
    if log.dtype != COMMAND_DTYPE:
        raise ValueError(f"command log has dtype {log.dtype}: expected {COMMAND_DTYPE}")
    cycles = log["cycle"].astype(np.int64)
    backwards = np.flatnonzero(cycles[1:] < cycles[:-1])
    if len(backwards):
        at = int(backwards[0])
        raise ValueError(
            f"command log runs backwards at record {at + 1}: cycle {cycles[at + 1]} after {cycles[at]}"
        )
    shape = organisation or timing.organisation
    violations = _Violations()
    commands = _decode(log, cycles, timing, shape, violations)
    for scope in Scope:
        _check_scope(commands, scope, timing, shape, violations)
    _check_states(commands, shape, violations)
    if refresh_windows is not None:
        windows = np.asarray(refresh_windows, dtype=np.int64).reshape(-1, 2)
        _check_rounds(commands, windows, shape, violations)
        _check_overdue(commands, windows, timing, shape, violations)
    return violations.report()


def _decode(
    log: npt.NDArray[np.void],
    cycles: Ints,
    timing: TimingPreset,
    shape: Organisation,
    violations: _Violations,
) -> _Log:
    """Name every command, report the undefined ones and order the others."""
    kinds = np.full((256, 256), _UNDEFINED, dtype=np.uint8)
    for (bus, op), command in COMMANDS.items():
        if command in timing.commands:
            kinds[bus, op] = _CODE[command]
    kind = kinds[log["bus"], log["op"]]
    idle = log["op"] == 0
    commands = _Log(
        kind=kind, cycle=cycles, time=cycles, pseudo_channel=log["pseudo_channel"], bank=log["bank"]
    )
    limits = np.full(len(_KINDS) + 1, 1 << 32, dtype=np.int64)
    limits[_CODE[Command.ACT]] = shape.rows
    for command in _COLUMNS:
        limits[_CODE[command]] = shape.columns
    undefined = ~idle & (
        (kind == _UNDEFINED)
        | (commands.pseudo_channel >= shape.pseudo_channels)
        | (~commands.of(Command.PREA, Command.REFAB) & (commands.bank >= shape.banks))
        | (log["row_or_column"] >= limits[kind])
    )
    nameless = _Log(**{**vars(commands), "kind": np.full_like(kind, _UNDEFINED)})
    violations.add("undefined command", nameless, np.flatnonzero(undefined))
    commands = commands[~idle & ~undefined]
    activate = commands.of(Command.ACT)
    time = commands.cycle + activate * timing.activate_lag
    # Column commands before ACT before other row commands; what is alike stays in the log's order.
    place = 2 - activate - 2 * commands.of(*_COLUMNS)
    order = np.argsort(time * 4 + place, kind="stable")
    return _Log(
        kind=commands.kind[order],
        cycle=commands.cycle[order],
        time=time[order],
        pseudo_channel=commands.pseudo_channel[order],
        bank=np.where(commands.of(Command.PREA, Command.REFAB), 0, commands.bank)[order],
    )


def _spread(log: _Log, copies: int, stride: int) -> _Log:
    """The log with every all-bank command as `copies` commands, to the banks 0, stride, 2 x stride, ..."""
    every = log.of(Command.PREA, Command.REFAB)
    counts = np.where(every, copies, 1)
    index = np.repeat(np.arange(len(counts)), counts)
    spread = log[index]
    copy = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
    spread.bank[:] = np.where(every[index], copy * stride, spread.bank)
    return spread


def _check_scope(
    log: _Log, scope: Scope, timing: TimingPreset, shape: Organisation, violations: _Violations
) -> None:
    """All rows of one scope: sort by its members, then compare with the n-th last earlier command."""
    if scope is Scope.BANK:
        log = _spread(log, shape.banks, 1)
        member = log.pseudo_channel.astype(np.uint16) * shape.banks + log.bank
    elif scope is Scope.BANK_GROUP:
        log = _spread(log, shape.bank_groups, 1)
        member = log.pseudo_channel.astype(np.uint16) * shape.bank_groups + log.bank % shape.bank_groups
    elif scope is Scope.PSEUDO_CHANNEL:
        member = log.pseudo_channel.astype(np.uint16)
    else:
        member = np.zeros(len(log.kind), dtype=np.uint16)
    order = np.argsort(member, kind="stable")
    log, member = log[order], member[order]

    # Rows that differ only in one of their commands are one comparison; a window counts one command alone.
    sources: dict[tuple[str, int, int, Command, Command | None], list[Command]] = {}
    for rule in timing.rules():
        if rule.scope is scope:
            alone = rule.before if rule.window > 1 else None
            sources.setdefault((rule.name, rule.cycles, rule.window, rule.after, alone), []).append(
                rule.before
            )
    rows: dict[tuple[str, int, int, tuple[Command, ...]], list[Command]] = {}
    for (name, cycles, window, after, _), before in sources.items():
        rows.setdefault((name, cycles, window, tuple(before)), []).append(after)

    ranks: dict[tuple[Command, ...], tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = {}
    for (name, cycles, window, before), after in rows.items():
        if before not in ranks:
            present = log.of(*before)
            ranks[before] = np.flatnonzero(present), np.cumsum(present) - present
        positions, rank = ranks[before]
        if not len(positions):
            continue
        at = np.flatnonzero(log.of(*after))
        nth = rank[at] - window
        earlier = positions[np.maximum(nth, 0)]
        distance = log.time[at] - log.time[earlier]
        broken = (nth >= 0) & (member[at] == member[earlier]) & (distance < cycles)
        if broken.any():
            violations.add(
                name,
                log,
                at[broken],
                earlier=log.cycle[earlier[broken]],
                required=cycles,
                actual=distance[broken],
            )


def _check_states(log: _Log, shape: Organisation, violations: _Violations) -> None:
    """Which banks are open: carry the last opening or closing command of each bank forward."""
    log = _spread(log, shape.banks, 1)
    member = log.pseudo_channel.astype(np.uint16) * shape.banks + log.bank
    order = np.argsort(member, kind="stable")
    log, member = log[order], member[order]
    opens = log.of(Command.ACT)
    changes = opens | log.of(*_CLOSING)
    position = np.arange(len(member))
    latest = np.maximum.accumulate(np.where(changes, position, -1))
    last = np.concatenate(([-1], latest))[:-1].astype(np.int64)
    known = (last >= 0) & (member[last] == member)
    opened = known & opens[last]
    cause = np.where(known, log.cycle[last], -1)
    for name, broken in (
        ("ACT to an open bank", opens & opened),
        ("RD or WR to a closed bank", log.of(*_COLUMNS) & ~opened),
        ("REFab with an open bank", log.of(Command.REFAB) & opened),
        ("REFpb to an open bank", log.of(Command.REFPB) & opened),
    ):
        at = np.flatnonzero(broken)
        violations.add(name, log, at, earlier=cause[at])


def _check_rounds(log: _Log, windows: Ints, shape: Organisation, violations: _Violations) -> None:
    """In every window, no bank has a second REFpb in a round; REFab and a REFpb of each bank end one."""
    if not len(windows):
        return
    refreshes = np.flatnonzero(log.of(Command.REFAB, Command.REFPB))
    every = log.kind[refreshes] == _CODE[Command.REFAB]
    begins, ends = (windows[np.argsort(windows[:, 0])][:, side] for side in (0, 1))
    window = np.searchsorted(begins, log.cycle[refreshes], side="right") - 1
    inside = (window >= 0) & (log.cycle[refreshes] < ends[window])
    had: list[set[int]] = [set() for _ in range(shape.pseudo_channels)]
    twice: list[int] = []
    last = -1
    for at, all_banks, number in zip(
        refreshes[inside].tolist(), every[inside].tolist(), window[inside].tolist(), strict=True
    ):
        if number != last:
            had = [set() for _ in had]
            last = number
        seen, bank = had[log.pseudo_channel[at]], int(log.bank[at])
        if all_banks:
            seen.clear()
            continue
        if bank in seen:
            twice.append(at)
        seen.add(bank)
        if len(seen) == shape.banks:
            seen.clear()
    violations.add("REFpb out of round", log, np.array(twice, dtype=np.int64))


def _check_overdue(
    log: _Log, windows: Ints, timing: TimingPreset, shape: Organisation, violations: _Violations
) -> None:
    """In every window, after each tREFI a bank owes one refresh more; one that would owe too many is late.

    A refresh in the cycle in which an interval ends is within it; one in advance of more than the limit
    counts for nothing, and what was reported is forgiven.
    """
    interval, units = timing["tREFI"], shape.pseudo_channels * shape.banks
    refreshes = _spread(log[np.flatnonzero(log.of(Command.REFAB, Command.REFPB))], shape.banks, 1)
    unit = refreshes.pseudo_channel.astype(np.int64) * shape.banks + refreshes.bank
    late_cycles: list[int] = []
    late_units: list[int] = []
    for begin, end in windows.tolist():
        intervals = (end - begin - 2) // interval
        if intervals <= POSTPONED_REFRESHES:
            continue  # Too short to owe that many.
        first, last = np.searchsorted(refreshes.cycle, (begin, end))
        number = np.maximum(refreshes.cycle[first:last] - begin - 1, 0) // interval
        counts = np.zeros((intervals + 1, units), dtype=np.int64)
        np.add.at(counts, (number, unit[first:last]), 1)
        owed = np.zeros(units, dtype=np.int64)
        for passed in range(1, intervals + 1):
            owed = np.maximum(owed - counts[passed - 1], -POSTPONED_REFRESHES)
            for late in np.flatnonzero(owed == POSTPONED_REFRESHES):
                late_cycles.append(begin + passed * interval + 1)
                late_units.append(int(late))
            owed = np.minimum(owed + 1, POSTPONED_REFRESHES)
    cycles, banks = np.array(late_cycles, dtype=np.int64), np.array(late_units, dtype=np.int64)
    violations.add(
        "refresh overdue",
        _Log(
            kind=np.full(len(cycles), _UNDEFINED, dtype=np.uint8),
            cycle=cycles,
            time=cycles,
            pseudo_channel=(banks // shape.banks).astype(np.uint8),
            bank=(banks % shape.banks).astype(np.uint8),
        ),
        np.arange(len(cycles)),
    )
