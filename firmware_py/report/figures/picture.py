"""A picture of a report: how it is drawn, what it shows in words, and its numbers; and how it is written.

The same drawing becomes a file for a paper (.png, .svg, .pdf) and SVG inside a page, whose colours the page
decides.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdl.config import DesignConfig
from sim.trace.output import whole_file

from ...errors import InputError
from ...paths import FarPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = [
    "COLOURS",
    "HALF",
    "INK",
    "MUTED",
    "WHOLE",
    "Numbers",
    "Picture",
    "inline_svg",
    "measured_title",
    "require_plot",
    "tidy",
    "write_pictures",
]

_SUFFIXES = (".png", ".svg", ".pdf")
#: Inches of a picture that stands beside another, and of one that has a row to itself.
HALF, WHOLE = 7.6, 12.0

#: The colour of each place and part. All are of the palette of Okabe and Ito ("Color Universal Design",
#: 2008), which colour-blind readers tell apart; a page shows those of its style sheet instead.
COLOURS = {
    "near": "#0072b2",
    "far": "#d55e00",
    "far without help": "#cc79a7",
    "link": "#d55e01",
    "queue": "#999999",
    "arbitration": "#5b4636",
    "controller": "#009e73",
    "device": "#56b4e9",
    "cache": "#cc79a8",
    "walker": "#f0e442",
    "help": "#7d3c98",
    "refresh": "#e69f00",
}
#: Text and axes.
INK = "#1a1a1a"
#: What stands behind the data: grids, open rows.
MUTED = "#c8c8c8"


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The table of what a picture shows: a header, and rows as wide."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture."""

    name: str
    """A word of lower-case letters, unique in a report."""
    title: str
    text: str
    """What it shows, for a reader who does not see it."""
    draw: Callable[[FigureBase], None]
    numbers: Numbers
    width: float = HALF
    """Inches: HALF or WHOLE."""
    height: float = 3.6
    """Inches."""


def tidy(axes: Axes, **labels: Any) -> None:
    """Set labels and limits as `Axes.set` takes them, a light grid, and no frame above and to the right."""
    axes.set(**labels)
    axes.grid(color=MUTED, alpha=0.6, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def measured_title(config: DesignConfig, far: FarPath) -> str:
    """What was measured: the memory, and the far path, which is an input."""
    return f"{config.memory.timing.name}, far: {far.path.name} (input); measured in RTL"


def require_plot(path: Path) -> None:
    """Check, before anything takes long, that a picture can be drawn into `path`. Raises InputError."""
    if path.suffix not in _SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in one of {', '.join(_SUFFIXES)}")


def write_pictures(path: Path, pictures: Sequence[Picture], *, title: str) -> None:
    """Draw the pictures into one file, those of HALF width two a row. Raises OSError naming `path`."""
    rows: list[list[Picture]] = []
    for picture in pictures:
        beside = rows[-1] if rows else []
        if len(beside) == 1 and beside[0].width == picture.width == HALF:
            beside.append(picture)
        else:
            rows.append([picture])
    heights = [max(picture.height for picture in row) for row in rows]
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(2 * HALF, sum(heights) + 0.6), layout="constrained", dpi=160)
        figure.suptitle(title, fontsize="medium")
        for row, part in zip(
            rows, figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0], strict=True
        ):
            for picture, place in zip(row, part.subfigures(1, len(row), squeeze=False)[0], strict=True):
                place.suptitle(picture.title, fontsize="medium", fontweight="bold")
                picture.draw(place)
        with whole_file(path) as temporary:
            # Without a date the same figures are the same file.
            date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
            figure.savefig(temporary, format=path.suffix[1:], metadata=date)


def inline_svg(picture: Picture) -> str:
    """The picture as an SVG element: text stays text, colours are CSS variables such as `--near`, `--ink`."""
    with _style({"svg.fonttype": "none"}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(picture.width, picture.height), layout="constrained")
        picture.draw(figure)
        text = io.StringIO()
        figure.savefig(
            text,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    # Ids are unique in a figure only; a page holds several.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", svg)
    for name, colour in (*COLOURS.items(), ("ink", INK), ("muted", MUTED)):
        svg = svg.replace(colour, f"var(--{name.replace(' ', '-')})")
    return svg.strip()


@contextmanager
def _style(more: dict[str, Any] | None = None) -> Iterator[None]:
    import matplotlib

    style: Any = {
        "font.size": 10,
        "font.family": "sans-serif",
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        # Without a salt of its own the ids of every run differ.
        "svg.hashsalt": "clew",
    }
    with matplotlib.rc_context(style | (more or {})):
        yield
