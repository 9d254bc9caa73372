"""The command of `clew` that makes a bitstream: `clew fpga`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdl.boards import BOARDS

__all__ = ["fpga"]


def fpga(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for clew.bit.")],
    board: Annotated[str, typer.Option(help=f"One of {', '.join(BOARDS)}.")] = "ulx3s_85f",
    config: Annotated[
        str | None, typer.Option(help="Named configuration; else the one that fits the board.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of nextpnr's placement.")] = 1,
) -> None:
    """Synthesize the design for a board, place and route it, and write the bitstream.

    Exit status 1: it is slower than the board's clock; there is no bitstream then.
    """
    from .fpga.flow import implement, require_folder, write_bitstream
    from .fpga.table import print_implementation
    from .progress import Reporter
    from .report.table import console

    require_folder(out)
    with Reporter() as reporter:
        found = implement(board, config, seed=seed, announce=reporter.announce)
    print_implementation(found, console())
    if not found.placement.met:
        raise typer.Exit(1)
    typer.echo(write_bitstream(found, out))
