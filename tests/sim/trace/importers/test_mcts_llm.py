"""Monte-Carlo tree searches of a language model: visits and values come back from the backups."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backup, Eval, Node
from sim.trace.importers import import_file
from sim.trace.oracle import Oracle
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import shared, write_json
from .faults import fault
from .synthetic import mcts_node, mcts_search, of, one


def _samples() -> list[Path]:
    return sorted(shared("mcts_llm").glob("*.json"))


def _rebuilt(trace: Trace) -> dict[str, Any]:
    """The source's tree, from the events alone: visits and value sums are those of the backups."""
    oracle = Oracle()
    states: list[str] = []
    nodes: list[dict[str, Any]] = []
    restated: Any = trace.begin.meta.get("restated", [])
    for event in trace:
        oracle.feed(event)
        if isinstance(event, Node):
            above = states[event.parents[0]] if event.parents and event.id not in restated else ""
            states.append(above + (event.text or ""))
            nodes.append({"state": states[-1], "is_terminal": event.kind == "terminal", "children": []})
            for parent in event.parents:
                nodes[parent]["children"].append(nodes[-1])
    answers: Any = trace.begin.meta["answers"]
    values = {event.id: event.score for event in trace.events if isinstance(event, Eval)}
    for identifier, node in enumerate(nodes):
        node |= {"visits": oracle.visits[identifier], "value": values[identifier]}
        node["answer"] = answers.get(str(identifier))
        if oracle.visits[identifier]:
            total = node["value"] * (
                oracle.visits[identifier] if trace.begin.meta["value_is"] == "mean" else 1
            )
            assert oracle.values[identifier] == pytest.approx(total, abs=1e-9)
    return nodes[0]


def _source(node: dict[str, Any]) -> dict[str, Any]:
    kept = {key: node[key] for key in ("state", "visits", "value", "is_terminal", "answer")}
    return kept | {"children": [_source(child) for child in node["children"]]}


def _round_trip(path: Path, out: Path) -> None:
    write_traces(out, import_file(path))
    (trace,) = read_traces(out)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert _rebuilt(trace) == _source(record["root"])
    assert {key: trace.begin.meta[key] for key in record if key != "root"} == {
        key: value for key, value in record.items() if key != "root"
    }


def test_samples_can_be_rebuilt(tmp_path: Path) -> None:
    for path in _samples():
        _round_trip(path, tmp_path / path.name)


@pytest.mark.parametrize("root", [None, "sums"])
def test_a_small_search_can_be_rebuilt(root: str | None, tmp_path: Path) -> None:
    sums = mcts_node(
        "q", 3, 1.5, mcts_node("q a", 2, 1.0, mcts_node("q a b", 1, 1.0)), mcts_node("q ≈", 1, 0.5)
    )
    path = write_json(tmp_path / "search", mcts_search(None if root is None else sums))
    _round_trip(path, tmp_path / "own.jsonl")
    assert one(path).begin.meta["value_is"] == ("mean" if root is None else "sum")


def test_every_simulation_of_the_samples_is_a_backup_to_the_root() -> None:
    for path in _samples():
        trace = one(path)
        backups = of(trace, Backup)
        assert len(backups) == trace.begin.meta["simulations_run"]
        assert {backup.path[-1] for backup in backups} == {0}


def test_statistics_of_the_whole_set_hold_in_the_samples() -> None:
    """Depth up to 18, branching up to 5, at most 64 nodes, all scored, none dead (workloads, section 2)."""
    for path in _samples():
        trace = one(path)
        nodes = of(trace, Node)
        assert len(nodes) <= 64 and max(node.depth for node in nodes) <= 18
        assert len(of(trace, Eval)) == len(nodes)
        assert trace.end.status == "unknown"


def test_the_order_is_lost_and_the_one_made_up_is_named(tmp_path: Path) -> None:
    traces = import_file(write_json(tmp_path / "search", mcts_search()))
    (trace,) = traces
    assert trace.begin.order_known is False
    assert trace.begin.meta["order"] == "preorder"
    assert traces.summary.remarks == {"order of visits lost; the events follow: preorder": 1}
    assert traces.summary.checked == {"backup": 3}


def test_simulations_end_where_visits_say(tmp_path: Path) -> None:
    """Two end at the same terminal, one at an inner node before it had children."""
    end = mcts_node("q a b", 2, 0.75, is_terminal=True, answer="b")
    root = mcts_node("q", 3, 0.5, mcts_node("q a", 3, 0.5, end))
    trace = one(write_json(tmp_path / "search", mcts_search(root)))
    assert of(trace, Backup) == [
        Backup(path=(1, 0), value=0.0),
        Backup(path=(2, 1, 0), value=0.75),
        Backup(path=(2, 1, 0), value=0.75),
    ]


def test_node_without_visits(tmp_path: Path) -> None:
    root = mcts_node("q", 1, 0.5, mcts_node("q a", 1, 0.5), mcts_node("q b", 0, 0.0))
    trace = one(write_json(tmp_path / "search", mcts_search(root)))
    assert of(trace, Backup) == [Backup(path=(1, 0), value=0.5)]
    assert [event.score for event in of(trace, Eval)] == [0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    "root",
    [
        mcts_node("q", 1, 0.5, mcts_node("q a", 1, 0.5), mcts_node("q b", 1, 0.5)),
        mcts_node("q", 2, 0.9, mcts_node("q a", 1, 0.5), mcts_node("q b", 1, 0.5)),
    ],
    ids=["more visits below", "another value"],
)
def test_numbers_that_do_not_add_up_give_no_backups(root: dict[str, Any], tmp_path: Path) -> None:
    traces = import_file(write_json(tmp_path / "search", mcts_search(root)))
    (trace,) = traces
    assert of(trace, Backup) == []
    assert trace.begin.meta["visits"] == [root["visits"], 1, 1]
    assert [event.score for event in of(trace, Eval)] == [root["value"], 0.5, 0.5]
    reasons = {what for what in traces.summary.remarks if "no backups" in what}
    assert len(reasons) == 1


def test_state_that_does_not_go_on_from_its_parents(tmp_path: Path) -> None:
    path = write_json(tmp_path / "search", mcts_search(mcts_node("q", 1, 0.5, mcts_node("other", 1, 0.5))))
    trace = one(path)
    assert [node.text for node in of(trace, Node)] == ["q", "other"]
    assert trace.begin.meta["restated"] == [1]
    _round_trip(path, tmp_path / "own.jsonl")


def test_state_bytes_are_those_of_the_whole_text(tmp_path: Path) -> None:
    trace = one(write_json(tmp_path / "search", mcts_search()))
    assert [node.state_bytes for node in of(trace, Node)] == [1, 3, 5, 5]
    assert [node.text for node in of(trace, Node)] == ["q", " a", " b", " ≈"]


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "visits below 0": (
        lambda r: r["children"][0].__setitem__("visits", -1),
        "record 0: root.children[0].visits: expected a count from 0, found -1",
    ),
    "value is NaN": (
        lambda r: r.__setitem__("value", float("nan")),
        "record 0: root.value: expected a finite number, found NaN",
    ),
    "no state": (
        lambda r: r["children"][1].pop("state"),
        "record 0: root.children[1].state: expected a string, found no such key",
    ),
    "child is text": (
        lambda r: r["children"].append("x"),
        "record 0: root.children[2]: expected an object, found 'x'",
    ),
    "no children": (
        lambda r: r["children"][0].pop("children"),
        "record 0: root.children[0].children: expected a list, found no such key",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    search = mcts_search()
    spoil, expected = FAULTS[name]
    spoil(search["root"])
    assert fault(write_json(tmp_path / "search", search)).startswith(expected)
