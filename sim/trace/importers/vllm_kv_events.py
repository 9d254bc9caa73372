"""vLLM KV-cache events: which blocks an engine stored, removed and cleared, one batch of events a line.

vLLM publishes batches as msgpack (`vllm/distributed/kv_events.py`); a file of this kind has them as JSON, in
either form that versions of vLLM encode:

* objects: {ts, events: [{type, ...}], data_parallel_rank};
* arrays: [ts, [[type, ...], ...], data_parallel_rank].

`BlockStored` has block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name,
extra_keys, group_idx, kv_cache_spec_kind and kv_cache_spec_sliding_window in this order, `BlockRemoved` has
block_hashes, medium and group_idx, `AllBlocksCleared` nothing; what comes last may be missing. A hash is a
whole number, or bytes, which JSON has in base64; bytes become the number that they are, most significant
first. Each batch is a trace with a `kv` event for each of its events; ids of blocks hold in all of them. The
tokens themselves are counted and not kept, as nothing here needs what people wrote.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event, Kv
from .registry import Importer
from .source import check_kind, field, items, line_records, number, one_each

__all__ = ["IMPORTER"]

#: Fields of each type of event, in the order of the array form.
_FIELDS: dict[str, tuple[str, ...]] = {
    "BlockStored": (
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
        "extra_keys",
        "group_idx",
        "kv_cache_spec_kind",
        "kv_cache_spec_sliding_window",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}
#: Fields that are kept as they are, in the trace's `meta`.
_KEPT = ("lora_id", "medium", "lora_name", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window")
_BATCH = ("ts", "events", "data_parallel_rank")


def recognises(head: str) -> bool:
    """True if the first line is a batch that holds one of the types of events."""
    first = head.lstrip().split("\n", 1)[0]
    return (
        re.match(r'\[\s*[\d.]|\{\s*"', first) is not None
        and re.search(rf'"(?:{"|".join(_FIELDS)})"', first) is not None
    )


def _named(values: list[Any], names: tuple[str, ...], what: str) -> dict[str, Any]:
    """An array with the names of its fields."""
    if len(values) > len(names):
        raise FieldError(what, f"at most {len(names)} values", shorten(len(values)))
    return dict(zip(names, values, strict=False))


def _record(event: Any, name: str) -> tuple[str, dict[str, Any]]:
    """The type of an event and its fields by name."""
    if isinstance(event, list):
        kind, values = (event[0], event[1:]) if event else (None, [])
    else:
        check_kind(event, dict, name)
        kind, values = event.get("type"), []
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise FieldError(f"{name}.type", f"one of {', '.join(_FIELDS)}", shorten(kind))
    if isinstance(event, list):
        return kind, _named(values, _FIELDS[kind], name)
    for key in event:
        if key != "type" and key not in _FIELDS[kind]:
            known = ", ".join(_FIELDS[kind]) or "no field"
            raise FieldError(f"{name}.{shorten(key)[1:-1]}", f"only {known}", "an unknown key")
    return kind, {key: value for key, value in event.items() if key != "type"}


def _block(value: Any, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int.from_bytes(base64.b64decode(check_kind(value, str, name), validate=True), "big")
    except (FieldError, ValueError):
        raise FieldError(name, "a whole number, or bytes in base64", shorten(value)) from None


def _blocks(record: dict[str, Any], name: str) -> tuple[int, ...]:
    hashes = field(record, "block_hashes", list, name)
    return tuple(_block(value, f"{name}.block_hashes[{position}]") for position, value in enumerate(hashes))


def _event(kind: str, record: dict[str, Any], name: str, time_ns: int) -> Kv:
    if kind == "AllBlocksCleared":
        return Kv(operation="clear", time_ns=time_ns)
    blocks = _blocks(record, name)
    if kind == "BlockRemoved":
        return Kv(operation="remove", blocks=blocks, time_ns=time_ns)
    parent = record.get("parent_block_hash")
    size = field(record, "block_size", int, name)
    tokens = len(items(record, "token_ids", int, name))
    if size < 1 or tokens != size * len(blocks):
        expected = f"{size} tokens for each of {len(blocks)} blocks" if size > 0 else "a block_size from 1"
        raise FieldError(f"{name}.token_ids", expected, shorten(tokens))
    return Kv(
        operation="store",
        blocks=blocks,
        block_tokens=size,
        input_tokens=tokens,
        parent=None if parent is None else _block(parent, f"{name}.parent_block_hash"),
        time_ns=time_ns,
    )


def _events(batch: Any, index: int) -> list[Event]:
    if isinstance(batch, list):
        batch = _named(batch, _BATCH, "batch")
    time = number(field(batch, "ts", object), "ts")
    rank = batch.get("data_parallel_rank")
    events: list[Event] = []
    details: list[object] = []
    for position, event in enumerate(field(batch, "events", list)):
        name = f"events[{position}]"
        kind, record = _record(event, name)
        # Exact: a float times a billion would round twice.
        events.append(_event(kind, record, name, round(Fraction(time) * 10**9)))
        details.append({key: record[key] for key in _KEPT if record.get(key) is not None})
    meta: dict[str, object] = {} if rank is None else {"data_parallel_rank": check_kind(rank, int, "rank")}
    if any(details):
        meta["events"] = details
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"vllm_kv_events/{index}",
        algorithm="serving",
        source="vllm_kv_events",
        meta=meta,
    )
    return [begin, *events, End(status="unknown" if events else "empty")]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a batch."""
    return one_each(path, line_records(path), _events)


IMPORTER = Importer(
    name="vllm_kv_events",
    description="vLLM KV-cache events as JSON lines, a batch a line",
    recognises=recognises,
    read=read,
    lacks=(
        "a search: a cache stores and removes blocks, so nothing is asked of the accelerator",
        "requests: which of them a block was stored for, and reads of blocks that are there",
        "token ids and extra keys: they are counted or left out, not kept",
    ),
)
