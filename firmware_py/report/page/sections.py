"""The sections of the page as HTML; every text of a trace, a file name or a preset is escaped."""

from __future__ import annotations

from html import escape

from ...compare import Comparison
from ...effect import ratio
from ...ledger import Statistics
from ..document import unchecked
from ..figures.latency import place_label
from ..figures.picture import WHOLE, Picture, inline_svg
from ..ledger_table import ledger_tables
from ..numbers import number
from ..table import comparison_table
from .tables import rich_table, table

__all__ = [
    "failures",
    "heading",
    "headline",
    "numbers",
    "picture",
    "setting",
]


def heading(comparison: Comparison) -> str:
    """The result in one sentence."""
    near, far = comparison.near.walk, comparison.far.walk
    gain = ratio(far.mean, near.mean)
    if gain is None:
        return "These traces ask for no walk: there is nothing to compare."
    clock = comparison.clock_ns
    times = f"{_ns(near, 'mean', clock)}, against {_ns(far, 'mean', clock)} {place_label(comparison, 'far')}"
    if comparison.bare_far is not None:
        times += f" and {_ns(comparison.bare_far.walk, 'mean', clock)} without"
    faster = f"{gain:.2f} times as fast" if gain >= 1 else f"{1 / gain:.2f} times as slow"
    return escape(f"Beside the memory a backtracking decision takes {times}, in the mean: {faster}")


def setting(comparison: Comparison) -> str:
    """What was compared, as the table of the terminal says it."""
    return escape(str(comparison_table(comparison).title))


def failures(comparison: Comparison) -> str:
    """Why the run is not good; empty when it is."""
    if not comparison.failures:
        return ""
    lines = "".join(f"<li>{escape(line)}</li>" for line in comparison.failures)
    return f'<div class="failures" role="alert"><strong>This run is not good:</strong><ul>{lines}</ul></div>'


def headline(comparison: Comparison) -> str:
    """The figures to read first, near beside far."""
    near, far, clock = comparison.near, comparison.far, comparison.clock_ns
    where = escape(place_label(comparison, "far"))

    def pair(what: str, left: str, right: str, more: str) -> str:
        return (
            f'<li><span class="what">{what}</span><span class="pair">'
            f'<span class="near">{left} <small>near</small></span>'
            f'<span class="far">{right} <small>{where}</small></span></span>'
            f'<span class="more">{more}</span></li>'
        )

    def gain(over: Statistics, under: Statistics) -> str:
        times = ratio(over.mean, under.mean)
        return "" if times is None else f"near is {times:.2f} x as fast"

    checked = sum(file.verdicts.checked for file in comparison.files)
    wrong = sum(file.verdicts.wrong for file in comparison.files)
    items = [
        pair(
            "walk latency, mean",
            _ns(near.walk, "mean", clock),
            _ns(far.walk, "mean", clock),
            gain(far.walk, near.walk),
        ),
        pair(
            "walk latency, 99 %",
            _ns(near.walk, "p99", clock),
            _ns(far.walk, "p99", clock),
            f"median {_ns(near.walk, 'p50', clock)} near, {_ns(far.walk, 'p50', clock)} {where}",
        ),
        pair(
            "loop, mean",
            _ns(near.loop, "mean", clock),
            _ns(far.loop, "mean", clock),
            f"{gain(far.loop, near.loop)}; isolated {comparison.isolated_speedup:.2f} x is an input",
        ),
        pair(
            "reads per walk, mean",
            number(near.reads_per_walk.mean),
            number(far.reads_per_walk.mean),
            f"the longest reads {number(near.reads_per_walk.max)}",
        ),
        f'<li><span class="what">verdicts wrong</span><span class="pair">{wrong:,} of {checked:,}</span>'
        f'<span class="more">{unchecked(comparison.files).total():,} unchecked events; '
        f"{comparison.violations:,} broken timing rules</span></li>",
    ]
    return f'<ul class="headline" aria-label="Headline">{"".join(items)}</ul>'


def picture(drawn: Picture) -> str:
    """A figure: inline SVG with a text alternative, and its numbers in a table that opens."""
    svg = inline_svg(drawn).replace("<svg ", f'<svg role="img" aria-label="{escape(drawn.text)}" ', 1)
    across = " across" if drawn.width == WHOLE else ""
    return (
        f'<figure class="picture{across}" id="figure-{drawn.name}"><h3>{escape(drawn.title)}</h3>'
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(drawn.title)}">{svg}</div>'
        f"<figcaption>{escape(drawn.text)}</figcaption>"
        f"<details><summary>Numbers of this figure</summary>{table(drawn.numbers, drawn.title)}</details>"
        "</figure>"
    )


def numbers(comparison: Comparison) -> str:
    """The tables of the terminal, whole."""
    return rich_table(comparison_table(comparison), "Comparison", titled=False) + "".join(
        rich_table(found, str(found.title), titled=True) for found in ledger_tables(comparison)
    )


def _ns(sample: Statistics, name: str, clock: float) -> str:
    value = getattr(sample, name)
    return "-" if value is None else f"{number(value * clock)} ns"
