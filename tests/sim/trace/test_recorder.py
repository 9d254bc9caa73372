"""The recorder: what a search program writes is what can be read, and a fault leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import EVENT_TYPES, Append, Backtrack, Begin, End, Event, Join, Jump, Kv, Node, Select
from sim.trace.recorder import Recorder
from sim.trace.schema import read_traces

from .samples import short_trace


def test_every_kind_of_event(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    with Recorder(path) as trace:
        trace.begin("all", algorithm="dfs", order_known=False, source="test", meta={"order": "made up"})
        root = trace.node(kind="root", state_bytes=32, tokens=5, ext_id="r", text="start")
        trace.save(root, 32)
        trace.expand(root, 2)
        left = trace.node(root)
        right = trace.node(root)
        low = trace.node(left, right)
        assert (root, left, right, low, trace.nodes) == (0, 1, 2, 3, 4)
        trace.eval(left, 1.5)
        trace.eval(right, None)
        trace.select([left, right], [left], live_only=True)
        trace.select_by_score([left, right], [right])
        trace.prune(low, "dead")
        trace.prune(left, "enough", abandoned=True)
        trace.backtrack(low, root)
        trace.restore(root, 32)
        trace.jump(low, right)
        trace.spawn(root, [left, right])
        trace.join([left, right], low)
        trace.append(low, 7, mark="wait")
        trace.append(low, size=5, text="wait,")
        trace.backup([low, left, root], 0.5)
        trace.free(low)
        trace.kv("request", [0, 4], block_tokens=512, input_tokens=1000, output_tokens=20)
        trace.kv("store", [5], parent=4, time_ns=-1)
        trace.end("solved")
    (read,) = read_traces(path)
    assert {event.name for event in read} == set(EVENT_TYPES)
    assert read.begin == Begin(
        version=2,
        trace="all",
        algorithm="dfs",
        order_known=False,
        source="test",
        meta={"order": "made up"},
    )
    expected: list[Event] = [
        Node(id=0, parents=(), depth=0, kind="root", state_bytes=32, tokens=5, ext_id="r", text="start"),
        Node(id=3, parents=(1, 2), depth=2),
        Select(candidates=(1, 2), chosen=(1,), live_only=True),
        Select(candidates=(1, 2), chosen=(2,), order="score"),
        Backtrack(from_=3, to=0, untried_source="declared"),
        Jump(from_=3, to=2),
        Join(ids=(1, 2), to=3),
        Append(id=3, tokens=7, mark="wait"),
        Append(id=3, bytes=5, text="wait,"),
        Kv(operation="request", blocks=(0, 4), block_tokens=512, input_tokens=1000, output_tokens=20),
        Kv(operation="store", blocks=(5,), parent=4, time_ns=-1),
    ]
    for event in expected:
        assert event in read.events
    assert read.end == End(status="solved")


def test_several_traces_count_their_nodes_alone(tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    with Recorder(path) as trace:
        for name in ("one", "two"):
            trace.begin(name, algorithm="dfs")
            root = trace.node()
            assert trace.node(root) == 1
            assert trace.nodes == 2
            trace.end("unsolved")
    assert [trace.name for trace in read_traces(path)] == ["one", "two"]


def test_events_at_hand_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with Recorder(path) as trace:
        for event in short_trace():
            trace.write(event)
    assert [list(read) for read in read_traces(path)] == [short_trace()]


def test_a_fault_is_raised_where_it_is_made_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    with pytest.raises(TraceError, match=r"bad\.jsonl: line 4: backtrack\.to: expected a proper ancestor"):
        with Recorder(path) as trace:
            trace.begin("bad", algorithm="dfs")
            root = trace.node()
            left = trace.node(root)
            trace.backtrack(root, left)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parent", [1, 7, -1])
def test_an_unknown_parent_is_a_fault(tmp_path: Path, parent: int) -> None:
    with pytest.raises(TraceError, match=r"line 3: node\.parents\[0\]: expected"):
        with Recorder(tmp_path / "bad.jsonl") as trace:
            trace.begin("bad", algorithm="dfs")
            trace.node()
            trace.node(parent)
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Recorder(tmp_path / "x.jsonl") as trace:
        trace.begin("x", algorithm="dfs")
        trace.node()
        raise KeyError("the search program's own fault")
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_forgets_the_end_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="expected an `end` event"):
        with Recorder(tmp_path / "x.jsonl") as trace:
            trace.begin("x", algorithm="dfs")
            trace.node()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_outside_the_block(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside the `with` block"):
        Recorder(tmp_path / "x.jsonl").begin("x", algorithm="dfs")
