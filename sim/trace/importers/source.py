"""Reading foreign JSON: one record in memory at a time, and errors that name file, record and field."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from ..errors import FieldError, TraceError, shorten
from ..events import Event
from ..limits import RECORD_BYTES_MAX, RECORD_LIMIT, bounded_content, bounded_lines
from ..text_file import check_encoding, open_text

__all__ = [
    "array_records",
    "check_kind",
    "field",
    "items",
    "line_records",
    "located",
    "number",
    "one_each",
    "records",
    "single_record",
    "text_bytes",
    "value_records",
]

_CHUNK = 1 << 16
_SPACE = re.compile(r"\s*")
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    bool: "true or false",
    object: "a value",
}


@contextlib.contextmanager
def located(path: Path, location: int | str) -> Iterator[None]:
    """Within the block a FieldError becomes a TraceError at this place."""
    try:
        yield
    except FieldError as error:
        raise TraceError.at(path, location, error) from None


def check_kind(value: Any, kind: type, name: str) -> Any:
    """`value` if it is of the JSON type `kind`. Raises FieldError that calls it `name`."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FieldError(name, _KINDS[kind], shorten(value))
    return value


def field(record: Any, key: str, kind: type, name: str = "") -> Any:
    """`record[key]`, checked to be of the JSON type `kind`; `name` is what an error calls the record."""
    prefix = f"{name}." if name else ""
    check_kind(record, dict, name or "record")
    if key not in record:
        raise FieldError(prefix + key, _KINDS[kind], "no such key")
    return check_kind(record[key], kind, prefix + key)


def items(record: Any, key: str, kind: type, name: str = "") -> list[Any]:
    """The list `record[key]`, each item checked to be of the JSON type `kind`."""
    values = field(record, key, list, name)
    prefix = f"{name}." if name else ""
    for position, value in enumerate(values):
        check_kind(value, kind, f"{prefix}{key}[{position}]")
    return values


def number(value: Any, name: str) -> float:
    """`value` as a finite float. Raises FieldError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FieldError(name, "a finite number", shorten(value))
    return float(value)


#: Longest piece of JSON whose beginning alone is a fault where it begins: -Infinity.
_PIECE = 9


def _cut_off(error: json.JSONDecodeError, text: str) -> bool:
    """Whether more text might mend the fault: it is at the end, or within a string that has no end yet."""
    return error.pos >= len(text) - _PIECE or error.msg.startswith("Unterminated")


def text_bytes(text: str) -> int:
    """The length of a text in bytes of UTF-8, lone surrogates included."""
    return len(text.encode("utf-8", "surrogatepass"))


def _parse_error(error: Exception, text: str) -> FieldError:
    if isinstance(error, json.JSONDecodeError):
        near = text[max(0, error.pos - 20) : error.pos + 20].strip()
        # The decoder stops at the last character it has: what it then misses is what was cut off.
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            return FieldError("JSON", "a complete value", f"the end of the file after {shorten(near)}")
        return FieldError("JSON", "a value", f"{error.msg} near {shorten(near)}")
    return FieldError("JSON", "a value", f"{type(error).__name__}: {error}")


class _ValueReader:
    """Decodes JSON values (objects or lists), one after another, from a text file, a chunk at a time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._position = 0
        self._chunk = _CHUNK

    def _refill(self) -> bool:
        more = check_encoding(self._file.read(self._chunk))
        self._text = self._text[self._position :] + more
        self._position = 0
        return bool(more)

    def peek(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            space = _SPACE.match(self._text, self._position)
            assert space is not None
            self._position = space.end()
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._refill():
                return ""

    def skip(self) -> None:
        """Go past the character that `peek` showed."""
        self._position += 1

    def value(self) -> Any:
        """Decode one value. Raises FieldError."""
        self._chunk = _CHUNK
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                text = self._text  # what the error's position counts in
                if isinstance(error, FieldError):
                    raise
                if isinstance(error, json.JSONDecodeError) and not _cut_off(error, text):
                    raise _parse_error(error, text) from None
                if len(text) - self._position > RECORD_BYTES_MAX:
                    raise FieldError("JSON", RECORD_LIMIT, "more") from None
                if isinstance(error, RecursionError) or not self._refill():
                    raise _parse_error(error, text) from None
                # Doubling keeps the work linear when an element is much larger than a chunk.
                self._chunk *= 2
                continue
            self._position = end
            return value


def _elements(reader: _ValueReader) -> Iterator[Any]:
    """The elements of the array that the reader stands at, which must be all that is left of the file."""
    reader.skip()
    following = reader.peek()
    while following != "]":
        yield reader.value()
        following = reader.peek()
        if following == "]":
            break
        if following != ",":
            found = shorten(following) if following else "the end of the file: it is cut off"
            raise FieldError("JSON", "`,` or `]` after a record", found)
        reader.skip()
    reader.skip()
    if following := reader.peek():
        raise FieldError("JSON", "the end of the file after the list", shorten(following))


def _values(reader: _ValueReader) -> Iterator[Any]:
    """The values that stand one after another with nothing but white space between them."""
    while reader.peek():
        yield reader.value()


def _numbered(path: Path, values: Callable[[_ValueReader], Iterator[Any]]) -> Iterator[tuple[str, Any]]:
    """The records of a file with their places; a fault is at the record that it is met in or before."""
    index = 0
    with open_text(path) as file:
        try:
            for record in values(_ValueReader(file)):
                yield f"record {index}", record
                index += 1
        except FieldError as error:
            raise TraceError.at(path, f"record {index}", error) from None


def array_records(path: Path) -> Iterator[tuple[str, Any]]:
    """The elements of a file that is one JSON array, with their places; one in memory at a time."""

    def elements(reader: _ValueReader) -> Iterator[Any]:
        if reader.peek() != "[":
            raise FieldError("JSON", "a list", shorten(reader.peek()))
        yield from _elements(reader)

    return _numbered(path, elements)


def value_records(path: Path) -> Iterator[tuple[str, Any]]:
    """The elements of a file that is one JSON array, or its JSON values if they stand one after another.

    With their places; one in memory at a time. So a file of one object has one record, JSON lines have many.
    """
    return _numbered(path, lambda reader: _elements(reader) if reader.peek() == "[" else _values(reader))


def line_records(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file with one a line, with the line's number from 1."""
    with open_text(path) as file:
        for number_of_line, line in bounded_lines(file, path):
            with located(path, number_of_line):
                value = _loads(line)
            yield number_of_line, value


def records(path: Path) -> Iterator[tuple[int | str, Any]]:
    """The records of a file that is either one JSON array or has one JSON value a line, with their places."""
    with open_text(path) as file:
        array = file.read(_CHUNK).lstrip().startswith("[")
    return array_records(path) if array else line_records(path)


def one_each(
    path: Path, found: Iterable[tuple[int | str, Any]], events: Callable[[Any, int], list[Event]]
) -> Iterator[tuple[int | str, list[Event]]]:
    """A trace for each of the records `found` in a file: its place, and `events(record, index)`."""
    for index, (place, record) in enumerate(found):
        with located(path, place):
            trace = events(record, index)
        yield place, trace


def single_record(path: Path) -> Any:
    """The value of a file that is one JSON value."""
    with located(path, "record 0"), open_text(path) as file:
        return _loads(bounded_content(file))


def _loads(text: str) -> Any:
    try:
        return json.loads(check_encoding(text))
    except FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise _parse_error(error, text) from None
