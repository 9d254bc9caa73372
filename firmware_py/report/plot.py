"""The crossover as a picture: walk latency and walks per second over the number of searches."""

from __future__ import annotations

from pathlib import Path

from sim.trace.output import whole_file

from ..crossover import Crossover
from ..errors import InputError

__all__ = ["require_plot", "write_plot"]

_SUFFIXES = (".png", ".svg", ".pdf")


def require_plot(path: Path) -> None:
    """Check, before anything takes long, that a picture can be drawn into `path`. Raises InputError."""
    if path.suffix not in _SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in one of {', '.join(_SUFFIXES)}")


def write_plot(path: Path, result: Crossover) -> None:
    """Draw the crossover: one line for each place, both axes logarithmic. Raises OSError."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    latency, rate = figure.subplots(1, 2)
    for row in result.variants:
        points = [result.point(number, row.name) for number in result.concurrent]
        style = {"marker": "o", "linewidth": 2.5 if row.near else 1.2, "label": row.name}
        latency.plot(result.concurrent, [point.mean_ns for point in points], **style)
        rate.plot(
            result.concurrent,
            [None if p.walks_per_second is None else p.walks_per_second / 1e6 for p in points],
            **style,
        )
    for axes, label in ((latency, "mean walk latency, ns"), (rate, "million walks per second")):
        axes.set(xlabel="searches at a time", ylabel=label, xscale="log", yscale="log")
        axes.grid(alpha=0.3)
    latency.legend(fontsize="small")
    timing, far = result.config.memory.timing.name, result.far.path.path.name
    figure.suptitle(f"{timing}, far: {far} (input); measured in RTL")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:])
