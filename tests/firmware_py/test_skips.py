"""`climb_compressed` and the host's skips against `climb`: the same answers whatever happens to the tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_py.image import CreationOrder, TreeImage
from firmware_py.programs import climb, climb_compressed, replay_image
from firmware_py.programs.climb_compressed import STAMPS, launch_registers, skip_word
from firmware_py.records import SKIP, UNTRIED_MAX
from firmware_py.skips import Skips
from hdl.layouts import WalkStatus
from sim.model.interpreter import BUDGET_MAX, WalkResult, run_walk
from sim.trace.events import Node

_BASE = 7


class Tree:
    """A tree that grows and changes, its image and its skips; `parents[n]` is the parent of node n."""

    def __init__(self, parents: list[int | None]) -> None:
        nodes: list[Node] = []
        for index, parent in enumerate(parents):
            depth = 0 if parent is None else nodes[parent].depth + 1
            nodes.append(Node(id=index, parents=() if parent is None else (parent,), depth=depth))
        self.parents, self.nodes, self.made = parents, nodes, 0
        self.image = TreeImage(nodes, layout=CreationOrder(), list_atoms=0)
        self.image.move_to(_BASE)
        self.skips = Skips(self.image)

    def grow(self) -> None:
        if self.made < len(self.nodes):
            self.image.make_node(self.nodes[self.made])
            self.skips.made(self.made, self.parents[self.made])
            self.made += 1

    def change(self, node: int, *, dead: bool | None = None, untried: int | None = None) -> None:
        before = self.image.is_open(node)
        if untried is not None:
            self.image.set_untried(node, untried)
        if dead is not None:
            (self.image.set_dead if dead else self.image.revive)(node)
        if not before and self.image.is_open(node):
            self.skips.opened(node)

    def climb(self, start: int, program: str = "climb_compressed") -> WalkResult:
        self.skips.settle()
        self.image.flush()
        image, address = replay_image(program), self.image.address(start)
        return run_walk(
            image.instructions,
            self.image,
            address=address,
            entry=image.entries[program],
            registers=launch_registers(start=address, stamp=self.skips.stamp)
            if program == "climb_compressed"
            else (),
            window=(self.image.base, self.image.limit),
            writable=True,
            budget=BUDGET_MAX,
        )

    def check(self, start: int) -> WalkResult:
        expected = climb.reference(self.image, start=self.image.address(start))
        plain = self.climb(start, "climb")
        found = self.climb(start)
        assert found.registers[0] == plain.registers[0] == expected
        assert found.status is plain.status
        assert found.status is (WalkStatus.DONE if expected else WalkStatus.NULL_POINTER)
        again = self.climb(start)
        assert again.registers[0] == expected and not again.stores
        # Only the way itself is compressed: afterwards the start is one hop from the answer.
        assert again.hops <= 2 or not expected
        return found


@st.composite
def parents(draw: st.DrawFn) -> list[int | None]:
    """Deep and broad trees of 1 to 30 nodes."""
    count, near = draw(st.integers(1, 30)), draw(st.sampled_from((1, 2, 30)))
    return [None] + [draw(st.integers(max(0, index - near), index - 1)) for index in range(1, count)]


def _steps() -> st.SearchStrategy[list[tuple[str, int]]]:
    names = st.sampled_from(("grow", "grow", "kill", "revive", "arm", "spend", "climb", "climb"))
    return st.lists(st.tuples(names, st.integers(0, 29)), max_size=80)


@settings(max_examples=400, deadline=None)
@given(parents(), _steps())
def test_the_answers_are_those_of_climb_through_kills_revivals_and_rearms(shape, steps) -> None:
    tree = Tree(shape)
    tree.grow()
    for what, number in steps:
        node = number % tree.made
        if what == "grow":
            tree.grow()
        elif what == "climb":
            tree.check(node)
        else:
            tree.change(
                node,
                dead={"kill": True, "revive": False}.get(what),
                untried={"arm": 1, "spend": 0}.get(what),
            )
    for node in range(tree.made):
        tree.check(node)


def _chain(length: int) -> Tree:
    tree = Tree([None, *range(length - 1)])
    for _ in range(length):
        tree.grow()
    return tree


def test_a_walk_leaves_skips_on_its_way_and_counts_two_reads_and_one_store_a_record() -> None:
    tree = _chain(8)
    tree.skips.settle()  # nothing was open: no node begins with a skip
    tree.change(0, untried=1)
    first = tree.climb(7)
    assert first.registers[0] == _BASE and first.hops == 8 + 7
    assert [store.word for store in first.stores] == [SKIP.word] * 6
    for start in range(7, 1, -1):
        assert tree.climb(start).hops == 2


def test_a_node_begins_with_the_skip_over_its_closed_ancestors_in_its_own_write() -> None:
    tree = Tree([None, *range(9)])
    for node in range(10):
        tree.grow()
        if node == 2:
            tree.change(2, untried=1)
    tree.skips.settle()
    assert tree.image.skip(3) == 0, "its parent is open"
    word = skip_word(stamp=1, target=_BASE + 2)
    assert [tree.image.skip(node) for node in range(4, 10)] == [word] * 6
    (run,) = tree.image.flush()
    assert len(run.data) == 10 and run.mask == 0xFFFFFFFF
    assert tree.climb(9).hops == 2


def test_a_rearmed_node_takes_a_new_stamp_and_no_skip_passes_it() -> None:
    tree = _chain(8)
    tree.change(0, untried=1)
    tree.climb(7)
    stamp = tree.skips.stamp
    tree.change(4, untried=2)
    assert tree.skips.stamp == stamp + 1
    assert tree.climb(7).registers[0] == _BASE + 4


@pytest.mark.parametrize("how", ("arm", "revive"))
def test_without_the_new_stamp_the_answer_would_be_wrong(how: str) -> None:
    tree = _chain(8)
    tree.change(0, untried=1)
    if how == "revive":
        tree.change(4, dead=True)
        tree.change(4, untried=1)
    tree.climb(7)
    tree.skips.opened = lambda node: None  # the host forgets
    tree.change(4, untried=1, dead=False)
    assert tree.climb(7).registers[0] == _BASE
    assert tree.climb(7, "climb").registers[0] == _BASE + 4


def test_a_leaf_that_is_armed_needs_no_stamp() -> None:
    tree = _chain(3)
    before = tree.skips.stamp
    tree.change(2, untried=5)
    assert tree.skips.stamp == before


def test_when_the_stamps_run_out_every_skip_is_cleared() -> None:
    tree = _chain(6)
    tree.change(0, untried=1)
    tree.climb(5)
    for _ in range(STAMPS):
        tree.change(3, untried=0)
        tree.change(3, untried=1)
        tree.check(5)
    assert tree.skips.words_cleared > 0 and 1 <= tree.skips.stamp <= STAMPS
    # The stamp of the first skips is in use again; none of them is left.
    tree.change(3, untried=0)
    tree.check(5)


def test_a_stale_stamp_is_never_followed() -> None:
    tree = _chain(6)
    tree.skips.settle()
    tree.image.set_untried(0, 1)
    for stamp in range(2, STAMPS + 1):
        tree.image.set_skip(5, skip_word(stamp=stamp, target=_BASE + 1))
        assert tree.climb(5, "climb_compressed").addresses[1] == _BASE + 4


@pytest.mark.parametrize(("stamp", "target"), [(0, 1), (STAMPS + 1, 1), (1, 0), (1, 1 << 28)])
def test_a_skip_that_does_not_fit_is_refused(stamp: int, target: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to"):
        skip_word(stamp=stamp, target=target)


def test_the_root_is_reached_through_skips_when_nothing_is_left() -> None:
    tree = _chain(5)
    tree.change(0, untried=UNTRIED_MAX)
    tree.climb(4)
    tree.change(0, untried=0)
    end = tree.climb(4)
    assert (end.status, end.registers[0], end.hops, end.stores) == (WalkStatus.NULL_POINTER, 0, 2, ())
    assert climb_compressed.reference is climb.reference
