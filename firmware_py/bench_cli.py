"""The command line's part on figures: `clew bench design`, `memory`, `walker`, `simulation`, `fpga` and
`all`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Files = Annotated[list[Path] | None, typer.Argument(help="Trace files that must replay without a fault.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the figures here.")]


@app.command()
def design(
    files: Files = None,
    json: Json = None,
) -> None:
    """Measure what the whole design must reach. Exit status 1: a figure was missed."""
    from .bench.design import figures, figures_document, print_figures
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console

    if json is not None:
        require_output(json, inputs=files or [])
    _require_traces(files or [])
    with Reporter() as reporter:
        measured = figures(files or [], announce=reporter.announce)
    if json is not None:
        write_document(json, figures_document(measured))
    print_figures(measured, console())
    if not all(figure.reached for figure in measured):
        raise typer.Exit(1)


@app.command()
def memory(
    preset: Annotated[str, typer.Option(help="Memory preset: a name, or a file FILE.toml.")] = "hbm2_2000",
    json: Json = None,
) -> None:
    """Measure what one channel's memory reaches, beside its bound. Exit status 1: a target was missed."""
    from .bench.measures import measures_document, missed, print_measures
    from .bench.memory import memory_measures
    from .design import design_for
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console

    config = design_for(preset)
    if json is not None:
        require_output(json)
    with Reporter() as reporter:
        measured = memory_measures(config, announce=reporter.announce, progress=reporter.advance)
    if json is not None:
        write_document(json, measures_document(config.memory.timing, measured))
    print_measures(config.memory.timing, measured, console())
    if missed(measured):
        raise typer.Exit(1)


@app.command()
def walker(
    files: Annotated[list[Path] | None, typer.Argument(help="Trace files to measure walks on.")] = None,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", help="What to measure; else every topic.")
    ] = None,
    json: Json = None,
) -> None:
    """Measure what the walkers reach on hbm2_2000, beside bounds. Exit status 1: a target was missed."""
    from .bench.measures import missed, print_measures
    from .bench.walker import MEMORY, require_topics, walker_document, walker_measures
    from .bench.walker.parts_table import print_parts, without_parts
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console

    chosen = require_topics(topics or [])
    if json is not None:
        require_output(json, inputs=files or [])
    _require_traces(files or [])
    with Reporter() as reporter:
        measured = walker_measures(
            files=files or [], topics=chosen, announce=reporter.announce, progress=reporter.advance
        )
    if json is not None:
        write_document(json, walker_document(measured))
    print_measures(MEMORY, without_parts(measured), console())
    print_parts(measured, console())
    if missed(measured):
        raise typer.Exit(1)


@app.command()
def simulation(json: Json = None) -> None:
    """Measure how fast this machine simulates. Exit status 1: a target was missed."""
    from .bench.measures import missed, print_measures
    from .bench.simulation import simulation_document, simulation_measures
    from .bench.walker import MEMORY
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console

    if json is not None:
        require_output(json)
    with Reporter() as reporter:
        measured = simulation_measures(announce=reporter.announce, progress=reporter.advance)
    if json is not None:
        write_document(json, simulation_document(measured))
    print_measures(MEMORY, measured, console())
    if missed(measured):
        raise typer.Exit(1)


@app.command()
def fpga(
    topics: Annotated[
        list[str] | None, typer.Option("--topic", help="What to measure; else every topic.")
    ] = None,
    json: Json = None,
) -> None:
    """Measure the design on an FPGA and behind a serial line. Exit status 1: a target was missed."""
    from .bench.fpga import fpga_document, fpga_measures, require_topics
    from .bench.measures import missed, print_measures
    from .bench.walker import MEMORY
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.table import console

    chosen = require_topics(topics or [])
    if json is not None:
        require_output(json)
    with Reporter() as reporter:
        measured = fpga_measures(topics=chosen, announce=reporter.announce, progress=reporter.advance)
    if json is not None:
        write_document(json, fpga_document(measured))
    print_measures(MEMORY, measured, console())
    if missed(measured):
        raise typer.Exit(1)


@app.command("all")
def all_(
    out: Annotated[Path, typer.Option("-o", "--out", help="The Markdown page to write.")],
    files: Files = None,
    presets: Annotated[
        list[str] | None, typer.Option("--preset", help="Memory presets; else those that have targets.")
    ] = None,
) -> None:
    """Run every bench and write one page of figures. Exit status 1: a target was missed."""
    from .bench.design import figures, print_figures
    from .bench.fpga import fpga_measures
    from .bench.measures import missed, print_measures
    from .bench.memory import memory_measures
    from .bench.page import figures_page
    from .bench.simulation import simulation_measures
    from .bench.targets import PRESETS_WITH_TARGETS
    from .bench.walker import MEMORY, walker_measures
    from .bench.walker.parts_table import print_parts, without_parts
    from .design import design_for
    from .progress import Reporter
    from .report.document import require_output, write_text
    from .report.table import console

    configs = [design_for(preset) for preset in presets or PRESETS_WITH_TARGETS]
    out.parent.mkdir(parents=True, exist_ok=True)
    require_output(out, inputs=files or [])
    _require_traces(files or [])
    with Reporter() as reporter:
        design = figures(files or [], announce=reporter.announce)
        memory = [
            (
                config.memory.timing,
                memory_measures(config, announce=reporter.announce, progress=reporter.advance),
            )
            for config in configs
        ]
        walker = walker_measures(files=files or [], announce=reporter.announce, progress=reporter.advance)
        simulation = simulation_measures(announce=reporter.announce, progress=reporter.advance)
        fpga = fpga_measures(announce=reporter.announce, progress=reporter.advance)
    write_text(out, figures_page(design, memory, (MEMORY, walker), simulation, fpga))
    print_figures(design, console())
    for timing, measures in (*memory, (MEMORY, without_parts(walker)), (MEMORY, simulation), (MEMORY, fpga)):
        print_measures(timing, measures, console())
    print_parts(walker, console())
    if (
        not all(figure.reached for figure in design)
        or any(missed(measures) for _, measures in memory)
        or missed([*walker, *simulation, *fpga])
    ):
        raise typer.Exit(1)


def _require_traces(files: Sequence[Path]) -> None:
    """Read the files once, before anything takes long. Raises TraceError and OSError."""
    from sim.trace.convert import summarise

    for file in files:
        summarise(file)
