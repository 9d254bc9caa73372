"""Importers of reasoning without a tree: step labels (PRM) and self-reflection, on public and own samples."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import Append, Eval, Event, Node, Prune, Select
from sim.trace.importers import detect, import_file, importers
from sim.trace.importers.reflection import segments
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from .samples import shared

PROCESSBENCH = ("gsm8k", "olympiadbench", "omnimath")


def _lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _of(trace: Trace, kind: type[Event]) -> list[Any]:
    return [event for event in trace.events if isinstance(event, kind)]


def _texts(trace: Trace) -> list[str]:
    """The whole text of every node, what it grew by included."""
    texts = [node.text for node in _of(trace, Node)]
    for event in _of(trace, Append):
        texts[event.id] += event.text
    return texts


def _scores(trace: Trace) -> dict[int, float | None]:
    return {event.id: event.score for event in _of(trace, Eval)}


def _round_trip(path: Path, kind: str, tmp_path: Path) -> list[tuple[Trace, Any]]:
    """The traces as this project's own file gives them back, each with its record."""
    assert detect(path).name == kind
    head = path.read_text(encoding="utf-8")[: 1 << 16]
    assert [importer.name for importer in importers() if importer.recognises(head)] == [kind]
    own = tmp_path / "own.jsonl"
    write_traces(own, import_file(path))
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return list(zip(read_traces(own), records, strict=True))


# -- ProcessBench ------------------------------------------------------------------------------------

SOLUTION = {
    "id": "own-0",
    "generator": "none",
    "problem": "1 + 1?",
    "steps": ["one", "two ≈ 3", "four"],
    "final_answer_correct": False,
    "label": 1,
}


def _check_processbench(trace: Trace, record: Any) -> None:
    assert _texts(trace) == [record["problem"], *record["steps"]]
    assert [node.parents for node in _of(trace, Node)] == [(), *((n,) for n in range(len(record["steps"])))]
    scores = _scores(trace)
    wrong = [node - 1 for node, score in scores.items() if score == -1]
    assert (wrong or [-1]) == [record["label"]]
    assert len(scores) == (record["label"] + 1 if record["label"] >= 0 else len(record["steps"]))
    assert trace.begin.meta == {key: record[key] for key in ("id", "generator")}
    assert (trace.end.status == "solved") == record["final_answer_correct"]


@pytest.mark.parametrize("name", PROCESSBENCH)
def test_processbench_can_be_rebuilt(name: str, tmp_path: Path) -> None:
    path = shared(f"prm/processbench_{name}.jsonl")
    for trace, record in _round_trip(path, "processbench", tmp_path):
        _check_processbench(trace, record)


def test_own_solutions_can_be_rebuilt(tmp_path: Path) -> None:
    records = [
        SOLUTION,
        SOLUTION | {"label": -1, "final_answer_correct": True},
        SOLUTION | {"label": -1, "steps": []},
        SOLUTION | {"label": 0, "final_answer_correct": True},  # right in the end, a step wrong
    ]
    path = _lines(tmp_path / "x", records)
    for trace, record in _round_trip(path, "processbench", tmp_path):
        _check_processbench(trace, record)
    array = tmp_path / "array"
    array.write_text(json.dumps(records))
    assert [list(trace) for trace in import_file(array)] == [list(trace) for trace in import_file(path)]


def test_steps_of_the_sample_are_as_many_as_of_the_whole_set() -> None:
    """Of the whole set p50 is 5, 8 and 7 steps, the most 16, 47 and 35; here are 3 of 5 heads of it."""
    for name, p50, most in (("gsm8k", 5, 16), ("olympiadbench", 8, 47), ("omnimath", 7, 35)):
        traces = import_file(shared(f"prm/processbench_{name}.jsonl"))
        counts = sorted(len(_of(trace, Node)) - 1 for trace in traces)
        assert abs(counts[len(counts) // 2] - p50) <= 2
        assert counts[-1] <= most


# -- Math-Shepherd -----------------------------------------------------------------------------------

MARKED = {
    "input": "What? Step 1: a + b \u043a\u0438\nStep 2: c - d \u043a\u0438",
    "label": "What? Step 1: a + b +\nStep 2: c - d -",
    "task": "GSM8K",
}


def _check_math_shepherd(trace: Trace, record: Any) -> None:
    texts, scores = _texts(trace), _scores(trace)
    parts = [text + ("\u043a\u0438" if node in scores else "") for node, text in enumerate(texts)]
    assert "".join(parts) == record["input"]
    signs = {1.0: "+", -1.0: "-"}
    labelled = [
        text + (signs[scores[node] or 0] if node in scores else "") for node, text in enumerate(texts)
    ]
    assert "".join(labelled) == record["label"]
    assert trace.begin.meta["task"] == record["task"]


def test_math_shepherd_can_be_rebuilt(tmp_path: Path) -> None:
    for trace, record in _round_trip(shared("prm/math_shepherd_sample.jsonl"), "math_shepherd", tmp_path):
        _check_math_shepherd(trace, record)


def test_own_marked_solutions_can_be_rebuilt(tmp_path: Path) -> None:
    records = [
        MARKED,
        MARKED | {"input": MARKED["input"] + " more", "label": MARKED["label"] + " more"},
        MARKED | {"input": "no step", "label": "no step"},
        {"input": "Step 1: \u043a\u0438", "label": "Step 1: +", "task": "MATH"},
    ]
    for trace, record in _round_trip(_lines(tmp_path / "x", records), "math_shepherd", tmp_path):
        _check_math_shepherd(trace, record)
    statuses = [trace.end.status for trace in import_file(tmp_path / "x")]
    assert statuses == ["unsolved", "unsolved", "unknown", "solved"]


# -- PRM800K -----------------------------------------------------------------------------------------


def _completion(text: str, rating: int | None, *, flagged: bool | None = False) -> dict[str, Any]:
    return {"text": text, "rating": rating, "flagged": flagged}


def _labelled(*steps: dict[str, Any], reason: str | None = "solution") -> dict[str, Any]:
    return {
        "labeler": None,
        "timestamp": "2022-01-01T00:00:00",
        "generation": 9,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {"problem": "1 + 1?", "ground_truth_answer": "2"},
        "label": {"steps": list(steps), "total_time": 17, "finish_reason": reason},
    }


def _step(completions: list[dict[str, Any]] | None, chosen: int | None, human: str | None = None) -> Any:
    written = None if human is None else {"text": human, "rating": None, "source": "human", "flagged": False}
    return {"completions": completions, "human_completion": written, "chosen_completion": chosen}


STEERED = [
    _labelled(
        _step([_completion("a", 1), _completion("b", -1)], 0),
        _step([_completion("c", -1), _completion("d", -1, flagged=True)], None, "by hand"),
        _step([_completion("e", 0), _completion("f", 1)], 0),  # a free choice
        _step([_completion("g", None)], 0),
    ),
    _labelled(_step([], None, "by hand"), _step([_completion("wrong", -1)], None), reason="found_error"),
    _labelled(_step(None, None), reason="give_up"),
    _labelled(reason=None),
]


def _check_prm800k(trace: Trace, record: Any) -> None:
    nodes = _of(trace, Node)
    scores = _scores(trace)
    selects = {event.candidates: event for event in _of(trace, Select)}
    given_up = {event.id for event in _of(trace, Prune)}
    flagged = set(trace.begin.meta.get("flagged_nodes", []))  # type: ignore[call-overload]
    place, standing = 1, 0
    for step in record["label"]["steps"]:
        ids = list(range(place, place + len(step["completions"] or [])))
        place += len(ids)
        for node, completion in zip(ids, step["completions"] or [], strict=True):
            assert (nodes[node].text, scores[node]) == (completion["text"], completion["rating"])
            assert nodes[node].parents == (standing,)
            assert (node in flagged) == bool(completion["flagged"])
        chosen, human = step["chosen_completion"], step["human_completion"]
        select = selects.pop(tuple(ids), None)
        assert (None if select is None else ids.index(select.chosen[0])) == chosen
        left = [] if chosen is None and human is None else ids
        kept = None if chosen is None or human is not None else ids[chosen]
        assert sorted(given_up & set(ids)) == [node for node in left if node != kept]
        if chosen is not None:
            standing = ids[chosen]
        if human is not None:
            assert (nodes[place].text, nodes[place].kind) == (human["text"], "human")
            standing, place = place, place + 1
    assert not selects and place == len(nodes)
    assert nodes[0].text == record["question"]["problem"]
    assert trace.begin.meta.get("finish_reason") == record["label"]["finish_reason"]


def test_prm800k_can_be_rebuilt(tmp_path: Path) -> None:
    for trace, record in _round_trip(shared("prm/prm800k_sample.jsonl"), "prm800k", tmp_path):
        _check_prm800k(trace, record)


def test_own_steered_solutions_can_be_rebuilt(tmp_path: Path) -> None:
    path = _lines(tmp_path / "x", STEERED)
    for trace, record in _round_trip(path, "prm800k", tmp_path):
        _check_prm800k(trace, record)
    traces = list(import_file(path))
    assert [trace.end.status for trace in traces] == ["solved", "unsolved", "unsolved", "unknown"]
    result = tally(traces)
    assert result.checked == result.agreed == {"select": 2}
    assert result.unchecked == {"the person went on with a step that another one is rated above": 1}


def test_choices_of_the_sample_are_by_score() -> None:
    result = tally(import_file(shared("prm/prm800k_sample.jsonl")))
    assert result.agreed == result.checked == {"select": 23}


# -- Self-reflection ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("", [None]),
        ("Waiters wait. I await", [None]),
        ("Wait, no. Hmm... But wait! So", [None, "wait", "hmm", "wait"]),
        (
            "One.\nAlternatively, two. Let me double-check this.",
            [None, "alternatively", "let me double-check"],
        ),
        ("they say: hold on to it", [None]),
        ("Two\ufffd.\n  Actually", [None, "actually"]),
    ],
)
def test_marks_are_words_at_the_begin_of_a_sentence(text: str, marks: list[str | None]) -> None:
    found = segments(text)
    assert "".join(piece for piece, _ in found) == text
    assert [mark for _, mark in found] == marks


def _check_marco(trace: Trace, record: Any) -> None:
    question, *parts = _texts(trace)
    assert (question, "".join(parts)) == (record["instruction"], record["response"])
    sizes = sum(node.state_bytes for node in _of(trace, Node)[1:])
    sizes += sum(event.bytes for event in _of(trace, Append))
    assert sizes == len(record["response"].encode("utf-8", "surrogatepass"))


def test_marco_o1_can_be_rebuilt(tmp_path: Path) -> None:
    replaced = 0
    for trace, record in _round_trip(shared("selfreflect/marco_o1_cot_demo.jsonl"), "marco_o1", tmp_path):
        _check_marco(trace, record)
        replaced += any("\ufffd" in text for text in _texts(trace))
    assert replaced == 2  # as the source has them


def test_own_responses_can_be_rebuilt(tmp_path: Path) -> None:
    records = [
        {
            "instruction": "q",
            "response": "<Thought>\nOne. But wait, two\ufffd.\n</Thought>\n<Output>\n3</Output>",
        },
        {"instruction": "cut off", "response": "<Thought>\nHmm"},
        {"instruction": "", "response": "no tags \ud800"},
    ]
    for trace, record in _round_trip(_lines(tmp_path / "x", records), "marco_o1", tmp_path):
        _check_marco(trace, record)
    traces = list(import_file(tmp_path / "x"))
    assert [[event.mark for event in _of(trace, Append)] for trace in traces] == [["wait"], ["hmm"], []]
    assert [[node.kind for node in _of(trace, Node)] for trace in traces] == [
        ["question", "thought", "output"],
        ["question", "thought"],
        ["question", "thought"],
    ]


def test_qwq_can_be_rebuilt(tmp_path: Path) -> None:
    most = 0
    for trace, record in _round_trip(shared("selfreflect/qwq_prm800k_questions.jsonl"), "qwq", tmp_path):
        question, *steps = _texts(trace)
        assert (question, steps) == (record["original_question"], record["modified_process"])
        assert "".join(steps) == record["original_response"].lstrip(" ")
        most = max(most, len(steps))
    assert most == 55  # as of the whole set


def test_own_steps_can_be_rebuilt(tmp_path: Path) -> None:
    steps = ["Step 1. Let x. ", "Step 2. Wait, y.\nHmm. ", ""]
    record = {"original_question": "q", "modified_process": steps, "idx": "7", "ground_truth": None}
    ((trace, _),) = _round_trip(_lines(tmp_path / "x", [record]), "qwq", tmp_path)
    assert _texts(trace) == ["q", *steps]
    assert [(event.id, event.mark) for event in _of(trace, Append)] == [(2, "wait"), (2, "hmm")]
    assert trace.begin.meta == {"idx": "7"}


def test_share_of_reflecting_responses_is_that_of_the_whole_set() -> None:
    """Of the whole set 62 % of the Marco-o1 responses have a mark; of these samples about as many."""
    traces = list(import_file(shared("selfreflect/marco_o1_cot_demo.jsonl")))
    share = sum(bool(_of(trace, Append)) for trace in traces) / len(traces)
    assert 0.4 <= share <= 0.75


# -- Damage ------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Any, Callable[[Any], object], str]] = {
    "label beyond the steps": (
        SOLUTION,
        lambda r: r.update(label=3),
        "label: expected -1 or the index of a step (0 to 2), found 3",
    ),
    "label is a truth": (SOLUTION, lambda r: r.update(label=True), "label: expected an integer, found True"),
    "steps are text": (SOLUTION, lambda r: r.update(steps="a"), "steps: expected a list, found 'a'"),
    "no problem": (SOLUTION, lambda r: r.pop("problem"), "problem: expected a string, found no such key"),
    "sign is missing": (
        MARKED,
        lambda r: r.update(label=r["label"][:-1]),
        "label: expected the text of `input`, + or - behind step 2",
    ),
    "another text": (
        MARKED,
        lambda r: r.update(label="x" + r["label"]),
        "label: expected the text of `input`, + or - behind step 1",
    ),
    "label goes on": (
        MARKED,
        lambda r: r.update(label=r["label"] + "x"),
        "label: expected to end as `input` does, found 'x'",
    ),
    "rating of 2": (
        STEERED[0],
        lambda r: r["label"]["steps"][0]["completions"][1].update(rating=2),
        "label.steps[0].completions[1].rating: expected -1, 0, 1 or null, found 2",
    ),
    "choice beyond the completions": (
        STEERED[0],
        lambda r: r["label"]["steps"][0].update(chosen_completion=2),
        "label.steps[0].chosen_completion: expected null or the index of a completion (2 there), found 2",
    ),
    "step after the end": (
        STEERED[1],
        lambda r: r["label"]["steps"].append(_step([_completion("x", 1)], 0)),
        "label.steps[2]: expected no step after one that nothing was chosen in",
    ),
    "unknown end": (
        STEERED[0],
        lambda r: r["label"].update(finish_reason="tired"),
        "label.finish_reason: expected one of solution, found_error, give_up, bad_problem, found 'tired'",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    record, spoil, expected = FAULTS[name]
    spoilt = copy.deepcopy(record)
    spoil(spoilt)
    path = _lines(tmp_path / "x", [record, spoilt])
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    assert str(caught.value).startswith(f"{path}: line 2: {expected}")
