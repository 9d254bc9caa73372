"""Options that several commands of `clew` have, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdl.config import CONFIGS

from .errors import InputError

__all__ = [
    "ClimbName",
    "Concurrent",
    "ConfigName",
    "Far",
    "Json",
    "LayoutName",
    "Near",
    "PlacementName",
    "Refresh",
    "require_config",
]

Far = Annotated[str, typer.Option(help="Far path: a published latency of data/off_chip_paths.csv.")]
Near = Annotated[
    str,
    typer.Option(help="Near place: memory, axi4, or a host controller's port of data/off_chip_paths.csv."),
]
Concurrent = Annotated[
    int, typer.Option(help="Searches replayed at a time, 1 to 10,000; beyond the contexts they queue.")
]
PlacementName = Annotated[str, typer.Option("--placement", help="Which channel a tree lies in.")]
LayoutName = Annotated[str, typer.Option("--layout", help="Where nodes lie in memory.")]
ClimbName = Annotated[
    str, typer.Option("--program", help="What finds where a search resumes: climb or climb_compressed.")
]
Refresh = Annotated[str, typer.Option(help="Refresh of the memory: none, all_bank or per_bank.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the comparison here, as JSON.")]
ConfigName = Annotated[str | None, typer.Option("--config", help=f"The design: one of {', '.join(CONFIGS)}.")]


def require_config(name: str | None) -> None:
    """Check that a configuration of that name exists. Raises InputError."""
    if name is not None and name not in CONFIGS:
        raise InputError(f"unknown configuration {name!r}: expected one of {', '.join(CONFIGS)}")
