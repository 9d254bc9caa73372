"""The ledger of a comparison as tables for people: layers, parts of the time, bytes, effect and energy."""

from __future__ import annotations

from rich.table import Table

from ..compare import Comparison
from ..energy import NOT_COUNTED, Range, energies
from ..ledger import PARTS
from .numbers import number, times

__all__ = ["bank_table", "effect_table", "layer_table", "ledger_tables", "parts_table", "spending_table"]


def ledger_tables(comparison: Comparison) -> list[Table]:
    """Every table of the ledger, in the order in which they are read."""
    return [
        layer_table(comparison),
        parts_table(comparison),
        effect_table(comparison),
        spending_table(comparison),
        bank_table(comparison),
    ]


def layer_table(comparison: Comparison) -> Table:
    """Every layer of both places: its statistics, and what refresh caused of its mean."""
    clock = comparison.clock_ns
    table = _table(
        f"layers in ns, 1 cycle = {clock:g} ns; refresh: what it caused, on average",
        ("layer", "place"),
        ("count", "min", "mean", "p50", "p99", "p99.9", "max", "refresh"),
    )
    near = {layer.name: layer for layer in comparison.near.layers}
    for far in comparison.far.layers:
        for name, layer in (("near", near.get(far.name)), ("far", far)):
            if layer is None:
                table.add_row(far.name, name, *("-" for _ in table.columns[2:]))
                continue
            cycles, refresh = layer.cycles.scaled(clock), layer.refresh.scaled(clock)
            values = [cycles.min, cycles.mean, cycles.p50, cycles.p99, cycles.p999, cycles.max]
            if layer.name == "replay":
                # One sample: every statistic is its mean.
                values = [None, cycles.mean, *(None for _ in values[2:])]
            table.add_row(
                layer.name if name == "near" else "",
                name,
                f"{cycles.count:,}",
                *map(number, (*values, refresh.mean)),
            )
        table.add_section()
    return table


def parts_table(comparison: Comparison) -> Table:
    """Where the mean walk and the mean loop go; the parts add up to the whole."""
    clock = comparison.clock_ns
    columns = {
        "walk, near": comparison.near.walk_time.means(),
        "walk, far": comparison.far.walk_time.means(),
        "loop, near": comparison.near.loop_time.means(),
        "loop, far": comparison.far.loop_time.means(),
    }
    table = _table("where the time goes, mean ns", ("part",), tuple(columns))
    for part in PARTS:
        values = [means[part] for means in columns.values()]
        if any(values):
            table.add_row(part, *(number(value and value * clock) for value in values))
    table.add_section()
    table.add_row(
        "sum",
        *(
            number(figures.mean and figures.mean * clock)
            for figures in (
                comparison.near.walk,
                comparison.far.walk,
                comparison.near.loop,
                comparison.far.loop,
            )
        ),
    )
    return table


def effect_table(comparison: Comparison) -> Table:
    """What near memory changes: locally, and end to end beside it."""
    found = comparison.effect
    table = _table(
        "local and end to end: how many times as long the other takes",
        ("variant", "over"),
        ("loop (local)", "walk (end to end)", "replay (end to end)"),
    )
    table.add_row(
        found.variant, found.over, *(times(value) for value in (found.loop, found.walk, found.replay))
    )
    return table


def spending_table(comparison: Comparison) -> Table:
    """Bytes over the link, and energy with its error bars."""
    near, far, solved = comparison.near, comparison.far, comparison.solved
    table = _table("bytes over the link, and energy: typical (low to high)", ("figure", ""), ("near", "far"))
    for label, of in (
        ("walks, up", "walk_up"),
        ("walks, down", "walk_down"),
        ("bulk, up", "bulk_up"),
        ("bulk, down", "bulk_down"),
    ):
        table.add_row("bytes", label, *(f"{getattr(place.link_bytes, of):,}" for place in (near, far)))
    if near.port_bytes is not None:
        table.add_row("bytes", "through the near port", f"{near.port_bytes.total:,}", "")
    table.add_row(
        "bytes",
        "a solved problem",
        *(number(place.link_bytes.total / solved if solved else None) for place in (near, far)),
    )
    table.add_section()
    spent = [comparison.energy[name] for name in ("near", "far")]
    table.add_row("energy", "a walk, nJ", *(_energy(energy and energy.walk, 1e-3) for energy in spent))
    table.add_row(
        "energy",
        "a solved problem, µJ",
        *(_energy(energy and energy.solved_problem, 1e-6) for energy in spent),
    )
    known = energies()
    link = known.links.get(comparison.far_path.path.name)
    named = [known.activate, known.array, *([] if link is None else [link])]
    inputs = "\n".join(
        f"{row.name}: {row.energy.typical:g} pJ ({row.energy.low:g} to {row.energy.high:g}); {row.source}"
        for row in named
    )
    unknown = "" if link else f"\nno energy is published here of the path {comparison.far_path.path.name}"
    table.caption = f"energy inputs, an activate or a bit:\n{inputs}{unknown}\nnot counted: {NOT_COUNTED}"
    table.caption_justify = "left"
    return table


def bank_table(comparison: Comparison) -> Table:
    """What the banks of each channel did, whoever asked: sums by pseudo channel, and the busiest bank."""
    counts = ("reads", "writes", "hits", "closed", "conflicts", "refreshes")
    table = _table(
        "banks: accesses of all requesters, and refreshes, by channel.pseudo channel",
        ("", "place"),
        (*counts, "busiest bank"),
    )
    places = {"near": comparison.near.banks, "far": comparison.far.banks}
    seen = {name: banks for name, banks in places.items() if banks is not None}
    first = next(iter(seen))
    channels, pseudo_channels, _ = seen[first].reads.shape
    for channel in range(channels):
        for unit in range(pseudo_channels):
            for name, banks in seen.items():
                used = (banks.reads + banks.writes)[channel, unit]
                busiest = f"{used.argmax()}: {100 * used.max() / used.sum():.1f} %" if used.any() else "-"
                table.add_row(
                    f"{channel}.{unit}" if name == first else "",
                    name,
                    *(f"{getattr(banks, count)[channel, unit].sum():,}" for count in counts),
                    busiest,
                )
        table.add_section()
    return table


def _table(title: str, names: tuple[str, ...], columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _energy(energy: Range | None, factor: float) -> str:
    if energy is None:
        return "-"
    low, typical, high = (number(value * factor) for value in (energy.low, energy.typical, energy.high))
    return f"{typical} ({low} to {high})"
