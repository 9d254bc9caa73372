"""The command line's part on traces: `clew trace import`, `info` and `validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sim.trace.convert import convert, describe, summarise
from sim.trace.errors import TraceError, printable
from sim.trace.importers import ImportSummary

from .progress import Reporter

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Files = Annotated[list[Path], typer.Argument(help="Files of any known kind, told by what they contain.")]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _print(summary: ImportSummary) -> None:
    typer.echo(f"{printable(summary.file)}: {summary.format}")
    typer.echo(f"  problems   {summary.problems} ({_counts(summary.statuses)})")
    typer.echo(f"  nodes      {summary.nodes}, depth at most {summary.max_depth}")
    typer.echo(f"  events     {summary.events} ({_counts(summary.by_event)})")
    typer.echo(f"  checked    {_counts(summary.checked)}")
    if summary.climbs_by_source:
        typer.echo(f"  climbs by  {_counts(summary.climbs_by_source)}")
    for reason, count in sorted(summary.unchecked.items()):
        typer.echo(f"  unchecked  {count}: {printable(reason)}")
    for remark, count in sorted(summary.remarks.items()):
        typer.echo(f"  remark     {count}: {printable(remark)}")
    for what in summary.lacks:
        typer.echo(f"  not in it  {what}")


@app.command("import")
def import_(
    sources: Files, out: Annotated[Path, typer.Option("-o", "--out", help="The trace file to write.")]
) -> None:
    """Import files into one trace file. On any error nothing is written."""
    with Reporter() as reporter:
        summaries = convert(
            sources, out, progress=lambda done, total: reporter.advance("importing files", done, total)
        )
    for summary in summaries:
        _print(summary)


@app.command()
def info(
    files: Files, as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead.")] = False
) -> None:
    """Say what files hold: problems, nodes, what is checked and what is not, and why."""
    with Reporter() as reporter:
        summaries = []
        for done, path in enumerate(files):
            reporter.advance("reading files", done, len(files))
            summaries.append(summarise(path))
    if as_json:
        document = {"schema": "clew.trace-info/1", "files": [describe(summary) for summary in summaries]}
        typer.echo(json.dumps(document, indent=2))
        return
    for summary in summaries:
        _print(summary)


@app.command()
def validate(files: Files) -> None:
    """Check files. One line for each; those with a fault go to standard error, and the status is 2."""
    faults = 0
    for path in files:
        try:
            summary = summarise(path)
        except TraceError as error:
            fault = str(error)
        except OSError as error:
            fault = f"{path}: {error.strerror or error}"
        else:
            counts = f"{summary.problems} problems, {summary.nodes} nodes"
            typer.echo(f"{printable(str(path))}: {summary.format}, {counts}")
            continue
        faults += 1
        typer.echo(f"clew: {printable(fault)}", err=True)
    if faults:
        raise typer.Exit(2)
