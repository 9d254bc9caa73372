"""How much of a file is held in memory at once: a file that is one endless record is refused, not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, AnyStr

from .errors import FieldError, TraceError

__all__ = ["RECORD_BYTES_MAX", "RECORD_LIMIT", "bounded_content", "bounded_lines"]

#: Largest record (a line, an element of a list, a file that is one value). The largest public ones that the
#: importers are for have less than a megabyte; decoded, so many bytes of JSON take up to 0.7 GB.
RECORD_BYTES_MAX = 32 << 20
#: The same in words, as an error says what was expected.
RECORD_LIMIT = f"at most {RECORD_BYTES_MAX >> 20} MiB in one record"


def bounded_lines(file: IO[AnyStr], path: object) -> Iterator[tuple[int, AnyStr]]:
    """The lines of a file with their numbers from 1. Raises TraceError naming the first that is too long."""
    number = 1
    while line := file.readline(RECORD_BYTES_MAX + 1):
        if len(line) > RECORD_BYTES_MAX:
            raise TraceError(path, number, "line", RECORD_LIMIT, "a longer line")
        yield number, line
        number += 1


def bounded_content(file: IO[AnyStr]) -> AnyStr:
    """All of a file that is one record. Raises FieldError if it is too long."""
    content = file.read(RECORD_BYTES_MAX + 1)
    if len(content) > RECORD_BYTES_MAX:
        raise FieldError("content", RECORD_LIMIT, "more")
    return content
