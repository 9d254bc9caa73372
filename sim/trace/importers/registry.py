"""The importers that there are, chosen by what a file contains and never by its name."""

from __future__ import annotations

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import FieldError, TraceError, shorten
from ..events import Backtrack, Backup, Begin, End, Event, Jump, Node, Select
from ..schema import Trace
from ..text_file import open_text
from ..validator import Validator

__all__ = ["ImportSummary", "ImportedTraces", "Importer", "detect", "import_file", "importers", "register"]

#: How much of a file an importer sees to say whether it is of its kind.
HEAD_CHARACTERS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Importer:
    """One kind of file and how it is read."""

    name: str
    description: str
    recognises: Callable[[str], bool]
    """Whether a file that begins with this text is of the kind."""
    read: Callable[[Path], Iterator[tuple[int | str, list[Event]]]]
    """The problems of a file: where each stands (line number or record) and its events, `begin` to `end`."""
    lacks: tuple[str, ...] = ()
    """What files of the kind do not record and a trace could hold."""


@dataclass(kw_only=True)
class ImportSummary:
    """What came out of a file; complete when its last trace has been taken."""

    file: str
    format: str
    lacks: tuple[str, ...] = ()
    problems: int = 0
    nodes: int = 0
    events: int = 0
    max_depth: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    """Events whose answer is checked, by `check`."""
    climbs_by_source: Counter[str] = field(default_factory=Counter)
    """Checked climbs by the source of their untried counts."""
    unchecked: Counter[str] = field(default_factory=Counter)
    """Events whose answer is not checked, by reason."""
    by_event: Counter[str] = field(default_factory=Counter)
    """Events by name."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Problems by how they ended."""
    remarks: Counter[str] = field(default_factory=Counter)
    """What was amiss, and how often: the `remarks` of the problems, and orders that are lost."""
    _roots: set[int] = field(default_factory=set)
    """Of the problem that is counted: only a backup that ends at one is a walk with an answer."""

    def count(self, event: Event) -> None:
        """Take one more event into account."""
        self.events += 1
        self.by_event[event.name] += 1
        if isinstance(event, Begin):
            self.problems += 1
            self._remark(event)
            self._roots.clear()
        elif isinstance(event, Node):
            self.nodes += 1
            if not event.parents:
                self._roots.add(event.id)
            self.max_depth = max(self.max_depth, event.depth)
        elif isinstance(event, End):
            self.statuses[event.status] += 1
        elif isinstance(event, Backup):
            if event.path[-1] in self._roots:
                self.checked["backup"] += 1
        elif isinstance(event, Backtrack | Jump | Select):
            if event.check == "none":
                self.unchecked[event.reason or ""] += 1
            else:
                self.checked[event.check] += 1
                if isinstance(event, Backtrack):
                    self.climbs_by_source[event.untried_source or "unknown"] += 1

    def _remark(self, begin: Begin) -> None:
        if not begin.order_known:
            self.remarks[f"order of visits lost; the events follow: {begin.meta.get('order')}"] += 1
        remarks = begin.meta.get("remarks")
        if isinstance(remarks, dict):
            self.remarks.update({str(what): int(count) for what, count in remarks.items()})


class ImportedTraces(Iterator[Trace]):
    """The traces of one file, one in memory at a time, with their `summary`."""

    def __init__(self, path: Path, importer: Importer) -> None:
        self.summary = ImportSummary(file=str(path), format=importer.name, lacks=importer.lacks)
        self._path = path
        self._importer = importer
        self._traces = self._read()

    def __next__(self) -> Trace:
        with _named(self._path):
            return next(self._traces)

    def _read(self) -> Iterator[Trace]:
        validator = Validator()
        index = -1
        for index, (location, events) in enumerate(self._importer.read(self._path)):
            try:
                for event in events:
                    validator.feed(event)
            except FieldError as error:
                raise TraceError.at(self._path, location, error) from None
            for event in events:
                self.summary.count(event)
            begin, end = events[0], events[-1]
            assert isinstance(begin, Begin) and isinstance(end, End)
            yield Trace(begin=begin, events=events[1:-1], end=end, file=str(self._path), index=index)
        if index < 0:
            raise TraceError(self._path, None, "records", "at least one problem", "none")


@contextlib.contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the block an OSError that names no file, as one of a read, names `path`."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


_importers: dict[str, Importer] = {}


def register(importer: Importer) -> Importer:
    """Make an importer known under its name, after those that are known already."""
    if importer.name in _importers:
        raise ValueError(f"importer name is {importer.name!r}: expected one that is not taken")
    _importers[importer.name] = importer
    return importer


def importers() -> tuple[Importer, ...]:
    """All importers, in the order in which they are asked."""
    return tuple(_importers.values())


def detect(path: str | os.PathLike[str]) -> Importer:
    """The importer for a file, from what it contains. Raises TraceError if there is none, or OSError."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        # It is read more than once.
        raise TraceError(path, None, "content", "a regular file", "a pipe or a device")
    with _named(path), open_text(path) as file:
        head = file.read(HEAD_CHARACTERS)
    if not head.strip():
        raise TraceError(path, None, "content", "a trace", "an empty file")
    for importer in _importers.values():
        if importer.recognises(head):
            return importer
    kinds = ", ".join(_importers)
    raise TraceError(path, None, "content", f"one of the known kinds ({kinds})", shorten(head[:40]))


def import_file(path: str | os.PathLike[str]) -> ImportedTraces:
    """The traces of a file of any known kind. Errors are TraceError (also while iterating) and OSError."""
    return ImportedTraces(Path(path), detect(path))
