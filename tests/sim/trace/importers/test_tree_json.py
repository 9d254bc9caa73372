"""The generic nested tree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backtrack, Eval, Node, Prune
from sim.trace.importers import import_file
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import write_json
from .faults import fault
from .synthetic import of, one


def _node(identifier: str | int, *children: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"id": identifier, **more, "children": list(children)}


def _example() -> dict[str, Any]:
    inner = _node("b", _node("c", dead=True, score=-1.5), _node("d", text="≈", tokens=3), score=0.5, bytes=64)
    more = {"trace": "puzzle", "algorithm": "dfs", "status": "solved", "order": "preorder"}
    return _node("a", inner, _node(7, text="last", score=2.0), **more)


def _rebuilt(trace: Trace) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    for event in trace.events:
        if isinstance(event, Node):
            node = {
                "id": event.ext_id,
                "text": event.text,
                "tokens": event.tokens,
                "bytes": event.state_bytes,
            }
            nodes.append(node | {"score": None, "dead": False, "children": []})
            for parent in event.parents:
                nodes[parent]["children"].append(nodes[-1])
        elif isinstance(event, Eval):
            nodes[event.id]["score"] = event.score
        elif isinstance(event, Prune):
            nodes[event.id]["dead"] = True
    return nodes[0]


def _source(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": str(node["id"]),
        "text": node.get("text"),
        "tokens": node.get("tokens"),
        "bytes": node.get("bytes", len(node.get("text", "").encode())),
        "score": node.get("score"),
        "dead": node.get("dead", False),
        "children": [_source(child) for child in node["children"]],
    }


def test_a_tree_can_be_rebuilt(tmp_path: Path) -> None:
    write_traces(tmp_path / "own", import_file(write_json(tmp_path / "tree", _example())))
    (trace,) = read_traces(tmp_path / "own")
    assert _rebuilt(trace) == _source(_example())
    assert (trace.name, trace.begin.algorithm, trace.end.status) == ("puzzle", "dfs", "solved")


def test_resume_points_of_preorder_are_checked(tmp_path: Path) -> None:
    trace = one(write_json(tmp_path / "tree", _example()))
    assert trace.begin.order_known is True
    assert [(event.from_, event.to) for event in of(trace, Backtrack)] == [(2, 1), (3, 0)]
    result = tally([trace])
    assert result.agreed == {"climb": 2} and result.by_source == {"lookahead": 2}


def test_without_an_order_nothing_is_checked(tmp_path: Path) -> None:
    root = _example()
    del root["order"]
    traces = import_file(write_json(tmp_path / "tree", root))
    (trace,) = traces
    assert trace.begin.order_known is False
    assert traces.summary.unchecked == {"the order of visits is lost": 2}
    assert traces.summary.remarks == {"order of visits lost; the events follow: preorder": 1}


def test_inner_node_is_dead_after_its_last_descendant(tmp_path: Path) -> None:
    root = _node("a", _node("b", _node("c"), _node("d"), dead=True), _node("e"), order="preorder")
    trace = one(write_json(tmp_path / "tree", root))
    (prune,) = of(trace, Prune)
    place = trace.events.index(prune)
    assert isinstance(trace.events[place - 1], Node) and trace.events[place - 1].ext_id == "d"
    assert tally([trace]).agreed == {"climb": 2}


@pytest.mark.parametrize("form", ["one", "list", "lines", "values"])
def test_forms_of_a_file(form: str, tmp_path: Path) -> None:
    trees = [_node(number, _node("x")) for number in range(1 if form == "one" else 3)]
    path = tmp_path / "trees"
    text = {
        "one": json.dumps(trees[0], indent=1),
        "list": json.dumps(trees),
        "lines": "".join(json.dumps(tree) + "\n" for tree in trees),
        "values": "\n\n".join(json.dumps(tree, indent=2) for tree in trees),
    }
    path.write_text(text[form])
    assert [of(trace, Node)[0].ext_id for trace in import_file(path)] == [str(tree["id"]) for tree in trees]


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    from sim.trace.importers import tree_json

    document = tree_json.__doc__
    assert document is not None
    path = tmp_path / "tree"
    path.write_text(document[document.index("    {") :])
    trace = one(path)
    assert [node.ext_id for node in of(trace, Node)] == ["a", "b", "c"]
    assert tally([trace]).agreed == {"climb": 1}


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "unknown key": (
        lambda r: r["children"][0].__setitem__("Score", 1),
        "record 0: tree.children[0].Score: expected only id, text, tokens, bytes, score, dead, children",
    ),
    "key of a root": (
        lambda r: r["children"][0].__setitem__("status", "solved"),
        "record 0: tree.children[0].status: expected only id,",
    ),
    "status": (
        lambda r: r.__setitem__("status", "won"),
        "record 0: tree.status: expected one of solved, unsolved, budget, exhausted, error, empty, unknown",
    ),
    "order": (
        lambda r: r.__setitem__("order", "bfs"),
        "record 0: tree.order: expected one of preorder, found 'bfs'",
    ),
    "order is a list": (
        lambda r: r.__setitem__("order", ["preorder"]),
        "record 0: tree.order: expected one of preorder, found ['preorder']",
    ),
    "score": (
        lambda r: r["children"][1].__setitem__("score", "high"),
        "record 0: tree.children[1].score: expected a finite number, found 'high'",
    ),
    "id": (
        lambda r: r["children"][1].__setitem__("id", 1.5),
        "record 0: tree.children[1].id: expected a string or an integer, found 1.5",
    ),
    "tokens": (
        lambda r: r["children"][1].__setitem__("tokens", -1),
        "record 0: tree.children[1].tokens: expected a count from 0, found -1",
    ),
    "state too large": (
        lambda r: r.__setitem__("bytes", 1 << 30),
        "record 0: node.state_bytes: expected 0 to 2097120 bytes",
    ),
    "no children": (
        lambda r: r["children"][1].pop("children"),
        "record 0: tree.children[1].children: expected a list, found no such key",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    root = _example()
    spoil, expected = FAULTS[name]
    spoil(root)
    assert fault(write_json(tmp_path / "tree", root)).startswith(expected)


def test_something_after_the_trees(tmp_path: Path) -> None:
    path = tmp_path / "trees"
    path.write_text(json.dumps(_example()) + "\n]")
    assert fault(path).startswith("record 1: JSON: expected a value")
