"""Mooncake request traces: what each request of a serving cluster needs of the block cache.

A line is {timestamp, input_length, output_length, hash_ids}: milliseconds from the trace's begin, tokens, and
the ids of the 512-token blocks of the prompt, where equal ids mean equal prefixes. Each request is a trace of
one `kv` event; the ids of blocks hold in all of them, so that reuse between requests is not lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import Event, Kv
from .registry import Importer
from .serving import count, request
from .source import field, items, line_records, number, one_each

__all__ = ["BLOCK_TOKENS", "IMPORTER"]

#: Tokens of a block, as the trace's own description says (Mooncake, FAST 2025).
BLOCK_TOKENS = 512
_NS_PER_MS = 1_000_000


def recognises(head: str) -> bool:
    """True if the first line has `hash_ids`, `input_length` and `output_length`."""
    first = head.lstrip().split("\n", 1)[0]
    return first.startswith("{") and all(
        re.search(rf'"{key}"\s*:', first) for key in ("hash_ids", "input_length", "output_length")
    )


def _event(record: Any) -> Kv:
    blocks = items(record, "hash_ids", int)
    timestamp = number(field(record, "timestamp", object), "timestamp")
    input_tokens = count(record, "input_length")
    if len(blocks) != -(-input_tokens // BLOCK_TOKENS):
        expected = f"{-(-input_tokens // BLOCK_TOKENS)} blocks of {BLOCK_TOKENS} for {input_tokens} tokens"
        raise FieldError("hash_ids", expected, shorten(len(blocks)))
    return Kv(
        operation="request",
        blocks=tuple(blocks),
        block_tokens=BLOCK_TOKENS,
        input_tokens=input_tokens,
        output_tokens=count(record, "output_length"),
        time_ns=round(timestamp * _NS_PER_MS),
    )


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a request."""

    def events(record: Any, index: int) -> list[Event]:
        return request(f"mooncake/{index}", source="mooncake", event=_event(record))

    return one_each(path, line_records(path), events)


IMPORTER = Importer(
    name="mooncake",
    description="Mooncake request trace, prompts as block ids",
    recognises=recognises,
    read=read,
    lacks=(
        "a search: requests are served one by one, so nothing is asked of the accelerator",
        "blocks of the output, and when blocks are evicted",
    ),
)
