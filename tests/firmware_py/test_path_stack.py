"""The path stack against the tree itself: its answer is that of a climb, or it says that it has none."""

import random

import pytest

from firmware_py.path_stack import PathStack
from sim.trace.events import Backtrack, Event, Expand, Jump, Node, Prune, Spawn


def node(id_, *parents):
    return Node(id=id_, parents=parents, depth=len(parents), kind=None, state_bytes=0, tokens=None)


def expand(id_, untried):
    return Expand(id=id_, untried=untried, untried_source="declared")


class Tree:
    """Parents and flags of every node: the climb that reads them."""

    def __init__(self) -> None:
        self.parent: dict[int, int | None] = {}
        self.untried: dict[int, int] = {}
        self.dead: set[int] = set()

    def follow(self, event: Event) -> None:
        match event:
            case Node():
                self.parent[event.id] = event.parents[0] if event.parents else None
                self.untried[event.id] = 0
            case Expand():
                self.untried[event.id] = event.untried
            case Prune():
                if event.abandoned:
                    self.untried[event.id] = 0
                else:
                    self.dead.add(event.id)
            case _:
                pass

    def climb(self, start: int | None) -> tuple[int | None, int]:
        levels = 0
        while start is not None:
            levels += 1
            if start not in self.dead and self.untried[start] > 0:
                break
            start = self.parent[start]
        return start, levels


def depth_first(rng: random.Random, steps: int):
    """A random depth-first search: tree, stack and start of every climb."""
    tree = Tree()
    stack = PathStack()
    current: int | None = None
    made = 0

    def do(event: Event) -> None:
        tree.follow(event)
        stack.follow(event)

    for _ in range(steps):
        if current is None:
            do(node(made))
            current, made = made, made + 1
            do(expand(current, rng.randrange(4)))
            continue
        if tree.untried[current] > 0 and current not in tree.dead and rng.random() < 0.8:
            do(expand(current, tree.untried[current] - 1))
            do(node(made, current))
            current, made = made, made + 1
            do(expand(current, rng.randrange(3)))
            continue
        if rng.random() < 0.5:
            do(Prune(id=current, reason="dead", abandoned=rng.random() < 0.3))
        start = tree.parent[current]
        yield tree, stack, start
        current, _ = tree.climb(start)


@pytest.mark.parametrize("seed", range(20))
def test_a_depth_first_search_climbs_on_its_stack(seed: int) -> None:
    served = climbs = 0
    for tree, stack, start in depth_first(random.Random(seed), 400):
        expected, levels = tree.climb(start)
        found = stack.climb(start)
        climbs += start is not None
        if start is None:
            assert found is None
            continue
        assert found is not None and (found.node, found.levels) == (expected, levels)
        served += 1
    assert served == climbs > 5


def built(*events: Event) -> PathStack:
    stack = PathStack()
    for event in (node(0), expand(0, 2), node(1, 0), expand(1, 1), node(2, 1), *events):
        stack.follow(event)
    return stack


def test_what_was_left_is_not_on_the_stack_any_more() -> None:
    stack = built()
    assert stack.climb(2) is not None  # ends at node 1
    assert stack.climb(2) is None


@pytest.mark.parametrize(
    "events",
    [
        [Jump(from_=2, to=0)],
        [Spawn(id=2, ids=(3, 4))],
        [node(3, 1, 2)],
        [node(3), node(4, 2)],
    ],
    ids=["jump", "spawn", "two parents", "off the path"],
)
def test_a_flag_that_may_change_elsewhere_must_be_read(events) -> None:
    assert built().climb(1) is not None
    assert built(*events).climb(1) is None


def test_a_node_below_one_that_is_not_on_the_path_is_not_pushed() -> None:
    stack = built(Jump(from_=2, to=0), node(3, 0))
    assert stack.climb(3) is None and stack.climb(0) is None


def test_flags_off_the_path_change_nothing() -> None:
    stack = built(node(3, 0), expand(2, 5), Prune(id=1, reason="x"))
    found = stack.climb(3)
    assert found is not None and (found.node, found.levels) == (0, 2)


def test_no_ancestor_left_is_an_answer() -> None:
    stack = built(expand(1, 0), Prune(id=0, reason="x"))
    found = stack.climb(2)
    assert found is not None and (found.node, found.levels) == (None, 3)
    assert stack.climb(0) is None


def test_a_backtrack_itself_changes_nothing() -> None:
    stack = built(Backtrack(from_=2, to=1))
    assert stack.climb(1) is not None
