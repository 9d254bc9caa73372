"""What importers of request traces share: a trace of one request, and counts of tokens."""

from __future__ import annotations

from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event, Kv
from .source import field

__all__ = ["count", "request"]


def count(record: Any, key: str, name: str = "") -> int:
    """`record[key]` as a whole number from 0. Raises FieldError."""
    value: int = field(record, key, int, name)
    if value < 0:
        raise FieldError(f"{name}.{key}" if name else key, "a count from 0", shorten(value))
    return value


def request(name: str, *, source: str, event: Kv) -> list[Event]:
    """The events of a trace that is one request."""
    begin = Begin(version=SCHEMA_VERSION, trace=name, algorithm="serving", source=source)
    return [begin, event, End(status="unknown")]
