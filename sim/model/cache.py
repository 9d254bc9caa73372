"""The golden model of the compute side's cache: which reads of a sequence hit, in pure Python.

It is written from the docstrings of `hdl/fabric/cache_cells.py` and `cache.py` alone, for any geometry, and
keeps no data: what hits does not depend on it. A set is a dictionary in order of use, oldest first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CacheModel"]


@dataclass(kw_only=True)
class CacheModel:
    """A set-associative cache of 32-byte lines, least recently used replacement, by atom addresses."""

    sets_log2: int
    ways: int
    hits: int = 0
    """Reads that hit."""
    misses: int = 0
    """Reads that did not."""
    _sets: dict[int, dict[int, int | None]] = field(default_factory=dict)
    """By set: its lines by address; the value is the owner that a line awaits its fill from, or None."""

    def read(self, address: int, *, owner: int | None = None) -> bool:
        """Whether a read hits. With an owner a miss leaves a line that awaits `fill`."""
        lines = self._set(address)
        if address in lines and lines[address] is None:
            self._use(lines, address, None)
            self.hits += 1
            return True
        self.misses += 1
        if owner is not None:
            self._use(lines, address, owner)
        return False

    def fill(self, address: int, *, owner: int) -> None:
        """The response to a read of `owner` arrives: its line is valid if it is still awaited."""
        lines = self._set(address)
        if address in lines and lines[address] == owner:
            lines[address] = None  # in place: this is no use of the line

    def read_through(self, address: int) -> bool:
        """Whether a walk's read hits that is answered before anything else happens."""
        hit = self.read(address, owner=0)
        if not hit:
            self.fill(address, owner=0)
        return hit

    def write(self, address: int, *, whole: bool) -> None:
        """An unconditional write that no other port's writes overlap; `whole`: of all 32 bytes."""
        lines = self._set(address)
        if whole or (address in lines and lines[address] is None):
            self._use(lines, address, None)
        else:
            lines.pop(address, None)

    def drop(self, address: int) -> None:
        """A conditional write, or one that another port's writes overlap."""
        self._set(address).pop(address, None)

    def clear(self) -> None:
        """Every line is forgotten; the counts stay."""
        self._sets.clear()

    def _set(self, address: int) -> dict[int, int | None]:
        return self._sets.setdefault(address & ((1 << self.sets_log2) - 1), {})

    def _use(self, lines: dict[int, int | None], address: int, owner: int | None) -> None:
        if self.ways == 0:
            return
        if address in lines:
            del lines[address]
        elif len(lines) == self.ways:
            del lines[next(iter(lines))]
        lines[address] = owner
