"""Reading foreign JSON: one record in memory at a time, and errors that name file, record and field."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ..errors import FieldError, TraceError, shorten
from ..limits import RECORD_BYTES_MAX, RECORD_LIMIT, bounded_content, bounded_lines

__all__ = [
    "array_records",
    "check_kind",
    "field",
    "items",
    "line_records",
    "located",
    "number",
    "records",
    "single_record",
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


def _parse_error(error: Exception, text: str) -> FieldError:
    if isinstance(error, json.JSONDecodeError):
        near = text[max(0, error.pos - 20) : error.pos + 20].strip()
        # The decoder stops at the last character it has: what it then misses is what was cut off.
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            return FieldError("JSON", "a complete value", f"the end of the file after {shorten(near)}")
        return FieldError("JSON", "a value", f"{error.msg} near {shorten(near)}")
    if isinstance(error, UnicodeDecodeError):
        return FieldError("encoding", "UTF-8", f"byte 0x{error.object[error.start]:02x}")
    return FieldError("JSON", "a value", f"{type(error).__name__}: {error}")


class _ArrayReader:
    """Decodes the elements (objects or lists) of one JSON array from a text file, a chunk at a time."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._decoder = json.JSONDecoder()
        self._text = ""
        self._position = 0
        self._chunk = _CHUNK

    def _refill(self) -> bool:
        more = self._file.read(self._chunk)
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
        """Decode one element. Raises FieldError."""
        self._chunk = _CHUNK
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except (ValueError, RecursionError) as error:
                text = self._text  # what the error's position counts in
                if isinstance(error, json.JSONDecodeError) and not _cut_off(error, text):
                    raise _parse_error(error, text) from None
                if len(text) - self._position > RECORD_BYTES_MAX:
                    raise FieldError("JSON", RECORD_LIMIT, "more") from None
                if isinstance(error, UnicodeDecodeError | RecursionError) or not self._refill():
                    raise _parse_error(error, text) from None
                # Doubling keeps the work linear when an element is much larger than a chunk.
                self._chunk *= 2
                continue
            self._position = end
            return value


def array_records(path: Path) -> Iterator[tuple[int, Any]]:
    """The elements of a file that is one JSON array, with their index; one in memory at a time."""
    index = 0
    with open(path, encoding="utf-8") as file:
        reader = _ArrayReader(file)
        try:
            if reader.peek() != "[":
                raise FieldError("JSON", "a list", shorten(reader.peek()))
            reader.skip()
            following = reader.peek()
            while following != "]":
                yield index, reader.value()
                index += 1
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
        except FieldError as error:
            raise TraceError.at(path, f"record {index}", error) from None
        except UnicodeDecodeError as error:
            raise TraceError.at(path, f"record {index}", _parse_error(error, "")) from None


def line_records(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file with one a line, with the line's number from 1."""
    with open(path, "rb") as file:
        for number_of_line, line in bounded_lines(file, path):
            with located(path, number_of_line):
                try:
                    text = line.decode("utf-8")
                    value = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise _parse_error(error, line.decode("utf-8", "replace")) from None
            yield number_of_line, value


def records(path: Path) -> Iterator[tuple[int | str, Any]]:
    """The records of a file that is either one JSON array or has one JSON value a line, with their places."""
    with open(path, "rb") as file:
        array = file.read(_CHUNK).lstrip().startswith(b"[")
    if array:
        for index, value in array_records(path):
            yield f"record {index}", value
    else:
        yield from line_records(path)


def single_record(path: Path) -> Any:
    """The value of a file that is one JSON value."""
    with located(path, "record 0"):
        with open(path, "rb") as file:
            content = bounded_content(file)
        try:
            return json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise _parse_error(error, content.decode("utf-8", "replace")) from None
