"""The commands of `clew` and their options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdl.config import CONFIGS, MEMORY_ENDS

from .bench_cli import app as bench_app
from .board_cli import board, drive
from .errors import InputError
from .fpga_cli import fpga
from .options import (
    ClimbName,
    Concurrent,
    ConfigName,
    Far,
    Json,
    LayoutName,
    Near,
    PlacementName,
    Refresh,
    require_config,
)
from .program_cli import assemble, disassemble
from .sweep_cli import sweep
from .trace_cli import app as trace_app
from .worth_cli import worth

if TYPE_CHECKING:
    from hdl.config import DesignConfig

    from .report.outputs import Outputs
    from .settings import ReplaySettings

__all__ = ["app"]

app = typer.Typer(
    name="clew",
    help="A backtracking walker next to an HBM-like memory, in RTL, measured on reasoning traces.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(trace_app, name="trace", help="Import, describe and check traces.")
app.add_typer(bench_app, name="bench", help="Measure figures, each beside its target.")
app.command()(assemble)
app.command()(disassemble)
app.command()(worth)
app.command()(sweep)
app.command()(drive)
app.command()(board)
app.command()(fpga)

Memory = Annotated[str, typer.Option(help="Memory preset: a name, or a file FILE.toml.")]
FarHelpList = Annotated[
    str,
    typer.Option("--far-help", help="Help of the far place: cache=NAME[:SIZE], stack, stream; with commas."),
]
Channels = Annotated[int, typer.Option(help="Channels of the memory stack: 1, 2, 4, 8 or 16.")]
Ecc = Annotated[
    bool, typer.Option("--ecc", help="Correct memory errors (SECDED); a read takes a cycle more.")
]
Stages = Annotated[int, typer.Option(help="Execute stages of every walker: 1 to 6.")]
ClockRatio = Annotated[
    int,
    typer.Option(
        help="Command clock over the clock of walker, arbiter and front end at the memory: 1, 2 or 4."
    ),
]
AddressMapEntries = Annotated[
    str | None,
    typer.Option(
        "--address-map",
        help="Bits of an atom address from the lowest, with commas: fields, row[H:L], bank^row[1:0].",
    ),
]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write a page with figures, the search trees and a replay here.")
]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw it here: .png, .svg or .pdf.")]
Perfetto = Annotated[
    Path | None, typer.Option("--perfetto", help="Write walks and commands here, for ui.perfetto.dev.")
]
Commands = Annotated[Path | None, typer.Option("--commands", help="Write every memory command here, as CSV.")]
Waves = Annotated[
    Path | None,
    typer.Option("--waves", help="Record waveforms: NAME.vcd or NAME.fst into NAME.near... and NAME.far..."),
]
WavesCycles = Annotated[
    int, typer.Option("--waves-cycles", help="Cycles of batches that a waveform records in each place.")
]
#: Cycles that a waveform records if no other number is asked for: two refreshes of HBM2, 20 to 40 MB of VCD.
_WAVES_CYCLES = 10_000


@app.command()
def compare(
    files: Annotated[list[Path], typer.Argument(help="Trace files of any known kind.")],
    memory: Memory = "hbm2_2000",
    far: Far = "v100_hbm2",
    near: Near = "memory",
    far_help: FarHelpList = "",
    concurrent: Concurrent = 1,
    layout: LayoutName = "creation",
    program: ClimbName = "climb",
    channels: Channels = 1,
    placement: PlacementName = "round_robin",
    ecc: Ecc = False,
    refresh: Refresh = "all_bank",
    address_map: AddressMapEntries = None,
    stages: Stages = 1,
    clock_ratio: ClockRatio = 1,
    config: ConfigName = None,
    json: Json = None,
    html: Html = None,
    plot: Plot = None,
    perfetto: Perfetto = None,
    commands: Commands = None,
    waves: Waves = None,
    waves_cycles: WavesCycles = _WAVES_CYCLES,
) -> None:
    """Replay traces near and far and compare. Exit status 1: a verdict was wrong or a rule broken."""
    from .report.outputs import Outputs
    from .settings import DesignSettings, ReplaySettings

    outputs = Outputs(
        json=json,
        html=html,
        plot=plot,
        perfetto=perfetto,
        commands=commands,
        waves=waves,
        waves_cycles=waves_cycles,
    )
    outputs.require(inputs=files)
    require_config(config)
    design = DesignSettings(
        memory=memory,
        channels=channels,
        ecc=ecc,
        address_map=address_map,
        stages=stages,
        clock_ratio=clock_ratio,
    )
    if config is not None and design != DesignSettings():
        raise InputError(
            "--config is a whole design: expected none of --memory, --channels, --ecc, --address-map, "
            "--stages and --clock-ratio beside it"
        )
    _compare(
        lambda: files,
        design=design.config(concurrent=concurrent) if config is None else CONFIGS[config],
        replay=ReplaySettings(
            far=far,
            near=near,
            far_help=far_help,
            concurrent=concurrent,
            layout=layout,
            program=program,
            placement=placement,
            refresh=refresh,
        ),
        outputs=outputs,
    )


@app.command()
def crossover(
    files: Annotated[list[Path], typer.Argument(help="Trace files of any known kind.")],
    memory: Memory = "hbm2_2000",
    far: Far = "v100_hbm2",
    concurrent: Annotated[
        str, typer.Option(help="Numbers of searches at a time, 1 to 10,000, with commas.")
    ] = "1,16,64,1000",
    cache: Annotated[
        str, typer.Option(help="Caches of the far place: NAME or NAME:SIZE, with commas.")
    ] = "v100_l2:64KiB,v100_l2:1MiB,v100_l2",
    json: Json = None,
    plot: Plot = None,
) -> None:
    """Measure near, far and far with help over concurrency and cache. Exit status 1: a verdict was wrong."""
    from .compare import read_files
    from .crossover import crossover as run_crossover
    from .crossover import parse_concurrent, variants
    from .design import CONTEXTS_MAX, design_for
    from .image import CreationOrder
    from .machine import compiled_machine
    from .place import Place
    from .programs import replay_image
    from .progress import Reporter
    from .questions import require_questions
    from .report.crossover import crossover_document, print_crossover
    from .report.document import require_output, write_document
    from .report.figures.crossover import crossover_pictures
    from .report.figures.picture import measured_title, require_plot, write_pictures
    from .report.table import console

    numbers, rows = parse_concurrent(concurrent), variants(cache)
    config = design_for(memory, concurrent=CONTEXTS_MAX)
    for row in rows:
        Place.far(far, row.help.built_into(config), far_help=row.help)
    for path in (json, plot):
        if path is not None:
            require_output(path, inputs=files)
    if plot is not None:
        require_plot(plot)
    traces = read_files(files)
    require_questions(traces)
    with Reporter() as reporter:
        result = run_crossover(
            traces,
            config=config,
            far=far,
            concurrent=numbers,
            rows=rows,
            program=replay_image("climb"),
            layout=CreationOrder(),
            open_machine=compiled_machine,
            announce=reporter.announce,
            progress=reporter.advance,
        )
    if json is not None:
        write_document(json, crossover_document(result))
    if plot is not None:
        title = measured_title(config, result.far.path)
        write_pictures(plot, crossover_pictures(result), title=title)
    print_crossover(result, console())
    if result.failures:
        raise typer.Exit(1)


@app.command()
def demo(
    memory: Memory = "hbm2_2000",
    far: Far = "v100_hbm2",
    near: Near = "memory",
    far_help: FarHelpList = "",
    concurrent: Concurrent = 1,
    layout: LayoutName = "creation",
    channels: Channels = 1,
    placement: PlacementName = "round_robin",
    ecc: Ecc = False,
    refresh: Refresh = "all_bank",
    address_map: AddressMapEntries = None,
    stages: Stages = 1,
    clock_ratio: ClockRatio = 1,
    json: Json = None,
    html: Html = None,
    plot: Plot = None,
    perfetto: Perfetto = None,
    commands: Commands = None,
    waves: Waves = None,
    waves_cycles: WavesCycles = _WAVES_CYCLES,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the traces; else one beside the kept builds.")
    ] = None,
) -> None:
    """Run the project's own searches, then compare their traces."""
    from sim.trace.searches import demonstration_traces
    from sim.verilator import cache_folder

    from .report.outputs import Outputs
    from .settings import DesignSettings, ReplaySettings

    outputs = Outputs(
        json=json,
        html=html,
        plot=plot,
        perfetto=perfetto,
        commands=commands,
        waves=waves,
        waves_cycles=waves_cycles,
    )
    outputs.require()
    _compare(
        lambda: demonstration_traces(out or cache_folder() / "demo"),
        design=DesignSettings(
            memory=memory,
            channels=channels,
            ecc=ecc,
            address_map=address_map,
            stages=stages,
            clock_ratio=clock_ratio,
        ).config(concurrent=concurrent),
        replay=ReplaySettings(
            far=far,
            near=near,
            far_help=far_help,
            concurrent=concurrent,
            layout=layout,
            placement=placement,
            refresh=refresh,
        ),
        outputs=outputs,
    )


@app.command()
def verilog(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for clew.v and what goes with it.")],
    config: Annotated[str, typer.Option(help=f"One of {', '.join(CONFIGS)}.")] = "default",
    memory: Annotated[
        str,
        typer.Option(
            help="What the memory channels end with: model (controller and device), bus (the controller, "
            "its buses as ports) or axi4 (AXI4 managers)."
        ),
    ] = "model",
    channels: Annotated[
        int | None, typer.Option(help="Memory channels: 1, 2, 4, 8 or 16; else the configuration's.")
    ] = None,
) -> None:
    """Write the design as Verilog, with a JSON side-car that describes it, a file list and a FuseSoC core."""
    from hdl.package import write_design

    if config not in CONFIGS:
        raise InputError(f"unknown configuration {config!r}: expected one of {', '.join(CONFIGS)}")
    if memory not in MEMORY_ENDS:
        raise InputError(f"unknown memory end {memory!r}: expected one of {', '.join(MEMORY_ENDS)}")
    try:
        paths = write_design(config, out, end=memory, channels=channels)
    except ValueError as error:
        raise InputError(f"configuration {config!r}: {error}") from None
    for path in paths:
        typer.echo(path)


@app.command()
def registers(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File; else standard output.")] = None,
) -> None:
    """Write the register map as a Markdown page."""
    from hdl.registers import markdown

    _page(markdown(), out)


@app.command()
def instructions(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File; else standard output.")] = None,
) -> None:
    """Write the walker's instruction set as a Markdown page."""
    from hdl.walker.isa_page import markdown

    _page(markdown(), out)


@app.command()
def timing(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File; else standard output.")] = None,
) -> None:
    """Write the memory presets and their timing table as a Markdown page."""
    from hdl.memory.timing_page import markdown

    _page(markdown(), out)


def _compare(
    make_files: Callable[[], Sequence[Path]],
    *,
    design: DesignConfig,
    replay: ReplaySettings,
    outputs: Outputs,
) -> None:
    """`make_files` gives the trace files; it is called when every option is known to be good."""
    from .compare import read_files
    from .progress import Reporter
    from .questions import require_questions
    from .report.table import console, print_comparison

    replay.require_usable(design)
    traces = read_files(make_files())
    require_questions(traces)
    with Reporter() as reporter:
        comparison = replay.compare(
            traces,
            config=design,
            bare_far=outputs.html is not None or outputs.plot is not None,
            open_machine=outputs.open_machine,
            announce=reporter.announce,
            progress=reporter.advance,
        )
        outputs.write(comparison, announce=reporter.announce)
    print_comparison(comparison, console())
    if comparison.failures:
        raise typer.Exit(1)


def _page(text: str, out: Path | None) -> None:
    from .report.document import write_text

    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
