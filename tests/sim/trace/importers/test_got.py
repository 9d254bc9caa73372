"""Graph-of-Thoughts results: edges worked out from the operations, merges, choices, missing scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.events import Backtrack, Eval, Join, Jump, Node, Prune, Select
from sim.trace.importers import import_file
from sim.trace.oracle import tally
from sim.trace.schema import Trace, read_traces, write_traces

from ..samples import shared, write_json
from .faults import fault
from .synthetic import got, got_thought, of, one


def _samples(method: str) -> list[Path]:
    return sorted(shared("got").glob(f"*_{method}_*.json"))


def _rebuilt(trace: Trace) -> list[dict[str, Any]]:
    """Operations with the texts and scores of their thoughts, from the events alone."""
    texts = [node.text for node in of(trace, Node)]
    sign = -1 if trace.begin.meta["higher_is_better"] is False else 1
    evals = iter(of(trace, Eval))
    known: dict[int, float] = {}
    operations: list[dict[str, Any]] = []
    steps: Any = trace.begin.meta["operations"]
    for step in steps:
        operation = {"operation": step["operation"], "thoughts": [texts[node] for node in step["nodes"]]}
        if step["operation"] == "score":
            for node in step["nodes"]:
                score = next(evals)
                assert score.id == node
                if score.score is not None:
                    known[node] = sign * score.score
        if step["operation"] != "generate" and any(node in known for node in step["nodes"]):
            operation["scores"] = [known.get(node) for node in step["nodes"]]
        operations.append(operation)
    return operations


def _source(document: list[dict[str, Any]]) -> list[dict[str, Any]]:
    operations = []
    for record in document[:-1]:
        operation = {
            "operation": record["operation"],
            "thoughts": [thought["current"] for thought in record["thoughts"]],
        }
        if "scores" in record:
            operation["scores"] = record["scores"]
        operations.append(operation)
    return operations


def _round_trip(path: Path, out: Path) -> None:
    write_traces(out, import_file(path))
    (trace,) = read_traces(out)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert _rebuilt(trace) == _source(document)
    assert trace.begin.meta["usage"] == document[-1]
    solved = [verdict for record in document[:-1] for verdict in record.get("problem_solved", [])]
    assert trace.end.status == ("solved" if any(solved) else "unsolved")


@pytest.mark.parametrize("method", ["got", "tot"])
def test_samples_can_be_rebuilt(method: str, tmp_path: Path) -> None:
    for path in _samples(method):
        _round_trip(path, tmp_path / path.name)


def test_a_small_file_can_be_rebuilt(tmp_path: Path) -> None:
    _round_trip(write_json(tmp_path / "result", got()), tmp_path / "own.jsonl")


def test_statistics_of_graphs_hold_in_the_samples() -> None:
    """7 nodes, depth 2, branching 3 and 1, 2 left by keep_best, 2 moves between siblings (section 2)."""
    for path in _samples("got"):
        trace = one(path)
        nodes = of(trace, Node)
        assert [node.depth for node in nodes] == [0, 1, 1, 1, 2, 2, 2]
        assert [node.parents[:1] for node in nodes] == [(), (0,), (0,), (0,), (1,), (2,), (3,)]
        assert [prune.reason for prune in of(trace, Prune)] == ["keep_best"] * 2
        assert [(jump.from_, jump.to) for jump in of(trace, Jump)] == [(1, 2), (2, 3)]
        assert of(trace, Backtrack) == []
        result = tally([trace])
        assert result.checked == result.agreed == {"select": 4, "ancestor": 2}


def test_the_chain_of_the_samples_goes_on_from_what_it_keeps() -> None:
    """5 nodes (section 2). Their depth is not that of a chain: the file shows that the first thought is kept.

    Each generate takes what the keep_best_n before it passed on, and that is the first thought every time, so
    all later ones are its children and none is another's.
    """
    for path in _samples("tot"):
        trace = one(path)
        nodes = of(trace, Node)
        assert [node.parents for node in nodes] == [(), (0,), (1,), (1,), (1,)]
        selects = [(select.candidates, select.chosen) for select in of(trace, Select)]
        assert selects == [((1,), (1,)), ((1, 2), (1,)), ((1, 3), (1,)), ((1, 4), (1,)), ((1,), (1,))]
        assert [prune.id for prune in of(trace, Prune)] == [2, 3, 4]
        assert of(trace, Jump) == []
        result = tally([trace])
        assert result.checked == result.agreed == {"select": 5}


def test_merges_have_all_that_they_merge_as_parents() -> None:
    """Each has its own origin first: the file tells by the keys that its state has from it."""
    for path in _samples("got"):
        merged = of(one(path), Node)[4:]
        assert [node.parents for node in merged] == [(1, 2, 3), (2, 1, 3), (3, 1, 2)]
        assert [join.to for join in of(one(path), Join)] == [4, 5, 6]


def test_a_better_thought_replaces_the_one_kept(tmp_path: Path) -> None:
    first, better = ({"current": text, "method": "tot"} for text in ("a", "b"))
    document = [
        {"operation": "generate", "thoughts": [first]},
        {"operation": "score", "thoughts": [first], "scored": [True], "scores": [0.5]},
        {"operation": "keep_best_n", "thoughts": [first], "scored": [True], "scores": [0.5]},
        {"operation": "generate", "thoughts": [better]},
        {"operation": "score", "thoughts": [better], "scored": [True], "scores": [0.75]},
        {"operation": "keep_best_n", "thoughts": [better], "scored": [True], "scores": [0.75]},
        {"prompt_tokens": 1},
    ]
    trace = one(write_json(tmp_path / "result", document))
    assert [node.parents for node in of(trace, Node)] == [(), (0,), (1,)]
    assert of(trace, Prune) == []
    assert trace.begin.algorithm == "tot"


def test_several_from_each_of_several(tmp_path: Path) -> None:
    """A beam: two kept thoughts, two new ones from each, in the order of the kept."""
    texts = [{"current": text} for text in "abcdefg"]

    def step(operation: str, places: str, *scores: float) -> dict[str, Any]:
        record: dict[str, Any] = {
            "operation": operation,
            "thoughts": [texts["abcdefg".index(p)] for p in places],
        }
        return record | ({"scores": list(scores)} if scores else {})

    document = [
        step("generate", "abc"),
        step("score", "abc", 1.0, 3.0, 2.0),
        step("keep_best_n", "bc", 3.0, 2.0),
        step("generate", "defg"),
        step("score", "defg", 1.0, 1.0, 2.0, 1.0),
        step("keep_best_n", "f", 2.0),
    ]
    trace = one(write_json(tmp_path / "result", document))
    assert [node.parents for node in of(trace, Node)][4:] == [(2,), (2,), (3,), (3,)]
    assert [(jump.from_, jump.to) for jump in of(trace, Jump)] == [(2, 3)]
    assert {prune.id for prune in of(trace, Prune)} == {1, 4, 5, 7}
    assert tally([trace]).agreed == {"select": 2, "ancestor": 1}


def test_aggregate_takes_everything(tmp_path: Path) -> None:
    left, right = {"current": "a"}, {"current": "b"}
    document = [
        {"operation": "generate", "thoughts": [left, right]},
        {"operation": "aggregate", "thoughts": [{"current": "a b"}]},
    ]
    trace = one(write_json(tmp_path / "result", document))
    assert [node.parents for node in of(trace, Node)] == [(), (0,), (0,), (1, 2)]
    assert [join.ids for join in of(trace, Join)] == [(1, 2)]


def test_branches_of_a_selector_meet_again(tmp_path: Path) -> None:
    """Both selectors take from the first operation; what comes of each is there for the merge."""
    left, right, below, beside = ({"current": text} for text in ("l", "r", "l+", "r+"))
    document = [
        {"operation": "generate", "thoughts": [left, right]},
        {"operation": "selector", "thoughts": [left]},
        {"operation": "generate", "thoughts": [below]},
        {"operation": "selector", "thoughts": [right]},
        {"operation": "score", "thoughts": [right], "scores": [1.0]},
        {"operation": "keep_best_n", "thoughts": [right], "scores": [1.0]},
        {"operation": "aggregate", "thoughts": [beside]},
    ]
    trace = one(write_json(tmp_path / "result", document))
    assert [node.parents for node in of(trace, Node)] == [(), (0,), (0,), (1,), (3, 2)]


def test_lower_scores_are_better_where_all_choices_say_so(tmp_path: Path) -> None:
    """Sorting counts errors. What is kept tells; scores are negated, and meta says so."""
    document = got()
    document[8]["thoughts"] = [document[7]["thoughts"][0]]
    document[8]["scores"] = [0.75]
    document[9]["thoughts"] = document[8]["thoughts"]
    document[9]["scores"] = [0.75]
    path = write_json(tmp_path / "result", document)
    trace = one(path)
    assert trace.begin.meta["higher_is_better"] is False
    assert [event.score for event in of(trace, Eval)] == [-0.5, -0.25, -0.75, -1.0]
    assert tally([trace]).agreed == {"select": 3, "ancestor": 1}
    _round_trip(path, tmp_path / "own.jsonl")


def test_choices_of_no_rule_are_not_checked(tmp_path: Path) -> None:
    thoughts = [{"current": text} for text in "abc"]
    document = [
        {"operation": "generate", "thoughts": thoughts},
        {"operation": "score", "thoughts": thoughts, "scores": [1.0, 2.0, 3.0]},
        {"operation": "keep_best_n", "thoughts": [thoughts[1]], "scores": [2.0]},
    ]
    trace = one(write_json(tmp_path / "result", document))
    (select,) = of(trace, Select)
    assert (select.check, select.chosen) == ("none", (2,))
    assert "neither those of the highest scores nor of the lowest" in select.reason
    assert trace.begin.meta["higher_is_better"] is None


def test_operations_without_thoughts(tmp_path: Path) -> None:
    """A run that broke off: it generated nothing and scored nothing."""
    names = ("generate", "score", "keep_best_n", "ground_truth_evaluator")
    document: list[dict[str, Any]] = [{"operation": name, "thoughts": []} for name in names]
    trace = one(write_json(tmp_path / "result", [*document, {"cost": 0.0}]))
    assert trace.nodes == 1
    assert trace.end.status == "empty"


def test_a_run_that_breaks_off_before_the_end(tmp_path: Path) -> None:
    document = [dict(record) for record in got()]
    for record in document[7:10]:
        record["thoughts"] = []
        for key in ("scored", "scores", "compared_to_ground_truth", "problem_solved"):
            record.pop(key, None)
    trace = one(write_json(tmp_path / "result", document))
    assert trace.nodes == 5
    assert trace.end.status == "unknown"


@pytest.mark.parametrize(
    "change",
    [
        {"scores": None},
        {"scores": [0.75, 0.0], "scored": [True, False]},
        {"scores": [0.75, None], "scored": [True, True]},
    ],
)
def test_choices_among_thoughts_without_scores_are_not_checked(
    change: dict[str, Any], tmp_path: Path
) -> None:
    document = got()
    document[7] |= change
    if change["scores"] is None:
        del document[7]["scores"]
    trace = one(write_json(tmp_path / "result", document))
    last = of(trace, Select)[-1]
    assert (last.check, last.reason) == ("none", "not all thoughts that were chosen from have a score")
    assert tally([trace]).agreed == {"select": 2, "ancestor": 1}


def test_what_scoring_leaves_in_a_state_does_not_hide_it(tmp_path: Path) -> None:
    """`evaluation_metrics` is in the first thought where it was made, and in nothing that comes of it."""
    document = got()
    assert "evaluation_metrics" in document[0]["thoughts"][0]
    assert "evaluation_metrics" not in document[1]["thoughts"][0] | document[6]["thoughts"][0]
    trace = one(write_json(tmp_path / "result", document))
    assert [node.parents for node in of(trace, Node)] == [(), (0,), (0,), (1, 2), (2, 1)]


def test_equal_thoughts_are_told_apart_by_their_order(tmp_path: Path) -> None:
    thought = {"current": "same"}
    document = [
        {"operation": "generate", "thoughts": [thought, thought]},
        {"operation": "score", "thoughts": [thought, thought], "scores": [1.0, 2.0]},
        {"operation": "keep_best_n", "thoughts": [thought], "scores": [2.0]},
    ]
    trace = one(write_json(tmp_path / "result", document))
    assert [(event.id, event.score) for event in of(trace, Eval)] == [(1, 1.0), (2, 2.0)]
    (select,) = of(trace, Select)
    assert select.chosen == (2,)
    assert tally([trace]).agreed == {"select": 1}


def test_state_is_the_whole_state(tmp_path: Path) -> None:
    """Every thought repeats the problem, and that is what a search keeps and reads back."""
    thought = {"problem": "漢" * 100, "current": "≈"}
    trace = one(write_json(tmp_path / "result", [{"operation": "generate", "thoughts": [thought]}]))
    node = of(trace, Node)[1]
    assert node.text == "≈"
    assert node.state_bytes == len(json.dumps(thought, ensure_ascii=False).encode())


FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "operation unknown": (
        lambda d: d[2].__setitem__("operation", "split"),
        "record 0: [2].operation: expected one of generate, improve, ",
    ),
    "thought from nowhere": (
        lambda d: d[1].__setitem__("thoughts", [got_thought("another", "l")]),
        "record 0: [1].thoughts[0]: expected a thought of an operation before this one, found 'another'",
    ),
    "a score too few": (
        lambda d: d[7]["scores"].pop(),
        "record 0: [7].scores: expected 2 values, as thoughts, found 1",
    ),
    "score is text": (
        lambda d: d[7]["scores"].__setitem__(0, "1"),
        "record 0: [7].scores[0]: expected a finite number, found '1'",
    ),
    "thought is text": (
        lambda d: d[0]["thoughts"].__setitem__(0, "x"),
        "record 0: [0].thoughts[0]: expected an object, found 'x'",
    ),
    "operation is a number": (lambda d: d.__setitem__(3, 4), "record 0: [3]: expected an object, found 4"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str, tmp_path: Path) -> None:
    document = got()
    spoil, expected = FAULTS[name]
    spoil(document)
    assert fault(write_json(tmp_path / "result", document)).startswith(expected)
