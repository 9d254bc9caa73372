"""The command line's part on sweeps: `clew sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["sweep"]


def sweep(
    file: Annotated[Path, typer.Argument(help="The sweep, TOML: see firmware_py/sweep/definition.py.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Write one row for each point here, as Parquet.")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes of this machine; else one for each core.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run it, tcp://HOST:8786.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of measured points; else one beside the kept builds.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the same figures here, as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw an overview here: .png, .svg or .pdf.")] = None,
) -> None:
    """Compare near and far over the cross product of settings and traces. What is measured is kept.

    Exit status 1: a point failed, a verdict was wrong or a rule broken.
    """
    from .errors import InputError
    from .progress import Reporter
    from .report.document import require_output, write_document
    from .report.figures.picture import require_plot
    from .report.table import console
    from .sweep.cluster import local_cluster, remote_cluster
    from .sweep.definition import read_definition
    from .sweep.plot import write_plot
    from .sweep.report import print_sweep, sweep_document, write_parquet
    from .sweep.run import prepare, run_sweep
    from .sweep.store import Store

    if workers is not None and scheduler is not None:
        raise InputError("--workers counts processes of this machine: expected it without --scheduler")
    if plot is not None:
        require_plot(plot)
    prepared = prepare(read_definition(file))
    for path in (out, json, plot):
        if path is not None:
            require_output(path, inputs=prepared.sources)
    with Reporter() as reporter:
        swept = run_sweep(
            prepared,
            store=Store(store),
            open_cluster=lambda: local_cluster(workers) if scheduler is None else remote_cluster(scheduler),
            announce=reporter.announce,
            progress=reporter.advance,
        )
    write_parquet(out, swept)
    if json is not None:
        write_document(json, sweep_document(swept))
    if plot is not None:
        write_plot(plot, swept)
    print_sweep(swept, console())
    if not swept.good:
        raise typer.Exit(1)
