"""The summary of a sample: count, extremes, mean and nearest-rank percentiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Statistics", "histogram_statistics", "statistics", "unmeasured"]


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


def histogram_statistics(counts: NDArray[np.int64]) -> Statistics:
    """The summary of a sample by its counts: bin n holds the values n, the last bin all larger ones too.

    What the last bin leaves open is None: the largest value and the mean once it holds any, and a percentile
    that lies in it.
    """
    total = int(counts.sum())
    if not counts[-1]:
        return statistics(np.repeat(np.arange(len(counts)), counts))
    reached = np.cumsum(counts)

    def known(value: int) -> float | None:
        return float(value) if value < len(counts) - 1 else None

    def rank(thousandths: int) -> float | None:
        return known(int(np.searchsorted(reached, -(-thousandths * total // 1000))))

    return Statistics(
        count=total,
        min=known(int(np.flatnonzero(counts)[0])),
        mean=None,
        p50=rank(500),
        p99=rank(990),
        p999=rank(999),
        max=None,
    )


def unmeasured(count: int) -> Statistics:
    """The summary of a sample of which only the size is known."""
    return Statistics(count=count, min=None, mean=None, p50=None, p99=None, p999=None, max=None)


def statistics(values: ArrayLike) -> Statistics:
    """The summary of a sample of numbers, in the unit of the sample."""
    sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
    count = len(sample)
    if not count:
        return unmeasured(0)

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
