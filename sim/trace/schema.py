"""The trace file: JSON lines, one event a line, one or more traces, read and written one trace at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from .codec import decode_line, encode_line
from .errors import FieldError, TraceError
from .events import Begin, End, Event, Node
from .limits import bounded_lines
from .output import output_target, temporary_name
from .text_file import open_text
from .validator import Validator

__all__ = ["Trace", "TraceError", "TraceWriter", "read_traces", "write_traces"]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One problem of a file: what a search did from `begin` to `end`."""

    begin: Begin
    events: list[Event]
    """Everything between `begin` and `end`, in order, without these two."""
    end: End
    file: str
    """The file that it came from."""
    index: int = 0
    """Its place among the traces of that file, from 0."""

    @property
    def name(self) -> str:
        """The trace's name, unique in its file."""
        return self.begin.trace

    @property
    def nodes(self) -> int:
        """How many nodes it creates."""
        return sum(isinstance(event, Node) for event in self.events)

    def __iter__(self) -> Iterator[Event]:
        """Every event, `begin` and `end` included."""
        yield self.begin
        yield from self.events
        yield self.end


def read_traces(path: str | os.PathLike[str]) -> Iterator[Trace]:
    """The traces of a file, each checked as it is read; one is in memory at a time.

    The file may be gzip, and of any encoding that `open_text` knows. Raises TraceError naming the line and
    the field of the first fault, OSError if it cannot be read.
    """
    validator = Validator()
    begin: Begin | None = None
    events: list[Event] = []
    number = 0
    with open_text(path) as file:
        try:
            for _, line in bounded_lines(file, path):
                number += 1
                event = decode_line(line)
                validator.feed(event)
                if isinstance(event, Begin):
                    begin = event
                elif isinstance(event, End):
                    assert begin is not None
                    yield Trace(
                        begin=begin, events=events, end=event, file=str(path), index=validator.traces - 1
                    )
                    events = []
                else:
                    events.append(event)
            number += 1
            validator.finish()
        except FieldError as error:
            raise TraceError.at(path, number, error) from None


class TraceWriter:
    """A trace file being written: a context manager that leaves the whole file behind, or none.

    Events are checked as they come and go to a temporary file beside `path`; leaving the block without an
    exception gives it its name. An exception, or a trace without `end`, removes it. Raises OSError if `path`
    can be no file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._target = output_target(path)
        self._temporary = temporary_name(self._target)
        self._file: IO[str] | None = None
        self._validator = Validator()
        self._line = 0

    @property
    def validator(self) -> Validator:
        """The state of the check: the tree of the current trace."""
        return self._validator

    def __enter__(self) -> TraceWriter:
        try:
            self._file = open(self._temporary, "w", encoding="ascii", newline="\n")
        except OSError as error:
            raise self._named(error) from None
        return self

    def write(self, event: Event) -> None:
        """Append one event. Raises TraceError if it may not stand here; the line is the one it would be."""
        if self._file is None:
            raise RuntimeError("write: expected to be inside the `with` block of the writer")
        self._line += 1
        try:
            text = encode_line(event)
            self._validator.feed(event)
        except FieldError as error:
            raise TraceError.at(self.path, self._line, error) from None
        try:
            self._file.write(text)
        except OSError as error:
            raise self._named(error) from None

    def _named(self, error: OSError) -> OSError:
        """The error with the name by which the user knows the file."""
        return type(error)(error.errno, error.strerror, str(self.path))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._file is not None
        try:
            self._file.close()
            if kind is None:
                self._validator.finish()
                os.replace(self._temporary, self._target)
        except FieldError as fault:
            raise TraceError.at(self.path, self._line + 1, fault) from None
        except OSError as fault:
            raise self._named(fault) from None
        finally:
            self._file = None
            with contextlib.suppress(FileNotFoundError):
                self._temporary.unlink()


def write_traces(path: str | os.PathLike[str], traces: Iterable[Iterable[Event]]) -> int:
    """Write traces (each an iterable of its events, `begin` and `end` included) and return their number.

    The file appears when all of it is written; on any error nothing is left behind. Raises TraceError.
    """
    with TraceWriter(path) as writer:
        for trace in traces:
            for event in trace:
                writer.write(event)
    return writer.validator.traces
