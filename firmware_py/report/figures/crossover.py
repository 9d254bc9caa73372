"""The crossover: walk latency and walks per second over the number of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...crossover import Crossover
from ..numbers import number
from .picture import Numbers, Picture, tidy

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["crossover_pictures"]


def crossover_pictures(result: Crossover) -> list[Picture]:
    """Mean walk latency, and walks per second: one line for each place, both axes logarithmic."""
    rates = {
        (number_of, row.name): None
        if (rate := result.point(number_of, row.name).walks_per_second) is None
        else rate / 1e6
        for number_of in result.concurrent
        for row in result.variants
    }
    times = {
        (number_of, row.name): result.point(number_of, row.name).mean_ns
        for number_of in result.concurrent
        for row in result.variants
    }
    return [
        _picture(result, "time", "Mean walk latency", "mean walk latency, ns", times),
        _picture(result, "rate", "Throughput", "million walks per second", rates),
    ]


def _picture(
    result: Crossover, name: str, title: str, label: str, values: dict[tuple[int, str], float | None]
) -> Picture:
    def draw(figure: FigureBase) -> None:
        axes = figure.subplots()
        for row in result.variants:
            axes.plot(
                result.concurrent,
                np.array([values[count, row.name] for count in result.concurrent], dtype=float),
                marker="o",
                linewidth=2.5 if row.near else 1.2,
                label=row.name,
            )
        tidy(axes, xlabel="searches at a time", ylabel=label, xscale="log", yscale="log")
        axes.legend(fontsize="small")

    return Picture(
        name=name,
        title=title,
        text=f"{label.capitalize()} over the number of searches at a time, one line for each place.",
        draw=draw,
        numbers=Numbers(
            header=("searches", *(row.name for row in result.variants)),
            rows=[
                (str(count), *(number(values[count, row.name]) for row in result.variants))
                for count in result.concurrent
            ],
        ),
    )
