"""A sweep as a table for people, as a JSON document (schema `clew.sweep/1`) and as Parquet."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.trace.errors import printable
from sim.trace.output import whole_file

from ..report.columns import arrow_table, flattened
from .definition import AXES
from .run import Measured, Sweep

__all__ = ["SCHEMA", "print_sweep", "sweep_document", "sweep_rows", "write_parquet"]

#: The `schema` of the document, and of the Parquet file's metadata.
SCHEMA = "clew.sweep/1"


def sweep_document(sweep: Sweep) -> dict[str, Any]:
    """The sweep as plain JSON types: every point with its settings and its whole comparison."""
    return {
        "schema": SCHEMA,
        "code": sweep.code,
        "varying": list(sweep.varying),
        "points": [
            {
                "settings": measured.point.settings,
                "key": measured.key,
                "status": measured.status,
                "reason": measured.reason,
                "comparison": measured.document,
            }
            for measured in sweep.measured
        ],
        "skipped": [
            {"settings": skipped.point.settings, "reason": skipped.reason} for skipped in sweep.skipped
        ],
    }


def sweep_rows(sweep: Sweep) -> list[dict[str, Any]]:
    """One row for each point: its settings and status below `point.`, then the figures of its comparison.

    A figure's column is its path in the document of `clew compare --json` (`report.columns.flattened`).
    """
    return [_row(number, measured) for number, measured in enumerate(sweep.measured)]


def _row(number: int, measured: Measured) -> dict[str, Any]:
    settings = {f"point.{name}": value for name, value in measured.point.settings.items()}
    state = {"point.key": measured.key, "point.status": measured.status, "point.reason": measured.reason}
    return {"point.number": number, **settings, **state, **flattened(measured.document or {})}


def write_parquet(path: Path, sweep: Sweep) -> None:
    """Write the rows as Parquet, whole or not at all; the sweep's definition is in the file's metadata.

    Raises OSError naming `path`.
    """
    import pyarrow.parquet

    metadata = {"schema": SCHEMA, "code": sweep.code, "definition": sweep.definition.text}
    content = io.BytesIO()
    pyarrow.parquet.write_table(arrow_table(sweep_rows(sweep), kinds=_KINDS, metadata=metadata), content)
    with whole_file(path) as temporary:
        temporary.write_bytes(content.getvalue())


def print_sweep(sweep: Sweep, target: Console) -> None:
    """A row for each point, then why points are not good and what was left out."""
    table = Table(
        title=f"{len(sweep.measured)} points", title_justify="left", caption_justify="left", caption=_CAPTION
    )
    for name in sweep.varying:
        table.add_column(name, overflow="fold")
    for name in ("near, ns", "far, ns", "walk", "loop", "verdicts"):
        table.add_column(name, justify="right", no_wrap=True)
    for measured in sweep.measured:
        settings = measured.point.settings
        table.add_row(*(_text(settings[name]) for name in sweep.varying), *_figures(measured))
    target.print(table)
    for measured in sweep.measured:
        if measured.reason is not None:
            where = measured.point.label(sweep.varying) or "the point"
            line = f"{measured.status}: {where}: {measured.reason}"
            target.print(Text(printable(line), style="bold red"), soft_wrap=True)
    for reason, count in Counter(skipped.reason for skipped in sweep.skipped).items():
        points = "1 combination" if count == 1 else f"{count} combinations"
        target.print(Text(printable(f"skipped {points}: {reason}")), soft_wrap=True)


#: Types of columns that may hold nothing.
_KINDS: dict[str, type] = {f"point.{name}": kind for name, kind in AXES.items()} | {"point.reason": str}
_CAPTION = "near, far: mean walk latency; walk, loop: speed-up of near in the mean"


def _figures(measured: Measured) -> list[str]:
    content = measured.document
    if content is None:
        return ["-", "-", "-", "-", measured.status]
    wrong = sum(entry["verdicts_wrong"] for entry in content["traces"])
    checked = sum(entry["verdicts_checked"] for entry in content["traces"])
    return [
        *(_number(content["paths"][place]["walk_ns"]["mean"]) for place in ("near", "far")),
        *(_times(content["speedup"][name]) for name in ("walk_mean", "loop_mean")),
        f"{wrong:,} of {checked:,} wrong" if wrong else measured.status,
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x"


def _text(value: object) -> str:
    return "none" if value in ("", None) else printable(str(value))
