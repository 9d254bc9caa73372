"""Walk latency as cumulative curves, and how many records a walk reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...compare import Comparison
from ...ledger import Statistics
from ...place import PlaceFigures
from ..numbers import number
from .picture import COLOURS, Numbers, Picture, tidy

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["reads_picture", "walk_latency_picture"]

#: Most points of a curve: what a screen shows.
_POINTS = 1000
_STATISTICS = ("min", "mean", "p50", "p99", "p999", "max")


def walk_latency_picture(comparison: Comparison) -> Picture:
    """The share of walks that are over after a time, one curve for each place, on a logarithmic axis."""
    places, clock = comparison.places, comparison.clock_ns
    walks = {name: figures.walk.scaled(clock) for name, figures in places.items()}

    def draw(figure: FigureBase) -> None:
        axes = figure.subplots()
        for name, figures in places.items():
            time, share = _cumulative(figures.run.walk_cycles * clock)
            axes.step(
                time,
                100 * share,
                where="post",
                color=COLOURS[name],
                linewidth=2,
                label=place_label(comparison, name),
            )
        tidy(axes, xscale="log", xlabel="walk latency, ns", ylabel="walks that are over, %", ylim=(0, 102))
        axes.legend(loc="lower right")

    return Picture(
        name="latency",
        title="Walk latency",
        text="Cumulative share of walks over walk latency in ns, on a logarithmic axis. "
        + " ".join(
            f"{place_label(comparison, name)}: half of {walk.count:,} walks are over after "
            f"{number(walk.p50)} ns, 99 % after {number(walk.p99)} ns, all after {number(walk.max)} ns."
            for name, walk in walks.items()
        ),
        draw=draw,
        numbers=Numbers(
            header=("walk latency, ns", *(place_label(comparison, name) for name in places)),
            rows=[
                ("walks", *(f"{walk.count:,}" for walk in walks.values())),
                *_statistics(walks),
            ],
        ),
    )


def reads_picture(comparison: Comparison) -> Picture:
    """The share of walks by the number of records that they read."""
    reads = {place_label(comparison, name): _reads(figures) for name, figures in comparison.places.items()}
    colours = dict(zip(reads, (COLOURS[name] for name in comparison.places), strict=True))
    if len({values.tobytes() for values in reads.values()}) == 1:
        # Without help every place reads the same records.
        reads = {"every place": reads["near"]}
        colours = {"every place": COLOURS["near"]}
    most = max((int(values.max()) for values in reads.values() if len(values)), default=0)
    bins = _bins(most)
    counts = {name: _counts(values, bins) for name, values in reads.items()}
    labels = [str(low) if low == high else f"{low}-{high}" for low, high in bins]

    def draw(figure: FigureBase) -> None:
        axes = figure.subplots()
        width = 0.8 / len(counts)
        for index, (name, count) in enumerate(counts.items()):
            at = np.arange(len(bins)) + (index - (len(counts) - 1) / 2) * width
            axes.bar(at, 100 * count / max(int(count.sum()), 1), width, color=colours[name], label=name)
        tidy(axes, xlabel="reads of a walk", ylabel="walks, %")
        axes.set_xticks(range(len(bins)), labels)
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper right")

    mean = comparison.near.reads_per_walk.mean
    return Picture(
        name="reads",
        title="Reads per walk",
        text="Share of walks by the number of records that they read. A near walk reads "
        f"{number(mean)} records in the mean; the longest walk of any place reads {most:,}.",
        draw=draw,
        numbers=Numbers(
            header=("reads", *(f"walks, {name}" for name in counts)),
            rows=[
                (label, *(f"{int(count[row]):,}" for count in counts.values()))
                for row, label in enumerate(labels)
            ],
        ),
    )


def place_label(comparison: Comparison, name: str) -> str:
    """The place as a legend calls it: whether the far one has help."""
    return "far with help" if name == "far" and comparison.far_help.names else name


def _statistics(samples: dict[str, Statistics]) -> list[tuple[str, ...]]:
    return [
        (name.replace("p999", "p99.9"), *(number(getattr(sample, name)) for sample in samples.values()))
        for name in _STATISTICS
    ]


def _cumulative(values: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The points of the cumulative curve of a sample, at most `_POINTS`, its last value among them."""
    if not len(values):
        return np.zeros(0), np.zeros(0)
    times, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / len(values)
    if len(times) > _POINTS:
        # Evenly in share, and the tail in full detail.
        wanted = np.searchsorted(shares, np.linspace(0, 1, _POINTS // 2, endpoint=False))
        tail = np.arange(len(times) - _POINTS // 2, len(times))
        kept = np.unique(np.concatenate([wanted, tail]))
        times, shares = times[kept], shares[kept]
    return np.concatenate([times[:1], times]), np.concatenate([[0.0], shares])


def _reads(figures: PlaceFigures) -> NDArray[np.int64]:
    return np.array([answer.hops for answer in figures.run.answers], dtype=np.int64)


def _bins(most: int) -> list[tuple[int, int]]:
    """0 to 4 one by one, 5-8, 9-16, then four times as far each, up to `most`."""
    bins = [(count, count) for count in range(min(most, 4) + 1)]
    low, high = 5, 8
    while low <= most:
        bins.append((low, high))
        low, high = high + 1, 4 * high if high >= 16 else 2 * high
    return bins


def _counts(values: NDArray[np.int64], bins: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(
        [np.count_nonzero((values >= low) & (values <= high)) for low, high in bins], dtype=np.int64
    )
