"""A sweep at a glance: near against far, and what each axis does to the speed-up of near."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..report.whole_file import write_bytes
from .run import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["require_plot", "write_plot"]

_SUFFIXES = (".png", ".svg", ".pdf")
#: Panels beside one another.
_COLUMNS = 3
#: Longest value that is written below an axis.
_SHOWN_CHARACTERS = 22


def require_plot(path: Path) -> None:
    """Check, before anything takes long, that a picture can be drawn into `path`. Raises InputError."""
    if path.suffix not in _SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in one of {', '.join(_SUFFIXES)}")


def write_plot(path: Path, sweep: Sweep) -> None:
    """Draw the sweep, whole or not at all: one dot a point that has figures. Raises OSError naming `path`.

    The first panel has mean walk latencies, far over near, ns; the others have the speed-up of near in the
    mean walk over the values of one varying axis, all else varied, with the median of each value.
    """
    from matplotlib.figure import Figure

    points = [
        (measured.point.settings, measured.document)
        for measured in sweep.measured
        if measured.document is not None and measured.document["speedup"]["walk_mean"] is not None
    ]
    panels = 1 + len(sweep.varying)
    rows, columns = math.ceil(panels / _COLUMNS), min(panels, _COLUMNS)
    figure = Figure(figsize=(4.6 * columns, 4.2 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    _latencies(axes[0], [document for _, document in points])
    for name, panel in zip(sweep.varying, axes[1:], strict=False):
        values = list(dict.fromkeys(measured.point.settings[name] for measured in sweep.measured))
        found = [
            [document["speedup"]["walk_mean"] for settings, document in points if settings[name] == value]
            for value in values
        ]
        _speedups(panel, name, [_shown(value) for value in values], found)
    for panel in axes[panels:]:
        panel.remove()
    left = len(sweep.measured) - len(points)
    missing = f", {left} without figures left out" if left else ""
    figure.suptitle(
        f"{len(points)} points{missing}; far latencies are published inputs, the rest is measured"
    )
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix("."), dpi=150)
    write_bytes(path, content.getvalue())


def _latencies(panel: Axes, documents: list[dict[str, Any]]) -> None:
    near, far = (
        [document["paths"][place]["walk_ns"]["mean"] for document in documents] for place in ("near", "far")
    )
    panel.set(xlabel="near: mean walk, ns", ylabel="far: mean walk, ns", xscale="log", yscale="log")
    panel.grid(alpha=0.3, which="both")
    if not documents:
        return
    panel.scatter(near, far, s=22, alpha=0.75, zorder=3)
    ends = np.array([min(near + far) / 1.3, max(near + far) * 1.3])
    for factor, label in ((1, "equal"), (10, "10 x")):
        panel.plot(ends, factor * ends, color="grey", linewidth=1, linestyle="--" if factor > 1 else "-")
        panel.annotate(label, (ends[0], factor * ends[0]), color="grey", fontsize="small")
    panel.set(xlim=(min(near) / 1.3, max(near) * 1.3), ylim=(min(near + far) / 1.3, max(far) * 1.3))


def _speedups(panel: Axes, name: str, values: list[str], found: list[list[float]]) -> None:
    for place, speedups in enumerate(found):
        if not speedups:
            continue
        # Dots of one value lie beside one another, in the order of the sweep.
        spread = np.linspace(-0.22, 0.22, len(speedups)) if len(speedups) > 1 else np.zeros(1)
        panel.scatter(place + spread, speedups, s=16, alpha=0.6, color="tab:blue", zorder=3)
        median = float(np.median(speedups))
        panel.plot([place - 0.32, place + 0.32], [median, median], color="black", linewidth=2, zorder=4)
    panel.axhline(1, color="grey", linewidth=1)
    panel.set(xlabel=name, ylabel="speed-up of near, mean walk", yscale="log")
    panel.set_xticks(range(len(values)), values, rotation=30 if max(map(len, values)) > 8 else 0, ha="right")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("")
    panel.grid(alpha=0.3, axis="y", which="both")


def _shown(value: object) -> str:
    text = "none" if value in ("", None) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"…{text[1 - _SHOWN_CHARACTERS :]}"
