"""The timing table of a memory preset: every rule between two commands, declared once.

The controller's counters, the independent checkers, the physical bounds and the documentation are all
generated from, or checked against, the rows that `TimingPreset.rules` returns. The values are data: one
TOML file a preset in `presets/`, whose format `preset_file` describes.

Conventions (`Rule`):

* times are cycles of the command clock (tCK);
* a command's time is the cycle in which it is on its bus; ACT occupies the row bus for
  `activate_slots` cycles and its time is that of the slot `activate_lag` cycles after its first. For HBM2
  that is the last: rules to and from ACT count it, and the first slot may overlap tRP. That is how
  tRAS + tRP = tRC = 48 and row hit 16, closed 31, conflict 44 hold together (Ramulator 2.1's convention).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from ..layouts import ATOM_BYTES
from .preset_file import PresetError, PresetFile, parse

__all__ = [
    "COLUMN_COMMANDS",
    "PRESETS",
    "ROW_COMMANDS",
    "Command",
    "Organisation",
    "PresetError",
    "Rule",
    "Scope",
    "TimingPreset",
    "Value",
    "preset",
]


class Command(enum.Enum):
    """A command that a rule of the table names. The value is its JEDEC spelling.

    PREA and REFAB address every bank of their pseudo channel, the others one bank.
    """

    ACT = "ACT"
    PRE = "PRE"
    PREA = "PREA"
    REFAB = "REFab"
    REFPB = "REFpb"
    RD = "RD"
    RDA = "RDA"
    WR = "WR"
    WRA = "WRA"


#: Commands that travel on the row bus; the others travel on the column bus.
ROW_COMMANDS = frozenset({Command.ACT, Command.PRE, Command.PREA, Command.REFAB, Command.REFPB})
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
    derived: bool = False
    """`source` is the rule that derived it from other values."""


@dataclass(frozen=True, kw_only=True)
class Organisation:
    """The shape of one channel. All counts are powers of two.

    An atom is 32 bytes: one column access (HBM2: 64-bit pseudo channel, burst length 4; from HBM3 on: 32
    bits, burst length 8).
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
    activate_lag: int
    """Cycles from ACT's first slot to the one that is its time."""
    burst_cycles: int
    """Cycles for which one atom occupies the pseudo channel's data bus."""
    values: dict[str, Value]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where the clock, the organisation and the bus figures come from, and why a parameter is absent."""

    def __post_init__(self) -> None:
        if not 0 <= self.activate_lag < self.activate_slots:
            raise ValueError(
                f"activate_lag is {self.activate_lag}: expected 0 to activate_slots - 1 = "
                f"{self.activate_slots - 1}"
            )

    @property
    def commands(self) -> frozenset[Command]:
        """The commands that the preset's memory has: REFpb only with tRFCpb."""
        return frozenset(Command) - (frozenset() if "tRFCpb" in self.values else {Command.REFPB})

    def __getitem__(self, name: str) -> int:
        """The parameter `name` in cycles. Raises KeyError for a name the preset does not have."""
        return self.values[name].cycles

    def as_dict(self) -> dict[str, object]:
        """Everything that decides what the memory does, as plain JSON types; sources do not."""
        return {
            "name": self.name,
            "clock_ns": self.clock_ns,
            "organisation": asdict(self.organisation),
            "activate_slots": self.activate_slots,
            "activate_lag": self.activate_lag,
            "burst_cycles": self.burst_cycles,
            "cycles": {name: value.cycles for name, value in self.values.items()},
        }

    @property
    def peak_bandwidth(self) -> float:
        """GB/s of the channel with every pseudo channel's data bus always busy."""
        return self.organisation.pseudo_channels * ATOM_BYTES / (self.burst_cycles * self.clock_ns)

    # -- Isolated latencies of one read: first command on the bus to the end of the last data beat --

    @property
    def row_hit(self) -> int:
        """CL + burst."""
        return self["tCL"] + self.burst_cycles

    @property
    def row_closed(self) -> int:
        """ACT (from its first slot to the one that counts) + tRCDRD + row hit."""
        return self.activate_lag + self["tRCDRD"] + self.row_hit

    @property
    def row_conflict(self) -> int:
        """PRE + tRP (ACT's slots before the one that counts overlap it) + tRCDRD + row hit."""
        return self["tRP"] + self["tRCDRD"] + self.row_hit

    @property
    def same_bank(self) -> int:
        """Least distance of two dependent reads that open rows of one bank, closed as early as may be.

        From ACT to ACT tRC, from RD to RD by way of PRE tRTP + tRP + tRCDRD, and no less than row closed.
        """
        return max(self.row_closed, self["tRTP"] + self["tRP"] + self["tRCDRD"], self["tRC"])

    def rules(self) -> tuple[Rule, ...]:
        """The timing table. Names are JEDEC's; a sum is written as one.

        Auto-precharge closes the bank once tRTP (tWR) is over and tRAS as well; rows from RDA and WRA count
        the first, and the row from ACT to ACT (tRC >= tRAS + tRP) the second.
        """
        c = Command
        bank, group, pseudo, channel = Scope.BANK, Scope.BANK_GROUP, Scope.PSEUDO_CHANNEL, Scope.CHANNEL
        burst = self.burst_cycles
        write_end = self["tCWL"] + burst
        reads, writes = (c.RD, c.RDA), (c.WR, c.WRA)
        # REFpb is a command only of a preset that says how long it takes.
        bank_refresh = (c.REFPB,) if "tRFCpb" in self.values else ()
        # What needs its bank closed.
        idle = (c.ACT, c.REFAB, *bank_refresh)
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
        add("tRC", bank, c.ACT, idle, self["tRC"])
        add("tRP", bank, (c.PRE, c.PREA), idle, self["tRP"])
        add("tRTP", bank, c.RD, (c.PRE, c.PREA), self["tRTP"])
        add("tRTP+tRP", bank, c.RDA, idle, self["tRTP"] + self["tRP"])
        add("tWR", bank, c.WR, (c.PRE, c.PREA), write_end + self["tWR"])
        add("tWR+tRP", bank, c.WRA, idle, write_end + self["tWR"] + self["tRP"])
        # REFpb activates a row: it keeps tRRD behind ACT. What comes behind it keeps tRREFD.
        add("tRRDL", group, c.ACT, (c.ACT, *bank_refresh), self["tRRDL"])
        add("tRRDS", pseudo, c.ACT, (c.ACT, *bank_refresh), self["tRRDS"])
        add("tFAW", pseudo, c.ACT, c.ACT, self["tFAW"], window=4)
        add("tCCDL", group, reads, reads, self["tCCDL"])
        add("tCCDL", group, writes, writes, self["tCCDL"])
        add("tCCDS", pseudo, reads, reads, self["tCCDS"])
        add("tCCDS", pseudo, writes, writes, self["tCCDS"])
        add("tRTW", pseudo, reads, writes, self["tRTW"])
        add("tWTRL", group, writes, reads, write_end + self["tWTRL"])
        add("tWTRS", pseudo, writes, reads, write_end + self["tWTRS"])
        add("tRFC", pseudo, c.REFAB, (*idle, c.PRE, c.PREA), self["tRFC"])
        if bank_refresh:
            add("tRFCpb", bank, c.REFPB, (*idle, c.PRE, c.PREA), self["tRFCpb"])
            add("tRREFD", pseudo, c.REFPB, (c.ACT, c.REFPB), self["tRREFD"])
        if "tPPD" in self.values:
            # Per pseudo channel, and for PREA as for PRE: so the only public model that has the rule
            # (Ramulator 2.1, HBM3 and HBM4). The row bus still carries PREs to both in consecutive cycles.
            add("tPPD", pseudo, (c.PRE, c.PREA), (c.PRE, c.PREA), self["tPPD"])
        # The row bus: ACT needs `activate_slots` free slots, `activate_lag` of them before its time.
        others = (c.PRE, c.PREA, c.REFAB, *bank_refresh)
        add("row bus", channel, c.ACT, c.ACT, self.activate_slots)
        add("row bus", channel, others, c.ACT, self.activate_lag + 1)
        add("row bus", channel, c.ACT, others, self.activate_slots - self.activate_lag)
        add("row bus", channel, others, others, 1)
        add("column bus", channel, reads + writes, reads + writes, 1)
        return tuple(rows)


def _preset(file: PresetFile) -> TimingPreset:
    """The preset that a file holds."""
    organisation = {key: cited.value for key, cited in file.organisation.items()}
    bus = {key: cited.value for key, cited in file.bus.items()}
    cited = {**file.clock, **file.organisation, **file.bus}
    return TimingPreset(
        name=file.name,
        clock_ns=file.clock["tCK_ps"].value / 1000,
        organisation=Organisation(**organisation),
        **bus,
        values={
            key: Value(cycles=cited.value, source=cited.source, derived=cited.derived)
            for key, cited in file.parameters.items()
        },
        sources={key: cited.source for key, cited in cited.items()} | dict(file.absent),
    )


def _own_presets() -> dict[str, TimingPreset]:
    """The presets of the project's own files, HBM2 first."""
    presets = {}
    folder = resources.files(__package__).joinpath("presets")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            loaded = _preset(parse(file.read_text(encoding="utf-8"), file=file.name))
            if file.name != f"{loaded.name}.toml":
                raise PresetError(f"{file.name}: name is {loaded.name!r}: expected the name of the file")
            presets[loaded.name] = loaded
    return presets


#: Every preset of the project by name.
PRESETS: dict[str, TimingPreset] = _own_presets()


@cache
def _preset_of_file(file: str) -> TimingPreset:
    """The preset in a user's file. It is read once, so that a run sees one content."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PresetError(f"{file}: expected text in UTF-8") from None
    loaded = _preset(parse(text, file=file))
    if loaded.name in PRESETS:
        raise PresetError(f"{file}: name is {loaded.name!r}: expected one that no preset of the project has")
    return loaded


def preset(name: str) -> TimingPreset:
    """The preset called `name`, or the one in the file `name` if that ends in .toml.

    Raises ValueError that lists the known names, PresetError for what is wrong in a file, or OSError.
    """
    if name.endswith(".toml"):
        return _preset_of_file(name)
    try:
        return PRESETS[name]
    except KeyError:
        raise ValueError(
            f"unknown memory preset {name!r}: expected one of {', '.join(PRESETS)}, or a file FILE.toml"
        ) from None
