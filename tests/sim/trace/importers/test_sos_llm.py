"""Stream of Search written by a language model: what it has wrong is kept, counted and not believed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backtrack, Expand, Jump, Node, Prune
from sim.trace.importers import import_file
from sim.trace.importers.sos_llm_events import OTHER_ORDER, UNKNOWN_MOVE
from sim.trace.importers.sos_llm_path import ORPHANS, OTHER, REUSED, UNKNOWN
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import shared
from .faults import fault
from .synthetic import SOS_LLM_TEXT, of, one, sos_llm_record

SAMPLES = "sos_llm/qwen25_sft_countdown.jsonl"

#: Kept apart from the importer's own: a line of the format, and what a trace must still tell of it.
_TOLD = re.compile(
    r"Generated Node #(?P<id>[\d,]+): -?\d+:\[(?P<numbers>[-\d., ]*)\],? Operation: (?P<made>.+)"
    r"|Moving to Node #(?P<move>[\d,]*\d)"
    r"|Exploring Operation: (?P<tried>.+), Resulting Numbers: \[(?P<left>[-\d., ]*)\]"
    r"|.* (?P<verdict>unequal: No Solution|equal: Goal Reached)"
)


def _write(path: Path, *texts: str, **changes: object) -> Path:
    lines = (json.dumps(sos_llm_record(text, **changes), ensure_ascii=False) for text in texts)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _matches(text: str) -> list[re.Match[str]]:
    """The lines of the format; of the last one, which may be cut, only what shows that it is whole."""
    *lines, last = text.split("\n")
    ended = [match for line in lines if (match := _TOLD.fullmatch(line))]
    cut = _TOLD.fullmatch(last)
    return [*ended, *([cut] if cut and (cut["tried"] or cut["verdict"]) else [])]


def _told(text: str) -> list[tuple[str, str | None]]:
    """What a text makes, in order: nodes with their id and text, results with their verdict."""
    told: list[tuple[str, str | None]] = []
    tried: re.Match[str] | None = None
    for match in _matches(text):
        if match["id"]:
            told.append((match["id"], f"{match['made']}, Resulting Numbers: [{match['numbers']}]"))
            tried = None
        elif match["move"]:
            tried = None
        elif match["tried"]:
            tried = match
        elif match["verdict"]:
            dead = "dead" if match["verdict"].startswith("unequal") else "goal"
            text = None if tried is None else f"{tried['tried']}, Resulting Numbers: [{tried['left']}]"
            told.append((dead, text))
            tried = None
    return told


def _rebuilt(trace: Trace) -> list[tuple[str, str | None]]:
    dead = {prune.id for prune in of(trace, Prune)}
    return [
        (node.ext_id or ("dead" if node.id in dead else "goal"), node.text)
        for node in of(trace, Node)
        if node.id
    ]


def _unknown_moves(text: str) -> int:
    """Moves to an id that was not given before."""
    given, unknown = {"0"}, 0
    for match in _matches(text):
        if match["id"]:
            given.add(match["id"])
        elif match["move"]:
            unknown += match["move"] not in given
    return unknown


def _round_trip(path: Path, out: Path) -> None:
    write_traces(out, import_file(path))
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for trace, record in zip(read_traces(out), records, strict=True):
        assert _rebuilt(trace) == _told(record["completion"])
        assert trace.begin.meta["nums"] == record["nums"]
        assert trace.begin.meta["target"] == record["target"]
        assert trace.begin.meta["parsed_results"] == record["parsed_results"]
        unknown = [jump for jump in of(trace, Jump) if jump.to is None]
        assert len(unknown) == _unknown_moves(record["completion"])


def test_samples_can_be_rebuilt(tmp_path: Path) -> None:
    _round_trip(shared(SAMPLES), tmp_path / "own.jsonl")


def test_a_small_file_can_be_rebuilt(tmp_path: Path) -> None:
    texts = (SOS_LLM_TEXT, "", SOS_LLM_TEXT[:-30], SOS_LLM_TEXT.replace("#0,1", "#0,7,1"))
    _round_trip(_write(tmp_path / "texts", *texts), tmp_path / "own.jsonl")


def test_every_checked_answer_of_the_samples_agrees() -> None:
    traces = import_file(shared(SAMPLES))
    result = tally(traces)
    assert result.agreed == result.checked
    assert result.checked["climb"] > 300 and result.checked["ancestor"] > 150
    assert set(result.unchecked) == {UNKNOWN_MOVE, OTHER_ORDER}
    # Most of what goes up does go to the nearest node with children left: the check is not empty.
    assert result.checked["climb"] > 10 * result.unchecked[OTHER_ORDER]
    assert set(traces.summary.remarks) == {ORPHANS, OTHER, REUSED, UNKNOWN}


def test_statistics_of_the_whole_set_hold_in_the_samples() -> None:
    """At most 229 nodes, depth at most 36, dead exactly what is `unequal` (workloads, section 2)."""
    traces = list(import_file(shared(SAMPLES)))
    assert len(traces) == 21
    for trace, line in zip(traces, shared(SAMPLES).read_text(encoding="utf-8").splitlines(), strict=True):
        record = json.loads(line)
        nodes = of(trace, Node)
        assert len(nodes) <= 229 and max(node.depth for node in nodes) <= 36
        told = _told(record["completion"])
        assert len(nodes) == len(told) + 1
        assert len(of(trace, Prune)) == sum(first == "dead" for first, _ in told)
        status = "solved" if record["parsed_results"]["solved"] else "unsolved"
        assert trace.end.status == ("empty" if len(nodes) == 1 else status)
    assert sum(trace.end.status == "empty" for trace in traces) == 6


def test_an_operation_belongs_to_the_state_that_it_fits(tmp_path: Path) -> None:
    """The model does not say that it goes on at the node it just made; the numbers do."""
    trace = one(_write(tmp_path / "texts", SOS_LLM_TEXT))
    assert [(node.ext_id, node.parents, node.depth) for node in of(trace, Node)] == [
        ("0", (), 0),
        ("0,0", (0,), 1),
        (None, (1,), 2),
        ("0,1", (0,), 1),
        (None, (3,), 2),
    ]
    assert [(event.from_, event.to) for event in of(trace, Backtrack)] == [(2, 0)]
    assert of(trace, Jump) == []
    assert [prune.id for prune in of(trace, Prune)] == [2]
    assert tally([trace]).agreed == {"climb": 1}


def test_the_answer_counts_and_not_what_the_text_says(tmp_path: Path) -> None:
    """`Goal Reached` by 5+11=92 is not believed; without a verdict nothing is."""
    assert one(_write(tmp_path / "a", SOS_LLM_TEXT)).end.status == "unsolved"
    assert one(_write(tmp_path / "b", SOS_LLM_TEXT, parsed_results={"solved": True})).end.status == "solved"
    record = sos_llm_record()
    del record["parsed_results"]
    path = tmp_path / "c"
    path.write_text(json.dumps(record))
    assert one(path).end.status == "unknown"


def test_parent_that_was_never_given(tmp_path: Path) -> None:
    """The node is a root of its own: what it would hang from is not made up."""
    traces = import_file(_write(tmp_path / "texts", SOS_LLM_TEXT.replace("#0,1", "#0,7,1")))
    (trace,) = traces
    orphan = of(trace, Node)[3]
    assert (orphan.ext_id, orphan.parents, orphan.depth) == ("0,7,1", (), 0)
    assert of(trace, Node)[4].parents == (3,)
    assert traces.summary.remarks == {ORPHANS: 1}
    assert [(jump.from_, jump.to, jump.check) for jump in of(trace, Jump)] == [(0, 3, "ancestor")]
    assert tally([trace]).agreed == {"ancestor": 1}
    # The root got no other child, so nothing is left to try where the text went back to.
    assert traces.summary.unchecked == {OTHER_ORDER: 1}


def test_id_given_twice(tmp_path: Path) -> None:
    """Moves go to the last node with the id, unless the state shown after the move is that of another."""
    text = SOS_LLM_TEXT.replace("#0,1", "#0,0")
    traces = import_file(_write(tmp_path / "texts", text))
    (trace,) = traces
    assert traces.summary.remarks == {REUSED: 1}
    assert of(trace, Node)[4].parents == (3,)
    state = "Current State: 92:[5, 11], Operations: ['3+8=11']"
    assert state in text
    other = text.replace(state, "Current State: 92:[3, 3], Operations: []")
    trace = one(_write(tmp_path / "other", other))
    assert of(trace, Node)[4].parents == (1,)
    more = "Generated Node #0,0,5: 92:[6] Operation: 3+3=6\n"
    assert of(one(_write(tmp_path / "stands", other + more)), Node)[5].parents == (1,)
    assert of(one(_write(tmp_path / "last", text + more)), Node)[5].parents == (3,)


def test_results_of_one_state_are_no_moves(tmp_path: Path) -> None:
    """A second result of the state where the text stands needs no way back from the first."""
    more = "Exploring Operation: 5*11=55, Resulting Numbers: [55]\n55,92 unequal: No Solution\n"
    trace = one(_write(tmp_path / "texts", SOS_LLM_TEXT + more))
    assert [node.parents for node in of(trace, Node)][4:] == [(3,), (3,)]
    assert len(of(trace, Backtrack)) == 1


def test_move_to_an_id_that_was_never_given(tmp_path: Path) -> None:
    text = SOS_LLM_TEXT.replace("Moving to Node #0\n", "Moving to Node #0,9\n")
    traces = import_file(_write(tmp_path / "texts", text))
    (trace,) = traces
    jump = of(trace, Jump)[0]
    assert (jump.to, jump.check, jump.reason) == (None, "none", UNKNOWN_MOVE)
    assert traces.summary.unchecked == {UNKNOWN_MOVE: 1}
    assert traces.summary.remarks == {UNKNOWN: 1}
    # What is made next says where: its id extends the root's.
    assert of(trace, Node)[3].parents == (0,)


def test_result_below_a_state_that_is_unknown(tmp_path: Path) -> None:
    text = (
        "Moving to Node #0,9\nExploring Operation: 1+1=2, Resulting Numbers: [2]\n2,92 unequal: No Solution\n"
    )
    trace = one(_write(tmp_path / "texts", text))
    assert [node.parents for node in of(trace, Node)] == [(), ()]
    assert [prune.id for prune in of(trace, Prune)] == [1]


@pytest.mark.parametrize("cut", range(1, len(SOS_LLM_TEXT), 7))
def test_text_that_is_cut_anywhere(cut: int, tmp_path: Path) -> None:
    whole = one(_write(tmp_path / "whole", SOS_LLM_TEXT))
    part = one(_write(tmp_path / "part", SOS_LLM_TEXT[:cut]))
    assert _rebuilt(whole)[: part.nodes - 1] == _rebuilt(part)


@pytest.mark.parametrize("line", ["[-26],92", "\u22129,92", "9, 9,92", "Exploring Operation: 26,92", "9,92"])
def test_dead_ends_in_half_the_words(line: str, tmp_path: Path) -> None:
    """What the model calls unequal is a dead end, even where the result is not written as it should be."""
    traces = import_file(_write(tmp_path / "texts", SOS_LLM_TEXT.replace("9,92 unequal", f"{line} unequal")))
    (trace,) = traces
    assert [prune.id for prune in of(trace, Prune)] == [2]
    assert of(trace, Node)[2].parents == (1,)
    assert traces.summary.remarks == {}


def test_lines_in_other_words_are_counted(tmp_path: Path) -> None:
    text = "Let me think.\n" + SOS_LLM_TEXT + "```\nSOLUTION: YES\n≈ 32+(-58)\nGenerated No"
    traces = import_file(_write(tmp_path / "texts", text))
    (trace,) = traces
    assert traces.summary.remarks == {OTHER: 5}
    assert _rebuilt(trace) == _told(SOS_LLM_TEXT)


def test_text_without_a_tree(tmp_path: Path) -> None:
    traces = list(import_file(_write(tmp_path / "texts", "QUANTUM[length=4]", "")))
    assert [(trace.nodes, trace.end.status) for trace in traces] == [(1, "empty"), (1, "empty")]


def test_a_list_that_begins_with_how_it_was_made(tmp_path: Path) -> None:
    """As the program that asks the model writes it."""
    about: list[dict[str, Any]] = [{"hyperparams": {"seed": 4}}, {"trial_success_rates": [0.5], "mean": 0.5}]
    path = tmp_path / "results"
    path.write_text(json.dumps([*about, sos_llm_record(), sos_llm_record("")], indent=4))
    traces = list(import_file(path))
    assert [(trace.name, trace.nodes) for trace in traces] == [("sos_llm/0", 5), ("sos_llm/1", 1)]
    path.write_text(json.dumps([*about, sos_llm_record(), []], indent=4))
    assert fault(path).startswith("record 3: record: expected an object, found []")


def test_deeper_than_the_game_allows(tmp_path: Path) -> None:
    lines = [f"Generated Node #{','.join('0' * depth)}: 92:[1] Operation: 1+1=1" for depth in range(2, 38)]
    trace = one(_write(tmp_path / "texts", "\n".join([*lines, ""])))
    assert max(node.depth for node in of(trace, Node)) == 36


def test_numbers_that_are_no_integers(tmp_path: Path) -> None:
    text = (
        SOS_LLM_TEXT.replace("8-5=3", "8/5=1.6").replace("[3, 3]", "[3, 1.6]").replace("3*3=9", "3*1.6=4.8")
    )
    text = text.replace("[9]", "[4.8]").replace("9,92 unequal", "4.8,92 unequal")
    assert of(one(_write(tmp_path / "texts", text)), Node)[2].parents == (1,)


def test_going_back_elsewhere_than_a_search_would_is_not_checked(tmp_path: Path) -> None:
    """Up to the root past a node that gets another child later."""
    text = SOS_LLM_TEXT + (
        "Moving to Node #0,0\nExploring Operation: 3-3=0, Resulting Numbers: [0]\n0,92 unequal: No Solution\n"
    )
    traces = import_file(_write(tmp_path / "texts", text))
    (trace,) = traces
    assert [(event.from_, event.to, event.reason) for event in of(trace, Backtrack)] == [(2, 0, OTHER_ORDER)]
    assert {event.untried_source for event in of(trace, Expand)} == {"lookahead"}
    assert tally([trace]).agreed == {"ancestor": 1}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"completion": None}, "record 0: completion: expected a string, found None"),
        ({"target": "92"}, "record 0: target: expected an integer, found '92'"),
        ({"nums": [3, None]}, "record 0: nums[1]: expected an integer, found None"),
        ({"parsed_results": []}, "record 0: parsed_results: expected an object, found []"),
        (
            {"parsed_results": {}},
            "record 0: parsed_results.solved: expected true or false, found no such key",
        ),
    ],
)
def test_record_faults_are_named(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    assert fault(_write(tmp_path / "texts", SOS_LLM_TEXT, **changes)).startswith(expected)
