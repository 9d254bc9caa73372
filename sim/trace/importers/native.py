"""The project's own format: JSON lines of events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..events import Event
from ..schema import read_traces
from .registry import Importer

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True if the first line is an object with the key `event`."""
    first = head.lstrip().split("\n", 1)[0]
    return first.startswith("{") and re.search(r'[{,]\s*"event"\s*:', first) is not None


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """The traces as they are."""
    for trace in read_traces(path):
        yield f"trace {trace.index}", list(trace)


IMPORTER = Importer(
    name="clew", description="trace of this project, JSON lines", recognises=recognises, read=read
)
