"""Cache hits by trace file: which reads of a run the cache answered, and whose tree each was in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .ledger import Ledger
from .replay import Plan

__all__ = ["FileHits", "hits_by_file"]


@dataclass(frozen=True, kw_only=True)
class FileHits:
    """Reads of walks in the trees of one file, and how many of them the cache answered."""

    reads: int
    hits: int

    @property
    def hit_rate(self) -> float | None:
        """The share of hits, 0 to 1; None without a read."""
        return self.hits / self.reads if self.reads else None


def hits_by_file(plan: Plan, ledger: Ledger, traces_by_file: Sequence[int]) -> list[FileHits] | None:
    """The hits of every file, of `traces_by_file` traces each; None where addresses were used twice.

    The files share the cache: each one's searches compete with the others'.
    """
    bases = np.array([planned.addresses.min(initial=1 << 40) for planned in plan.traces], dtype=np.int64)
    known = np.flatnonzero(bases < 1 << 40)
    if np.any(np.diff(bases[known]) <= 0):
        return None
    file_of_trace = np.repeat(np.arange(len(traces_by_file)), traces_by_file)
    loops = ledger.loops
    if not len(loops.address):
        return [FileHits(reads=0, hits=0) for _ in traces_by_file]
    trace = known[np.searchsorted(bases[known], loops.address, side="right") - 1]
    file = file_of_trace[trace % len(file_of_trace)]
    missed = np.zeros(len(file), dtype=bool)
    missed[ledger.read] = True
    reads = np.bincount(file, minlength=len(traces_by_file))
    misses = np.bincount(file[missed], minlength=len(traces_by_file))
    return [
        FileHits(reads=int(count), hits=int(count - lost)) for count, lost in zip(reads, misses, strict=True)
    ]
