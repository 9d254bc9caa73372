"""The rules that the protocol checker knows: their published names, and the table as comparisons to build.

A `Check` compares the distance from the last of some commands (a `Stamp`) with one or more rows' cycles.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass

from .timing import COLUMN_COMMANDS, Command, Scope, TimingPreset

__all__ = [
    "ALL_BANK_COMMANDS",
    "REFRESH_LIMIT",
    "STATE_RULES",
    "Check",
    "Order",
    "Stamp",
    "checks",
    "published_rules",
]

#: Rules on the state of banks and buses that have no row in the timing table.
STATE_RULES = (
    "ACT to an open bank",
    "RD or WR to a closed bank",
    "REFab with an open bank",
    "REFpb to an open bank",
    "REFpb out of round",
    "refresh overdue",
    "undefined command",
)
#: Refreshes that a bank may owe, and that it may have had in advance: JEDEC's eight.
#:
#: From the cycle in which refresh is enabled, a bank owes one refresh more after each tREFI, and one less
#: after each REFab or REFpb of it; what goes beyond eight in advance counts for nothing. "refresh overdue":
#: it would owe a ninth. So the n-th refresh of a bank is on the bus no later than (n + 8) x tREFI after
#: refresh was enabled, in all-bank mode as well as in per-bank mode: a round of REFpb has every bank once in
#: tREFI, so its free order needs no slack.
#:
#: "REFpb out of round": a second REFpb of a bank before each bank of its pseudo channel has had one. A round
#: begins when refresh is enabled, behind REFab, and behind the round before.
REFRESH_LIMIT = 8
#: Commands that address every bank of their pseudo channel.
ALL_BANK_COMMANDS = frozenset({Command.PREA, Command.REFAB})


def published_rules(timing: TimingPreset) -> tuple[str, ...]:
    """The names that `Checker.rule` indexes: each name of the table once, in its order, then STATE_RULES."""
    return tuple(dict.fromkeys(rule.name for rule in timing.rules())) + STATE_RULES


class Order(enum.IntEnum):
    """Where a command comes from, in the order in which commands of one cycle are judged."""

    COLUMN = 0
    ACTIVATE = 1
    """An ACT, in the slot that counts."""
    ROW = 2
    """Any other row command."""
    REFRESH = 3
    """No command: the missing refresh."""

    @classmethod
    def of(cls, command: Command) -> Order:
        """The place of a command."""
        if command in COLUMN_COMMANDS:
            return cls.COLUMN
        return cls.ACTIVATE if command is Command.ACT else cls.ROW


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """The times of the last `window` commands out of `commands` (all of one `order`), kept per `scope`."""

    scope: Scope
    commands: frozenset[Command]
    window: int

    @property
    def order(self) -> Order:
        """The place that the commands come from."""
        return Order.of(next(iter(self.commands)))


@dataclass(frozen=True, kw_only=True)
class Check:
    """Rows of the table that share one comparison: `after` comes at least `cycles` after the oldest stamp."""

    name: str
    stamp: Stamp
    after: Command
    cycles: int


def checks(timing: TimingPreset) -> list[Check]:
    """The table's rows as comparisons; rows that differ only in `before` share one.

    A rule of scope bank or bank group to or from an all-bank command relates every bank of the pseudo
    channel; some bank breaks it exactly if the latest such command of the pseudo channel does. Raises
    ValueError for a windowed rule of that kind, for which this does not hold.
    """
    befores: dict[tuple[str, Scope, Command, int, int, Order | Command], set[Command]] = defaultdict(set)
    for rule in timing.rules():
        order, scope = Order.of(rule.before), rule.scope
        if order == Order.of(rule.after) and rule.cycles <= 1:
            continue  # One bus carries one command a cycle: nothing on it can break this.
        if scope in (Scope.BANK, Scope.BANK_GROUP) and ALL_BANK_COMMANDS & {rule.before, rule.after}:
            if rule.window > 1:
                raise ValueError(
                    f"rule {rule.name!r} counts {rule.window} commands to or from an all-bank command: "
                    "expected a window of 1"
                )
            scope = Scope.PSEUDO_CHANNEL
        alone = rule.before if rule.window > 1 else order  # A window counts one command alone.
        befores[rule.name, scope, rule.after, rule.cycles, rule.window, alone].add(rule.before)
    return [
        Check(
            name=name,
            stamp=Stamp(scope=scope, commands=frozenset(commands), window=window),
            after=after,
            cycles=cycles,
        )
        for (name, scope, after, cycles, window, _), commands in befores.items()
    ]
