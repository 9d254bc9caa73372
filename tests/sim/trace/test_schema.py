"""Reading and writing trace files: round trips, faults named in one line, nothing half-written."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.trace.codec import decode, decode_line, encode, encode_line
from sim.trace.errors import FieldError, TraceError
from sim.trace.events import (
    EVENT_TYPES,
    Append,
    Backtrack,
    Backup,
    Begin,
    End,
    Eval,
    Event,
    Expand,
    Free,
    Join,
    Jump,
    Kv,
    Node,
    Prune,
    Restore,
    Save,
    Select,
    Spawn,
)
from sim.trace.schema import TraceWriter, read_traces, write_traces
from sim.trace.validator import MAX_STATE_BYTES, Validator

from .samples import short_trace

COUNTS = st.integers(0, 1 << 40)
TEXTS = st.text(max_size=12)
FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def _path(parents: list[tuple[int, ...]], node: int) -> list[int]:
    path = [node]
    while parents[path[-1]]:
        path.append(parents[path[-1]][0])
    return path


@st.composite
def traces(draw: st.DrawFn, name: str = "trace") -> list[Event]:
    """Any valid trace of up to thirty events."""
    events: list[Event] = [
        Begin(
            version=1,
            trace=name,
            algorithm=draw(TEXTS),
            order_known=draw(st.booleans()),
            source=draw(TEXTS),
            meta=draw(st.dictionaries(TEXTS, PLAIN, max_size=3)),
        )
    ]
    parents: list[tuple[int, ...]] = []
    depths: list[int] = []

    def node() -> None:
        above: tuple[int, ...] = ()
        if parents:
            known = st.integers(0, len(parents) - 1)
            above = tuple(draw(st.lists(known, max_size=3, unique=True)))
        depth = depths[above[0]] + 1 if above else 0
        events.append(
            Node(
                id=len(parents),
                parents=above,
                depth=depth,
                kind=draw(TEXTS),
                state_bytes=draw(st.integers(0, MAX_STATE_BYTES)),
                tokens=draw(st.none() | COUNTS),
                ext_id=draw(st.none() | TEXTS),
                text=draw(st.none() | TEXTS),
            )
        )
        parents.append(above)
        depths.append(depth)

    def other() -> None:
        ids = st.integers(0, len(parents) - 1)
        id_lists = st.lists(ids, min_size=1, max_size=4).map(tuple)
        one = draw(ids)
        kind = draw(st.sampled_from(sorted(EVENT_TYPES.keys() - {"begin", "end", "node"})))
        reason = draw(st.text(min_size=1, max_size=8))
        path = _path(parents, one)
        match kind:
            case "expand":
                source = draw(st.sampled_from(["declared", "recomputed", "lookahead"]))
                events.append(Expand(id=one, untried=draw(COUNTS), untried_source=source))
            case "eval":
                events.append(Eval(id=one, score=draw(st.none() | FLOAT32)))
            case "select":
                candidates = draw(id_lists)
                count = draw(st.integers(1, len(candidates)))
                order = draw(st.sampled_from(["exact", "score"]))
                events.append(
                    Select(
                        candidates=candidates,
                        chosen=candidates[:count],
                        order=order,
                        live_only=draw(st.booleans()),
                    )
                )
            case "prune":
                events.append(Prune(id=one, reason=reason, abandoned=draw(st.booleans())))
            case "backtrack":
                to = draw(st.sampled_from([None, *path[1:]]))
                source = draw(st.sampled_from([None, "declared", "lookahead"]))
                events.append(Backtrack(from_=one, to=to, untried_source=source))
            case "jump":
                to = draw(ids)
                if to in path:
                    events.append(Jump(from_=one, to=to, check="none", reason=reason))
                else:
                    events.append(Jump(from_=one, to=to))
            case "save":
                events.append(Save(id=one, bytes=draw(st.integers(0, MAX_STATE_BYTES))))
            case "restore":
                events.append(Restore(id=one, bytes=draw(st.integers(0, MAX_STATE_BYTES))))
            case "spawn":
                events.append(Spawn(id=one, ids=draw(id_lists)))
            case "join":
                events.append(Join(ids=draw(id_lists), to=one))
            case "append":
                size = draw(st.integers(0, MAX_STATE_BYTES))
                tokens, mark, text = (draw(st.none() | values) for values in (COUNTS, TEXTS, TEXTS))
                events.append(Append(id=one, tokens=tokens, mark=mark, bytes=size, text=text))
            case "backup":
                events.append(Backup(path=tuple(path), value=draw(st.floats(-100, 100))))
            case "free":
                events.append(Free(id=one))
            case "kv":
                blocks = tuple(draw(st.lists(st.integers(), max_size=3)))
                sizes = [draw(st.none() | COUNTS) for _ in range(3)]
                operation = draw(st.sampled_from(["request", "store", "remove", "clear"]))
                events.append(
                    Kv(
                        operation=operation,
                        blocks=() if operation == "clear" else blocks,
                        block_tokens=sizes[0],
                        input_tokens=sizes[1],
                        output_tokens=sizes[2],
                        parent=draw(st.none() | st.integers()) if operation == "store" else None,
                        time_ns=draw(st.none() | st.integers()),
                    )
                )

    node()
    for _ in range(draw(st.integers(0, 28))):
        node() if draw(st.integers(0, 2)) == 0 else other()
    status = draw(st.sampled_from(["solved", "unsolved", "budget", "exhausted", "error", "unknown"]))
    events.append(End(status=status))
    return events


@given(traces())
@settings(max_examples=80, deadline=None)
def test_events_survive_their_line(events: list[Event]) -> None:
    validator = Validator()
    for event in events:
        line = encode_line(event)
        assert line.endswith("\n") and line.count("\n") == 1 and line.isascii()
        again = decode_line(line)
        assert again == event and type(again) is type(event)
        validator.feed(again)
    validator.finish()


@given(st.lists(st.just(0), min_size=1, max_size=4), st.data())
@settings(max_examples=30, deadline=None)
def test_files_survive(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("traces") / "file.jsonl"
    written = [data.draw(traces(name=f"trace {index}")) for index in range(len(numbers))]
    assert write_traces(path, written) == len(written)
    read = list(read_traces(path))
    assert [list(trace) for trace in read] == written
    assert [trace.index for trace in read] == list(range(len(written)))
    assert all(trace.file == str(path) for trace in read)
    assert [trace.nodes for trace in read] == [
        sum(isinstance(event, Node) for event in events) for events in written
    ]


def test_the_key_of_from_is_from() -> None:
    record = encode(Backtrack(from_=3, to=None))
    assert record == {"event": "backtrack", "from": 3, "to": None}
    assert decode(record) == Backtrack(from_=3, to=None)


def test_defaults_are_left_out_and_put_back() -> None:
    assert encode(Node(id=0, parents=(), depth=0)) == {"event": "node", "id": 0, "parents": [], "depth": 0}


# -- Faults ------------------------------------------------------------------------------------------

Records = list[dict[str, Any]]


def _lines(spoil: Callable[[Records], object]) -> str:
    records: Records = [json.loads(encode_line(event)) for event in short_trace()]
    spoil(records)
    return "".join(json.dumps(record) + "\n" for record in records)


def _find(records: Records, event: str) -> int:
    return next(index for index, record in enumerate(records) if record["event"] == event)


def _set(event: str, /, **values: object) -> Callable[[Records], object]:
    """Change keys of the first event of a kind; a trailing underscore is not part of the key."""

    def spoil(records: Records) -> None:
        record = records[_find(records, event)]
        record.update({key.rstrip("_"): value for key, value in values.items()})

    return spoil


def _drop(event: str, key: str) -> Callable[[Records], object]:
    return lambda records: records[_find(records, event)].pop(key)


def _node(index: int, **values: object) -> Callable[[Records], object]:
    """Change keys of the node with this id."""

    def spoil(records: Records) -> None:
        nodes = [record for record in records if record["event"] == "node"]
        nodes[index].update(values)

    return spoil


# What is done to the short trace; the line, field and texts that the message must have.
FAULTS: dict[str, tuple[Callable[[Records], object], int, str, tuple[str, ...]]] = {
    # The shape of a line
    "unknown event": (_set("save", event="sav"), 3, "event", ("one of begin, node", "'sav'")),
    "event is a number": (_set("save", event=3), 3, "event", ("one of begin", "found 3")),
    "no event": (_drop("save", "event"), 3, "event", ("a key `event`",)),
    "unknown key": (_set("save", size=1), 3, "save.size", ("only id, bytes", "unknown key")),
    "missing key": (_drop("save", "bytes"), 3, "save.bytes", ("a value", "no such key")),
    "id is a string": (_set("save", id="0"), 3, "save.id", ("an integer", "'0'")),
    "id is a float": (_set("save", id=0.0), 3, "save.id", ("an integer", "0.0")),
    "id is true": (_set("save", id=True), 3, "save.id", ("an integer", "True")),
    "id is null": (_set("save", id=None), 3, "save.id", ("an integer", "None")),
    "parents is a number": (_node(1, parents=0), 6, "node.parents", ("a list of integers", "found 0")),
    "a parent is a string": (_node(1, parents=["0"]), 6, "node.parents[0]", ("an integer",)),
    "text is a number": (_node(1, text=3), 6, "node.text", ("a string",)),
    "flag is a number": (_set("prune", abandoned=1), 8, "prune.abandoned", ("true or false",)),
    "meta is a list": (_set("begin", meta=[]), 1, "begin.meta", ("an object",)),
    "NaN in meta": (_set("begin", meta={"a": [float("nan")]}), 1, "begin.meta.a[0]", ("finite", "NaN")),
    "unknown source": (
        _set("expand", untried_source="guess"),
        4,
        "expand.untried_source",
        ("one of declared, recomputed, lookahead", "'guess'"),
    ),
    "unknown check": (_set("backtrack", check="select"), 9, "backtrack.check", ("one of climb, none",)),
    "unknown status": (_set("end", status="done"), 22, "end.status", ("one of solved",)),
    # Order
    "no begin": (lambda r: r.pop(0), 1, "event", ("a `begin` event", "`node` outside a trace")),
    "begin twice": (lambda r: r.insert(3, r[0]), 4, "event", ("the `end` of the trace before",)),
    "event after the end": (lambda r: r.append(r[2]), 23, "event", ("a `begin`", "`save` outside")),
    "no end": (lambda r: r.pop(), 22, "event", ("an `end` event", "cut off")),
    "no nodes": (lambda r: r.__delitem__(slice(1, -1)), 2, "event", ("at least one `node`", "empty trace")),
    "the same name twice": (
        lambda r: r.extend([dict(r[0])]),
        23,
        "begin.trace",
        ("unique in the file", "'short'"),
    ),
    "another version": (_set("begin", version=3), 1, "begin.version", ("expected 1 to 2", "found 3")),
    # The tree
    "ids with a gap": (_node(2, id=5), 12, "node.id", ("expected 2", "dense", "found 5")),
    "an id twice": (_node(2, id=1), 12, "node.id", ("expected 2", "found 1")),
    "its own parent": (_node(2, parents=[2]), 12, "node.parents[0]", ("below 2", "cycle", "found 2")),
    "a younger parent": (_node(2, parents=[0, 3]), 12, "node.parents[1]", ("below 2", "cycle", "found 3")),
    "a negative parent": (_node(1, parents=[-1]), 6, "node.parents[0]", ("0 to 0", "found -1")),
    "a parent twice": (_node(3, parents=[2, 2]), 14, "node.parents", ("each parent once",)),
    "depth that is not the parent's and 1": (_node(3, depth=3), 14, "node.depth", ("expected 2", "found 3")),
    "a root below the top": (_node(0, depth=1), 2, "node.depth", ("expected 0", "found 1")),
    "depth beyond its field": (_node(1, depth=4096), 6, "node.depth", ("at most 4095", "12-bit", "4096")),
    "state beyond its field": (
        _node(1, state_bytes=MAX_STATE_BYTES + 1),
        6,
        "node.state_bytes",
        ("0 to 2097120 bytes", "16-bit number of 32-byte blocks", "found 2097121"),
    ),
    "negative state": (_node(1, state_bytes=-1), 6, "node.state_bytes", ("0 to", "found -1")),
    "negative tokens": (_node(1, tokens=-1), 6, "node.tokens", ("a count from 0",)),
    # Ids before their node
    "save": (_set("save", id=1), 3, "save.id", ("a node before it (0 to 0)", "found 1")),
    "negative id": (_set("save", id=-1), 3, "save.id", ("a node before it", "found -1")),
    "restore": (_set("restore", id=9), 10, "restore.id", ("0 to 1",)),
    "expand": (_set("expand", id=1), 4, "expand.id", ("a node before it",)),
    "eval": (_set("eval", id=2), 7, "eval.id", ("a node before it",)),
    "prune": (_set("prune", id=2), 8, "prune.id", ("a node before it",)),
    "backtrack from": (_set("backtrack", from_=2), 9, "backtrack.from", ("a node before it",)),
    "backtrack to": (_set("backtrack", to=2), 9, "backtrack.to", ("a node before it",)),
    "jump from": (_set("jump", from_=9), 18, "jump.from", ("a node before it (0 to 4)",)),
    "jump to": (_set("jump", to=9), 18, "jump.to", ("a node before it",)),
    "select candidates": (_set("select", candidates=[9]), 19, "select.candidates[0]", ("before it",)),
    "select chosen": (_set("select", chosen=[1, 9]), 19, "select.chosen[1]", ("before it",)),
    "backup": (_set("backup", path=[9]), 20, "backup.path[0]", ("before it",)),
    # Values
    "NaN score": (_set("eval", score=float("nan")), 7, "eval.score", ("a finite number", "NaN")),
    "infinite score": (_set("eval", score=float("-inf")), 7, "eval.score", ("a finite number", "-inf")),
    "score of digits": (_set("eval", score=10**400), 7, "eval.score", ("a finite number",)),
    "score beyond float32": (_set("eval", score=1e39), 7, "eval.score", ("a float32", "1e+39")),
    "score is text": (_set("eval", score="1"), 7, "eval.score", ("a finite number", "'1'")),
    "negative untried": (_set("expand", untried=-1), 4, "expand.untried", ("a count from 0", "-1")),
    "negative bytes": (_set("save", bytes=-1), 3, "save.bytes", ("0 to 2097120",)),
    "prune without reason": (_set("prune", reason=""), 8, "prune.reason", ("a reason",)),
    # Answers
    "not an ancestor": (
        lambda r: r.insert(20, {"event": "backtrack", "from": 3, "to": 4}),
        21,
        "backtrack.to",
        ("a proper ancestor of node 3", "found 4"),
    ),
    "not a proper ancestor": (_set("backtrack", to=1), 9, "backtrack.to", ("a proper ancestor", "found 1")),
    "second parent": (
        lambda r: r.insert(20, {"event": "backtrack", "from": 3, "to": 1}),
        21,
        "backtrack.to",
        ("a proper ancestor of node 3",),
    ),
    "none without reason": (_set("backtrack", check="none"), 9, "backtrack.reason", ("why `check` is none",)),
    "reason without none": (_set("jump", reason="odd"), 18, "jump.reason", ("null", "'odd'")),
    "jump nowhere": (_set("jump", to=None), 18, "jump.to", ("an id, or check none",)),
    "jump to an ancestor": (_set("jump", to=2), 18, "jump.to", ("an ancestor", "found 2")),
    "jump to itself": (_set("jump", to=3), 18, "jump.to", ("neither node 3",)),
    "chosen is no candidate": (
        _set("select", chosen=[1, 3]),
        19,
        "select.chosen",
        ("out of `candidates`", "[3]"),
    ),
    "chosen once too often": (_set("select", chosen=[1, 1]), 19, "select.chosen", ("out of `candidates`",)),
    "nothing chosen": (_set("select", chosen=[]), 19, "select.chosen", ("at least one id",)),
    "no candidates": (_set("select", candidates=[]), 19, "select.candidates", ("at least one id",)),
    "path that skips": (_set("backup", path=[3, 0]), 20, "backup.path[1]", ("expected 2", "found 0")),
    "path by the second parent": (_set("backup", path=[3, 1, 0]), 20, "backup.path[1]", ("expected 2",)),
    "path beyond the root": (_set("backup", path=[0, 0]), 20, "backup.path[1]", ("the end at a root",)),
    "empty path": (_set("backup", path=[]), 20, "backup.path", ("at least one id",)),
    "value beyond its field": (_set("backup", value=32768.0), 20, "backup.value", ("Q16.16", "32768.0")),
    "empty spawn": (
        lambda r: r.insert(20, {"event": "spawn", "id": 0, "ids": []}),
        21,
        "spawn.ids",
        ("at least one id",),
    ),
    "join of unknown": (
        lambda r: r.insert(20, {"event": "join", "ids": [1, 7], "to": 0}),
        21,
        "join.ids[1]",
        ("a node before it",),
    ),
    "negative append": (
        lambda r: r.insert(20, {"event": "append", "id": 0, "tokens": -1}),
        21,
        "append.tokens",
        ("a count from 0",),
    ),
    "append of too many bytes": (
        lambda r: r.insert(20, {"event": "append", "id": 0, "bytes": MAX_STATE_BYTES + 1}),
        21,
        "append.bytes",
        (f"0 to {MAX_STATE_BYTES} bytes",),
    ),
    "clear of blocks": (
        lambda r: r.insert(20, {"event": "kv", "operation": "clear", "blocks": [1]}),
        21,
        "kv.blocks",
        ("none to clear", "[1]"),
    ),
    "parent of removed blocks": (
        lambda r: r.insert(20, {"event": "kv", "operation": "remove", "blocks": [1], "parent": 0}),
        21,
        "kv.parent",
        ("with `store` only", "found 0"),
    ),
    "unknown operation": (
        lambda r: r.insert(20, {"event": "kv", "operation": "move"}),
        21,
        "kv.operation",
        ("one of request, store, remove, clear",),
    ),
    "free of unknown": (lambda r: r.insert(20, {"event": "free", "id": 7}), 21, "free.id", ("before it",)),
    "negative kv": (
        lambda r: r.insert(
            20,
            {
                "event": "kv",
                "operation": "request",
                "blocks": [],
                "block_tokens": 512,
                "input_tokens": -1,
                "output_tokens": 0,
            },
        ),
        21,
        "kv.input_tokens",
        ("a count from 0",),
    ),
}


def _fault(tmp_path: Path, content: bytes) -> TraceError:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        list(read_traces(path))
    text = str(caught.value)
    assert "\n" not in text and text.startswith(f"{path}: ")
    assert len(text) < len(str(path)) + 300
    return caught.value


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named(tmp_path: Path, name: str) -> None:
    spoil, line, field, parts = FAULTS[name]
    error = _fault(tmp_path, _lines(spoil).encode())
    assert (error.location, error.field) == (line, field)
    text = str(error)
    assert f": line {line}: {field}: expected " in text
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("content", "line", "field", "part"),
    [
        (b"", 1, "event", "an empty file"),
        (b"\n", 1, "JSON", "one complete JSON object"),
        (b"[1]\n", 1, "event", "a JSON object, found [1]"),
        (b"\xff{}\n", 1, "encoding", "UTF-8, found byte 0xff"),
        (b"PK\x03\x04zip", 1, "JSON", "one complete JSON object"),
        (b'{"event": "begin", "event": "end"}\n', 1, "event", "twice in one object"),
        (b"[" * 100_000, 1, "JSON", "one complete JSON object"),
        (b'{"event": "eval", "id": ' + b"9" * 5000 + b"}\n", 1, "JSON", "one complete JSON object"),
    ],
)
def test_foreign_content_is_named(tmp_path: Path, content: bytes, line: int, field: str, part: str) -> None:
    error = _fault(tmp_path, content)
    assert (error.location, error.field) == (line, field)
    assert part in str(error)


def test_the_short_trace_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "good.jsonl"
    path.write_text(_lines(lambda records: None), encoding="utf-8")
    assert [list(trace) for trace in read_traces(path)] == [short_trace()]


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = _lines(lambda records: None).encode()
    for length in range(0, len(whole) - 1, 3):
        _fault(tmp_path, whole[:length])


def test_traces_before_a_fault_are_given(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    write_traces(path, [short_trace("one"), short_trace("two")])
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    traces = read_traces(path)
    assert next(traces).name == "one"
    with pytest.raises(TraceError):
        next(traces)


def test_untried_beyond_its_field_is_legal(tmp_path: Path) -> None:
    """4095 and more decide the same, so the image saturates; the trace keeps the true count."""
    path = tmp_path / "many.jsonl"
    path.write_text(_lines(_set("expand", untried=5000)), encoding="utf-8")
    (trace,) = read_traces(path)
    assert Expand(id=0, untried=5000, untried_source="declared") in trace.events


def test_the_deepest_tree_is_legal_and_one_more_is_not(tmp_path: Path) -> None:
    begin, end = Begin(version=1, trace="deep", algorithm="dfs"), End(status="unknown")
    nodes = [Node(id=depth, parents=(depth - 1,) if depth else (), depth=depth) for depth in range(4097)]
    path = tmp_path / "deep.jsonl"
    assert write_traces(path, [[begin, *nodes[:4096], end]]) == 1
    with pytest.raises(TraceError, match=r"line 4098: node\.depth: expected at most 4095"):
        write_traces(path, [[begin, *nodes, end]])
    assert len(next(read_traces(path)).events) == 4096


def test_root_only_tree_is_legal(tmp_path: Path) -> None:
    path = tmp_path / "root.jsonl"
    events: list[Event] = [
        Begin(version=1, trace="root", algorithm="dfs"),
        Node(id=0, parents=(), depth=0),
        End(status="unsolved"),
    ]
    write_traces(path, [events])
    assert [list(trace) for trace in read_traces(path)] == [events]


def test_too_many_visits_are_named() -> None:
    validator = Validator()
    validator.feed(Begin(version=1, trace="visits", algorithm="mcts"))
    validator.feed(Node(id=0, parents=(), depth=0))
    for _ in range(65535):
        validator.feed(Backup(path=(0,), value=0.0))
    with pytest.raises(FieldError, match="at most 65535 visits"):
        validator.feed(Backup(path=(0,), value=0.0))


# -- Writing -----------------------------------------------------------------------------------------


def test_a_fault_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    bad = [*short_trace()[:-1], Save(id=99, bytes=0)]
    with pytest.raises(TraceError, match=r"out\.jsonl: line 22: save\.id"):
        write_traces(path, [bad])
    assert list(tmp_path.iterdir()) == []


def test_a_trace_without_end_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(TraceError, match="an `end` event"):
        write_traces(path, [short_trace()[:-1]])
    assert list(tmp_path.iterdir()) == []


def test_no_traces_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="an empty file"):
        write_traces(tmp_path / "out.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_traces(path, [short_trace("old")])
    old = path.read_bytes()
    with pytest.raises(ZeroDivisionError), TraceWriter(path) as writer:
        for event in short_trace("new"):
            writer.write(event)
        assert path.read_bytes() == old
        _ = 1 // 0
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named_by_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "out.jsonl"
    with pytest.raises(FileNotFoundError) as caught:
        write_traces(path, [short_trace()])
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("kind", ["folder", "pipe", "empty name"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    before = list(tmp_path.iterdir())
    with pytest.raises(OSError, match=r"expected a (regular )?file") as caught:
        write_traces("" if kind == "empty name" else path, [short_trace()])
    assert caught.value.filename == ("." if kind == "empty name" else str(path))
    assert list(tmp_path.iterdir()) == before and not path.is_file()


def test_a_link_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    write_traces(link, [short_trace()])
    assert link.is_symlink() and (tmp_path / "real").is_file()


def test_a_score_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    events = short_trace()
    events[6] = Eval(id=1, score=float("nan"))
    with pytest.raises(TraceError, match=r"line 7: eval\.score: expected a finite number, found NaN"):
        write_traces(tmp_path / "out.jsonl", [events])


def test_memory_does_not_grow_with_the_number_of_problems(tmp_path: Path) -> None:
    def peak(problems: int) -> int:
        path = tmp_path / f"{problems}.jsonl"
        write_traces(path, (short_trace(f"problem {number}") for number in range(problems)))
        tracemalloc.start()
        assert sum(trace.nodes for trace in read_traces(path)) == 5 * problems
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)  # caches fill
    # A name's hash is all that stays of a problem: about 100 bytes, where its events take 5,000 and more.
    # What the garbage collector has not come to yet may be as much again and more.
    assert peak(420) - peak(20) < 400 * 750


def test_a_trace_may_have_no_node_if_it_has_a_request_or_is_empty() -> None:
    begin = Begin(version=2, trace="served", algorithm="serving")
    for events in ([begin, Kv(operation="clear"), End(status="unknown")], [begin, End(status="empty")]):
        validator = Validator()
        for event in events:
            validator.feed(event)
        validator.finish()
        assert (validator.traces, validator.nodes) == (1, 0)
