"""Where the time of a loop goes, as one stacked bar for each place.

The parts of a lone loop follow from the configuration (`loop_parts`) and the rows that the reads found. What
a loop took beyond them is the wait: for refresh, and for what other requesters and walks had on the bus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from hdl.fabric.cache import Cache

from ...compare import Comparison
from ...loop_parts import RowState, loop_parts
from ...paths import LINK_CYCLES
from ...place import PlaceFigures
from .latency import number, place_label
from .picture import COLOURS, INK, Numbers, Picture, tidy

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["LoopShare", "loop_picture", "loop_shares"]

LoopShare: TypeAlias = Literal["device", "controller", "walker", "link", "cache", "wait"]

_LABELS: dict[LoopShare, str] = {
    "device": "memory device",
    "controller": "controller, arbiter, capture",
    "walker": "walker",
    "link": "link, both ways",
    "cache": "cache",
    "wait": "wait: refresh, others",
}
_ROWS: tuple[RowState, ...] = ("hit", "closed", "conflict")


def loop_shares(
    comparison: Comparison, figures: PlaceFigures, *, near: bool
) -> dict[LoopShare, float] | None:
    """Mean cycles of a loop by part; their sum is the mean loop. None without a loop."""
    ledger = figures.ledger
    if not len(ledger.loops.cycles):
        return None
    config = comparison.config
    mean, read = float(ledger.loops.cycles.mean()), len(ledger.read) / len(ledger.loops.cycles)
    parts = {"device": 0.0, "controller": 0.0}
    for state in _ROWS:
        share = read * (ledger.rows.as_dict()[state] or 0.0)
        cycles = loop_parts(config, state)
        parts["device"] += share * cycles["device"]
        parts["controller"] += share * (sum(cycles.values()) - cycles["device"] - cycles["walker"])
    path = comparison.near_path if near else comparison.far_path
    ratio = config.clock_ratio if near and path is None else 1
    found: dict[LoopShare, float] = {
        "device": parts["device"],
        "controller": parts["controller"],
        "walker": float(config.walker.execute_stages * ratio),
    }
    if path is not None:
        found["link"] = read * (path.latency_up + path.latency_down + LINK_CYCLES)
    if figures.cache is not None and comparison.cache is not None:
        # A hit takes the published time, the walker's included; a miss its lookup besides the read.
        hit = comparison.cache.hit_cycles - config.walker.execute_stages
        found["cache"] = (1 - read) * hit + read * Cache.miss_cycles
    found["wait"] = mean - sum(found.values())
    return found


def loop_picture(comparison: Comparison) -> Picture | None:
    """The mean loop of each place by part; None without a loop."""
    clock = comparison.clock_ns
    shares = {
        name: found
        for name, figures in comparison.places.items()
        if (found := loop_shares(comparison, figures, near=name == "near")) is not None
    }
    if not shares:
        return None
    parts: list[LoopShare] = [part for part in _LABELS if any(part in found for found in shares.values())]

    def draw(figure: FigureBase) -> None:
        axes = figure.subplots()
        left = np.zeros(len(shares))
        for part in parts:
            width = np.array([clock * found.get(part, 0.0) for found in shares.values()])
            axes.barh(
                range(len(shares)), width, left=left, height=0.6, color=COLOURS[part], label=_LABELS[part]
            )
            left += width
        for row, total in enumerate(left):
            axes.annotate(
                f"{number(float(total))} ns",
                (total, row),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
        tidy(axes, xlabel="mean loop, ns")
        axes.set_yticks(range(len(shares)), [place_label(comparison, name) for name in shares])
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside lower center", ncols=3, fontsize="small")

    totals = {name: sum(found.values()) * clock for name, found in shares.items()}
    return Picture(
        name="loop",
        title="Where a loop's time goes",
        text="Mean time of one loop in ns by part, a stacked bar for each place. "
        + " ".join(
            f"{place_label(comparison, name)}: {number(totals[name])} ns, of which "
            + ", ".join(f"{_LABELS[part]} {number(found[part] * clock)}" for part in parts if found.get(part))
            + "."
            for name, found in shares.items()
        ),
        draw=draw,
        numbers=Numbers(
            header=("part of the mean loop, ns", *(place_label(comparison, name) for name in shares)),
            rows=[
                *(
                    (
                        _LABELS[part],
                        *(number(found[part] * clock) if part in found else "-" for found in shares.values()),
                    )
                    for part in parts
                ),
                ("loop", *(number(total) for total in totals.values())),
            ],
        ),
    )
