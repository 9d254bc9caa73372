"""The page of figures: every bench as Markdown tables, each figure beside its bound and its target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hdl.memory.timing import TimingPreset

from .design import Figure, figures_table
from .measures import Measure, measures_table
from .walker.parts_table import parts_table, without_parts

__all__ = ["figures_page"]


def figures_page(
    design: Sequence[Figure],
    memory: Sequence[tuple[TimingPreset, Sequence[Measure]]],
    walker: tuple[TimingPreset, Sequence[Measure]],
    simulation: Sequence[Measure],
    fpga: Sequence[Measure],
) -> str:
    """The Markdown page of figures: of the whole design, the memory by preset, the walkers, and the speed
    of the simulators and the FPGA on the walkers' memory.
    """
    lines = ["# Figures", "", "## The whole design", "", *_table(figures_table(design))]
    shown = (walker[0], without_parts(walker[1]))
    parts_of_page = (
        *(("The memory", each) for each in memory),
        ("The walkers", shown),
        ("The simulators", (walker[0], simulation)),
        ("The FPGA", (walker[0], fpga)),
    )
    for title, (timing, measures) in parts_of_page:
        lines += [
            "",
            f"## {title}: {timing.name}",
            "",
            f"One channel, 1 cycle = {timing.clock_ns:g} ns, peak {timing.peak_bandwidth:.4g} GB/s.",
            "",
            *_table(measures_table(timing, measures)),
        ]
    parts = parts_table(walker[1])
    if len(parts) > 1:
        lines += ["", "Where the cycles of a near loop go:", "", *_table(parts)]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    heading, *body = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    yield f"| {' | '.join(heading)} |"
    yield f"|{'---|' * len(heading)}"
    for row in body:
        yield f"| {' | '.join(row)} |"
