"""Where records live: address ranges of searches, and the host's mirror of one.

Addresses are atom addresses. Atom 0 is null and never given out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.model.interpreter import Atom, record_words
from sim.trace.events import Node
from sim.trace.validator import BLOCK_BYTES

from .commands import FULL_MASK, Atoms
from .errors import InputError
from .layout import CreationOrder, Layout, layout_named
from .records import (
    CANDIDATE,
    CHILD,
    DEAD_BIT,
    DEPTH,
    LIVE,
    NO_SCORE,
    PARENT,
    SCORE,
    SIBLING,
    SKIP,
    STATE_LENGTH,
    UNTRIED,
    UNTRIED_MAX,
    VISITS,
    BitField,
    order_preserving,
)

__all__ = [
    "AddressSpace",
    "CreationOrder",
    "Layout",
    "MemoryFull",
    "TreeImage",
    "WriteRun",
    "layout_named",
]


class MemoryFull(InputError):
    """A tree does not fit in the memory."""


class AddressSpace:
    """Ranges of the `atoms` addresses from `first` on, given out one after another, again when free."""

    def __init__(self, *, atoms: int, first: int = 0) -> None:
        self._atoms = atoms
        self._first = max(first, 1)
        self._limit = first + atoms
        self._cursor = self._first
        self._live: dict[int, int] = {}
        self._bases: list[int] = []
        """The same ranges in order of address."""

    def allocate(self, count: int, *, alignment: int = 1) -> int:
        """The first of `count` free atoms, a multiple of `alignment`, from where the last range ended on
        (then from the start).

        Raises MemoryFull when no free range is that long.
        """
        for start in (self._cursor, self._first):
            base = self._first_fit(start, count, alignment)
            if base is not None:
                if base not in self._live:  # an empty range takes no address from the next one
                    insort(self._bases, base)
                self._live[base] = count
                self._cursor = base + count
                return base
        in_use = sum(self._live.values())
        raise MemoryFull(
            f"needs {count} atoms of memory: expected at most {self._limit - self._first - in_use} "
            f"(memory of {self._atoms} atoms, {in_use} in use)"
        )

    def release(self, base: int) -> None:
        """Give back the range that starts at `base`. Raises KeyError when none does."""
        del self._live[base]
        del self._bases[bisect_left(self._bases, base)]

    def _first_fit(self, start: int, count: int, alignment: int) -> int | None:
        base = -(-start // alignment) * alignment
        for index in range(max(bisect_left(self._bases, start) - 1, 0), len(self._bases)):
            live = self._bases[index]
            end = live + self._live[live]
            if end <= base:
                continue
            if base + count <= live:
                break
            base = -(-end // alignment) * alignment
        return base if base + count <= self._limit else None


@dataclass(frozen=True, kw_only=True)
class WriteRun:
    """Consecutive atoms that one WRITE changes under one byte mask."""

    address: int
    mask: int
    data: Atoms


class TreeImage(MutableMapping[int, Atom]):
    """The records of one search: a mirror of its address range, and what of it memory does not have yet.

    The range holds the nodes as `layout` places them, then a list area of `list_atoms` atoms for candidate
    lists, used again by every list; `turn` counts the trees placed before.

    Setters change the mirror and mark the changed words; `flush` returns
    the writes that bring memory up to date.
    """

    def __init__(self, nodes: Sequence[Node], *, layout: Layout, list_atoms: int, turn: int = 0) -> None:
        self._offsets, self._list_offset = layout.place(nodes, turn=turn)
        self.alignment = layout.alignment
        self.size = self._list_offset + list_atoms
        self.base = 0
        """First atom of the range; set by `move_to` before anything is written."""
        self.words: Atoms = np.zeros((self.size, 8), dtype=np.uint32)
        self.known = np.zeros(self.size, dtype=np.bool_)
        """The atoms that were ever written; between the nodes of a layout with gaps, memory is not known."""
        self._dirty = np.zeros(self.size, dtype=np.uint32)
        self._touched: set[int] = set()
        self._last_child: dict[int, int] = {}

    @property
    def limit(self) -> int:
        """First atom beyond the range."""
        return self.base + self.size

    def move_to(self, base: int) -> None:
        """Put the range at `base`. Raises ValueError once a record has been made."""
        if self.words.any():
            raise ValueError("the image holds records: expected an empty one")
        self.base = base

    def address(self, node: int) -> int:
        """The atom address of a node."""
        return self.base + int(self._offsets[node])

    @property
    def addresses(self) -> NDArray[np.int64]:
        """The atom address of every node by id."""
        return self.base + self._offsets

    def word(self, node: int, index: int) -> int:
        """Word `index` of a node's record as an unsigned integer."""
        return int(self.words[self._offsets[node], index])

    # -- The range as the golden interpreter's memory: atoms by address, as tuples of eight words ------

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and self.base <= address < self.limit

    def __getitem__(self, address: int) -> tuple[int, ...]:
        if address not in self:
            raise KeyError(address)
        return tuple(self.words[address - self.base].tolist())

    def __setitem__(self, address: int, atom: Atom) -> None:
        """What a walk stored: memory has it already, so the mirror follows without a write."""
        if address not in self:
            raise KeyError(address)
        self.words[address - self.base] = record_words(atom)
        self.known[address - self.base] = True

    def __delitem__(self, address: int) -> None:
        raise TypeError(f"atom {address} cannot be removed: expected a read or a write")

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.base, self.limit))

    def __len__(self) -> int:
        return self.size

    # -- Changes ------------------------------------------------------------------------------------

    def make_node(self, node: Node) -> None:
        """A new record: parent, depth, state length, no score; linked last among its siblings.

        Raises InputError naming the field for a depth or state length that its field cannot hold.
        """
        offset = int(self._offsets[node.id])
        self.words[offset] = 0
        self._mark(offset, range(8))
        parent = node.parents[0] if node.parents else None
        if parent is not None:
            self._set(offset, PARENT, self.address(parent), "parents")
            self._link(parent, node.id)
        self._set(offset, DEPTH, node.depth, "depth")
        self._set(offset, STATE_LENGTH, -(-node.state_bytes // BLOCK_BYTES), "state_bytes (blocks)")
        self._set(offset, SCORE, NO_SCORE, "score")

    def set_untried(self, node: int, count: int) -> None:
        """The number of children left to try, saturating at the field's maximum."""
        self._set(int(self._offsets[node]), UNTRIED, min(count, UNTRIED_MAX), "untried")

    def set_score(self, node: int, score: float | None) -> None:
        """The score; None: no score. Raises ValueError for NaN and for a value beyond float32."""
        self._set(int(self._offsets[node]), SCORE, order_preserving(score), "score")

    def set_dead(self, node: int) -> None:
        """Mark the node dead."""
        self._set(int(self._offsets[node]), DEAD_BIT, 1, "dead")

    def revive(self, node: int) -> None:
        """Mark the node alive again."""
        self._set(int(self._offsets[node]), DEAD_BIT, 0, "dead")

    def is_open(self, node: int) -> bool:
        """Whether a climb ends at the node: it is alive and has something untried."""
        status = self.word(node, LIVE.word)
        return not status >> DEAD_BIT.low & 1 and status & UNTRIED_MAX > 0

    def skip(self, node: int) -> int:
        """The node's SKIP word."""
        return self.word(node, SKIP.word)

    def set_skip(self, node: int, word: int) -> None:
        """Set the node's SKIP word (`programs/climb_compressed.py`)."""
        self._set(int(self._offsets[node]), SKIP, word, "skip")

    def add_visit(self, node: int, value: int) -> None:
        """Add a value (Q16.16) to the node's value sum, and one to its visits."""
        offset = int(self._offsets[node])
        visits = int(self.words[offset, VISITS.word]) >> VISITS.low
        self._set(offset, VISITS, visits + 1, "visits")
        total = int(self.words[offset, SKIP.word].astype(np.int32)) + value
        self._set(offset, BitField(SKIP.word, signed=True), total, "value sum")

    def put_candidates(self, candidates: Sequence[int]) -> int:
        """Write a candidate list, linked in the order given, with sequence numbers from 0; its address.

        Each record carries the score and dead bit that its node has now. The list must not be empty.
        """
        count = len(candidates)
        offsets = self._offsets[list(candidates)]
        first = self._list_offset
        records = np.zeros((count, 8), dtype=np.uint32)
        records[:, CANDIDATE["node"]] = self.base + offsets
        records[:, CANDIDATE["score"]] = self.words[offsets, SCORE.word]
        records[:, CANDIDATE["sequence"]] = np.arange(count)
        records[:-1, CANDIDATE["next"]] = self.base + first + 1 + np.arange(count - 1)
        dead = np.uint32(1 << DEAD_BIT.low)
        records[:, CANDIDATE["status"]] = self.words[offsets, DEAD_BIT.word] & dead
        self.words[first : first + count] = records
        for offset in range(first, first + count):
            self._mark(offset, range(8))
        return self.base + first

    def flush(self) -> list[WriteRun]:
        """The writes of everything changed since the last flush, by address, consecutive equals merged."""
        runs: list[WriteRun] = []
        offsets = sorted(self._touched)
        begin = 0
        for index in range(1, len(offsets) + 1):
            if index < len(offsets):
                before, here = offsets[index - 1], offsets[index]
                if here == before + 1 and self._dirty[here] == self._dirty[before]:
                    continue
            first, last = offsets[begin], offsets[index - 1]
            runs.append(
                WriteRun(
                    address=self.base + first,
                    mask=int(self._dirty[first]),
                    data=self.words[first : last + 1].copy(),
                )
            )
            begin = index
        self._dirty[offsets] = 0
        self._touched.clear()
        return runs

    # -- Inside -------------------------------------------------------------------------------------

    def _link(self, parent: int, child: int) -> None:
        before = self._last_child.get(parent)
        self._last_child[parent] = child
        if before is None:
            self._set(int(self._offsets[parent]), CHILD, self.address(child), "first child")
        else:
            self._set(int(self._offsets[before]), SIBLING, self.address(child), "next sibling")

    def _set(self, offset: int, field: BitField, value: int, name: str) -> None:
        low = -(1 << field.width - 1) if field.signed else 0
        high = (1 << field.width - int(field.signed)) - 1
        if not low <= value <= high:
            raise InputError(f"field {name} is {value}: expected {low} to {high}, what a record holds")
        ones = (1 << field.width) - 1
        old = int(self.words[offset, field.word])
        self.words[offset, field.word] = old & ~(ones << field.low) | (value & ones) << field.low
        self._mark(offset, (field.word,))

    def _mark(self, offset: int, words: Iterable[int]) -> None:
        mask = int(self._dirty[offset])
        for word in words:
            mask |= 0xF << 4 * word
        self._dirty[offset] = mask & FULL_MASK
        self.known[offset] = True
        self._touched.add(offset)
