"""The TOML file of a memory preset: its keys, what each may hold, and the parser that checks all of it.

    name = "example"                     # letters, digits and _
    [sources]                            # what the values below cite
    simulator = "Simulator 1.0, example.py"
    [clock]
    tCK_ps = { value = 625, source = "simulator" }
    [organisation]                       # one channel; every count a power of two
    rows = { value = 16384, source = "simulator", note = "the 4 Gb die" }
    [bus]
    activate_slots = { value = 2, derived = "1.5 CK, rounded up to whole cycles" }
    [parameters]                         # cycles of tCK
    tPPD = { absent = true, source = "simulator", note = "it has no such rule" }

Every key of `SECTIONS` must be there and no other. A value cites one of `[sources]`, perhaps with a note,
or says by which rule it was derived. A rule that a generation of the standard lacks is written as absent,
so that leaving a parameter out is never the same as forgetting it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SECTIONS", "Cited", "Limit", "PresetError", "PresetFile", "parse"]


class PresetError(ValueError):
    """A preset file that cannot be used: names the file, the key and what was expected."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a key may hold: an integer from `low` to `high`, a power of two if so marked."""

    what: str
    """What the value is, for the reader of the page."""
    low: int
    high: int
    power_of_two: bool = False
    may_be_absent: bool = False

    def allows(self, value: object) -> bool:
        """Whether `value` is a number within the limit."""
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
            and not (self.power_of_two and value & (value - 1))
        )

    def __str__(self) -> str:
        kind = "a power of two" if self.power_of_two else "an integer"
        return f"{kind} from {self.low} to {self.high}" if self.low < self.high else f"{self.low}"


def _count(what: str, low: int, high: int) -> Limit:
    return Limit(what=what, low=low, high=high, power_of_two=True)


def _cycles(what: str, *, high: int = 1023, may_be_absent: bool = False) -> Limit:
    return Limit(what=what, low=1, high=high, may_be_absent=may_be_absent)


#: Every key of a preset file by section, with what it may hold. The counts' limits are the fields of
#: `RowBus` and `ColumnBus`.
SECTIONS: dict[str, dict[str, Limit]] = {
    "clock": {"tCK_ps": Limit(what="period of the command clock, picoseconds", low=100, high=10_000)},
    "organisation": {
        "pseudo_channels": _count("pseudo channels of a channel", 2, 2),
        "bank_groups": _count("bank groups of a pseudo channel", 2, 32),
        "banks_per_group": _count("banks of a bank group", 2, 32),
        "rows": _count("rows of a bank", 2, 1 << 16),
        "columns": _count("32-byte atoms of a row", 2, 64),
    },
    "bus": {
        "activate_slots": Limit(what="cycles for which ACT occupies the row bus", low=1, high=4),
        "activate_lag": Limit(
            what="cycles from ACT's first slot to the one from which the parameters count", low=0, high=3
        ),
        "burst_cycles": Limit(
            what="cycles for which one atom occupies the data bus of its pseudo channel", low=1, high=8
        ),
    },
    "parameters": {
        "tCL": _cycles("RD to its first data beat"),
        "tCWL": _cycles("WR to its first data beat"),
        "tRCDRD": _cycles("ACT to RD, same bank"),
        "tRCDWR": _cycles("ACT to WR, same bank"),
        "tRP": _cycles("PRE to ACT, same bank"),
        "tRAS": _cycles("ACT to PRE, same bank"),
        "tRC": _cycles("ACT to ACT, same bank"),
        "tRRDS": _cycles("ACT to ACT, other bank group"),
        "tRRDL": _cycles("ACT to ACT, same bank group"),
        "tFAW": _cycles("ACT to the fourth ACT after it, same pseudo channel"),
        "tCCDS": _cycles("RD to RD or WR to WR, other bank group"),
        "tCCDL": _cycles("RD to RD or WR to WR, same bank group"),
        "tRTW": _cycles("RD to WR, same pseudo channel"),
        "tWTRS": _cycles("last data beat of WR to RD, other bank group"),
        "tWTRL": _cycles("last data beat of WR to RD, same bank group"),
        "tRTP": _cycles("RD to PRE, same bank"),
        "tWR": _cycles("last data beat of WR to PRE, same bank"),
        "tPPD": _cycles("PRE to PRE, same pseudo channel", may_be_absent=True),
        "tREFI": _cycles("mean interval of REFab", high=(1 << 16) - 1),
        "tRFC": _cycles("REFab to ACT, same pseudo channel", high=4095),
        "tRFCpb": _cycles("REFpb to ACT, same bank", high=4095, may_be_absent=True),
        "tRREFD": _cycles("REFpb to ACT or REFpb, other bank", may_be_absent=True),
    },
}


@dataclass(frozen=True, kw_only=True)
class Cited:
    """A number with where it comes from."""

    value: int
    source: str
    derived: bool
    """By the rule in `source`, from other values; else `source` is what was read."""


@dataclass(frozen=True, kw_only=True)
class PresetFile:
    """A checked preset file: the sections of `SECTIONS`, without what is absent."""

    name: str
    clock: Mapping[str, Cited]
    organisation: Mapping[str, Cited]
    bus: Mapping[str, Cited]
    parameters: Mapping[str, Cited]
    absent: Mapping[str, str]
    """Parameters that the preset does not have, each with the source that says so."""


def parse(text: str, *, file: str) -> PresetFile:
    """The preset that `text` describes; `file` names it in errors. Raises PresetError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PresetError(f"{file}: expected TOML: {error}") from None
    reader = _Reader(file)
    reader.keys("", document, ["name", "sources", *SECTIONS])
    name = document["name"]
    if not (isinstance(name, str) and re.fullmatch(r"\w+", name, re.ASCII)):
        raise reader.error("name", name, "letters, digits and _")
    reader.sources = reader.table("sources", document["sources"])
    for key, value in reader.sources.items():
        if not (isinstance(value, str) and value):
            raise reader.error(f"sources.{key}", value, "a text")
    absent: dict[str, str] = {}
    read: dict[str, dict[str, Cited]] = {}
    for section, limits in SECTIONS.items():
        table = reader.table(section, document[section])
        reader.keys(section, table, limits)
        read[section] = {}
        for key, limit in limits.items():
            where = f"{section}.{key}"
            cited = reader.cited(where, table[key], limit)
            if cited.value is None:
                absent[key] = cited.source
            else:
                read[section][key] = Cited(value=cited.value, source=cited.source, derived=cited.derived)
    _relations(reader, {key: cited.value for table in read.values() for key, cited in table.items()}, absent)
    return PresetFile(name=name, absent=absent, **read)


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A value as it was read; None: absent."""

    value: int | None
    source: str
    derived: bool


class _Reader:
    """The checks of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.sources: Mapping[str, Any] = {}

    def error(self, where: str, given: object, expected: str) -> PresetError:
        return PresetError(f"{self.file}: {where} is {given!r}: expected {expected}")

    def table(self, where: str, given: object) -> Mapping[str, Any]:
        if not isinstance(given, dict):
            raise self.error(where, given, "a table")
        return given

    def keys(self, where: str, table: Mapping[str, Any], expected: Iterable[str]) -> None:
        """No key is unknown and none is missing."""
        expected, prefix = list(expected), f"{where}." if where else ""
        for key in table:
            if key not in expected:
                raise PresetError(
                    f"{self.file}: unknown key {prefix}{key}: expected one of {', '.join(expected)}"
                )
        for key in expected:
            if key not in table:
                what = SECTIONS.get(where, {}).get(key)
                raise PresetError(
                    f"{self.file}: missing key {prefix}{key}: expected "
                    + (f"{what} ({what.what})" if what else "a text" if key == "name" else "a table")
                )

    def cited(self, where: str, given: object, limit: Limit) -> _Entry:
        """One value with its source."""
        table = self.table(where, given)
        is_absent = limit.may_be_absent and "absent" in table
        known = {"absent" if is_absent else "value", "source", "derived", "note"}
        for key in table:
            if key not in known:
                raise PresetError(
                    f"{self.file}: unknown key {where}.{key}: expected one of {', '.join(sorted(known))}"
                )
        if is_absent:
            if table["absent"] is not True:
                raise self.error(f"{where}.absent", table["absent"], "true")
        elif "value" not in table:
            raise PresetError(f"{self.file}: missing key {where}.value: expected {limit}")
        elif not limit.allows(table["value"]):
            raise self.error(f"{where}.value", table["value"], str(limit))
        if ("source" in table) == ("derived" in table):
            raise PresetError(
                f"{self.file}: {where} has {'both' if 'source' in table else 'neither'} of source and "
                "derived: expected one of them"
            )
        for key in ("derived", "note"):
            if key in table and not (isinstance(table[key], str) and table[key]):
                raise self.error(f"{where}.{key}", table[key], "a text")
        derived = "derived" in table
        if derived:
            text = f"derived: {table['derived']}"
        elif isinstance(table["source"], str) and table["source"] in self.sources:
            text = self.sources[table["source"]]
        else:
            raise self.error(f"{where}.source", table["source"], f"one of {', '.join(self.sources)}")
        if "note" in table:
            text = f"{text}: {table['note']}"
        return _Entry(value=None if is_absent else table["value"], source=text, derived=derived)


def _relations(reader: _Reader, value: Mapping[str, int], absent: Mapping[str, str]) -> None:
    """What values must be to each other for the design to be right, however they are cited."""
    lag_limit = value["activate_slots"] - 1
    banks = value["bank_groups"] * value["banks_per_group"]
    if banks > 64:
        raise reader.error("organisation.bank_groups x banks_per_group", banks, "at most 64")
    if value["activate_lag"] > lag_limit:
        raise reader.error(
            "bus.activate_lag", value["activate_lag"], f"at most activate_slots - 1 = {lag_limit}"
        )
    burst, turn = value["burst_cycles"], value["tCL"] + value["burst_cycles"] - value["tCWL"]
    for key, least, what in (
        ("tCCDS", burst, "burst_cycles"),
        ("tCCDL", value["tCCDS"], "tCCDS"),
        ("tRRDL", value["tRRDS"], "tRRDS"),
        ("tWTRL", value["tWTRS"], "tWTRS"),
        ("tRTW", turn, "tCL + burst_cycles - tCWL"),
        # With auto-precharge, tRC is what keeps the next ACT behind tRAS and tRP.
        ("tRC", value["tRAS"] + value["tRP"], "tRAS + tRP"),
        ("tREFI", value["tRFC"] + 1, "tRFC + 1"),
    ):
        if value[key] < least:
            raise reader.error(f"parameters.{key}.value", value[key], f"at least {what} = {least}")
    if ("tRFCpb" in absent) != ("tRREFD" in absent):
        raise PresetError(
            f"{reader.file}: only one of parameters.tRFCpb and parameters.tRREFD is absent: "
            "expected both or neither"
        )
