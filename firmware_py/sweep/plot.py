"""A sweep at a glance: near against far, and what each axis does to the speed-up of near."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.trace.output import whole_file

from .definition import Value
from .run import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["write_plot"]

#: Longest value that is written below an axis or in the legend.
_SHOWN_CHARACTERS = 22
#: Values of the first varying axis that get a colour of their own.
_COLOURS = 10


def write_plot(path: Path, sweep: Sweep) -> None:
    """Draw the sweep, whole or not at all: one dot a point that has figures. Raises OSError naming `path`.

    The first panel has mean walk latencies, far over near, ns; the others have the speed-up of near in the
    mean walk over the values of one varying axis, all else varied, with the median of each value. Colours
    tell the values of the first varying axis.
    """
    from matplotlib.figure import Figure

    dots = [
        _Dot(settings=measured.point.settings, **_figures(measured.document))
        for measured in sweep.measured
        if measured.document is not None and measured.document["speedup"]["walk_mean"] is not None
    ]
    values = {
        name: list(dict.fromkeys(measured.point.settings[name] for measured in sweep.measured))
        for name in sweep.varying
    }
    groups = _groups(dots, values)
    panels = 1 + len(values)
    columns = math.ceil(math.sqrt(panels))
    figure = Figure(figsize=(5.2 * columns, 4.4 * math.ceil(panels / columns)), layout="constrained")
    axes = list(figure.subplots(math.ceil(panels / columns), columns, squeeze=False).flat)
    _latencies(axes[0], groups)
    for name, panel in zip(values, axes[1:], strict=False):
        _speedups(panel, name, values[name], groups)
    for panel in axes[panels:]:
        panel.remove()
    left = len(sweep.measured) - len(dots)
    missing = f", {left} without figures left out" if left else ""
    figure.suptitle(f"{len(dots)} points{missing}; far latencies are published inputs, the rest is measured")
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix("."), dpi=150)
    with whole_file(path) as temporary:
        temporary.write_bytes(content.getvalue())


@dataclass(frozen=True, kw_only=True)
class _Dot:
    """A point that has figures."""

    settings: dict[str, Value | None]
    near: float
    """Mean walk latency, ns."""
    far: float
    speedup: float


def _figures(document: dict[str, Any]) -> dict[str, float]:
    means = {place: document["paths"][place]["walk_ns"]["mean"] for place in ("near", "far")}
    return {**means, "speedup": document["speedup"]["walk_mean"]}


def _groups(dots: list[_Dot], values: dict[str, list[Value | None]]) -> dict[str, list[_Dot]]:
    """The dots of one colour each, by what the legend calls them."""
    first = next(iter(values), None)
    if first is None or len(values[first]) > _COLOURS:
        return {"": dots}
    return {
        f"{first} {_shown(value)}": [dot for dot in dots if dot.settings[first] == value]
        for value in values[first]
    }


def _latencies(panel: Axes, groups: dict[str, list[_Dot]]) -> None:
    panel.set(xlabel="near: mean walk, ns", ylabel="far: mean walk, ns", xscale="log", yscale="log")
    panel.grid(alpha=0.3, which="both")
    for label, dots in groups.items():
        near, far = [dot.near for dot in dots], [dot.far for dot in dots]
        panel.scatter(near, far, s=24, alpha=0.75, zorder=3, label=label or None)
    everything = [value for dots in groups.values() for dot in dots for value in (dot.near, dot.far)]
    if not everything:
        return
    ends = np.array([min(everything) / 1.5, max(everything) * 1.5])
    for factor, label, style in ((1, "equal", "-"), (10, "10 x", "--")):
        panel.plot(ends, factor * ends, color="grey", linewidth=1, linestyle=style, label=label)
    panel.set(xlim=ends, ylim=ends)
    panel.legend(fontsize="small", loc="lower right")


def _speedups(panel: Axes, name: str, values: list[Value | None], groups: dict[str, list[_Dot]]) -> None:
    """Dots of one value lie beside one another, in the order of the sweep."""
    from matplotlib.ticker import LogLocator

    places = {value: place for place, value in enumerate(values)}
    for dots in groups.values():
        across: list[float] = []
        for dot in dots:
            same = [other for group in groups.values() for other in group if _same(other, dot, name)]
            share = same.index(dot) / (len(same) - 1) - 0.5 if len(same) > 1 else 0.0
            across.append(places[dot.settings[name]] + 0.4 * share)
        panel.scatter(across, [dot.speedup for dot in dots], s=18, alpha=0.75, zorder=3)
    for value, place in places.items():
        found = [dot.speedup for dots in groups.values() for dot in dots if dot.settings[name] == value]
        if found:
            middle = float(np.median(found))
            panel.plot([place - 0.32, place + 0.32], [middle, middle], color="black", linewidth=1.5)
    panel.axhline(1, color="grey", linewidth=1)
    shown = [_shown(value) for value in values]
    panel.set(xlabel=name, ylabel="speed-up of near, mean walk; bar: median", yscale="log")
    slanted = len("".join(shown)) > 36
    panel.set_xticks(
        range(len(shown)), shown, rotation=25 if slanted else 0, ha="right" if slanted else "center"
    )
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter("{x:g} x")
    panel.yaxis.set_minor_formatter("")
    panel.grid(alpha=0.3, axis="y", which="both")


def _same(dot: _Dot, other: _Dot, name: str) -> bool:
    return dot.settings[name] == other.settings[name]


def _shown(value: Value | None) -> str:
    text = "none" if value == "" or value is None else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
