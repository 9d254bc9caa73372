"""Tree-of-Thoughts creative writing, chosen by votes: on the public samples and on a small file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backtrack, Eval, Jump, Node, Prune, Select
from sim.trace.importers import import_file
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import shared, write_json
from .faults import fault
from .synthetic import of, one, tot_problem

SAMPLES = "tot_text/text_vote5.json"


def _rebuilt(trace: Trace) -> dict[str, Any]:
    """The source's record, from the events alone."""
    texts: list[str] = []
    scores: dict[int, float | None] = {}
    steps: list[dict[str, Any]] = []
    ys = [""]
    for event in trace.events:
        if isinstance(event, Node):
            above = texts[event.parents[0]] if event.parents else ""
            texts.append(above + (event.text or ""))
        elif isinstance(event, Eval):
            scores[event.id] = event.score
        elif isinstance(event, Select):
            kept = [texts[node] for node in event.chosen]
            steps.append(
                {
                    "ys": ys,
                    "new_ys": [texts[node] for node in event.candidates],
                    "values": [scores[node] for node in event.candidates],
                    "select_new_ys": kept,
                }
            )
            ys = kept
    meta = trace.begin.meta
    return {"steps": steps, "ys": ys, **{key: meta[key] for key in ("idx", "accs", "usage_so_far")}}


def _source(record: dict[str, Any]) -> dict[str, Any]:
    steps = [
        {key: step[key] for key in ("ys", "new_ys", "values", "select_new_ys")} for step in record["steps"]
    ]
    return {"steps": steps, **{key: record[key] for key in ("ys", "idx", "accs", "usage_so_far")}}


def _round_trip(path: Path, out: Path) -> None:
    write_traces(out, import_file(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    traces = list(read_traces(out))
    assert [_rebuilt(trace) for trace in traces] == [_source(record) for record in document]
    assert [trace.begin.meta["x"] for trace in traces] == [record["steps"][0]["x"] for record in document]


def test_samples_can_be_rebuilt(tmp_path: Path) -> None:
    _round_trip(shared(SAMPLES), tmp_path / "own.jsonl")


def test_a_small_file_can_be_rebuilt(tmp_path: Path) -> None:
    path = write_json(
        tmp_path / "log", [tot_problem("write ", accs=[0]), tot_problem('more "quoted" ', accs=[1])]
    )
    _round_trip(path, tmp_path / "own.jsonl")
    assert [trace.end.status for trace in import_file(path)] == ["unsolved", "solved"]


def test_statistics_of_the_whole_set_hold_in_the_samples() -> None:
    """Per problem 11 nodes, depth 2, 8 of them left by the beam, no backtrack (workloads, section 2)."""
    traces = list(import_file(shared(SAMPLES)))
    assert len(traces) == 9
    for trace in traces:
        nodes = of(trace, Node)
        assert (len(nodes), max(node.depth for node in nodes)) == (11, 2)
        assert [prune.reason for prune in of(trace, Prune)] == ["beam"] * 8
        assert of(trace, Backtrack) == of(trace, Jump) == []
        assert trace.end.status == "unsolved"
    result = tally(traces)
    assert result.checked == result.agreed == {"select": 18}


def test_equal_votes_go_to_the_first(tmp_path: Path) -> None:
    trace = one(write_json(tmp_path / "log", [tot_problem("write ")]))
    assert tally([trace]).agreed == {"select": 2}
    problem = tot_problem("write ")
    problem["steps"][1]["select_new_ys"] = ["plan ≈\ny"]
    trace = one(write_json(tmp_path / "log", [problem]))
    assert tally([trace]).agreed == {"select": 1}


def test_without_a_verdict_the_status_is_unknown(tmp_path: Path) -> None:
    assert one(write_json(tmp_path / "log", [tot_problem("write ")])).end.status == "unknown"


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "vote is text": (
        lambda r: r["steps"][0]["values"].__setitem__(0, "3"),
        "record 0: steps[0].values[0]: expected a finite number, found '3'",
    ),
    "verdict is NaN": (
        lambda r: r["accs"].append(float("nan")),
        "record 0: accs[1]: expected a finite number, found NaN",
    ),
    "passage of no plan": (
        lambda r: r["steps"][1]["new_ys"].__setitem__(2, "z"),
        "record 0: steps[1].new_ys[2]: expected a text that begins with one of `ys`, found 'z'",
    ),
    "kept what was not proposed": (
        lambda r: r["steps"][1]["select_new_ys"].__setitem__(0, "z"),
        "record 0: steps[1].select_new_ys[0]: expected one of the texts of `new_ys`",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    problem = tot_problem("write ", accs=[0])
    spoil, expected = FAULTS[name]
    spoil(problem)
    assert fault(write_json(tmp_path / "log", [problem])).startswith(expected)
