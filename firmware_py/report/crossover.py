"""The crossover as tables for people and as a JSON document, schema `clew.crossover/1`."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.trace.errors import printable

from ..crossover import Crossover, Point, Variant, help_effect, near_effect, near_rate
from ..effect import Effect
from ..far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, size_text
from .numbers import times

__all__ = ["SCHEMA", "crossover_document", "print_crossover"]

#: The `schema` of the document.
SCHEMA = "clew.crossover/1"

#: What the article behind the project claims of cache hits; an input to compare with.
_CLAIM = {"straight_generation": 0.85, "self_checking": 0.55}


def crossover_document(result: Crossover) -> dict[str, Any]:
    """The crossover as plain JSON types; what is under `inputs` was given, all else was measured."""
    timing = result.config.memory.timing
    path = result.far.path.path
    return {
        "schema": SCHEMA,
        "memory": timing.name,
        "clock_ns": timing.clock_ns,
        "contexts": result.config.walker.contexts,
        "inputs": {
            "far": {"preset": path.name, "published_ns": path.published_ns, "source": path.source},
            "help": {row.name: _inputs(row) for row in result.variants if not row.near},
            "claimed_hit_rate": _CLAIM,
        },
        "searches": [
            {
                "concurrent": number,
                "replayed": result.searches[number],
                "record_bytes": result.record_bytes[number],
            }
            for number in result.concurrent
        ],
        "points": [_point(result, point) for point in result.points],
        "hit_rates": [
            {
                "file": file,
                "concurrent": point.concurrent,
                "variant": point.variant,
                "reads": hits.reads,
                "hits": hits.hits,
                "hit_rate": hits.hit_rate,
            }
            for point in result.points
            for file, hits in zip(result.files, point.by_file or (), strict=False)
        ],
        "sentence": result.sentence,
        "failures": list(result.failures),
    }


def _inputs(row: Variant) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if row.help.cache is not None:
        cache = row.help.cache
        found["cache"] = {
            "preset": cache.name,
            "bytes": cache.size,
            "hit_ns": cache.hit_ns,
            "beside": cache.beside,
            "source": cache.source,
        }
    if row.help.stack:
        found["stack"] = {"cycles_per_level": STACK_LEVEL_CYCLES}
    if row.help.stream:
        found["stream"] = {"cycles_per_result": STREAM_RESULT_CYCLES}
    return found


def _point(result: Crossover, point: Point) -> dict[str, Any]:
    near = near_effect(result, point)
    return {
        "concurrent": point.concurrent,
        "variant": point.variant,
        "walks": point.walks,
        "walk_ns": {"mean": point.mean_ns, "p50": point.p50_ns, "p99": point.p99_ns},
        "walks_per_second": point.walks_per_second,
        "reads_per_walk": point.reads_per_walk,
        "hit_rate": point.hit_rate,
        "answered_by_help": point.helped,
        "loop_mean_ns": point.loop_mean_ns,
        "replay_ns": point.replay_ns,
        "speedup_of_near": {
            "loop_mean": near.loop,
            "walk_mean": near.walk,
            "replay": near.replay,
            "walks_per_second": near_rate(result, point),
        },
        "speedup_of_help": None if point.near else _changes(help_effect(result, point)),
    }


def _changes(effect: Effect) -> dict[str, float | None]:
    """Local and end to end, over the bare far place."""
    return {"loop_mean": effect.loop, "walk_mean": effect.walk, "replay": effect.replay}


def print_crossover(result: Crossover, target: Console) -> None:
    """The tables, the sentence, and a line for each fault."""
    target.print(_points(result))
    target.print(_effects(result))
    hits = _hits(result)
    if hits is not None:
        target.print(hits)
        rates = [
            found.hit_rate
            for point in result.points
            for found in point.by_file or ()
            if found.hit_rate is not None
        ]
        if rates:
            target.print(
                Text(
                    f"Hits, measured: {100 * min(rates):.1f} % to {100 * max(rates):.1f} % of a file's "
                    f"reads; the article claims {100 * _CLAIM['straight_generation']:.0f} % for straight "
                    f"generation and under {100 * _CLAIM['self_checking']:.0f} % for self-checking."
                )
            )
    target.print(Text(result.sentence))
    for failure in result.failures:
        target.print(Text(printable(failure), style="bold red"), soft_wrap=True)


def _points(result: Crossover) -> Table:
    timing, path = result.config.memory.timing, result.far.path.path
    lines = [
        f"{timing.name}, 1 channel, all-bank refresh, 1 cycle = {timing.clock_ns:g} ns, "
        f"{result.config.walker.contexts} contexts a walker; measured",
        f"far: {path.name}, {path.published_ns:g} ns a dependent read, row {path.row_state} "
        f"({path.source}); input",
    ]
    for row in result.variants:
        cache = row.help.cache
        if cache is not None and not row.help.stack:
            lines.append(
                f"{row.name}: {size_text(cache.size)}, a hit {cache.hit_ns:g} ns ({cache.source}); input"
            )
    lines.append(
        f"stack: {STACK_LEVEL_CYCLES} cycles a level; stream: the bulk channel (measured) and "
        f"{STREAM_RESULT_CYCLES} cycle a result; input"
    )
    table = Table(title="\n".join(lines), title_justify="left")
    table.add_column("searches", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
    for name in ("walk, mean ns", "p50", "p99", "million/s", "hits", "near: rate"):
        table.add_column(name, justify="right")
    for number in result.concurrent:
        first = f"{number:,} ({_rounded(result.record_bytes[number])})"
        for row in result.variants:
            point = result.point(number, row.name)
            rate = near_rate(result, point)
            table.add_row(
                first,
                row.name,
                *(_number(value) for value in (point.mean_ns, point.p50_ns, point.p99_ns)),
                "-" if point.walks_per_second is None else f"{point.walks_per_second / 1e6:,.2f}",
                "" if point.hit_rate is None else f"{100 * point.hit_rate:.1f} %",
                "" if row.near else times(rate),
            )
            first = ""
        table.add_section()
    return table


def _effects(result: Crossover) -> Table:
    """Every variant's local effect beside its effect end to end."""
    table = Table(
        title=(
            "how many times as long: local is the mean loop, end to end are the mean walk and the replay\n"
            "near: of this place over near; help: of the bare far place over this one"
        ),
        title_justify="left",
    )
    table.add_column("searches", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
    for name in ("near: loop", "walk", "replay", "help: loop", "walk", "replay"):
        table.add_column(name, justify="right", no_wrap=True)
    for number in result.concurrent:
        first = f"{number:,}"
        for row in result.variants:
            if row.near:
                continue
            point = result.point(number, row.name)
            near, help_ = near_effect(result, point), help_effect(result, point)
            of_help = (help_.loop, help_.walk, help_.replay) if row.name != help_.over else ()
            table.add_row(
                first,
                row.name,
                *(times(value) for value in (near.loop, near.walk, near.replay, *of_help)),
            )
            first = ""
        table.add_section()
    return table


def _hits(result: Crossover) -> Table | None:
    columns = [point for point in result.points if point.by_file is not None and not point.helped]
    if not columns:
        return None
    table = Table(
        title="reads of walks that hit, by trace file (measured; all files share the cache)",
        title_justify="left",
    )
    table.add_column("file")
    table.add_column("cache", no_wrap=True)
    numbers = sorted({point.concurrent for point in columns})
    for number in numbers:
        table.add_column(f"{number:,} searches", justify="right")
    names = list(dict.fromkeys(point.variant for point in columns))
    for index, file in enumerate(result.files):
        for name in names:
            table.add_row(
                printable(file.rsplit("/", 1)[-1]) if name == names[0] else "",
                name.removeprefix("far cache="),
                *(_rate(result.point(number, name), index) for number in numbers),
            )
        table.add_section()
    return table


def _rate(point: Point, file: int) -> str:
    rate = point.by_file[file].hit_rate if point.by_file is not None else None
    return "-" if rate is None else f"{100 * rate:.1f} %"


def _rounded(size: int) -> str:
    """A number of bytes, rounded, in the unit that suits it."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
