"""The energy of walks and replays, from counted events and published energies of each (`data/energy.csv`).

Counted are activates (with their precharges), bits between a row and the edge of the stack, and bits over the
link by the sizes of its messages. Each has a low, a typical and a high value; the sums of each are the error
bars. A path without a published energy (`link` of a path that no row names) has no result.

**Not counted**: refresh and standby power, which a longer replay pays for longer; the logic of controller,
walker, cache and scratchpad, the same work in both places; the host. The values are those of HBM2 whatever
the memory: no split is published of the later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast, get_args

import numpy as np

from hdl.fabric.message import READ_REQUEST_BYTES, READ_RESPONSE_BYTES
from hdl.layouts import ATOM_WIDTH, RowClass, Source

from .csv_table import data_text, table_rows
from .errors import InputError
from .place import PlaceFigures

__all__ = [
    "NOT_COUNTED",
    "Energies",
    "EnergyRow",
    "PlaceEnergy",
    "Range",
    "energies",
    "parse_energies",
    "place_energy",
]

Kind = Literal["activate", "array", "link"]

#: What the figures leave out, in the words of a report.
NOT_COUNTED = "refresh, standby, the logic of controller, walker and cache, and the host"

_FILE = "energy.csv"
_COLUMNS = ("name", "kind", "paths", "low_pj", "typical_pj", "high_pj", "what", "source")


@dataclass(frozen=True, kw_only=True)
class Range:
    """An energy with its error bars, in pJ."""

    low: float
    typical: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(
            low=self.low + other.low, typical=self.typical + other.typical, high=self.high + other.high
        )

    def scaled(self, factor: float) -> Range:
        """Every value times `factor`."""
        return Range(low=self.low * factor, typical=self.typical * factor, high=self.high * factor)

    def as_dict(self) -> dict[str, float]:
        """Plain JSON types under the field names."""
        return {"low": self.low, "typical": self.typical, "high": self.high}


@dataclass(frozen=True, kw_only=True)
class EnergyRow:
    """A published energy: of an activate, or of a bit."""

    name: str
    kind: Kind
    paths: frozenset[str]
    """The off-chip paths whose link it is; of a link only."""
    energy: Range
    what: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Energies:
    """The published energies: of one activate, one bit in the stack, and one bit over each link."""

    activate: EnergyRow
    array: EnergyRow
    links: Mapping[str, EnergyRow]
    """By name of the off-chip path."""


def parse_energies(text: str, *, file: str) -> Energies:
    """The energies in `text`, a CSV table with the header of `data/energy.csv`.

    Raises InputError naming file, line and field for what `table_rows` refuses, a kind that is not known,
    values that are not low <= typical <= high, a path with two links, and a table without exactly one
    activate and one array.
    """
    rows: list[EnergyRow] = []
    links: dict[str, EnergyRow] = {}
    for row in table_rows(text, file=file, columns=_COLUMNS, optional={"paths"}):
        low, typical, high = (row.number(name) for name in ("low_pj", "typical_pj", "high_pj"))
        if not low <= typical <= high:
            raise InputError(
                f"{row.where}: field typical_pj is {row.cells['typical_pj']!r}: expected "
                f"{row.cells['low_pj']} (low_pj) to {row.cells['high_pj']} (high_pj)"
            )
        found = EnergyRow(
            name=row.cells["name"],
            kind=cast(Kind, row.one_of("kind", get_args(Kind))),
            paths=frozenset(row.cells["paths"].split()),
            energy=Range(low=low, typical=typical, high=high),
            what=row.cells["what"],
            source=row.cells["source"],
        )
        for path in found.paths:
            if found.kind != "link" or path in links:
                raise InputError(f"{row.where}: field paths has {path!r}: expected it once, and of a link")
            links[path] = found
        rows.append(found)
    only = {kind: [row for row in rows if row.kind == kind] for kind in ("activate", "array")}
    for kind, of_kind in only.items():
        if len(of_kind) != 1:
            raise InputError(f"{file}: {len(of_kind)} rows of kind {kind}: expected one")
    return Energies(activate=only["activate"][0], array=only["array"][0], links=links)


@cache
def energies() -> Energies:
    """The project's own table."""
    return parse_energies(data_text(_FILE), file=_FILE)


@dataclass(frozen=True, kw_only=True)
class PlaceEnergy:
    """The energy of one place: of walks their own accesses and messages, of a replay everything."""

    walk: Range
    """A walk, on average; 0 without one."""
    walk_parts: Mapping[Kind, Range]
    """The same by kind of event."""
    replay: Range
    solved_problem: Range | None
    """The replay over the problems that were solved; None: none was."""


def place_energy(
    figures: PlaceFigures, *, path: str, port: str | None = None, solved: int, table: Energies | None = None
) -> PlaceEnergy | None:
    """The energy of a place whose search is across the off-chip path called `path` from the memory.

    `port` is the host controller's port that a near walker reads through. None when no energy of the path,
    or of the port, is published.
    """
    table = table or energies()
    link, through = table.links.get(path), table.links.get(port or path)
    if link is None or through is None:
        return None
    accesses = figures.run.logs.accesses
    # A list that is read as a stream is copied: part of the walk that it stands for.
    copied = accesses["source"] == Source.MOVER.value
    walkers = copied | (accesses["source"] == figures.run.walker_source)
    streamed = int(copied.sum()) * (READ_REQUEST_BYTES + READ_RESPONSE_BYTES)
    opened = np.isin(accesses["row_class"], (RowClass.CLOSED.value, RowClass.CONFLICT.value))

    def events(activates: int, atoms: int, crossed: int, read_through: int) -> dict[Kind, Range]:
        return {
            "activate": table.activate.energy.scaled(activates),
            "array": table.array.energy.scaled(atoms * ATOM_WIDTH),
            "link": link.energy.scaled(8 * crossed) + through.energy.scaled(8 * read_through),
        }

    behind = figures.port_bytes.total if figures.port_bytes else 0
    of_walks = events(
        int((walkers & opened).sum()), int(walkers.sum()), figures.link_bytes.walks + streamed, behind
    )
    replay = _sum(events(int(opened.sum()), len(accesses), figures.link_bytes.total, behind))
    share = 1 / figures.walk.count if figures.walk.count else 0.0
    return PlaceEnergy(
        walk=_sum(of_walks).scaled(share),
        walk_parts={kind: energy.scaled(share) for kind, energy in of_walks.items()},
        replay=replay,
        solved_problem=replay.scaled(1 / solved) if solved else None,
    )


def _sum(parts: Mapping[Kind, Range]) -> Range:
    total = Range(low=0.0, typical=0.0, high=0.0)
    for energy in parts.values():
        total += energy
    return total
