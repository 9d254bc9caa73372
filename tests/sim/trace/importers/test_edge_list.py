"""The generic edge list."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.trace.events import Backtrack, Eval, Jump, Node, Prune
from sim.trace.importers import import_file
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from .faults import fault
from .synthetic import edge_list, of, one

HEADER = ("id", "parent", "score", "dead", "text", "tokens", "bytes", "trace")
ROWS = (
    ("a", "", "", "", "start", "", "", "p"),
    ("b", "a", "0.5", "true", 'two, "2"\nlines', "4", "", "p"),
    ("c", "a", "-1.5", "", "≈", "", "96", "p"),
    ("d", "c;b", "", "1", "", "0", "", "p"),
    ("e", "a", "2.25", "false", "", "", "", "p"),
    ("a", "", "", "", "", "", "", "q"),
)


def _write(path: Path, *rows: tuple[str, ...]) -> Path:
    path.write_text(edge_list(*rows), encoding="utf-8")
    return path


def _rebuilt(trace: Trace) -> list[tuple[object, ...]]:
    nodes = of(trace, Node)
    scores = {event.id: event.score for event in of(trace, Eval)}
    dead = {event.id for event in of(trace, Prune)}
    return [
        (
            node.ext_id,
            ";".join(nodes[parent].ext_id for parent in node.parents),
            scores.get(node.id),
            node.id in dead,
            node.text or "",
            node.tokens,
            node.state_bytes,
        )
        for node in nodes
    ]


def test_a_file_can_be_rebuilt(tmp_path: Path) -> None:
    write_traces(tmp_path / "own", import_file(_write(tmp_path / "edges", HEADER, *ROWS)))
    expected = {
        name: [
            (
                row[0],
                row[1],
                float(row[2]) if row[2] else None,
                row[3] in ("true", "1"),
                row[4],
                int(row[5]) if row[5] else None,
                int(row[6]) if row[6] else len(row[4].encode()),
            )
            for row in ROWS
            if row[7] == name
        ]
        for name in ("p", "q")
    }
    assert {trace.name: _rebuilt(trace) for trace in read_traces(tmp_path / "own")} == expected


def test_columns_in_any_order_and_no_more_than_two(tmp_path: Path) -> None:
    trace = one(_write(tmp_path / "edges", ("Parent", " id "), ("", "a"), ("a", "b")))
    assert [(node.ext_id, node.parents) for node in of(trace, Node)] == [("a", ()), ("b", (0,))]
    assert trace.end.status == "unknown"


def test_lines_tell_where_the_search_goes(tmp_path: Path) -> None:
    """Back to an ancestor, or over to a node that is none."""
    rows = [("a", ""), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "c")]
    trace = one(_write(tmp_path / "edges", ("id", "parent"), *rows))
    assert [(event.from_, event.to) for event in of(trace, Backtrack)] == [(2, 0)]
    assert [(event.from_, event.to) for event in of(trace, Jump)] == [(3, 2)]
    assert tally([trace]).agreed == {"climb": 1, "ancestor": 1}


def test_a_search_that_is_not_depth_first_is_not_checked_as_one(tmp_path: Path) -> None:
    """From c to the root, past b, which gets another child later."""
    rows = [("a", ""), ("b", "a"), ("c", "b"), ("d", "a"), ("e", "b")]
    trace = one(_write(tmp_path / "edges", ("id", "parent"), *rows))
    assert [(event.check, event.reason) for event in of(trace, Backtrack)] == [
        ("none", "the search did not go back to the nearest node with children left to try")
    ]


def test_several_roots(tmp_path: Path) -> None:
    trace = one(_write(tmp_path / "edges", ("id", "parent"), ("a", ""), ("b", ""), ("c", "a"), ("d", "b;a")))
    assert [node.parents for node in of(trace, Node)] == [(), (), (0,), (1, 0)]
    assert [(event.from_, event.to) for event in of(trace, Jump)] == [(1, 0), (2, 1)]
    assert tally([trace]).agreed == {"ancestor": 2}


def test_empty_lines_are_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "edges"
    path.write_text("id,parent\na,\n\nb,a\n\n")
    assert one(path).nodes == 2


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    from sim.trace.importers import edge_list as importer

    document = importer.__doc__
    assert document is not None
    path = tmp_path / "edges"
    path.write_text(
        "".join(f"{line.strip()}\n" for line in document[document.index("    id,") :].splitlines())
    )
    trace = one(path)
    assert [node.ext_id for node in of(trace, Node)] == ["a", "b", "c"]
    assert tally([trace]).agreed == {"climb": 1}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [("id", "parent", "weight"), ("a", "", "1")],
            "line 1: header: expected only id, parent, score, dead, text, tokens, bytes, trace, found the",
        ),
        ([("id", "parent", "id")], "line 1: header: expected each column once, found id twice"),
        ([("id", "parent"), ("a",)], "line 2: CSV: expected 2 values, as the header, found 1"),
        (
            [("id", "parent"), ("a", ""), ("b", "c")],
            "line 3: parent: expected an id of a line above, found 'c'",
        ),
        ([("id", "parent"), ("a", "a")], "line 2: parent: expected an id of a line above, found 'a'"),
        (
            [("id", "parent"), ("a", ""), ("a", "")],
            "line 3: id: expected an id that no line above has, found 'a'",
        ),
        ([("id", "parent"), ("", "")], "line 2: id: expected an id, found none"),
        ([("id", "parent", "score"), ("a", "", "inf")], "line 2: score: expected a finite number, found"),
        (
            [("id", "parent", "score"), ("a", "", "best")],
            "line 2: score: expected a finite number, found 'best'",
        ),
        ([("id", "parent", "dead"), ("a", "", "yes")], "line 2: dead: expected true, false, 1, 0 or nothing"),
        (
            [("id", "parent", "tokens"), ("a", "", "-1")],
            "line 2: tokens: expected a count from 0, found '-1'",
        ),
        (
            [("id", "parent", "bytes"), ("a", "", "1e3")],
            "line 2: bytes: expected a count from 0, found '1e3'",
        ),
        ([("id", "parent"), ("a", ""), ("b", "a;a")], "line 2: node.parents: expected each parent once"),
        ([("id", "parent")], "records: expected at least one problem, found none"),
        (
            [("id", "parent", "trace"), ("a", "", "p"), ("a", "", "q"), ("b", "a", "p")],
            "line 4: parent: expected an id of a line above, found 'a'",
        ),
        (
            [("id", "parent", "trace"), ("a", "", "p"), ("a", "", "q"), ("a", "", "p")],
            "line 4: begin.trace: expected a name that is unique in the file, found 'p'",
        ),
    ],
)
def test_faults_are_named(rows: list[tuple[str, ...]], expected: str, tmp_path: Path) -> None:
    assert fault(_write(tmp_path / "edges", *rows)).startswith(expected)


@pytest.mark.parametrize("content", ['id,parent\n"a,\n', 'id,parent\n"a"b,\n'])
def test_damaged_lines_are_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "edges"
    path.write_text(content)
    assert fault(path).startswith("line 2: CSV: expected a line of comma-separated values, found ")


def test_a_header_alone_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "edges"
    path.write_text("a,\nb,a\n")
    assert fault(path).startswith("content: expected one of the known kinds")
