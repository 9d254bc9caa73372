"""Where every preset of a comparison comes from, as a section of the page."""

from __future__ import annotations

from collections.abc import Iterable

from hdl.memory.timing import TimingPreset

from ...axi_port import axi_rows
from ...compare import Comparison
from ...energy import NOT_COUNTED, energies
from ...far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, size_text
from ...paths import FarPath
from ..figures.picture import Numbers
from .tables import card

__all__ = ["sources"]


def sources(comparison: Comparison) -> str:
    """Where every preset's values come from: the paths, the help of the far place, the memory's timing."""
    rows = [_path("far path", comparison.far_path)]
    if not comparison.near.controlled:
        rows += [
            (f"near port, row {state}", row.name, f"{row.published_ns:g} ns from address to data", row.source)
            for state, row in axi_rows().items()
        ]
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
        card("Paths and help: inputs of the comparison", paths)
        + card(f"Energy; not counted: {NOT_COUNTED}", energy)
        + card(
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
