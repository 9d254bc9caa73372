"""The plain-Python answers, on a tree small enough to see them."""

from __future__ import annotations

import pytest

from sim.trace.events import Backtrack, Backup, Eval, Event, Expand, Jump, Node, Prune, Select
from sim.trace.oracle import Oracle, tally

#        0
#      1   2
#     3 4
#     5
PARENTS = (None, 0, 0, 1, 1, 3)


def _tree() -> Oracle:
    oracle = Oracle()
    depths: list[int] = []
    for node, parent in enumerate(PARENTS):
        depths.append(0 if parent is None else depths[parent] + 1)
        parents = () if parent is None else (parent,)
        oracle.feed(Node(id=node, parents=parents, depth=depths[node]))
    return oracle


def _untried(oracle: Oracle, **counts: int) -> None:
    for name, count in counts.items():
        oracle.feed(Expand(id=int(name[1:]), untried=count, untried_source="declared"))


def test_climb_finds_the_nearest_with_something_left() -> None:
    oracle = _tree()
    assert oracle.climb(5) is None
    _untried(oracle, n0=2, n1=1, n5=9)
    assert oracle.climb(5) == 1
    assert oracle.climb(1) == 0
    assert oracle.climb(0) is None
    _untried(oracle, n1=0)
    assert oracle.climb(5) == 0


def test_climb_passes_the_dead_and_the_abandoned() -> None:
    oracle = _tree()
    _untried(oracle, n0=1, n1=1, n3=1)
    oracle.feed(Prune(id=3, reason="dead"))
    assert oracle.climb(5) == 1
    oracle.feed(Prune(id=1, reason="enough", abandoned=True))
    assert oracle.climb(5) == 0
    assert oracle.dead == [False, False, False, True, False, False]
    assert oracle.untried[1] == 0


def test_select_ranks_by_score_then_place() -> None:
    oracle = _tree()
    for node, score in ((1, 1.0), (2, 3.0), (3, None), (4, 3.0), (5, -0.0)):
        oracle.feed(Eval(id=node, score=score))
    everything = (3, 1, 4, 2, 5)
    assert oracle.select(everything, 5) == [4, 2, 1, 5, 3]
    assert oracle.select(everything, 2) == [4, 2]
    assert oracle.select((1, 1, 2), 3) == [2, 1, 1]
    oracle.feed(Prune(id=4, reason="dead"))
    assert oracle.select(everything, 2) == [4, 2]
    assert oracle.select(everything, 2, live_only=True) == [2, 1]


def test_scores_are_those_that_float32_tells_apart() -> None:
    oracle = _tree()
    oracle.feed(Eval(id=1, score=1.0))
    oracle.feed(Eval(id=2, score=1.0 + 1e-12))
    assert oracle.select((1, 2), 1) == [1]
    oracle.feed(Eval(id=2, score=1.0 + 1e-6))
    assert oracle.select((1, 2), 1) == [2]


@pytest.mark.parametrize(("first", "second", "meet"), [(5, 4, 1), (4, 5, 1), (5, 2, 0), (5, 3, 3), (3, 5, 3)])
def test_common_ancestor(first: int, second: int, meet: int) -> None:
    assert _tree().common_ancestor(first, second) == meet


def test_different_trees_have_none() -> None:
    oracle = _tree()
    oracle.feed(Node(id=6, parents=(), depth=0))
    assert oracle.common_ancestor(5, 6) is None


def test_second_parents_are_not_climbed() -> None:
    oracle = _tree()
    oracle.feed(Node(id=6, parents=(2, 1), depth=2))
    _untried(oracle, n1=1)
    assert oracle.climb(6) is None
    assert oracle.common_ancestor(6, 5) == 0


def test_backup_adds_up() -> None:
    oracle = _tree()
    oracle.feed(Backup(path=(5, 3, 1, 0), value=0.5))
    oracle.feed(Backup(path=(2, 0), value=0.25))
    assert oracle.visits == [2, 1, 1, 1, 0, 1]
    assert oracle.values == [0.75, 0.5, 0.25, 0.5, 0.0, 0.5]


def test_tally_tells_right_from_wrong() -> None:
    tree: list[Event] = [
        Node(id=0, parents=(), depth=0),
        Expand(id=0, untried=1, untried_source="declared"),
        Node(id=1, parents=(0,), depth=1),
        Node(id=2, parents=(1,), depth=2),
        Eval(id=1, score=1.0),
        Eval(id=2, score=1.0),
    ]
    right: list[Event] = [
        Backtrack(from_=2, to=0, untried_source="declared"),
        Select(candidates=(1, 2), chosen=(1,)),
        Select(candidates=(1, 2), chosen=(2,), order="score"),
        Jump(from_=1, to=2),
    ]
    wrong: list[Event] = [
        Backtrack(from_=2, to=1),
        Backtrack(from_=2, to=None),
        Select(candidates=(1, 2), chosen=(2,)),
        Select(candidates=(0, 1), chosen=(0,), order="score"),
        Jump(from_=2, to=1),
        Jump(from_=2, to=None, check="none", reason="lost"),
    ]
    result = tally([[*tree, *right, *wrong]])
    assert result.agreed == {"climb": 1, "select": 2, "ancestor": 1}
    assert result.checked == {"climb": 3, "select": 4, "ancestor": 2}
    assert result.by_source == {"declared": 1, "none": 2}
    assert result.unchecked == {"lost": 1}


def test_a_question_is_answered_before_what_follows_it() -> None:
    """The count of the resumed node goes down after the backtrack: the answer needs it as it was."""
    events: list[Event] = [
        Node(id=0, parents=(), depth=0),
        Expand(id=0, untried=1, untried_source="declared"),
        Node(id=1, parents=(0,), depth=1),
        Backtrack(from_=1, to=0),
        Expand(id=0, untried=0, untried_source="declared"),
        Node(id=2, parents=(0,), depth=1),
        Backtrack(from_=2, to=None),
    ]
    assert tally([events]).agreed == {"climb": 2}
