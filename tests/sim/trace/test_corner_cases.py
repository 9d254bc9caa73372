"""What real files of the four kinds contain beside the ordinary (workloads, section 6), on small files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.trace.errors import TraceError
from sim.trace.events import Backtrack, Begin, Eval, Event, Expand, Jump, Node, Prune, Select
from sim.trace.importers import import_file
from sim.trace.oracle import tally
from sim.trace.schema import Trace

from .samples import write_json


def _one(path: Path) -> Trace:
    (trace,) = import_file(path)
    return trace


def _of(trace: Trace, kind: type[Event]) -> list[Any]:
    return [event for event in trace.events if isinstance(event, kind)]


def _error(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text
    return text.removeprefix(f"{path}: ")


# -- Game of 24 --------------------------------------------------------------------------------------


def _step(ys: list[str], proposals: list[tuple[str, float]], kept: list[str]) -> dict[str, Any]:
    return {
        "step": 0,
        "x": "1 2 3 4",
        "ys": ys,
        "new_ys": [text for text, _ in proposals],
        "values": [value for _, value in proposals],
        "select_new_ys": kept,
    }


def _game24(path: Path, steps: list[dict[str, Any]], *, right: int = 0) -> Path:
    return write_json(path, [{"steps": steps, "idx": 900, "ys": [], "infos": [{"r": right}]}])


def test_duplicate_proposals_may_be_kept(tmp_path: Path) -> None:
    """A repeated text has value 0 and is a node of its own; kept twice, each node is kept once."""
    steps = [
        _step([""], [("a\n", 3.0), ("a\n", 0), ("b\n", 60.0)], ["b\n", "a\n", "a\n"]),
        _step(["b\n", "a\n", "a\n"], [("b\nc\n", 1.0), ("a\nd\n", 2.0)], ["a\nd\n"]),
    ]
    trace = _one(_game24(tmp_path / "log", steps))
    first, second = _of(trace, Select)
    assert (first.candidates, first.chosen) == ((1, 2, 3), (3, 1, 2))
    # The proposals of equal texts go to the first of them; the other is not called childless for it.
    assert [node.parents for node in _of(trace, Node)[4:]] == [(3,), (1,)]
    assert second.chosen == (5,)
    assert [prune.reason for prune in _of(trace, Prune)] == ["beam"]
    assert tally([trace]).agreed == {"select": 2, "ancestor": 2}


def test_dead_ends_are_kept_to_fill_the_beam(tmp_path: Path) -> None:
    """A value that says impossible is a score; dead is what was not kept."""
    steps = [_step([""], [("a\n", 0.003), ("b\n", 0.003), ("c\n", 0)], ["a\n", "b\n"])]
    trace = _one(_game24(tmp_path / "log", steps))
    (select,) = _of(trace, Select)
    assert select.chosen == (1, 2)
    assert [(prune.id, prune.reason) for prune in _of(trace, Prune)] == [(3, "beam")]
    assert [event.score for event in _of(trace, Eval)] == [0.003, 0.003, 0.0]


def test_beam_member_without_children(tmp_path: Path) -> None:
    steps = [
        _step([""], [("a\n", 2.0), ("b\n", 1.0)], ["a\n", "b\n"]),
        _step(["a\n", "b\n"], [("b\nc\n", 1.0)], ["b\nc\n"]),
    ]
    trace = _one(_game24(tmp_path / "log", steps))
    assert [(prune.id, prune.reason) for prune in _of(trace, Prune)] == [(1, "no_children")]
    assert [(jump.from_, jump.to) for jump in _of(trace, Jump)] == [(1, 2)]


def test_fewer_children_than_the_beam_and_a_step_of_none(tmp_path: Path) -> None:
    steps = [_step([""], [("a\n", 1.0)], ["a\n"]), _step(["a\n"], [], []), _step([], [], [])]
    trace = _one(_game24(tmp_path / "log", steps, right=1))
    assert len(_of(trace, Select)) == 1
    assert trace.end.status == "solved"


def test_malformed_blank_and_foreign_thoughts(tmp_path: Path) -> None:
    odd = ["17 / 2 = 8.5 (not a whole number, not valid)\n", "\n", "10 / 3 ≈ 3.33\n", "\ud800\n"]
    steps = [_step([""], [(text, 1.0) for text in odd], odd)]
    trace = _one(_game24(tmp_path / "log", steps))
    nodes = _of(trace, Node)[1:]
    assert [node.text for node in nodes] == odd
    assert nodes[2].state_bytes == len("10 / 3 ≈ 3.33\n".encode())


def test_ties_are_ranked_by_creation(tmp_path: Path) -> None:
    steps = [_step([""], [("a\n", 1.0), ("b\n", 2.0), ("c\n", 2.0), ("d\n", 1.0)], ["b\n", "c\n", "a\n"])]
    trace = _one(_game24(tmp_path / "log", steps))
    assert tally([trace]).agreed == {"select": 1}
    steps[0]["select_new_ys"] = ["c\n", "b\n", "a\n"]
    trace = _one(_game24(tmp_path / "log", steps))
    assert tally([trace]).agreed == {"select": 0}


def test_wide_fan_out(tmp_path: Path) -> None:
    proposals = [(f"{number}\n", float(number % 7)) for number in range(46)]
    best = [text for text, _ in sorted(proposals, key=lambda pair: -pair[1])][:5]
    trace = _one(_game24(tmp_path / "log", [_step([""], proposals, best)]))
    assert len(_of(trace, Select)[0].candidates) == 46
    assert tally([trace]).agreed == {"select": 1}


GAME24_FAULTS: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "value is NaN": (
        lambda r: r["steps"][1]["values"].__setitem__(0, float("nan")),
        ("record 0: steps[1].values[0]: expected a finite number, found NaN",),
    ),
    "value is text": (
        lambda r: r["steps"][0]["values"].__setitem__(1, "3"),
        ("record 0: steps[0].values[1]: expected a finite number, found '3'",),
    ),
    "values missing": (
        lambda r: r["steps"][0].pop("values"),
        ("record 0: steps[0].values: expected a list, found no such key",),
    ),
    "a value too few": (
        lambda r: r["steps"][0]["values"].pop(),
        ("record 0: steps[0].values: expected 2 values, as new_ys, found 1",),
    ),
    "proposal of nobody": (
        lambda r: r["steps"][1]["new_ys"].__setitem__(0, "z\n"),
        ("record 0: steps[1].new_ys[0]: expected a text that begins with one of `ys`, found 'z\\n'",),
    ),
    "kept what was not proposed": (
        lambda r: r["steps"][1]["select_new_ys"].__setitem__(0, "z\n"),
        ("record 0: steps[1].select_new_ys[0]: expected one of the texts of `new_ys`",),
    ),
    "beam that was not kept": (
        lambda r: r["steps"][1].__setitem__("ys", ["b\n"]),
        ("record 0: steps[1].ys: expected the select_new_ys of the step before",),
    ),
    "no empty text at the start": (
        lambda r: r["steps"][0].__setitem__("ys", []),
        ("record 0: steps[0].ys: expected one empty text, found []",),
    ),
    "text is a number": (
        lambda r: r["steps"][0]["new_ys"].__setitem__(0, 4),
        ("record 0: steps[0].new_ys[0]: expected a string, found 4",),
    ),
    "no verdicts": (lambda r: r.pop("infos"), ("record 0: infos: expected a list, found no such key",)),
    "score beyond float32": (
        lambda r: r["steps"][0]["values"].__setitem__(0, 1e300),
        ("record 0: eval.score: expected a number that a float32 can hold",),
    ),
}


@pytest.mark.parametrize("name", GAME24_FAULTS)
def test_game24_faults_are_named(name: str, tmp_path: Path) -> None:
    steps = [
        _step([""], [("a\n", 2.0), ("b\n", 1.0)], ["a\n"]),
        _step(["a\n"], [("a\nc\n", 1.0)], ["a\nc\n"]),
    ]
    record = {"steps": steps, "infos": [{"r": 0}]}
    spoil, parts = GAME24_FAULTS[name]
    spoil(record)
    text = _error(write_json(tmp_path / "log", [record]))
    for part in parts:
        assert part in text


# -- Crosswords --------------------------------------------------------------------------------------


def _record(*actions: str, impossible: int = 0, word: float = 0.0) -> dict[str, Any]:
    return {
        "total_step": 0,
        "env_step": len(actions),
        "actions": list(actions),
        "info": {"r_letter": 0.0, "r_word": word},
        "count": {"sure": 0, "maybe": 0, "impossible": impossible},
    }


def test_pruning_shows_by_impossible_records_without_children(tmp_path: Path) -> None:
    pruned = [_record("h1. a", impossible=1), _record("h1. b"), _record("h1. b", "v1. c", impossible=2)]
    trace = _one(write_json(tmp_path / "log", [pruned]))
    assert [prune.id for prune in _of(trace, Prune)] == [1, 3]
    assert trace.begin.meta["pruning"] is True
    gone_on = [_record("h1. a", impossible=1), _record("h1. a", "v1. c"), _record("h1. b", impossible=1)]
    trace = _one(write_json(tmp_path / "log", [gone_on]))
    assert _of(trace, Prune) == []
    assert trace.begin.meta["pruning"] is False


def test_one_search_without_pruning_tells_for_the_whole_file(tmp_path: Path) -> None:
    first = [_record("h1. a", impossible=1), _record("h1. b")]
    second = [_record("h1. a", impossible=1), _record("h1. a", "v1. c")]
    traces = list(import_file(write_json(tmp_path / "log", [first, second])))
    assert [_of(trace, Prune) for trace in traces] == [[], []]


def test_same_words_in_another_order_are_nodes_of_their_own(tmp_path: Path) -> None:
    records = [_record("h1. a"), _record("h1. a", "v1. b"), _record("v1. b"), _record("v1. b", "h1. a")]
    trace = _one(write_json(tmp_path / "log", [records]))
    assert [node.parents for node in _of(trace, Node)] == [(), (0,), (1,), (0,), (3,)]


def test_parent_is_the_last_record_with_the_actions(tmp_path: Path) -> None:
    records = [_record("h1. a"), _record("h1. b"), _record("h1. a"), _record("h1. a", "v1. c")]
    trace = _one(write_json(tmp_path / "log", [records]))
    assert _of(trace, Node)[4].parents == (3,)
    assert [(event.from_, event.to) for event in _of(trace, Backtrack)] == [(1, 0), (2, 0)]


def test_counts_are_the_children_still_to_come(tmp_path: Path) -> None:
    records = [_record("h1. a"), _record("h1. b"), _record("h1. c")]
    trace = _one(write_json(tmp_path / "log", [records]))
    assert [(event.id, event.untried) for event in _of(trace, Expand)] == [(0, 3), (0, 2), (0, 1), (0, 0)]


def test_crosswords_endings(tmp_path: Path) -> None:
    budget = [_record(f"h1. {number}") for number in range(100)]
    solved = [_record("h1. a", word=0.5), _record("h1. b", word=1.0), _record("h1. c")]
    exhausted = [_record("h1. a", impossible=1)]
    traces = import_file(write_json(tmp_path / "log", [budget, solved, exhausted, []]))
    assert [trace.end.status for trace in traces] == ["budget", "solved", "exhausted", "empty"]


def test_puzzle_without_records_is_a_root(tmp_path: Path) -> None:
    """A search that proposed nothing logged nothing: the root alone."""
    traces = list(import_file(write_json(tmp_path / "log", [[_record("h1. a")], []])))
    assert traces[1].events == [Node(id=0, parents=(), depth=0, kind="root", state_bytes=36)]


def test_unicode_words(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(json.dumps([[_record("h1. 漢字≈\ufffd")]], ensure_ascii=False), encoding="utf-8")
    assert _of(_one(path), Node)[1].text == "h1. 漢字≈\ufffd"


CROSSWORDS_FAULTS: dict[str, tuple[Callable[[Any], object], str]] = {
    "orphan": (
        lambda p: p[1].append(_record("h9. x", "h8. y")),
        "record 1: [2].actions: expected the actions of an earlier record and one more",
    ),
    "no actions": (
        lambda p: p[1].append(_record()),
        "record 1: [2].actions: expected at least one action, found none",
    ),
    "actions are text": (
        lambda p: p[1][0].__setitem__("actions", "h1. a"),
        "record 1: [0].actions: expected a list, found 'h1. a'",
    ),
    "no count": (
        lambda p: p[0][0].pop("count"),
        "record 0: [0].count: expected an object, found no such key",
    ),
    "negative count": (
        lambda p: p[0][0]["count"].__setitem__("impossible", -1),
        "record 0: [0].count.impossible: expected a count from 0, found -1",
    ),
    "share is NaN": (
        lambda p: p[0][0]["info"].__setitem__("r_word", float("nan")),
        "record 0: [0].info.r_word: expected a finite number, found NaN",
    ),
    "problem is an object": (lambda p: p.append({}), "record 2: problem: expected a list, found {}"),
}


@pytest.mark.parametrize("name", CROSSWORDS_FAULTS)
def test_crosswords_faults_are_named(name: str, tmp_path: Path) -> None:
    problems = [[_record("h1. a")], [_record("h1. a"), _record("h1. a", "v1. b")]]
    spoil, expected = CROSSWORDS_FAULTS[name]
    spoil(problems)
    assert _error(write_json(tmp_path / "log", problems)).startswith(expected)


# -- Stream-of-Search --------------------------------------------------------------------------------

DFS_PATH = """\
Current State: 92:[3, 8, 5], Operations: []
Exploring Operation: 8-5=3, Resulting Numbers: [3, 3]
Generated Node #0,0: 92:[3, 3] Operation: 8-5=3
Moving to Node #0,0
Current State: 92:[3, 3], Operations: ['8-5=3']
Exploring Operation: 3*3=9, Resulting Numbers: [9]
9,92 unequal: No Solution
Moving to Node #0,0
Current State: 92:[3, 3], Operations: ['8-5=3']
Exploring Operation: 3+3=6, Resulting Numbers: [6]
6,92 unequal: No Solution
Moving to Node #0
Current State: 92:[3, 8, 5], Operations: []
Exploring Operation: 3+8=11, Resulting Numbers: [5, 11]
Generated Node #0,1: 92:[5, 11] Operation: 3+8=11
Moving to Node #0,1
Current State: 92:[5, 11], Operations: ['3+8=11']
"""

BFS_PATH = """\
Current State: 13:[2, 2, 15], Operations: []
Exploring Operation: 2+2=4, Resulting Numbers: [15, 4]
Generated Node #0,0: 13:[15, 4] Operation: 2+2=4
Exploring Operation: 15-2=13, Resulting Numbers: [2, 13]
Generated Node #0,1: 13:[2, 13] Operation: 15-2=13
Moving to Node #0,1
Current State: 13:[2, 13], Operations: ['15-2=13']
Exploring Operation: 13-2=11, Resulting Numbers: [11]
11,13 unequal: No Solution
Exploring Operation: 2+13=15, Resulting Numbers: [15]
15,13 unequal: No Solution
Moving to Node #0,0
Current State: 13:[15, 4], Operations: ['2+2=4']
Exploring Operation: 15-4=11, Resulting Numbers: [11]
11,13 unequal: No Solution
Exploring Operation: 15+4=19, Resulting Numbers: [19]
19,13 unequal: No Solution
Moving to Node #0,1,0
Current State: 13:[11], Operations: ['15-2=13', '13-2=11']
Moving to Node #0,1,0
Current State: 13:[15], Operations: ['15-2=13', '2+13=15']
No solution found."""


def _sos(path: Path, text: str, **changes: object) -> Path:
    bfs = "No solution found" in text
    record = {
        "nums": [2, 2, 15] if bfs else [3, 8, 5],
        "target": 13 if bfs else 92,
        "search_path": text,
        "rating": 0.0,
        "search_type": "bfs_2" if bfs else "dfs",
        "heuristic": "sum_heuristic",
    } | changes
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def test_root_only_search(tmp_path: Path) -> None:
    text = "Current State: 92:[3, 8, 5], Operations: []\n"
    trace = _one(_sos(tmp_path / "log", text, nums=[3, 8, 5], target=92))
    assert [type(event) for event in trace.events] == [Node]
    assert trace.end.status == "unsolved"


def test_counts_fall_back_on_look_ahead(tmp_path: Path) -> None:
    """The rule would give more children than this search recorded: it is not the rule it followed."""
    trace = _one(_sos(tmp_path / "log", DFS_PATH))
    assert {event.untried_source for event in _of(trace, Expand)} == {"lookahead"}
    assert [(event.from_, event.to) for event in _of(trace, Backtrack)] == [(2, 1), (3, 0)]
    assert tally([trace]).agreed == {"climb": 2}


def test_more_children_than_the_rule_gives_look_ahead(tmp_path: Path) -> None:
    """With target 2 the rule would have left [5, 11] out; the search did not."""
    trace = _one(_sos(tmp_path / "log", DFS_PATH.replace("92", "2"), target=2))
    assert tally([trace]).by_source == {"lookahead": 2}


def test_unknown_heuristic_gives_look_ahead(tmp_path: Path) -> None:
    trace = _one(_sos(tmp_path / "log", DFS_PATH, heuristic="other"))
    assert tally([trace]).by_source == {"lookahead": 2}


def test_terminals_share_an_id(tmp_path: Path) -> None:
    """Two terminals under 0,1 are both `0,1,0` to the source: moves there name no node."""
    trace = _one(_sos(tmp_path / "log", BFS_PATH))
    terminals = [node for node in _of(trace, Node) if node.kind == "terminal"]
    assert len(terminals) == 4
    assert {node.ext_id for node in terminals} == {None}
    assert [(jump.to, jump.check) for jump in _of(trace, Jump)] == [
        (2, "ancestor"),
        (1, "ancestor"),
        (None, "none"),
        (None, "none"),
    ]
    assert len({prune.id for prune in _of(trace, Prune)}) == 4


def test_beam_levels_are_selected_by_recomputed_scores(tmp_path: Path) -> None:
    trace = _one(_sos(tmp_path / "log", BFS_PATH))
    selects = _of(trace, Select)
    assert [(select.candidates, select.chosen) for select in selects] == [
        ((1, 2), (2, 1)),
        ((3, 4, 5, 6), (3, 4)),
    ]
    assert {(select.order, select.check) for select in selects} == {("score", "select")}
    assert [event.score for event in _of(trace, Eval)][3:] == [-2.0, -2.0, -2.0, -6.0]
    assert tally([trace]).agreed == {"select": 2, "ancestor": 2}


def test_levels_without_known_scores_are_not_checked(tmp_path: Path) -> None:
    trace = _one(_sos(tmp_path / "log", BFS_PATH, heuristic="other"))
    assert {(select.check, select.reason) for select in _of(trace, Select)} == {
        ("none", "the record's heuristic is not known, so the open set has no scores")
    }
    assert _of(trace, Eval) == []


def test_levels_of_another_rule_are_not_checked(tmp_path: Path) -> None:
    """A level that begins with the worst of the open set was not chosen by the heuristic of the record."""
    best = "#0,1,0\nCurrent State: 13:[11], Operations: ['15-2=13', '13-2=11']"
    worst = "#0,0,0\nCurrent State: 13:[19], Operations: ['2+2=4', '15+4=19']"
    assert best in BFS_PATH
    trace = _one(_sos(tmp_path / "log", BFS_PATH.replace(best, worst)))
    assert [select.chosen for select in _of(trace, Select)] == [(2, 1), (6, 4)]
    assert {(select.check, select.reason) for select in _of(trace, Select)} == {
        ("none", "the heuristic that the record names does not give the recorded choice")
    }


def test_move_to_an_unknown_node(tmp_path: Path) -> None:
    text = DFS_PATH.replace("Moving to Node #0\n", "Moving to Node #0,7\n")
    text = text[: text.index("Moving to Node #0,7\n") + len("Moving to Node #0,7\n")]
    trace = _one(_sos(tmp_path / "log", text))
    (jump,) = _of(trace, Jump)
    assert (jump.to, jump.check) == (None, "none")
    assert jump.reason == "the source moves to an id that it never generated"


SOS_FAULTS: dict[str, tuple[str, str, str]] = {
    # name: what is replaced, by what, how the error begins
    "cut line": ("8-5=3, Resulting Num", "8-5", "line 1: search_path[1]: expected a whole line"),
    "foreign line": (
        "9,92 unequal: No Solution",
        "Let me think.",
        "line 1: search_path[6]: expected a whole",
    ),
    "parent unknown": ("#0,1: 92", "#0,5,1: 92", "line 1: search_path[14]: expected an id that extends"),
    "result of nothing": (
        "Exploring Operation: 3*3=9, Resulting Numbers: [9]\n",
        "",
        "line 1: search_path[5]: expected `Exploring Operation` before its result",
    ),
    "another target": (
        "Current State: 92:[3, 3], Operations: ['8-5=3']",
        "Current State: 91:[3, 3], Operations: ['8-5=3']",
        "line 1: search_path[4]: expected the target 92, found 91",
    ),
    "silent move": (
        "Moving to Node #0\nCurrent State: 92:[3, 8, 5], Operations: []\n",
        "",
        "line 1: search_path: expected `Moving to Node` before going on elsewhere",
    ),
}


@pytest.mark.parametrize("name", SOS_FAULTS)
def test_sos_path_faults_are_named(name: str, tmp_path: Path) -> None:
    old, new, expected = SOS_FAULTS[name]
    assert old in DFS_PATH
    assert _error(_sos(tmp_path / "log", DFS_PATH.replace(old, new, 1))).startswith(expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"search_type": "astar"}, "line 1: search_type: expected dfs or bfs_<width>, found 'astar'"),
        ({"search_type": "bfs_0"}, "line 1: search_type: expected dfs or bfs_<width>"),
        ({"target": 1}, "line 1: target: expected a whole number from 2, found 1"),
        ({"target": "92"}, "line 1: target: expected an integer, found '92'"),
        ({"nums": [3, "8"]}, "line 1: nums[1]: expected an integer, found '8'"),
        ({"rating": float("inf")}, "line 1: rating: expected a finite number, found inf"),
        ({"heuristic": None}, "line 1: heuristic: expected a string, found None"),
    ],
)
def test_sos_record_faults_are_named(tmp_path: Path, changes: dict, expected: str) -> None:
    assert _error(_sos(tmp_path / "log", DFS_PATH, **changes)).startswith(expected)


def test_sos_fault_in_a_later_line(tmp_path: Path) -> None:
    path = _sos(tmp_path / "log", DFS_PATH)
    path.write_text(path.read_text() + "[]\n")
    assert _error(path).startswith("line 2: record: expected an object, found []")


# -- ToolBench ---------------------------------------------------------------------------------------


def _tool_node(depth: int, /, *children: dict[str, Any], **values: object) -> dict[str, Any]:
    return {
        "is_terminal": False,
        "pruned": False,
        "depth": depth,
        "node_type": "Action",
        "description": "d" * depth,
        "expand_num": 0,
        "children": list(children),
    } | values


def _toolbench(path: Path, root: dict[str, Any], **changes: object) -> Path:
    record = {"win": False, "tree": {"tree": root}, "answer_generation": {"query_count": 3}} | changes
    return write_json(path, record)


def test_long_unwind(tmp_path: Path) -> None:
    """From depth 14 back to the root, as real trees do."""
    chain = _tool_node(14, pruned=True)
    for depth in range(13, 0, -1):
        chain = _tool_node(depth, chain)
    trace = _one(_toolbench(tmp_path / "tree", _tool_node(0, chain, _tool_node(1))))
    (backtrack,) = _of(trace, Backtrack)
    assert (backtrack.from_, backtrack.to) == (14, 0)
    assert tally([trace]).agreed == {"climb": 1}
    (prune,) = _of(trace, Prune)
    assert trace.events.index(prune) == trace.events.index(backtrack) - 1


def test_inner_node_is_dead_when_the_search_leaves_it(tmp_path: Path) -> None:
    """Marked pruned, yet expanded: while the search was below it, it was not dead."""
    inner = _tool_node(1, _tool_node(2), _tool_node(2), pruned=True)
    trace = _one(_toolbench(tmp_path / "tree", _tool_node(0, inner, _tool_node(1))))
    assert tally([trace]).agreed == {"climb": 2}
    place = [type(event) for event in trace.events].index(Prune)
    assert trace.events[place] == Prune(id=1, reason="pruned")
    assert isinstance(trace.events[place + 1], Backtrack)


def test_lost_order_is_said(tmp_path: Path) -> None:
    """With the filter, children are visited by rank and not in the order in which they stand."""
    tree = _tool_node(0, _tool_node(1, expand_num=2), _tool_node(1, expand_num=1))
    traces = import_file(_toolbench(tmp_path / "tree", tree))
    (trace,) = traces
    assert trace.begin.order_known is False
    assert trace.begin.meta == {"order": "preorder"}
    assert [event.check for event in _of(trace, Backtrack)] == ["none"]
    ((reason, count),) = traces.summary.unchecked.items()
    assert count == 1 and "expand_num" in reason


def test_constant_scores_are_no_scores(tmp_path: Path) -> None:
    tree = _tool_node(0, _tool_node(1, Elo=1000.0), Elo=1000.0)
    assert _of(_one(_toolbench(tmp_path / "tree", tree)), Eval) == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"win": True}, "solved"),
        ({}, "unsolved"),
        ({"forward_args": {"max_query_count": 3}}, "budget"),
        ({"forward_args": None, "answer_generation": None}, "unsolved"),
    ],
)
def test_toolbench_endings(tmp_path: Path, changes: dict, status: str) -> None:
    assert _one(_toolbench(tmp_path / "tree", _tool_node(0), **changes)).end.status == status


def test_observations_count_as_state(tmp_path: Path) -> None:
    tree = _tool_node(
        0, _tool_node(1, description="≈", observation="ab"), _tool_node(1, observation={"a": 1})
    )
    nodes = _of(_one(_toolbench(tmp_path / "tree", tree)), Node)
    assert [node.state_bytes for node in nodes] == [0, 5, 1 + len('{"a": 1}')]


TOOLBENCH_FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "unknown type": ({"node_type": "Plan"}, {}, "tree.tree.children[0].node_type: expected one of Action, "),
    "wrong depth": ({"depth": 3}, {}, "tree.tree.children[0].depth: expected 1, its place in the tree"),
    "no children": ({"children": None}, {}, "tree.tree.children[0].children: expected a list, found None"),
    "description is a number": (
        {"description": 3},
        {},
        "tree.tree.children[0].description: expected a string",
    ),
    "pruned is text": ({"pruned": "no"}, {}, "tree.tree.children[0].pruned: expected true or false"),
    "child is text": ({"children": ["x"]}, {}, "tree.tree.children[0].children[0]: expected an object"),
    "state too large": (
        {"observation": "x" * 2_097_121},
        {},
        "node.state_bytes: expected 0 to 2097120 bytes",
    ),
    "no result": ({}, {"win": None}, "win: expected true or false, found None"),
    "size of another tree": ({}, {"size": 9}, "tree.size: expected 2, the nodes that there are, found 9"),
}


@pytest.mark.parametrize("name", TOOLBENCH_FAULTS)
def test_toolbench_faults_are_named(name: str, tmp_path: Path) -> None:
    values, changes, expected = TOOLBENCH_FAULTS[name]
    changes = copy.deepcopy(changes)
    root = _tool_node(0, _tool_node(1, **values))
    if "size" in changes:
        changes = {"tree": {"tree": root, "size": changes["size"]}}
    path = _toolbench(tmp_path / "tree", root, **changes)
    assert _error(path).startswith(f"record 0: {expected}")


def test_tree_deeper_than_a_record_can_say(tmp_path: Path) -> None:
    """Python's own JSON stops earlier than the field: either way one line says so."""
    depth = 4200
    text = '{"win": false, "tree": {"tree": '
    text += '{"node_type": "Action", "description": "", "children": [' * depth + "]}" * depth + "}}"
    path = tmp_path / "deep"
    path.write_text(text)
    assert _error(path).startswith("record 0: ")


# -- Common ------------------------------------------------------------------------------------------


def test_begin_says_where_it_comes_from(tmp_path: Path) -> None:
    trace = _one(_sos(tmp_path / "log", DFS_PATH))
    assert isinstance(trace.begin, Begin)
    assert (trace.begin.source, trace.begin.algorithm) == ("sos", "dfs")
    assert trace.begin.meta["nums"] == [3, 8, 5]


def test_records_larger_and_smaller_than_a_chunk(tmp_path: Path) -> None:
    """Records are read a chunk at a time; where they begin and end within chunks makes no difference."""
    words = ["x" * 70_000, "y", "z" * 200_000, "≈" * 40_000, *("v" * length for length in range(1, 400))]
    path = tmp_path / "log"
    text = json.dumps([[_record(word)] for word in words], ensure_ascii=False, indent=3)
    path.write_text(text + "\n\n", encoding="utf-8")
    assert [_of(trace, Node)[1].text for trace in import_file(path)] == words
