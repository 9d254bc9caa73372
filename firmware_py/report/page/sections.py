"""The sections of the page as HTML; every text of a trace, a file name or a preset is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rich.table import Table

from hdl.memory.timing import TimingPreset

from ...compare import Comparison
from ...effect import ratio
from ...energy import NOT_COUNTED, energies
from ...far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, size_text
from ...ledger import Statistics
from ...paths import FarPath
from ..document import by_check, by_source, unchecked
from ..figures.latency import place_label
from ..figures.picture import WHOLE, Numbers, Picture, inline_svg
from ..ledger_table import ledger_tables
from ..numbers import number
from ..table import comparison_table

__all__ = [
    "failures",
    "heading",
    "headline",
    "numbers",
    "picture",
    "setting",
    "sources",
    "verdicts",
]

#: What each badge of a verdict says of the search.
_BADGES = {
    "declared": (
        "derived",
        "derived: declared",
        "The search itself said how many children were left to try.",
    ),
    "recomputed": (
        "derived",
        "derived: recomputed",
        "The search's own rule, applied again, gives the count.",
    ),
    "lookahead": (
        "lookahead",
        "look-ahead",
        "Children that the trace records later were counted: a right climb tests the hardware, not the "
        "search.",
    ),
}


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
        f"<details><summary>Numbers of this figure</summary>{_table(drawn.numbers, drawn.title)}</details>"
        "</figure>"
    )


def verdicts(comparison: Comparison) -> str:
    """Verdicts by kind and by what they rest on, what nothing checks, the negative controls, the files."""
    files = comparison.files
    kinds = Numbers(
        header=("kind", "checked", "wrong"),
        rows=[(check, f"{tally.checked:,}", f"{tally.wrong:,}") for check, tally in by_check(files).items()],
    )
    parts = [_card("Verdicts by kind of walk", kinds)]
    sources_found = by_source(files)
    if sources_found:
        rows = "".join(
            f'<tr><td><span class="badge {_BADGES[source][0]}">{_BADGES[source][1]}</span></td>'
            f'<td class="number">{tally.checked:,}</td><td class="number">{tally.wrong:,}</td>'
            f'<td class="quoted">{_BADGES[source][2]}</td></tr>'
            for source, tally in sources_found.items()
        )
        parts.append(
            "<h3>What the counts that decide a climb rest on</h3>"
            '<div class="card"><div class="wide" tabindex="0" role="group" aria-label="Climbs by source">'
            "<table>"
            '<thead><tr><th scope="col">badge</th><th scope="col" class="number">checked</th>'
            '<th scope="col" class="number">wrong</th><th scope="col">meaning</th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div></div>"
        )
    reasons = unchecked(files)
    if reasons:
        rows_of = [(reason, f"{count:,}") for reason, count in reasons.most_common()]
        parts.append(
            _card(
                "Events that nothing in the trace can check",
                Numbers(header=("reason", "events"), rows=rows_of),
            )
        )
    controlled = ", ".join(control.check for control in comparison.controls)
    parts.append(
        f"<p>Negative control: a flipped bit was found out for {escape(controlled)}, near and far.</p>"
        if controlled
        else "<p>Negative control: no field of these traces decides a verdict.</p>"
    )
    parts.append(
        _card(
            "By file",
            Numbers(
                header=("file", "format", "searches", "nodes", "walks", "checked", "wrong"),
                rows=[
                    (
                        file.file,
                        file.format,
                        f"{file.problems:,}",
                        f"{file.nodes:,}",
                        f"{file.walks:,}",
                        f"{file.verdicts.checked:,}",
                        f"{file.verdicts.wrong:,}",
                    )
                    for file in files
                ],
            ),
        )
    )
    return "".join(parts)


def numbers(comparison: Comparison) -> str:
    """The tables of the terminal, whole."""
    return _rich(comparison_table(comparison), "Comparison", titled=False) + "".join(
        _rich(table, str(table.title), titled=True) for table in ledger_tables(comparison)
    )


def _rich(table: Table, name: str, *, titled: bool) -> str:
    """A table of the terminal as one of the page."""
    columns = [list(column.cells) for column in table.columns]
    right = [column.justify == "right" for column in table.columns]
    heads = "".join(
        f'<th scope="col"{_right(at)}>{escape(str(column.header))}</th>'
        for column, at in zip(table.columns, right, strict=True)
    )
    starts = [False, *(row.end_section for row in table.rows)]
    rows = "".join(
        ('<tr class="section-start">' if start else "<tr>")
        + "".join(f"<td{_right(at)}>{escape(str(cell))}</td>" for cell, at in zip(cells, right, strict=True))
        + "</tr>"
        for start, cells in zip(starts, zip(*columns, strict=True), strict=False)
    )
    return (
        (f"<h3>{escape(name)}</h3>" if titled else "")
        + f'<div class="card"><div class="wide" tabindex="0" role="group" aria-label="{escape(name)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        + (f'<p class="note setting">{escape(str(table.caption))}</p>' if table.caption else "")
        + "</div>"
    )


def sources(comparison: Comparison) -> str:
    """Where every preset's values come from: the paths, the help of the far place, the memory's timing."""
    rows = [_path("far path", comparison.far_path)]
    if comparison.near_path is not None:
        rows.append(_path("near port", comparison.near_path))
    help_ = comparison.far_help
    if help_.cache is not None:
        cache = help_.cache
        what = f"a hit {cache.hit_ns:g} ns, {size_text(cache.size)}: {cache.what}"
        rows.append(("far cache", cache.name, what, cache.source))
    if help_.stack:
        rows.append(
            ("far stack", "", f"{STACK_LEVEL_CYCLES} cycles a level", "stated by this project, not measured")
        )
    if help_.stream:
        rows.append(
            (
                "far stream",
                "",
                f"{STREAM_RESULT_CYCLES} cycle a result",
                "stated by this project, not measured",
            )
        )
    paths = Numbers(header=("preset", "name", "value", "source"), rows=rows)
    timing = comparison.config.memory.timing
    energy = Numbers(
        header=("energy", "pJ an activate or a bit", "what", "source"), rows=list(_energies(comparison))
    )
    return (
        _card("Paths and help: inputs of the comparison", paths)
        + _card(f"Energy; not counted: {NOT_COUNTED}", energy)
        + _card(
            f"Timing of {timing.name}",
            Numbers(header=("parameter", "value", "source"), rows=list(_timing(timing))),
        )
    )


def _path(kind: str, path: FarPath) -> tuple[str, str, str, str]:
    published = path.path
    value = f"{published.published_ns:g} ns a dependent read, row {published.row_state}: {published.what}"
    return kind, published.name, value, published.source


def _energies(comparison: Comparison) -> Iterable[tuple[str, str, str, str]]:
    """The published energies that the comparison used."""
    known = energies()
    paths = [path for path in (comparison.far_path, comparison.near_path) if path is not None]
    links = {path.path.name: known.links.get(path.path.name) for path in paths}
    for name, row in (("", known.activate), ("", known.array), *links.items()):
        if row is None:
            yield "link", "-", f"nothing is published here of the path {name}", "-"
        else:
            low, typical, high = row.energy.low, row.energy.typical, row.energy.high
            yield row.name, f"{typical:g} ({low:g} to {high:g})", row.what, row.source


def _timing(timing: TimingPreset) -> Iterable[tuple[str, str, str]]:
    shown = {
        "tCK_ps": f"{1000 * timing.clock_ns:g} ps",
        "activate_slots": str(timing.activate_slots),
        "activate_lag": str(timing.activate_lag),
        "burst_cycles": str(timing.burst_cycles),
    }
    for name, source in timing.sources.items():
        known = getattr(timing.organisation, name, None)
        yield name, shown.get(name, "-" if known is None else f"{known:,}"), source
    for name, value in timing.values.items():
        yield name, f"{value.cycles} cycles", value.source


def _card(title: str, content: Numbers) -> str:
    return f'<h3>{escape(title)}</h3><div class="card">{_table(content, title)}</div>'


def _table(content: Numbers, title: str) -> str:
    """A table that scrolls in its own frame; a column of numbers alone is set to the right."""
    right = [
        bool(content.rows) and all(_is_number(row[index]) for row in content.rows)
        for index in range(len(content.header))
    ]
    heads = "".join(
        f'<th scope="col"{_right(at)}>{escape(head)}</th>'
        for head, at in zip(content.header, right, strict=True)
    )
    rows = "".join(f"<tr>{_cells(row, right)}</tr>" for row in content.rows)
    return (
        f'<div class="wide" tabindex="0" role="group" aria-label="{escape(title)}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(row: Sequence[str], right: Sequence[bool]) -> str:
    return "".join(
        f'<td class="number">{escape(cell)}</td>' if at else f'<td class="quoted">{escape(cell)}</td>'
        for cell, at in zip(row, right, strict=True)
    )


def _right(at: bool) -> str:
    return ' class="number"' if at else ""


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "0").isdigit()


def _ns(sample: Statistics, name: str, clock: float) -> str:
    value = getattr(sample, name)
    return "-" if value is None else f"{number(value * clock)} ns"
