"""Command sequences for the checkers' tests: a plain reference of the rules, generators, and bus drivers.

The reference compares every command with every earlier one. It is slow and has no state but the history,
which is what makes it a third opinion.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from amaranth.hdl import Value
from amaranth.sim import Simulator

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.checker import Checker, published_rules
from hdl.memory.timing import COLUMN_COMMANDS, Command, Organisation, Rule, Scope, TimingPreset
from sim.model.command_checker import COLUMN_BUS, COMMAND_DTYPE, ROW_BUS

ALL_BANKS = frozenset({Command.PREA, Command.REFAB})
CLOSING = frozenset({Command.PRE, Command.PREA, Command.RDA, Command.WRA})
ROW_OPS = {
    Command.ACT: RowOp.ACTIVATE,
    Command.PRE: RowOp.PRECHARGE,
    Command.PREA: RowOp.PRECHARGE_ALL,
    Command.REFAB: RowOp.REFRESH_ALL,
    Command.REFPB: RowOp.REFRESH_BANK,
}
COLUMN_OPS = {
    Command.RD: ColumnOp.READ,
    Command.RDA: ColumnOp.READ_AUTO,
    Command.WR: ColumnOp.WRITE,
    Command.WRA: ColumnOp.WRITE_AUTO,
}


@dataclass(frozen=True, kw_only=True)
class Issue:
    """A command at the cycle `time` at which it takes effect (ACT: the slot that counts)."""

    time: int
    command: Command
    pseudo_channel: int = 0
    bank: int = 0

    def on_bus(self, timing: TimingPreset) -> int:
        """Cycle in which it is put on its bus."""
        return self.time - (timing.activate_lag if self.command is Command.ACT else 0)

    @property
    def order(self) -> tuple[int, int]:
        """Time, then column command, ACT, other row command."""
        place = 0 if self.command in COLUMN_COMMANDS else 1 if self.command is Command.ACT else 2
        return self.time, place


def related(scope: Scope, a: Issue, b: Issue, organisation: Organisation) -> bool:
    """Whether a rule of `scope` relates the two commands."""
    if scope is Scope.CHANNEL:
        return True
    if a.pseudo_channel != b.pseudo_channel:
        return False
    if scope is Scope.PSEUDO_CHANNEL or ALL_BANKS & {a.command, b.command}:
        return True
    if scope is Scope.BANK_GROUP:
        return a.bank % organisation.bank_groups == b.bank % organisation.bank_groups
    return a.bank == b.bank


class Reference:
    """The rules by brute force; commands are offered in their order."""

    def __init__(self, timing: TimingPreset, organisation: Organisation | None = None) -> None:
        self.timing = timing
        self.organisation = organisation or timing.organisation
        self.history: list[Issue] = []
        self._rules: dict[Command, list[Rule]] = {command: [] for command in Command}
        for rule in timing.rules():
            self._rules[rule.after].append(rule)
        self._horizon = max(rule.cycles for rule in timing.rules())
        self.open: set[tuple[int, int]] = set()
        """(pseudo channel, bank) of every open bank."""

    def clear(self) -> None:
        """Forget every command."""
        self.history.clear()
        self.open.clear()

    def broken(self, issue: Issue) -> set[str]:
        """Names of the rules that `issue` would break."""
        names = set()
        recent: list[Issue] = []
        for earlier in reversed(self.history):
            if issue.time - earlier.time > self._horizon:
                break
            recent.append(earlier)
        for rule in self._rules[issue.command]:
            left = rule.window
            for earlier in recent:
                if earlier.command is rule.before and related(rule.scope, earlier, issue, self.organisation):
                    left -= 1
                    if left == 0:
                        if issue.time - earlier.time < rule.cycles:
                            names.add(rule.name)
                        break
        place = issue.pseudo_channel, issue.bank
        if issue.command is Command.ACT and place in self.open:
            names.add("ACT to an open bank")
        if issue.command in COLUMN_COMMANDS and place not in self.open:
            names.add("RD or WR to a closed bank")
        if issue.command is Command.REFAB and any(pc == issue.pseudo_channel for pc, _ in self.open):
            names.add("REFab with an open bank")
        if issue.command is Command.REFPB and place in self.open:
            names.add("REFpb to an open bank")
        return names

    def accept(self, issue: Issue) -> None:
        """Put the command into the history, legal or not."""
        assert not self.history or issue.order >= self.history[-1].order
        self.history.append(issue)
        if issue.command is Command.ACT:
            self.open.add((issue.pseudo_channel, issue.bank))
        elif issue.command is Command.PREA:
            self.open = {place for place in self.open if place[0] != issue.pseudo_channel}
        elif issue.command in CLOSING:
            self.open.discard((issue.pseudo_channel, issue.bank))

    def all_broken(self, issues: Iterable[Issue]) -> set[tuple[int, str]]:
        """(time, name) of every rule that a sequence breaks."""
        found = set()
        for issue in sorted(issues, key=lambda i: i.order):
            found |= {(issue.time, name) for name in self.broken(issue)}
            self.accept(issue)
        return found


def random_issues(
    generator: random.Random, timing: TimingPreset, *, count: int, legal: bool, banks: int = 6
) -> list[Issue]:
    """`count` random commands, dense: only legal ones, or whatever comes.

    Few banks, so that rules of every scope have something to relate. At the end of every 768 cycles a
    legal sequence has nothing but PREA and then REFab, which would never get through otherwise.
    """
    reference = Reference(timing)
    organisation = timing.organisation
    chosen = generator.sample(range(organisation.banks), banks)
    weights = {Command.REFAB: 0.02, Command.REFPB: 0.02, Command.PREA: 0.05, Command.PRE: 0.3}
    phases = (
        [c for c in Command if c in COLUMN_COMMANDS],
        [Command.ACT],
        [c for c in Command if c not in COLUMN_COMMANDS and c is not Command.ACT],
    )
    closing = ([], [], [Command.PREA])
    refreshing = ([], [], [Command.REFAB])
    issues: list[Issue] = []
    time, last_slot = timing.activate_slots, 0
    while len(issues) < count:
        part = time % 768 if legal else 0
        # The order of a cycle: column command, ACT, other row command.
        for kinds in phases if part < 640 else closing if part < 700 else refreshing:
            if not kinds or generator.random() < (0.85 if not legal else 0.2 if part < 640 else 0.9):
                continue
            command = generator.choices(kinds, [weights.get(kind, 1.0) for kind in kinds])[0]
            issue = Issue(
                time=time,
                command=command,
                pseudo_channel=generator.randrange(organisation.pseudo_channels),
                bank=0 if command in ALL_BANKS else generator.choice(chosen),
            )
            slot = issue.on_bus(timing)
            row_bus = command not in COLUMN_COMMANDS
            if (row_bus and slot <= last_slot) or (legal and reference.broken(issue)):
                continue
            if legal and command is Command.PRE and (issue.pseudo_channel, issue.bank) not in reference.open:
                continue  # Legal, but it would keep the bank from being opened.
            last_slot = slot if row_bus else last_slot
            reference.accept(issue)
            issues.append(issue)
        time += 1
    return issues


def to_log(issues: Iterable[Issue], timing: TimingPreset) -> np.ndarray:
    """The recorded log of a sequence, in the order of the cycles."""
    records = [
        (
            issue.on_bus(timing),
            COLUMN_BUS if issue.command in COLUMN_COMMANDS else ROW_BUS,
            (COLUMN_OPS.get(issue.command) or ROW_OPS[issue.command]).value,
            issue.pseudo_channel,
            issue.bank,
            0,
        )
        for issue in issues
    ]
    return np.array(sorted(records, key=lambda record: record[0]), dtype=COMMAND_DTYPE)


def _neighbour(scope: Scope, organisation: Organisation) -> tuple[int, int]:
    """(pseudo channel, bank) that `scope`, and nothing narrower, relates to bank 0 of pseudo channel 0."""
    match scope:
        case Scope.BANK:
            return 0, 0
        case Scope.BANK_GROUP:
            return 0, organisation.bank_groups
        case Scope.PSEUDO_CHANNEL:
            return 0, 1
        case Scope.CHANNEL:
            return 1, 0


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A sequence whose last command breaks a rule by one cycle, and breaks nothing one cycle later."""

    rule: Rule
    issues: tuple[Issue, ...]
    broken: frozenset[str]
    """What the last command breaks: only `rule`, unless that row cannot be broken alone."""

    @property
    def late(self) -> tuple[Issue, ...]:
        """The same sequence with its last command one cycle later."""
        *others, last = self.issues
        return *others, replace(last, time=last.time + 1)


def shadowed(timing: TimingPreset, rule: Rule) -> bool:
    """Whether a row of a wider scope asks for no less, so that this one is never broken alone."""
    scopes = list(Scope)
    return any(
        (other.before, other.after, other.window) == (rule.before, rule.after, rule.window)
        and scopes.index(other.scope) > scopes.index(rule.scope)
        and other.cycles >= rule.cycles
        for other in timing.rules()
    )


def plant(timing: TimingPreset, rule: Rule) -> Planted:
    """The shortest sequence, by commands and then by cycles, that breaks a row of the table by one cycle.

    It is legal up to its last command, and that breaks nothing else unless the row is `shadowed`. Only
    the commands of a window may be illegal, where a rule of a single distance hides it (tRRDS and tFAW).
    """
    alone = not shadowed(timing, rule)
    reference = Reference(timing)
    organisation = timing.organisation
    near, far = (0, 0), _neighbour(rule.scope, organisation)
    befores = [near] * rule.window
    if rule.window > 1:
        befores = [(0, bank % organisation.bank_groups) for bank in range(rule.window)]
        far = 0, organisation.bank_groups
    opened = [(Command.ACT, place) for place in dict.fromkeys((near, far))]
    prefixes: list[list[tuple[Command, tuple[int, int]]]] = [[], opened[:1], opened[-1:], opened]
    middles = [[], [(Command.PRE, near)], [(Command.RDA, near)]]
    for prefix, middle in sorted(product(prefixes, middles), key=lambda pair: len(pair[0]) + len(pair[1])):
        with suppress(_NeverLegal):
            for slack in range(64):
                reference.clear()
                planted = _try(reference, rule, prefix, befores, middle, far, slack, alone)
                if planted:
                    return planted
    raise AssertionError(f"no sequence breaks {rule} by one cycle")


class _NeverLegal(Exception):
    """A command of a sequence that no waiting makes legal."""


def _try(
    reference: Reference,
    rule: Rule,
    prefix: list[tuple[Command, tuple[int, int]]],
    befores: list[tuple[int, int]],
    middle: list[tuple[Command, tuple[int, int]]],
    far: tuple[int, int],
    slack: int,
    alone: bool,
) -> Planted | None:
    time = reference.timing.activate_lag

    def place(command: Command, where: tuple[int, int], earliest: int) -> int:
        """Accept the command at the first legal time from `earliest`."""
        for at in range(earliest, earliest + 64):
            issue = Issue(
                time=at,
                command=command,
                pseudo_channel=where[0],
                bank=0 if command in ALL_BANKS else where[1],
            )
            if not reference.broken(issue):
                reference.accept(issue)
                return at
        raise _NeverLegal

    for command, where in prefix:
        time = place(command, where, time) + 1
    first = place(rule.before, befores[0], time + slack)
    last = first + rule.cycles - 1
    for index, where in enumerate(befores[1:], 1):
        # The last of a window leaves the table's distance to what follows, the others spread evenly.
        end = last - max(r.cycles for r in reference.timing.rules() if _single(r, rule))
        reference.accept(
            Issue(
                time=first + (end - first) * index // (len(befores) - 1),
                command=rule.before,
                pseudo_channel=where[0],
                bank=where[1],
            )
        )
    for command, where in middle:
        time = place(command, where, first + 1)
        if not first < time < last:
            return None
    issue = Issue(
        time=last,
        command=rule.after,
        pseudo_channel=far[0],
        bank=0 if rule.after in ALL_BANKS else far[1],
    )
    if issue.order < reference.history[-1].order:
        return None
    broken = reference.broken(issue)
    if (
        rule.name not in broken
        or (alone and len(broken) > 1)
        or reference.broken(replace(issue, time=last + 1))
    ):
        return None
    return Planted(rule=rule, issues=(*reference.history, issue), broken=frozenset(broken))


def _single(rule: Rule, windowed: Rule) -> bool:
    """Whether `rule` is the plain distance between the commands of a windowed rule."""
    return (
        rule.window == 1
        and rule.scope is windowed.scope
        and (rule.before, rule.after) == (windowed.before, windowed.after)
    )


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What the RTL checker showed in one cycle."""

    time: int
    """Cycle before the report."""
    names: frozenset[str]
    rule: str
    cycle: int
    pseudo_channel: int
    bank: int


@dataclass(frozen=True, kw_only=True)
class BusCycle:
    """Raw values of both buses in one cycle."""

    row_op: int = 0
    row_pseudo_channel: int = 0
    row_bank: int = 0
    row: int = 0
    column_op: int = 0
    column_pseudo_channel: int = 0
    column_bank: int = 0
    column: int = 0


def to_bus(issues: Iterable[Issue], timing: TimingPreset) -> dict[int, BusCycle]:
    """The buses cycle by cycle. Asserts that no bus has two commands in one cycle."""
    cycles: dict[int, BusCycle] = {}
    for issue in issues:
        at = issue.on_bus(timing)
        before = cycles.get(at, BusCycle())
        if issue.command in COLUMN_COMMANDS:
            assert before.column_op == 0, f"two column commands in cycle {at}"
            cycles[at] = replace(
                before,
                column_op=COLUMN_OPS[issue.command].value,
                column_pseudo_channel=issue.pseudo_channel,
                column_bank=issue.bank,
            )
        else:
            assert before.row_op == 0, f"two row commands in cycle {at}"
            cycles[at] = replace(
                before,
                row_op=ROW_OPS[issue.command].value,
                row_pseudo_channel=issue.pseudo_channel,
                row_bank=issue.bank,
            )
    return cycles


class _CheckerBench:
    """The RTL checker of a configuration in Amaranth's simulator, which takes longer to make than to run."""

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        self._checker = Checker(config)
        self._rules = published_rules(config.memory.timing)
        self._simulator = Simulator(self._checker)
        self._simulator.add_clock(1e-9)
        self._simulator.add_testbench(self._drive)
        self._simulator.add_process(self._listen)
        self._used = False

    def run(
        self, cycles: dict[int, BusCycle], refresh: tuple[int, int] | None
    ) -> tuple[list[Reported], frozenset[str]]:
        """What `run_checker` returns."""
        self._cycles, self._refresh = cycles, refresh
        self._reports: list[Reported] = []
        self._seen: frozenset[str] = frozenset()
        if self._used:
            self._simulator.reset()
        self._used = True
        self._simulator.run()
        return self._reports, self._seen

    def _names(self, vector: int) -> frozenset[str]:
        return frozenset(name for index, name in enumerate(self._rules) if vector >> index & 1)

    async def _drive(self, ctx: Any) -> None:
        now, checker, refresh = 0, self._checker, self._refresh
        edges = set(refresh or ())
        last = max([*self._cycles, *edges]) + self._config.memory.timing.activate_slots + 2
        stops = {0, *edges, *self._cycles, *(cycle + 1 for cycle in self._cycles), last}
        for stop in sorted(stops):
            if stop > now:
                await ctx.tick().repeat(stop - now)
                now = stop
            at = self._cycles.get(now, BusCycle())
            ctx.set(Value.cast(checker.row.op), at.row_op)
            ctx.set(checker.row.pseudo_channel, at.row_pseudo_channel)
            ctx.set(checker.row.bank, at.row_bank)
            ctx.set(checker.row.row, at.row)
            ctx.set(Value.cast(checker.column.op), at.column_op)
            ctx.set(checker.column.pseudo_channel, at.column_pseudo_channel)
            ctx.set(checker.column.bank, at.column_bank)
            ctx.set(checker.column.column, at.column)
            ctx.set(checker.refresh_enable, refresh is not None and refresh[0] <= now < refresh[1])
        self._seen = self._names(ctx.get(checker.seen))

    async def _listen(self, ctx: Any) -> None:
        now, checker = 0, self._checker
        signals = (
            checker.violation,
            checker.broken,
            checker.rule,
            checker.cycle,
            checker.pseudo_channel,
            checker.bank,
        )
        async for _, _, violation, broken, rule, cycle, pseudo_channel, bank in ctx.tick().sample(*signals):
            if violation:
                self._reports.append(
                    Reported(
                        time=now - 1,
                        names=self._names(broken),
                        rule=self._rules[rule],
                        cycle=cycle,
                        pseudo_channel=pseudo_channel,
                        bank=bank,
                    )
                )
            now += 1


#: By what the configuration and its memory's preset hold.
_checker_benches: dict[str, _CheckerBench] = {}


def run_checker(
    config: DesignConfig, cycles: dict[int, BusCycle], *, refresh: tuple[int, int] | None = None
) -> tuple[list[Reported], frozenset[str]]:
    """Put `cycles` on the RTL checker's buses; its reports in their order, and `seen` at the end.

    `refresh` is the window [begin, end) in which refresh is enabled.
    """
    if config.content not in _checker_benches:
        _checker_benches[config.content] = _CheckerBench(config)
    return _checker_benches[config.content].run(cycles, refresh)
