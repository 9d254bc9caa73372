"""The comparison as one table for people: near and far side by side."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hdl.config import MemoryConfig
from hdl.layouts import RefreshMode
from sim.trace.errors import printable

from ..axi_port import AXI_PORT, NOT_SEEN, axi_rows
from ..compare import Comparison, F, ReplayComparison, Tally
from ..effect import ratio
from ..far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, size_text
from ..ledger import RowShares, Statistics
from ..paths import FarPath
from .document import ROWS, by_check, by_source, unchecked
from .ledger_table import ledger_tables
from .numbers import number, times

__all__ = ["PIPE_WIDTH", "comparison_table", "console", "print_comparison"]

#: Width of a table that goes into a pipe or a file.
PIPE_WIDTH = 110

_STATISTICS = (
    ("min", "min"),
    ("mean", "mean"),
    ("p50", "p50"),
    ("p99", "p99"),
    ("p999", "p99.9"),
    ("max", "max"),
)


def console(*, stderr: bool = False) -> Console:
    """A console that knows whether it is a terminal: in a pipe no colours and a fixed width."""
    target = Console(stderr=stderr)
    if target.is_terminal:
        return target
    return Console(stderr=stderr, width=PIPE_WIDTH, no_color=True, highlight=False)


def print_comparison(comparison: Comparison, target: Console) -> None:
    """The tables, and a line for each fault."""
    for table in (comparison_table(comparison), *ledger_tables(comparison)):
        target.print(table)
    for failure in comparison.failures:
        target.print(Text(printable(failure), style="bold red"), soft_wrap=True)


class _Rows:
    """Adds rows to a table; the name of a figure is shown in its first row only."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._figure = ""

    def add(self, figure: str, what: str, near: str, far: str) -> None:
        self._table.add_row("" if figure == self._figure else figure, what, near, far)
        self._figure = figure

    def section(self) -> None:
        self._table.add_section()


def comparison_table(comparison: ReplayComparison[F]) -> Table:
    """The table of a comparison, whatever it ran on; what has no source there is left out."""
    near, far, clock = comparison.near, comparison.far, comparison.clock_ns
    path = comparison.far_path
    count = comparison.config.memory.channels
    channels = "1 channel" if count == 1 else f"{count} channels ({comparison.placement})"
    ecc = " with ECC" if comparison.config.controller.ecc else ""
    refresh = comparison.refresh.name.lower().replace("_", "-")
    refresh = "no refresh" if comparison.refresh is RefreshMode.NONE else f"{refresh} refresh"
    usual = comparison.config.memory.address_map == MemoryConfig.address_map
    entries = "" if usual else f", address map {','.join(comparison.config.memory.address_map)}"
    stages, slow = comparison.config.walker.execute_stages, comparison.config.clock_ratio
    logic = "" if slow == 1 else f", logic at the memory at 1/{slow} of the clock"
    logic += "" if stages == 1 else f", {stages} execute stages"
    searches = "one search" if comparison.concurrent == 1 else f"{comparison.concurrent} searches"
    how = "" if comparison.climbing == "climb" else f", {comparison.climbing}"
    how += "" if comparison.layout == "creation" else f", layout {comparison.layout}"
    table = Table(
        title=(
            f"{comparison.config.memory.timing.name}{ecc}, {channels}, {refresh}{entries}{logic}, "
            f"1 cycle = {clock:g} ns, {searches} at a time{how}\n"
            f"{_path('far', path)}{_near(comparison)}{_help(comparison)}"
        ),
        title_justify="left",
        caption=_caption(comparison),
        caption_justify="left",
    )
    table.add_column("figure")
    table.add_column("")
    for place in ("near", "far"):
        table.add_column(place, justify="right", no_wrap=True)

    rows = _Rows(table)
    _latency(rows, "walk latency", near.walk, far.walk, clock)
    for label, name in _STATISTICS:
        rows.add(
            "reads per walk",
            name,
            number(_value(near.reads_per_walk, label)),
            number(_value(far.reads_per_walk, label)),
        )
    rows.section()
    _latency(rows, "loop latency", near.loop, far.loop, clock)
    if near.rows is not None and far.rows is not None:
        rows.add("physical bound", "mean", _time(near.bound_mean, clock), _time(far.bound_mean, clock))
        rows.add("loop / bound", "", times(near.ratio_to_bound), times(far.ratio_to_bound))
        for name in ROWS:
            rows.add("row of a read", name, _share(near.rows, name), _share(far.rows, name))
    for name in near.counters:
        rows.add(
            "counted, all requesters", name.replace("_", " "), *(f"{p.counters[name]:,}" for p in (near, far))
        )
    if near.channel_reads is not None and far.channel_reads is not None and count > 1:
        rows.section()
        for channel, trees in enumerate(comparison.trees):
            what = f"channel {channel}, {trees:,} tree{'' if trees == 1 else 's'}"
            rows.add(
                "reads of walks",
                what,
                *(f"{reads[channel]:,}" for reads in (near.channel_reads, far.channel_reads)),
            )
    rows.section()
    _throughput(rows, comparison)
    rows.section()
    _verdicts(rows, comparison)
    rows.section()
    rows.add("speed-up of near", "walk, mean", times(ratio(far.walk.mean, near.walk.mean)), "")
    rows.add("speed-up of near", "walk, p50", times(ratio(far.walk.p50, near.walk.p50)), "")
    rows.add("speed-up of near", "loop, mean", times(ratio(far.loop.mean, near.loop.mean)), "")
    rows.add("speed-up of near", "isolated: an input", times(comparison.isolated_speedup), "")
    return table


def _caption(comparison: ReplayComparison[F]) -> str:
    """What the two places share, and what is not seen of the near one."""
    same = "near and far walk the same records"
    if not comparison.near_behind_axi:
        return f"{same} through the same controller; a walk crosses the link in both"
    return f"{same}; a walk crosses the link in both\nnot seen behind an AXI port: {NOT_SEEN}"


def _path(place: str, path: FarPath) -> str:
    """A published path: an input."""
    published = path.path
    return (
        f"{place}: {published.name}, {published.published_ns:g} ns a dependent read, "
        f"row {published.row_state} ({published.source})"
    )


def _near(comparison: ReplayComparison[F]) -> str:
    """A line for a near walker behind AXI ports or a host controller's."""
    if comparison.near_behind_axi:
        rows = axi_rows()
        times = ", ".join(f"{row.published_ns:g} ns row {state}" for state, row in rows.items())
        return (
            f"\nnear: {AXI_PORT}, from address to data {times} ({rows['hit'].source}); the rest is measured"
        )
    if comparison.near_path is None:
        return ""
    return f"\n{_path('near', comparison.near_path)}; launch and verdict cross the far path"


def _help(comparison: ReplayComparison[F]) -> str:
    """A line for each help of the far place: inputs all."""
    help_ = comparison.far_help
    lines: list[str] = []
    if help_.cache is not None:
        cache = help_.cache
        beside = "" if cache.beside == comparison.far_path.path.name else f", published beside {cache.beside}"
        lines.append(
            f"far help: cache {cache.label}, {size_text(cache.size)}, a hit {cache.hit_ns:g} ns{beside} "
            f"({cache.source})"
        )
    if help_.stack:
        lines.append(
            f"far help: stack, {STACK_LEVEL_CYCLES} cycles on chip for each level looked at "
            "(stated, not measured)"
        )
    if help_.stream:
        lines.append(
            f"far help: stream, lists through the bulk channel (measured) and {STREAM_RESULT_CYCLES} cycle "
            "on chip for each result (stated)"
        )
    return "".join(f"\n{line}" for line in lines)


def _throughput(rows: _Rows, comparison: ReplayComparison[F]) -> None:
    """Walks per second, and what the help of the far place did."""
    near, far = comparison.near, comparison.far
    how = "measured, help as stated" if comparison.far_help.plans else "measured"
    rows.add("walks per second", how, *(_rate(place.walks_per_second) for place in (near, far)))
    if far.cache is not None and far.cache.hit_rate is not None:
        rows.add("cache", "reads that hit", "", f"{100 * far.cache.hit_rate:.1f} %")
    for name in comparison.far_help.names:
        if name in ("stack", "stream"):
            share = f"{far.helped[name]:,} of {far.walk.count:,}"
            rows.add("answered by help", name, "", share)
    if comparison.repeated:
        text = f"{comparison.repeated:,}"
        rows.add("searches", "repeated traces", text, text)


def _latency(rows: _Rows, figure: str, near: Statistics, far: Statistics, clock: float) -> None:
    rows.add(figure, "count", f"{near.count:,}", f"{far.count:,}")
    for label, name in _STATISTICS:
        rows.add(figure, name, _time(_value(near, label), clock), _time(_value(far, label), clock))


def _verdicts(rows: _Rows, comparison: ReplayComparison[F]) -> None:
    """Verdicts hold for both places: one is wrong when it is wrong in either."""
    for check, tally in by_check(comparison.files).items():
        rows.add("verdicts wrong", check, *_both(tally))
    for source, tally in by_source(comparison.files).items():
        rows.add("verdicts wrong", f"untried {source}", *_both(tally))
    reasons = unchecked(comparison.files)
    rows.add("unchecked events", "all", f"{reasons.total():,}", f"{reasons.total():,}")
    for reason, count in reasons.most_common():
        rows.add("unchecked events", printable(reason), f"{count:,}", f"{count:,}")
    near, far = comparison.near, comparison.far
    controlled = ", ".join(control.check for control in comparison.controls)
    found = "found wrong" if controlled else "-"
    rows.add("negative control", controlled or "no field decides", found, found)
    rows.add(
        "unlike the golden model",
        "walks",
        f"{len(near.run.not_golden):,}",
        f"{len(far.run.not_golden):,}",
    )
    if near.violations is not None and far.violations is not None:
        seen = "-" if comparison.near_behind_axi else f"{near.violations.total():,}"
        rows.add("protocol violations", "", seen, f"{far.violations.total():,}")
    if near.errors is not None and far.errors is not None:
        for name in ("corrected", "uncorrectable"):
            rows.add(
                "memory errors", name, f"{getattr(near.errors, name):,}", f"{getattr(far.errors, name):,}"
            )


def _both(tally: Tally) -> tuple[str, str]:
    text = f"{tally.wrong:,} of {tally.checked:,}"
    return text, text


def _value(statistics: Statistics, name: str) -> float | None:
    return getattr(statistics, name)


def _time(cycles: float | None, clock: float) -> str:
    if cycles is None:
        return "-"
    return f"{number(cycles)} cycles = {number(cycles * clock)} ns"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e6:,.2f} million"


def _share(rows: RowShares, name: str) -> str:
    share = rows.as_dict()[name]
    return "-" if share is None else f"{100 * share:.1f} %"
