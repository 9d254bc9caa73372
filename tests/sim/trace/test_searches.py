"""The project's own searches: they solve what they say, and the trace is what they did."""

from __future__ import annotations

import ast
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from sim.trace.events import Backtrack, Backup, Expand, Jump, Node, Prune, Select
from sim.trace.importers import import_file
from sim.trace.oracle import Oracle, tally
from sim.trace.recorder import Recorder
from sim.trace.schema import Trace, read_traces
from sim.trace.searches import demonstration_traces
from sim.trace.searches.countdown import Countdown, monte_carlo
from sim.trace.searches.crossword import WORDS, Crossword, Grid, mesh, staircase
from sim.trace.searches.demonstration import STAIR_WORDS
from sim.trace.searches.depth_first import Outcome, depth_first
from sim.trace.searches.game24 import Game24, beam


def _value(expression: str) -> tuple[Fraction, list[int]]:
    """What an expression comes to, and the numbers in it; worked out from its text alone."""
    numbers: list[int] = []

    def evaluate(node: ast.expr) -> Fraction:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            numbers.append(node.value)
            return Fraction(node.value)
        assert isinstance(node, ast.BinOp)
        left, right = evaluate(node.left), evaluate(node.right)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
        raise AssertionError(node.op)

    return evaluate(ast.parse(expression, mode="eval").body), sorted(numbers)


def _recorded(path: Path, name: str = "it") -> Recorder:
    recorder = Recorder(path)
    recorder.__enter__()
    recorder.begin(name, algorithm="dfs")
    return recorder


def _finish(recorder: Recorder, path: Path) -> Trace:
    recorder.end("unknown")
    recorder.__exit__(None, None, None)
    (trace,) = read_traces(path)
    result = tally([trace])
    assert result.agreed == result.checked
    return trace


def _texts(trace: Trace, node: int) -> list[str]:
    nodes = [event for event in trace.events if isinstance(event, Node)]
    path = []
    while nodes[node].parents:
        path.append(nodes[node].text or "")
        node = nodes[node].parents[0]
    return path[::-1]


# -- Game of 24 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [(4, 5, 6, 10), (3, 3, 8, 8), (1, 4, 5, 6), (6, 6, 6, 6)])
@pytest.mark.parametrize("search", ["depth first", "beam"])
def test_game24_solutions_are_right(tmp_path: Path, numbers: tuple[int, ...], search: str) -> None:
    path = tmp_path / "trace.jsonl"
    recorder, game = _recorded(path), Game24(numbers)
    outcome = (
        depth_first(recorder, game, budget=400) if search == "depth first" else beam(recorder, game, width=5)
    )
    trace = _finish(recorder, path)
    assert outcome.status == "solved" and outcome.solution is not None
    value, used = _value(outcome.solution.expressions[0])
    assert (value, used) == (24, sorted(numbers))
    # The steps in the trace lead there too.
    last = max(event.id for event in trace.events if isinstance(event, Node))
    if search == "depth first":
        steps = _texts(trace, last)
        assert len(steps) == 3
        for step in steps:
            made, result = step.split(" = ")
            first, sign, second = made.split(" ")
            assert _value(f"({first}) {sign} ({second})")[0] == _value(result)[0]


def test_game24_without_solution_is_exhausted(tmp_path: Path) -> None:
    """1 1 1 1 cannot make 24: all of its tree is tried, and nothing is left to go back to."""
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    assert depth_first(recorder, Game24((1, 1, 1, 1)), budget=400) == Outcome(status="exhausted")
    trace = _finish(recorder, path)
    oracle = Oracle()
    for event in trace:
        oracle.feed(event)
    assert set(oracle.untried) == {0}
    last = trace.events[-1]
    assert isinstance(last, Backtrack) and last.to is None


def test_game24_moves_are_all_there_are() -> None:
    """Against every way of putting two numbers together; only negative results are left out as equal play."""
    game = Game24((1, 3, 4, 6))
    expected = set()
    for left, right in itertools.permutations(range(4), 2):
        a, b = game.root.numbers[left], game.root.numbers[right]
        rest = [game.root.numbers[place] for place in range(4) if place not in (left, right)]
        for value in [a + b, a - b, a * b, a / b]:
            if value >= 0:
                expected.add(tuple(sorted([*rest, value])))
    assert {hand.numbers for hand in game.moves(game.root)} == expected


def test_beam_keeps_its_width(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    beam(recorder, Game24((4, 5, 6, 10)), width=3)
    trace = _finish(recorder, path)
    selects = [event for event in trace.events if isinstance(event, Select)]
    assert [len(select.chosen) for select in selects] == [3, 3, 3]
    pruned = {event.id for event in trace.events if isinstance(event, Prune)}
    for select in selects:
        assert set(select.candidates) - set(select.chosen) <= pruned
        assert not set(select.chosen) & pruned
    # From one kept hand to the next: first of a step to the others, and across between steps.
    assert sum(isinstance(event, Jump) for event in trace.events) >= 4


# -- Crossword ---------------------------------------------------------------------------------------


def _check_fill(grid: Grid, words: Sequence[str], allowed: Sequence[str]) -> None:
    assert len(words) == len(grid.slots) == len(set(words))
    board: dict[tuple[int, int], str] = dict(grid.letters)
    for slot, word in zip(grid.slots, words, strict=True):
        assert word in allowed and len(word) == len(slot)
        for cell, letter in zip(slot, word, strict=True):
            assert board.setdefault(cell, letter) == letter


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (mesh(2, 4), WORDS),
        (mesh(2, 4, {(3, 3): "k", (6, 6): "m"}), WORDS),
        (mesh(2, 4, {(3, 3): "e", (6, 6): "r"}), WORDS),
        (staircase(14, 4, {(0, 0): "h", (21, 21): "e"}), STAIR_WORDS),
    ],
)
def test_crossword_fills_agree(tmp_path: Path, grid: Grid, words: tuple[str, ...]) -> None:
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    most = 3 if words is WORDS else None
    outcome = depth_first(recorder, Crossword(grid, words), budget=400, most_children=most)
    trace = _finish(recorder, path)
    assert outcome.status == "solved" and outcome.solution is not None
    _check_fill(grid, outcome.solution.words, words)
    last = max(event.id for event in trace.events if isinstance(event, Node))
    named = [f"{name}. {word}" for name, word in zip(grid.names, outcome.solution.words, strict=True)]
    assert _texts(trace, last) == named


def test_grids_are_crossed_as_drawn() -> None:
    grid = mesh(1, 4)
    assert grid.names == ("h1.1", "v1.1", "v2.1", "h2.1")
    assert grid.crossing == {0: (1, 2), 1: (0, 3), 2: (0, 3), 3: (1, 2)}
    stair = staircase(3, 4)
    assert stair.crossing == {0: (1,), 1: (0, 2), 2: (1,)}
    assert stair.slots[2] == ((3, 3), (3, 4), (3, 5), (3, 6))


def test_impossible_fills_are_dead(tmp_path: Path) -> None:
    """Dead in the trace is exactly: some open crossing slot has no word, or no word fits the next slot."""
    path = tmp_path / "trace.jsonl"
    recorder, puzzle = _recorded(path), Crossword(mesh(2, 4, {(3, 3): "k", (6, 6): "d"}))
    outcome = depth_first(recorder, puzzle, budget=400, most_children=3)
    trace = _finish(recorder, path)
    assert outcome.status == "exhausted"
    reasons = Counter(event.reason for event in trace.events if isinstance(event, Prune))
    assert reasons["impossible"] > 20
    assert reasons["enough"] > 5
    parents = {event.parents[0] for event in trace.events if isinstance(event, Node) and event.parents}
    dead = {event.id for event in trace.events if isinstance(event, Prune) and not event.abandoned}
    assert not parents & dead


def test_words_are_each_there_once() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert {len(word) for word in WORDS} == {4}
    assert set(STAIR_WORDS) <= set(WORDS)


def test_abandoned_children_are_not_climbed_to(tmp_path: Path) -> None:
    """Leaving a node after three children zeroes its count; without that the climb would stop there."""
    path = tmp_path / "trace.jsonl"
    recorder, puzzle = _recorded(path), Crossword(mesh(2, 4, {(3, 3): "k", (6, 6): "m"}))
    depth_first(recorder, puzzle, budget=400, most_children=3)
    trace = _finish(recorder, path)
    kept = [event for event in trace.events if not (isinstance(event, Prune) and event.abandoned)]
    result = tally([kept])
    assert result.agreed["climb"] < result.checked["climb"]


# -- Countdown ---------------------------------------------------------------------------------------


def test_countdown_solution_is_right(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    status, hand = monte_carlo(recorder, Countdown((1, 4, 7, 10, 75), 287), iterations=250, seed=1)
    _finish(recorder, path)
    assert status == "solved" and hand is not None
    value, used = _value(hand.expressions[hand.numbers.index(287)])
    assert value == 287
    assert not Counter(used) - Counter((1, 4, 7, 10, 75))


def test_countdown_backs_up_to_the_root(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    status, hand = monte_carlo(recorder, Countdown((2, 3, 5, 7, 11), 617), iterations=60, width=4)
    trace = _finish(recorder, path)
    assert (status, hand) == ("budget", None)
    backups = [event for event in trace.events if isinstance(event, Backup)]
    assert len(backups) == 60
    assert all(backup.path[-1] == 0 and 0 < backup.value <= 1 for backup in backups)
    oracle = Oracle()
    children: Counter[int] = Counter()
    for event in trace:
        oracle.feed(event)
        if isinstance(event, Node) and event.parents:
            children[event.parents[0]] += 1
    assert oracle.visits[0] == 60
    assert max(children.values()) <= 4


def test_countdown_goes_down_by_the_upper_confidence_bound(tmp_path: Path) -> None:
    """The bound of every selected child, worked out again from the visits and values of the backups."""
    path = tmp_path / "trace.jsonl"
    recorder = _recorded(path)
    monte_carlo(recorder, Countdown((2, 3, 5, 7, 11), 617), iterations=60, width=4)
    trace = _finish(recorder, path)
    oracle, selects = Oracle(), 0
    for event in trace:
        if isinstance(event, Select):
            selects += 1
            parent = oracle.parents[event.candidates[0]][0]

            def bound(child: int, parent: int = parent) -> float:
                mean = oracle.values[child] / oracle.visits[child]
                return mean + 0.7 * math.sqrt(math.log(oracle.visits[parent]) / oracle.visits[child])

            for child in event.candidates:
                assert oracle.scores[child] == pytest.approx(bound(child), abs=1e-4)
            best = max(bound(child) for child in event.candidates)
            assert bound(event.chosen[0]) == pytest.approx(best, abs=1e-4)
        oracle.feed(event)
    assert selects > 60


def test_same_seed_same_trace_other_seed_other_trace(tmp_path: Path) -> None:
    files = []
    for number, seed in enumerate((3, 3, 4)):
        path = tmp_path / f"{number}.jsonl"
        recorder = _recorded(path)
        monte_carlo(recorder, Countdown((2, 3, 5, 7, 11), 617), iterations=40, seed=seed)
        _finish(recorder, path)
        files.append(path.read_bytes())
    assert files[0] == files[1] != files[2]


# -- The demonstration -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return demonstration_traces(tmp_path_factory.mktemp("demonstration") / "made")


def test_demonstration_traces_are_answered(demonstration: list[Path]) -> None:
    traces = [trace for path in demonstration for trace in import_file(path)]
    result = tally(traces)
    assert result.agreed == result.checked
    assert not result.unchecked
    assert set(result.by_source) == {"declared"}
    assert (
        result.checked["climb"] > 500 and result.checked["select"] > 100 and result.checked["ancestor"] > 10
    )
    assert sum(isinstance(event, Backup) for trace in traces for event in trace.events) > 100


def test_demonstration_is_small_and_deep_in_part(demonstration: list[Path]) -> None:
    traces = [trace for path in demonstration for trace in import_file(path)]
    assert len(traces) == 10
    assert 1000 <= sum(trace.nodes for trace in traces) <= 2500
    deepest: Counter[int] = Counter()
    for trace in traces:
        depths = [event.depth for event in trace.events if isinstance(event, Node)]
        for event in trace.events:
            if isinstance(event, Backtrack) and event.to is not None:
                deepest[depths[event.from_] - depths[event.to]] += 1
    assert sum(count for levels, count in deepest.items() if levels >= 8) >= 5
    statuses = Counter(trace.end.status for trace in traces)
    assert statuses["solved"] >= 6 and statuses["exhausted"] >= 1


def test_demonstration_is_always_the_same(demonstration: list[Path], tmp_path: Path) -> None:
    again = demonstration_traces(tmp_path)
    assert [path.name for path in again] == [path.name for path in demonstration]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in demonstration]


def test_declared_counts_are_what_was_left(demonstration: list[Path]) -> None:
    """A declared count falls by one for each child made, and never below 0."""
    for path in demonstration:
        for trace in read_traces(path):
            untried: dict[int, int] = {}
            owed: Counter[int] = Counter()
            for event in trace.events:
                if isinstance(event, Expand):
                    if event.id in untried:
                        assert event.untried == untried[event.id] - 1
                        owed[event.id] += 1
                    untried[event.id] = event.untried
                elif isinstance(event, Node) and event.parents and event.parents[0] in untried:
                    owed[event.parents[0]] -= 1
                    assert owed[event.parents[0]] == 0
