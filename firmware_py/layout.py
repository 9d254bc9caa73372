"""Layout policies: where each node of a tree lies in the address range of its search.

A row of a bank is not a run of addresses: the address map spreads neighbours over pseudo channels and bank
groups. A policy that packs records into rows therefore works in regions, the shortest runs of addresses that
hold whole rows only, and a tree that it places must begin at a multiple of a region's length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdl.config import MemoryConfig
from hdl.memory.address import AddressMap
from sim.trace.events import Node

from .errors import InputError

__all__ = ["LAYOUTS", "CreationOrder", "Layout", "PathInRow", "SiblingsInRow", "layout_named"]


class Layout(Protocol):
    """A policy that says where each node of a tree lives, relative to the first atom of its range."""

    name: str
    alignment: int
    """The first atom of the range must be a multiple of this."""

    def place(self, nodes: Sequence[Node], *, turn: int = 0) -> tuple[NDArray[np.int64], int]:
        """The offset of every node by id (distinct, from 0), and the number of atoms they span.

        `turn` counts the trees placed before: trees need not all begin in the same bank.
        """
        ...


class CreationOrder:
    """Layout policy: nodes lie one after another in the order in which the search made them."""

    name = "creation"
    alignment = 1

    def place(self, nodes: Sequence[Node], *, turn: int = 0) -> tuple[NDArray[np.int64], int]:
        """Offset = id: ids are dense in order of creation."""
        return np.arange(len(nodes), dtype=np.int64), len(nodes)


class _Rows:
    """The rows that one tree fills: atoms by row and column, rows opened one after another."""

    def __init__(self, slots: NDArray[np.int64], turn: int) -> None:
        self._slots = slots
        # Regions lie in the banks of a group in turn; beginning a row later after each time round, trees that
        # follow one another lie in different banks until all are used.
        self._begin = turn + turn // len(slots)
        self._used: list[int] = []
        """Atoms in use, by row."""

    @property
    def span(self) -> int:
        """Atoms of the regions that hold the rows opened so far."""
        return -(-len(self._used) // len(self._slots)) * self._slots.size

    def open(self) -> int:
        """A new, empty row."""
        self._used.append(0)
        return len(self._used) - 1

    def room(self, row: int) -> int:
        """Free atoms of a row."""
        return self._slots.shape[1] - self._used[row]

    def take(self, row: int) -> int:
        """The offset of the next free atom of a row."""
        region, within = divmod(row, len(self._slots))
        slots = self._slots[(within + self._begin) % len(self._slots)]
        offset = region * self._slots.size + slots[self._used[row]]
        self._used[row] += 1
        return int(offset)


class SiblingsInRow:
    """Layout policy: the children of a node lie in one row, if a row can hold them all.

    Families follow one another in the order of their parents; one that does not fit in what is left of a row
    begins a new one. It needs the number of children beforehand, as a search that declares it has it.
    """

    name = "siblings"

    def __init__(self, memory: MemoryConfig) -> None:
        self._slots = _row_slots(memory)
        self.alignment = self._slots.size

    def place(self, nodes: Sequence[Node], *, turn: int = 0) -> tuple[NDArray[np.int64], int]:
        """Family by family, roots first."""
        families: dict[int, list[int]] = {}
        for node in nodes:
            families.setdefault(node.parents[0] if node.parents else -1, []).append(node.id)
        rows = _Rows(self._slots, turn)
        offsets = np.zeros(len(nodes), dtype=np.int64)
        row = rows.open()
        for parent in sorted(families):
            family = families[parent]
            if rows.room(row) < min(len(family), self._slots.shape[1]):
                row = rows.open()
            for node in family:
                if not rows.room(row):
                    row = rows.open()
                offsets[node] = rows.take(row)
        return offsets, rows.span


class PathInRow:
    """Layout policy: a node lies in its parent's row while that has room, so that a climb stays in a row.

    Nodes that find their parent's row full go on together in a next one. Nothing must be known beforehand.
    """

    name = "path"

    def __init__(self, memory: MemoryConfig) -> None:
        self._slots = _row_slots(memory)
        self.alignment = self._slots.size

    def place(self, nodes: Sequence[Node], *, turn: int = 0) -> tuple[NDArray[np.int64], int]:
        """In order of creation, each beside its parent; roots together."""
        rows = _Rows(self._slots, turn)
        offsets = np.zeros(len(nodes), dtype=np.int64)
        home: dict[int, int] = {}
        following: dict[int, int] = {}
        first = rows.open()
        for node in nodes:
            row = home[node.parents[0]] if node.parents else first
            while not rows.room(row):
                if row not in following:
                    following[row] = rows.open()
                row = following[row]
            home[node.id] = row
            offsets[node.id] = rows.take(row)
        return offsets, rows.span


#: What makes each layout policy for a memory, by name.
LAYOUTS: dict[str, Callable[[MemoryConfig], Layout]] = {
    CreationOrder.name: lambda memory: CreationOrder(),
    SiblingsInRow.name: SiblingsInRow,
    PathInRow.name: PathInRow,
}


def layout_named(name: str, memory: MemoryConfig) -> Layout:
    """The layout policy called `name` for a memory. Raises InputError that lists the known names."""
    try:
        make = LAYOUTS[name]
    except KeyError:
        raise InputError(f"unknown layout {name!r}: expected one of {', '.join(LAYOUTS)}") from None
    return make(memory)


def _row_slots(memory: MemoryConfig) -> NDArray[np.int64]:
    """The atoms of the memory's first region by row and column, as offsets."""
    address_map = AddressMap(memory)
    columns = address_map.organisation.columns
    size = columns
    while size <= address_map.atoms:
        place = address_map.decode(np.arange(size, dtype=np.int64))
        units = place.pseudo_channel << 40 | place.bank << 32 | place.row
        _, counts = np.unique(units, return_counts=True)
        if (counts == columns).all():
            return np.lexsort((place.column, units)).reshape(-1, columns).astype(np.int64)
        size *= 2
    raise AssertionError("the whole memory holds whole rows only")
