"""The timing table of a memory preset: every rule between two commands, declared once.

The controller's counters, the independent checkers, the physical bounds and the documentation are all
generated from, or checked against, the rows that `TimingPreset.rules` returns.

Conventions (`Rule`):

* times are cycles of the command clock (tCK);
* a command's time is the cycle in which it is on its bus; ACT occupies the row bus for
  `activate_slots` cycles and its time is that of its **last** slot. Rules to and from ACT therefore
  count the last slot, and its first slot may overlap tRP. That is how tRAS + tRP = tRC = 48 and
  row hit 16, closed 31, conflict 44 hold together for HBM2 (Ramulator 2.1's convention).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = [
    "COLUMN_COMMANDS",
    "PRESETS",
    "ROW_COMMANDS",
    "Command",
    "Organisation",
    "Rule",
    "Scope",
    "TimingPreset",
    "Value",
    "preset",
]


class Command(enum.Enum):
    """A command that a rule of the table names. The value is its JEDEC spelling."""

    ACT = "ACT"
    PRE = "PRE"
    PREA = "PREA"
    REFAB = "REFab"
    RD = "RD"
    RDA = "RDA"
    WR = "WR"
    WRA = "WRA"


#: Commands that travel on the row bus; the others travel on the column bus.
ROW_COMMANDS = frozenset({Command.ACT, Command.PRE, Command.PREA, Command.REFAB})
#: Commands that travel on the column bus.
COLUMN_COMMANDS = frozenset({Command.RD, Command.RDA, Command.WR, Command.WRA})


class Scope(enum.Enum):
    """Which pairs of banks a rule relates."""

    BANK = "same bank"
    BANK_GROUP = "same bank group"
    PSEUDO_CHANNEL = "same pseudo channel"
    CHANNEL = "same channel"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A minimum distance between two commands.

    `after` may not come earlier than `cycles` after `before`, where both address the same `scope`
    (PREA and REFab address every bank of their pseudo channel). With `window` = n > 1 the distance is
    counted from the n-th last `before` (tFAW: the fifth ACT against the first of the last four).
    """

    name: str
    scope: Scope
    before: Command
    after: Command
    cycles: int
    window: int = 1


@dataclass(frozen=True, kw_only=True)
class Value:
    """A timing parameter in cycles of tCK with where it comes from."""

    cycles: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Organisation:
    """The shape of one channel. All counts are powers of two.

    An atom is 32 bytes: one column access (64-bit pseudo channel, burst length 4).
    """

    pseudo_channels: int
    bank_groups: int
    banks_per_group: int
    rows: int
    columns: int
    """Atoms in a row (page size / 32 bytes)."""

    @property
    def banks(self) -> int:
        """Banks in one pseudo channel."""
        return self.bank_groups * self.banks_per_group

    @property
    def atoms(self) -> int:
        """Capacity of the channel in 32-byte atoms."""
        return self.pseudo_channels * self.banks * self.rows * self.columns


@dataclass(frozen=True, kw_only=True)
class TimingPreset:
    """A memory preset: clock, organisation and every timing parameter with its source."""

    name: str
    clock_ns: float
    organisation: Organisation
    activate_slots: int
    """Cycles for which ACT occupies the row bus."""
    burst_cycles: int
    """Cycles for which one atom occupies the pseudo channel's data bus."""
    values: dict[str, Value]

    def __getitem__(self, name: str) -> int:
        """The parameter `name` in cycles. Raises KeyError for a name the preset does not have."""
        return self.values[name].cycles

    # -- Isolated latencies of one read: first command on the bus to the end of the last data beat --

    @property
    def row_hit(self) -> int:
        """CL + burst."""
        return self["tCL"] + self.burst_cycles

    @property
    def row_closed(self) -> int:
        """ACT (whose last slot counts) + tRCDRD + row hit."""
        return self.activate_slots - 1 + self["tRCDRD"] + self.row_hit

    @property
    def row_conflict(self) -> int:
        """PRE + tRP (ACT's first slot overlaps it) + tRCDRD + row hit."""
        return self["tRP"] + self["tRCDRD"] + self.row_hit

    @property
    def same_bank(self) -> int:
        """Distance of two dependent reads of different rows of one bank: the larger of conflict and tRC."""
        return max(self.row_conflict, self["tRC"])

    def rules(self) -> tuple[Rule, ...]:
        """The timing table. Names are JEDEC's; a sum is written as one."""
        c = Command
        bank, group, pseudo, channel = Scope.BANK, Scope.BANK_GROUP, Scope.PSEUDO_CHANNEL, Scope.CHANNEL
        burst = self.burst_cycles
        write_end = self["tCWL"] + burst
        reads, writes = (c.RD, c.RDA), (c.WR, c.WRA)
        rows: list[Rule] = []

        def add(
            name: str,
            scope: Scope,
            before: Command | tuple[Command, ...],
            after: Command | tuple[Command, ...],
            cycles: int,
            window: int = 1,
        ) -> None:
            for first in before if isinstance(before, tuple) else (before,):
                for then in after if isinstance(after, tuple) else (after,):
                    rows.append(
                        Rule(name=name, scope=scope, before=first, after=then, cycles=cycles, window=window)
                    )

        add("tRCDRD", bank, c.ACT, reads, self["tRCDRD"])
        add("tRCDWR", bank, c.ACT, writes, self["tRCDWR"])
        add("tRAS", bank, c.ACT, (c.PRE, c.PREA), self["tRAS"])
        add("tRC", bank, c.ACT, (c.ACT, c.REFAB), self["tRC"])
        add("tRP", bank, (c.PRE, c.PREA), (c.ACT, c.REFAB), self["tRP"])
        add("tRTP", bank, c.RD, (c.PRE, c.PREA), self["tRTP"])
        add("tRTP+tRP", bank, c.RDA, (c.ACT, c.REFAB), self["tRTP"] + self["tRP"])
        add("tWR", bank, c.WR, (c.PRE, c.PREA), write_end + self["tWR"])
        add("tWR+tRP", bank, c.WRA, (c.ACT, c.REFAB), write_end + self["tWR"] + self["tRP"])
        add("tRRDL", group, c.ACT, c.ACT, self["tRRDL"])
        add("tRRDS", pseudo, c.ACT, c.ACT, self["tRRDS"])
        add("tFAW", pseudo, c.ACT, c.ACT, self["tFAW"], window=4)
        add("tCCDL", group, reads, reads, self["tCCDL"])
        add("tCCDL", group, writes, writes, self["tCCDL"])
        add("tCCDS", pseudo, reads, reads, self["tCCDS"])
        add("tCCDS", pseudo, writes, writes, self["tCCDS"])
        add("tRTW", pseudo, reads, writes, self["tRTW"])
        add("tWTRL", group, writes, reads, write_end + self["tWTRL"])
        add("tWTRS", pseudo, writes, reads, write_end + self["tWTRS"])
        add("tRFC", pseudo, c.REFAB, (c.ACT, c.REFAB), self["tRFC"])
        # The row bus: ACT needs `activate_slots` free slots that end at its time.
        add("row bus", channel, (c.ACT, c.PRE, c.PREA, c.REFAB), c.ACT, self.activate_slots)
        add("row bus", channel, (c.ACT, c.PRE, c.PREA, c.REFAB), (c.PRE, c.PREA, c.REFAB), 1)
        add("column bus", channel, reads + writes, reads + writes, 1)
        return tuple(rows)


def _cited(source: str, **cycles: int) -> dict[str, Value]:
    return {name: Value(cycles=value, source=source) for name, value in cycles.items()}


_RAMULATOR = "Ramulator 2.1 hbm2.py, 2000 Mb/s"

#: Every preset by name.
PRESETS: dict[str, TimingPreset] = {
    "hbm2_2000": TimingPreset(
        name="hbm2_2000",
        clock_ns=1.0,
        organisation=Organisation(
            pseudo_channels=2, bank_groups=4, banks_per_group=4, rows=1 << 14, columns=32
        ),
        activate_slots=2,
        burst_cycles=2,
        values={
            **_cited(
                _RAMULATOR,
                tCL=14,
                tCWL=5,
                tRCDRD=14,
                tRCDWR=12,
                tRP=14,
                tRAS=34,
                tRC=48,
                tCCDS=2,
                tCCDL=4,
                tWTRS=6,
                tWTRL=8,
                tRTP=5,
                tWR=16,
                tREFI=3900,
                tRFC=260,
            ),
            **_cited(f"{_RAMULATOR}: max(4 CK, 4 ns)", tRRDS=4, tRRDL=4),
            **_cited(f"{_RAMULATOR}: max(8 CK, 15 ns)", tFAW=15),
            **_cited(f"derived: CL + burst + 2 - CWL, the rule of {_RAMULATOR}", tRTW=13),
        },
    ),
}


def preset(name: str) -> TimingPreset:
    """The preset called `name`. Raises ValueError that lists the known names."""
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(f"unknown memory preset {name!r}: expected one of {', '.join(PRESETS)}") from None
