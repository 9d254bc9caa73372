"""OmegaPRM trees: scores and dead ends, an order that is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backtrack, Eval, Node, Prune
from sim.trace.importers import import_file
from sim.trace.oracle import Oracle
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import shared
from .faults import fault
from .synthetic import KINDS, of, omegaprm_node, one

SAMPLES = "omegaprm_tree/math_aps_tree.jsonl"


def _write(path: Path, *trees: Any) -> Path:
    lines = (json.dumps({"question": "q", "final_answer": "4", "reasoning_steps": tree}) for tree in trees)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _rebuilt(trace: Trace) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for event in trace.events:
        if isinstance(event, Node):
            nodes.append({"text": event.text, "mc_value": None, "children": []})
            for parent in event.parents:
                nodes[parent]["children"].append(nodes[-1])
        elif isinstance(event, Eval):
            nodes[event.id]["mc_value"] = event.score
    return nodes[0]


def _round_trip(path: Path, out: Path) -> None:
    write_traces(out, import_file(path))
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for trace, record in zip(read_traces(out), records, strict=True):
        assert _rebuilt(trace) == record["reasoning_steps"]
        for key in ("question", "final_answer", "question_id"):
            assert trace.begin.meta[key] == record[key]


def test_samples_can_be_rebuilt(tmp_path: Path) -> None:
    _round_trip(shared(SAMPLES), tmp_path / "own.jsonl")


def test_a_small_file_can_be_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "trees"
    path.write_text(KINDS["omegaprm_tree"](3), encoding="utf-8")
    _round_trip(path, tmp_path / "own.jsonl")


def test_statistics_of_the_whole_set_hold_in_the_samples() -> None:
    """24 to 143 nodes, depth up to 4, fan-out up to 34, dead where mc_value is 0 (workloads, section 2)."""
    traces = list(import_file(shared(SAMPLES)))
    assert [trace.nodes for trace in traces] == [90, 24]
    for trace in traces:
        nodes = of(trace, Node)
        assert max(node.depth for node in nodes) <= 4
        assert max(Counter(parent for node in nodes for parent in node.parents).values()) <= 34
        scores = {event.id: event.score for event in of(trace, Eval)}
        assert len(scores) == len(nodes)
        assert {prune.id for prune in of(trace, Prune)} == {
            node for node, score in scores.items() if score == 0
        }
        assert trace.end.status == "unknown"


def test_no_backtrack_of_an_order_that_was_made_up_is_checked(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "trees", omegaprm_node("q", 0.5, omegaprm_node("a", 1.0), omegaprm_node("b", 1.0))
    )
    traces = import_file(path)
    (trace,) = traces
    assert trace.begin.order_known is False and trace.begin.meta["order"] == "preorder"
    assert [(event.check, event.reason) for event in of(trace, Backtrack)] == [
        ("none", "the order of visits is lost")
    ]
    assert traces.summary.checked == {}
    assert traces.summary.unchecked == {"the order of visits is lost": 1}


def test_the_counts_fit_the_order_that_was_made_up(tmp_path: Path) -> None:
    """The backtracks that are not checked could be: each goes where a climb would."""
    traces = list(import_file(shared(SAMPLES)))
    for trace in traces:
        oracle = Oracle()
        for event in trace:
            assert not isinstance(event, Backtrack) or oracle.agrees(event)
            oracle.feed(event)


def test_value_0_is_a_dead_end_only_where_the_search_stopped(tmp_path: Path) -> None:
    tree = omegaprm_node("q", 0.5, omegaprm_node("a", 0.0), omegaprm_node("b", 0.0, omegaprm_node("c", 1.0)))
    trace = one(_write(tmp_path / "trees", tree))
    assert [(prune.id, prune.reason) for prune in of(trace, Prune)] == [(1, "mc_value 0")]


def test_steps_without_a_value_have_no_score(tmp_path: Path) -> None:
    trace = one(_write(tmp_path / "trees", omegaprm_node("q", 0.5, omegaprm_node("a", None))))
    assert [(event.id, event.score) for event in of(trace, Eval)] == [(0, 0.5)]


def test_root_alone(tmp_path: Path) -> None:
    assert one(_write(tmp_path / "trees", omegaprm_node("q", 0.0))).nodes == 1


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "value is text": (
        lambda r: r["children"][0].__setitem__("mc_value", "1"),
        "line 2: reasoning_steps.children[0].mc_value: expected a finite number, found '1'",
    ),
    "no text": (
        lambda r: r["children"][0].pop("text"),
        "line 2: reasoning_steps.children[0].text: expected a string, found no such key",
    ),
    "children are an object": (
        lambda r: r.__setitem__("children", {}),
        "line 2: reasoning_steps.children: expected a list, found {}",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    good = omegaprm_node("q", 0.5)
    bad = omegaprm_node("q", 0.5, omegaprm_node("a", 1.0))
    spoil, expected = FAULTS[name]
    spoil(bad)
    assert fault(_write(tmp_path / "trees", good, bad)).startswith(expected)
