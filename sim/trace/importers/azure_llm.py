"""Azure LLM inference traces: when requests came, and their numbers of tokens (CSV).

The heading is TIMESTAMP,ContextTokens,GeneratedTokens. Each row is a trace of one `kv` event without blocks.
A time is a date and a time of day with up to nine decimals, and an offset from UTC in the traces of 2024; it
is kept in nanoseconds from 1970, of UTC where there is an offset and of the same clock where there is none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ..errors import FieldError, shorten
from ..events import Event, Kv
from ..limits import bounded_lines
from ..text_file import check_encoding, open_text
from .registry import Importer
from .serving import request
from .source import located, one_each

__all__ = ["IMPORTER", "nanoseconds"]

HEADING = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")


def recognises(head: str) -> bool:
    """True if the first line is the heading."""
    return head.lstrip("\ufeff").startswith(",".join(HEADING))


def nanoseconds(text: str) -> int:
    """A time in nanoseconds from 1970. Raises FieldError."""
    match = _TIME.fullmatch(text)
    expected = "a time like 2023-11-16 18:17:03.9799600"
    if match is None:
        raise FieldError("TIMESTAMP", expected, shorten(text))
    whole, decimals, offset = match.groups()
    try:
        moment = datetime.fromisoformat(whole + (offset or "Z")).astimezone(UTC)
    except ValueError:
        raise FieldError("TIMESTAMP", expected, shorten(text)) from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + int((decimals or "").ljust(9, "0"))


def _count(text: str, name: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text):
        raise FieldError(name, "a count from 0", shorten(text))
    return int(text)


def _event(row: list[str]) -> Kv:
    if len(row) != len(HEADING):
        raise FieldError("row", f"{len(HEADING)} values ({', '.join(HEADING)})", shorten(row))
    return Kv(
        operation="request",
        time_ns=nanoseconds(row[0]),
        input_tokens=_count(row[1], HEADING[1]),
        output_tokens=_count(row[2], HEADING[2]),
    )


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    with open_text(path) as file:
        for number, line in bounded_lines(file, path):
            with located(path, number):
                text = check_encoding(line).rstrip("\n")
                try:
                    (row,) = csv.reader([text])
                except (ValueError, csv.Error) as error:
                    raise FieldError("row", "one line of CSV", str(error)) from None
            yield number, row


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a request."""
    rows = _rows(path)
    number, heading = next(rows)
    with located(path, number):
        if tuple(heading) != HEADING:
            raise FieldError("heading", ",".join(HEADING), shorten(",".join(heading)))
    yield from one_each(
        path, rows, lambda row, index: request(f"azure_llm/{index}", source="azure_llm", event=_event(row))
    )


IMPORTER = Importer(
    name="azure_llm",
    description="Azure LLM inference trace, numbers of tokens",
    recognises=recognises,
    read=read,
    lacks=(
        "a search: requests are served one by one, so nothing is asked of the accelerator",
        "what prompts share: there are no blocks",
    ),
)
