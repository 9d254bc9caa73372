"""Where the time of a loop and of a walk goes: a stacked bar for each place, whose parts sum up to the mean.

The parts are those of the ledger (`firmware_py/ledger/time_parts.py`), cycle by cycle of every loop and walk.
What refresh caused lies within them, and is drawn as a line below its bar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...compare import Comparison
from ...ledger import PARTS, Part, TimeParts
from ...place import PlaceFigures
from ..numbers import number
from .latency import place_label
from .picture import COLOURS, INK, WHOLE, Numbers, Picture, tidy

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = ["time_picture"]

_REFRESH = "caused by refresh, within the parts"


def time_picture(comparison: Comparison) -> Picture | None:
    """The mean loop and the mean walk of each place by part; None without a walk."""
    places = comparison.places
    if not comparison.near.walk.count:
        return None
    clock = comparison.clock_ns
    means = {
        "loop": {name: _means(figures.loop_time, clock) for name, figures in places.items()},
        "walk": {name: _means(figures.walk_time, clock) for name, figures in places.items()},
    }
    refresh = {
        what: {name: clock * _refresh(figures, what) for name, figures in places.items()} for what in means
    }
    parts: list[Part] = [
        part for part in PARTS if any(found[part] for of in means.values() for found in of.values())
    ]

    def draw(figure: FigureBase) -> None:
        handles: dict[str, Artist] = {}
        panels = figure.subplots(1, len(means), sharey=True)
        for axes, (what, of) in zip(panels, means.items(), strict=True):
            _stack(axes, of, refresh[what], parts)
            tidy(axes, xlabel=f"mean {what}, ns")
            axes.set_yticks(range(len(of)), [place_label(comparison, name) for name in of])
            axes.margins(x=0.14)
            axes.grid(visible=False, axis="y")
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        panels[0].invert_yaxis()
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=5)

    columns = [(what, name) for what, of in means.items() for name in of]
    return Picture(
        name="time",
        title="Where the time goes",
        text="Mean time of a loop and of a walk in ns by part, a stacked bar for each place. "
        + " ".join(
            f"A {what} {place_label(comparison, name)}: {number(sum(means[what][name].values()))} ns: "
            + ", ".join(f"{part} {number(mean)}" for part in parts if (mean := means[what][name][part]))
            + f"; refresh caused {number(refresh[what][name])}."
            for what, name in columns
        ),
        draw=draw,
        numbers=Numbers(
            header=("mean ns", *(f"{what}, {place_label(comparison, name)}" for what, name in columns)),
            rows=[
                *((part, *(number(means[what][name][part]) for what, name in columns)) for part in parts),
                ("sum", *(number(sum(means[what][name].values())) for what, name in columns)),
                (_REFRESH, *(number(refresh[what][name]) for what, name in columns)),
            ],
        ),
        width=WHOLE,
        height=2.0 + 0.65 * len(places),
    )


def _means(time: TimeParts, clock: float) -> dict[Part, float]:
    """The mean of every part in ns; 0 without a sample."""
    return {part: clock * (cycles or 0.0) for part, cycles in time.means().items()}


def _refresh(figures: PlaceFigures, what: str) -> float:
    """The mean cycles that refresh caused of a loop or a walk."""
    return next(layer.refresh.mean or 0.0 for layer in figures.layers if layer.name == what)


def _stack(
    axes: Axes,
    means: Mapping[str, Mapping[Part, float]],
    refresh: Mapping[str, float],
    parts: list[Part],
) -> None:
    rows = np.arange(len(means))
    left = np.zeros(len(means))
    for part in parts:
        width = np.array([found[part] for found in means.values()])
        axes.barh(rows, width, left=left, height=0.56, color=COLOURS[part], label=part)
        left += width
    axes.barh(rows + 0.36, list(refresh.values()), height=0.09, color=COLOURS["refresh"], label=_REFRESH)
    for row, total in enumerate(left.tolist()):
        axes.annotate(
            f"{number(total)} ns",
            (total, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=INK,
        )
