"""The ledger: what each layer took, from the hop log, the access log and the completions of a run.

Every array function here is vectorised: a run has millions of hops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdl.layouts import HopEvent, RowClass

__all__ = ["Loops", "RowShares", "Statistics", "loops", "row_shares", "statistics"]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Summary of a sample; every field but `count` is None when the sample is empty.

    Percentiles are nearest-rank: p% is the smallest value that at least p% of the sample does not exceed,
    so each is a value that really occurred.
    """

    count: int
    min: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    p999: float | None
    max: float | None

    def scaled(self, factor: float) -> Statistics:
        """The same summary in another unit: every value times `factor`."""
        return Statistics(
            count=self.count,
            **{
                name: None if (value := getattr(self, name)) is None else value * factor
                for name in ("min", "mean", "p50", "p99", "p999", "max")
            },
        )

    def as_dict(self) -> dict[str, float | int | None]:
        """Plain JSON types under the field names."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def statistics(values: ArrayLike) -> Statistics:
    """The summary of a sample of numbers, in the unit of the sample."""
    sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
    count = len(sample)
    if not count:
        return Statistics(count=0, min=None, mean=None, p50=None, p99=None, p999=None, max=None)

    def rank(thousandths: int) -> float:
        return float(sample[-(-thousandths * count // 1000) - 1])

    return Statistics(
        count=count,
        min=float(sample[0]),
        mean=float(sample.mean()),
        p50=rank(500),
        p99=rank(990),
        p999=rank(999),
        max=float(sample[-1]),
    )


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Every iteration of the loop in a run, in order of its request; equal-length arrays."""

    cycles: NDArray[np.int64]
    """From the request for a record to the same context's next request or the walk's verdict."""
    address: NDArray[np.int64]
    batch: NDArray[np.int64]


def loops(
    *, batch: ArrayLike, cycle: ArrayLike, context: ArrayLike, event: ArrayLike, address: ArrayLike
) -> Loops:
    """The loop iterations of one walker's hop log (one row an event, `HopEvent`; STORE rows are passed over).

    `cycle` counts within a batch or over all of them, but rises within a batch. Raises ValueError when a
    request has no successor in its batch: the log is incomplete.
    """
    events = np.asarray(event, dtype=np.int64)
    kept = np.flatnonzero((events == HopEvent.REQUEST.value) | (events == HopEvent.VERDICT.value))
    events = events[kept]
    batches, cycles, contexts, addresses = (
        np.asarray(column, dtype=np.int64)[kept] for column in (batch, cycle, context, address)
    )
    order = np.lexsort((cycles, contexts, batches))
    request = events[order] == HopEvent.REQUEST.value
    followed = np.zeros(len(order), dtype=bool)
    followed[:-1] = (np.diff(batches[order]) == 0) & (np.diff(contexts[order]) == 0)
    if np.any(request & ~followed):
        lost = order[np.flatnonzero(request & ~followed)[0]]
        raise ValueError(
            f"hop log: the request for {addresses[lost]:#x} in batch {batches[lost]} has no successor: "
            "expected the context's next request or its verdict"
        )
    elapsed = np.zeros(len(order), dtype=np.int64)
    elapsed[:-1] = np.diff(cycles[order])
    chosen = order[request]
    by_time = np.lexsort((cycles[chosen], batches[chosen]))
    chosen = chosen[by_time]
    return Loops(cycles=elapsed[request][by_time], address=addresses[chosen], batch=batches[chosen])


@dataclass(frozen=True, kw_only=True)
class RowShares:
    """What the reads of a walker found: the row open, the bank closed, or another row open."""

    hit: int
    closed: int
    conflict: int

    def as_dict(self) -> dict[str, float | None]:
        """The shares, 0 to 1; None when there was no read."""
        total = self.hit + self.closed + self.conflict
        return {
            name: getattr(self, name) / total if total else None for name in ("hit", "closed", "conflict")
        }


def row_shares(*, row_class: ArrayLike, source: ArrayLike, write: ArrayLike, walker: int) -> RowShares:
    """Counts over an access log (one row an access) of the reads that the walker `walker` (`Source`) made."""
    classes = np.asarray(row_class)[(np.asarray(source) == walker) & (np.asarray(write) == 0)]
    return RowShares(
        hit=int(np.count_nonzero(classes == RowClass.HIT.value)),
        closed=int(np.count_nonzero(classes == RowClass.CLOSED.value)),
        conflict=int(np.count_nonzero(classes == RowClass.CONFLICT.value)),
    )
