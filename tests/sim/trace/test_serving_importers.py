"""Importers of serving traces: requests of Mooncake and Azure, block events of vLLM."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import Kv
from sim.trace.importers import detect, import_file, importers
from sim.trace.importers.azure_llm import nanoseconds
from sim.trace.schema import Trace, read_traces, write_traces

from .samples import shared


def _lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _own(path: Path, kind: str, tmp_path: Path) -> Iterator[Trace]:
    """The traces as this project's own file gives them back."""
    assert detect(path).name == kind
    head = path.read_text(encoding="utf-8-sig")[: 1 << 16]
    assert [importer.name for importer in importers() if importer.recognises(head)] == [kind]
    own = tmp_path / "own.jsonl"
    write_traces(own, import_file(path))
    return read_traces(own)


def _error(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    return str(caught.value).removeprefix(f"{path}: ")


# -- Mooncake ----------------------------------------------------------------------------------------


def _as_mooncake(trace: Trace) -> dict[str, Any]:
    (event,) = trace.events
    assert isinstance(event, Kv) and event.operation == "request" and event.time_ns is not None
    return {
        "timestamp": event.time_ns // 10**6,
        "input_length": event.input_tokens,
        "output_length": event.output_tokens,
        "hash_ids": list(event.blocks),
    }


@pytest.mark.parametrize("name", ["conversation", "synthetic"])
def test_mooncake_can_be_rebuilt(name: str, tmp_path: Path) -> None:
    path = shared(f"mooncake/{name}_trace_head.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [_as_mooncake(trace) for trace in _own(path, "mooncake", tmp_path)] == records


def test_own_requests_can_be_rebuilt(tmp_path: Path) -> None:
    records = [
        {"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [0]},
        {"timestamp": 0, "input_length": 513, "output_length": 0, "hash_ids": [0, 9]},  # quantised times
        {"timestamp": 3_001, "input_length": 0, "output_length": 2, "hash_ids": []},
        {"timestamp": 3_002, "input_length": 191_378, "output_length": 6, "hash_ids": list(range(374))},
    ]
    path = _lines(tmp_path / "x", records)
    assert [_as_mooncake(trace) for trace in _own(path, "mooncake", tmp_path)] == records


def test_blocks_of_the_conversations_are_those_of_the_whole_set() -> None:
    """Block 0 is in every request, and no block follows two different ones."""
    before: dict[int, int] = {}
    longest = 0
    for trace in import_file(shared("mooncake/conversation_trace_head.jsonl")):
        (event,) = trace.events
        assert isinstance(event, Kv)
        assert event.blocks[0] == 0
        for one, next_ in zip(event.blocks[:-1], event.blocks[1:], strict=True):
            assert before.setdefault(next_, one) == one
        longest = max(longest, len(event.blocks))
    assert longest <= 247


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hash_ids": [0]}, "line 2: hash_ids: expected 2 blocks of 512 for 600 tokens, found 1"),
        ({"hash_ids": [0, "1"]}, "line 2: hash_ids[1]: expected an integer, found '1'"),
        ({"input_length": -1}, "line 2: input_length: expected a count from 0, found -1"),
        ({"timestamp": None}, "line 2: timestamp: expected a finite number, found None"),
    ],
)
def test_mooncake_faults_are_named(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    good = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0, 1]}
    assert _error(_lines(tmp_path / "x", [good, good | change])) == expected


def test_memory_does_not_grow_with_the_requests(tmp_path: Path) -> None:
    """Twenty times the requests take the same memory, but for a hash of each name (names are unique)."""
    peaks = []
    for count in (250, 5_000):
        path = tmp_path / f"{count}"
        with open(path, "w", encoding="ascii") as file:
            for number in range(count):
                blocks = list(range(number, number + 4))
                record = {"timestamp": 0, "input_length": 2048, "output_length": 1, "hash_ids": blocks}
                file.write(json.dumps(record) + "\n")
        tracemalloc.start()
        traces = import_file(path)
        requests = sum(1 for _ in traces)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert requests == traces.summary.problems == count
    hash_bytes = 32 + 2 * 4 * 16  # an int, and its share of a set that was just made larger, the old one kept
    assert peaks[1] < peaks[0] + 5_000 * hash_bytes + (1 << 16)


# -- Azure -------------------------------------------------------------------------------------------


def _as_row(trace: Trace) -> str:
    (event,) = trace.events
    assert isinstance(event, Kv) and event.time_ns is not None
    seconds, rest = divmod(event.time_ns, 10**9)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest // 100:07d},{event.input_tokens},{event.output_tokens}"


@pytest.mark.parametrize("name", ["code", "conv"])
def test_azure_can_be_rebuilt(name: str, tmp_path: Path) -> None:
    path = shared(f"azure_llm/{name}_head.csv")
    # Some rows have a time without decimals: the same time.
    rows = [
        row if "." in row else row.replace(",", ".0000000,", 1) for row in path.read_text().splitlines()[1:]
    ]
    assert [_as_row(trace) for trace in _own(path, "azure_llm", tmp_path)] == rows


def test_tokens_of_the_azure_samples_are_within_those_of_the_whole_set() -> None:
    for name, inputs, outputs in (("code", (3, 7437), (6, 1899)), ("conv", (2, 14050), (7, 1000))):
        for trace in import_file(shared(f"azure_llm/{name}_head.csv")):
            (event,) = trace.events
            assert isinstance(event, Kv) and event.input_tokens and event.output_tokens
            assert inputs[0] <= event.input_tokens <= inputs[1]
            assert outputs[0] <= event.output_tokens <= outputs[1]


def test_own_rows_with_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        b"2023-11-16 18:17:03.9799600,4808,10\r\n"
        b'"2024-05-10 00:00:00.009930+02:00",0,0'
    )
    first, second = _own(path, "azure_llm", tmp_path)
    assert _as_row(first) == "2023-11-16 18:17:03.9799600,4808,10"
    assert _as_row(second) == "2024-05-09 22:00:00.0099300,0,0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01 00:00:01.5", 1_500_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1969-12-31 23:59:59.9", -100_000_000),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            "2023-11-16 18:17:03,1",
            "line 2: row: expected 3 values (TIMESTAMP, ContextTokens, GeneratedTokens)",
        ),
        ("2023-13-16 18:17:03,1,1", "line 2: TIMESTAMP: expected a time like"),
        ("now,1,1", "line 2: TIMESTAMP: expected a time like 2023-11-16 18:17:03.9799600, found 'now'"),
        ("2023-11-16 18:17:03,1.5,1", "line 2: ContextTokens: expected a count from 0, found '1.5'"),
        ("2023-11-16 18:17:03,1,-1", "line 2: GeneratedTokens: expected a count from 0, found '-1'"),
        ('"2023-11-16', "line 2: "),
        ("", "line 2: row: expected 3 values"),
    ],
)
def test_azure_faults_are_named(row: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{row}\n")
    assert _error(path).startswith(expected)


def test_azure_without_a_row(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    assert _error(path) == "records: expected at least one problem, found none"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens,More\n")
    assert _error(path).startswith("line 1: heading: expected TIMESTAMP,ContextTokens,GeneratedTokens, found")


# -- vLLM --------------------------------------------------------------------------------------------

BYTES = base64.b64encode(b"\x01" + bytes(31)).decode()
STORED = {
    "type": "BlockStored",
    "block_hashes": [11, 12],
    "parent_block_hash": None,
    "token_ids": list(range(32)),
    "block_size": 16,
    "lora_id": None,
    "medium": "GPU",
    "lora_name": None,
}
BATCHES: list[dict[str, Any]] = [
    {"ts": 1732970000.1234567, "events": [STORED], "data_parallel_rank": 0},
    {
        "ts": 1732970000.5,
        "events": [
            STORED | {"block_hashes": [-13], "parent_block_hash": 12, "token_ids": [5] * 16, "lora_id": 3},
            {"type": "BlockRemoved", "block_hashes": [11, 12], "medium": "GPU", "group_idx": 1},
            {"type": "AllBlocksCleared"},
        ],
    },
    {"ts": 1732970001.0, "events": [STORED | {"block_hashes": [BYTES, 2], "parent_block_hash": BYTES}]},
    {"ts": 1732970002.0, "events": []},
]


def _as_batch(trace: Trace) -> dict[str, Any]:
    """The facts of a batch that are kept."""
    events = []
    details: Any = trace.begin.meta.get("events") or [{}] * len(trace.events)
    for event, kept in zip(trace.events, details, strict=True):
        assert isinstance(event, Kv)
        facts: dict[str, Any] = {"blocks": list(event.blocks), **kept}
        if event.operation == "store":
            facts |= {"parent": event.parent, "size": event.block_tokens, "tokens": event.input_tokens}
        events.append((event.operation, facts))
    times = {event.time_ns / 10**9 for event in trace.events if isinstance(event, Kv) and event.time_ns}
    return {"ts": times, "events": events, "rank": trace.begin.meta.get("data_parallel_rank")}


def _expected(batch: dict[str, Any]) -> dict[str, Any]:
    def number(block: Any) -> Any:
        return int.from_bytes(base64.b64decode(block), "big") if isinstance(block, str) else block

    operations = {"BlockStored": "store", "BlockRemoved": "remove", "AllBlocksCleared": "clear"}
    events = []
    for event in batch["events"]:
        facts: dict[str, Any] = {"blocks": [number(block) for block in event.get("block_hashes", [])]}
        names = ("lora_id", "medium", "lora_name", "group_idx")
        facts |= {name: event[name] for name in names if event.get(name) is not None}
        if event["type"] == "BlockStored":
            facts |= {"parent": number(event["parent_block_hash"]), "size": event["block_size"]}
            facts["tokens"] = len(event["token_ids"])
        events.append((operations[event["type"]], facts))
    return {
        "ts": {batch["ts"]} if events else set(),
        "events": events,
        "rank": batch.get("data_parallel_rank"),
    }


def _as_arrays(batch: dict[str, Any]) -> list[Any]:
    """The batch as the versions of vLLM write it that encode arrays, without what is null at the end."""
    events = []
    for event in batch["events"]:
        values = list(event.values())
        while values[-1] is None:
            values.pop()
        events.append(values)
    rank = batch.get("data_parallel_rank")
    return [batch["ts"], events, *([] if rank is None else [rank])]


@pytest.mark.parametrize("form", ["objects", "arrays"])
def test_batches_of_block_events_can_be_rebuilt(form: str, tmp_path: Path) -> None:
    batches = BATCHES if form == "objects" else [_as_arrays(batch) for batch in BATCHES]
    path = _lines(tmp_path / "x", batches)
    traces = list(_own(path, "vllm_kv_events", tmp_path))
    assert [_as_batch(trace) for trace in traces] == [_expected(batch) for batch in BATCHES]
    assert [trace.end.status for trace in traces] == ["unknown", "unknown", "unknown", "empty"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"type": "BlockMoved"},
            "events[0].type: expected one of BlockStored, BlockRemoved, AllBlocksCleared",
        ),
        ({"colour": 1}, "events[0].colour: expected only block_hashes, "),
        (
            {"block_hashes": [1, 2.5]},
            "events[0].block_hashes[1]: expected a whole number, or bytes in base64",
        ),
        ({"block_hashes": ["?"]}, "events[0].block_hashes[0]: expected a whole number, or bytes in base64"),
        ({"block_hashes": [1]}, "events[0].token_ids: expected 16 tokens for each of 1 blocks, found 32"),
        ({"block_size": 0}, "events[0].token_ids: expected a block_size from 1"),
        ({"parent_block_hash": True}, "events[0].parent_block_hash: expected a whole number"),
    ],
)
def test_vllm_faults_are_named(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    batch = {"ts": 0.5, "events": [STORED | change]}
    assert _error(_lines(tmp_path / "x", [BATCHES[0], batch])).startswith(f"line 2: {expected}")


def test_arrays_of_too_many_values_are_named(tmp_path: Path) -> None:
    path = _lines(tmp_path / "x", [_as_arrays(BATCHES[0]), [0.5, [["AllBlocksCleared", 1]], 0]])
    assert _error(path) == "line 2: events[0]: expected at most 0 values, found 1"
