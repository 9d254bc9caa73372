"""The summary of a sample: count, extremes, mean and nearest-rank percentiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Statistics", "statistics"]


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
