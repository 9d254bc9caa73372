"""`clew drive`, the comparison on a board, and `clew board`, which simulates one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdl.config import CONFIGS

from .errors import InputError
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
from .transport.serial_frames import BAUD

if TYPE_CHECKING:
    from .transport.base import Transport

__all__ = ["board", "drive"]


def drive(
    files: Annotated[list[Path], typer.Argument(help="Trace files of any known kind.")],
    port: Annotated[str | None, typer.Option(help="Serial port of the board, such as /dev/ttyUSB0.")] = None,
    xdma: Annotated[str | None, typer.Option(help="XDMA device of the board, such as /dev/xdma0.")] = None,
    baud: Annotated[int, typer.Option(help="Bits a second of the serial port.")] = BAUD,
    config: ConfigName = None,
    far: Far = "v100_hbm2",
    near: Near = "memory",
    concurrent: Concurrent = 1,
    layout: LayoutName = "creation",
    program: ClimbName = "climb",
    placement: PlacementName = "round_robin",
    refresh: Refresh = "all_bank",
    json: Json = None,
) -> None:
    """Replay traces near and far on a board and compare. Exit status 1: a verdict was wrong."""
    from .axi_port import AXI_PORT
    from .board import compare_on_board
    from .compare import read_files
    from .progress import Reporter
    from .questions import require_questions
    from .report.board_document import board_document, print_board_comparison
    from .report.document import require_output, write_document
    from .report.table import console
    from .settings import ReplaySettings

    where = port or xdma
    if not where or (port and xdma):
        raise InputError("expected one of --port and --xdma, which name the board")
    if baud < 1:
        raise InputError(f"--baud is {baud}: expected 1 or more")
    require_config(config)
    if near == AXI_PORT:
        raise InputError(f"--near {AXI_PORT} needs a design of its own: expected a place that the board has")
    if json is not None:
        require_output(json, inputs=files)
    traces = read_files(files)
    require_questions(traces)
    settings = ReplaySettings(
        far=far,
        near=near,
        concurrent=concurrent,
        layout=layout,
        program=program,
        placement=placement,
        refresh=refresh,
    )
    with _opened(port, xdma, baud) as transport, Reporter() as reporter:
        comparison = compare_on_board(
            traces,
            transport,
            where=where,
            config=config,
            settings=settings,
            announce=reporter.announce,
            progress=reporter.advance,
        )
    if json is not None:
        write_document(json, board_document(comparison))
    print_board_comparison(comparison, console())
    if comparison.failures:
        raise typer.Exit(1)


@contextmanager
def _opened(port: str | None, xdma: str | None, baud: int) -> Iterator[Transport]:
    if port is not None:
        from .transport.serial import SerialTransport

        with SerialTransport(port, baud=baud) as transport:
            yield transport
    else:
        from .transport.xdma import XdmaTransport

        with XdmaTransport(str(xdma)) as transport:
            yield transport


def board(
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate a board: the only kind so far.")
    ] = False,
    netlist: Annotated[
        bool, typer.Option("--netlist", help="Simulate the cells of an ECP5 that synthesis makes of it.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            help=f"The design: one of {', '.join(CONFIGS)}; by default simulation, and as a netlist ulx3s."
        ),
    ] = None,
) -> None:
    """Offer a simulated design's UART on a pseudo-terminal until stopped."""
    from sim.board import BoardModel, board_library, pseudo_terminal, serve
    from sim.fpga.netlist_model import board_netlist, netlist_library

    from .fpga.flow import require_synthesizable
    from .progress import Reporter

    if not simulate:
        raise InputError("expected --simulate: boards of their own are driven by clew drive")
    require_config(config)
    name = config or ("ulx3s" if netlist else "simulation")
    design = CONFIGS[name]
    if netlist:
        require_synthesizable(name, design)
    with Reporter() as reporter:
        if netlist:
            cells = board_netlist(design, announce=reporter.announce)
            library = netlist_library(cells.verilog, announce=reporter.announce)
        else:
            library = board_library(design, announce=reporter.announce)
    with BoardModel(library) as model, pseudo_terminal() as (line, path):
        # The one line that a script reads.
        typer.echo(f"port {path}")
        serve(model, line)
