"""Foreign files into one file of the project's own format, and what a file holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from .events import Begin, Event
from .importers import ImportSummary, import_file
from .schema import Trace, TraceWriter

__all__ = ["convert", "describe", "summarise"]

#: Called with (files done, files in all).
Progress = Callable[[int, int], None]


def summarise(path: str | os.PathLike[str]) -> ImportSummary:
    """Read a file of any known kind to its end and say what it holds. Raises TraceError, OSError."""
    traces = import_file(path)
    for _ in traces:
        pass
    return traces.summary


class _Names:
    """Trace names that are unique in one output: a taken one gets the file's name before it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, trace: Trace) -> str:
        stem = Path(trace.file).stem
        name, attempt = trace.name, 1
        while name in self._taken:
            name = f"{stem}/{trace.name}" if attempt == 1 else f"{stem}.{attempt}/{trace.name}"
            attempt += 1
        self._taken.add(name)
        return name


def _renamed(begin: Begin, name: str) -> Event:
    return Begin(
        version=begin.version,
        trace=name,
        algorithm=begin.algorithm,
        order_known=begin.order_known,
        source=begin.source,
        meta=begin.meta,
    )


def convert(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> list[ImportSummary]:
    """Import all `sources` into the file `out`; it appears whole at the end or not at all.

    Raises TraceError and OSError.
    """
    names = _Names()
    summaries = []
    with TraceWriter(out) as writer:
        for done, source in enumerate(sources):
            if progress is not None:
                progress(done, len(sources))
            traces = import_file(source)
            for trace in traces:
                writer.write(_renamed(trace.begin, names.unique(trace)))
                for event in trace.events:
                    writer.write(event)
                writer.write(trace.end)
            summaries.append(traces.summary)
        if progress is not None:
            progress(len(sources), len(sources))
    return summaries


def describe(summary: ImportSummary) -> dict[str, object]:
    """A summary as plain JSON types."""
    return {
        "file": summary.file,
        "format": summary.format,
        "problems": summary.problems,
        "nodes": summary.nodes,
        "events": summary.events,
        "by_event": dict(summary.by_event),
        "max_depth": summary.max_depth,
        "statuses": dict(summary.statuses),
        "checked": dict(summary.checked),
        "climbs_by_source": dict(summary.climbs_by_source),
        "unchecked": dict(summary.unchecked),
        "remarks": dict(summary.remarks),
        "lacks": list(summary.lacks),
    }
