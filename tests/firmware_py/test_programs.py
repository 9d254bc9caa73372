"""Every walk program against its reference function on random trees and lists: answers and reads."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_py.programs import (
    backup,
    best_sibling,
    climb,
    common_ancestor,
    default_image,
    descend,
    select_k,
    visited,
)
from firmware_py.programs.memory_view import ancestors, children, is_dead, linked, read
from firmware_py.records import (
    CANDIDATE,
    CHILD,
    DEAD_BIT,
    DEPTH,
    FLAGS,
    HASH_ENTRY,
    NO_SCORE,
    PARENT,
    SCORE,
    SIBLING,
    SKIP,
    STATE_LENGTH,
    UNTRIED,
    VISITS,
    BitField,
    order_preserving,
)
from hdl.layouts import WalkStatus
from sim.model.interpreter import BUDGET_MAX, Memory, WalkResult, run_walk

SCORES = st.one_of(
    st.just(NO_SCORE),
    st.integers(-2, 2),
    st.floats(width=32, allow_nan=False).map(order_preserving),
)
WINDOW = (1, 1 << 16)


@dataclass
class Tree:
    """A forest in memory; `nodes` are addresses in order of creation."""

    memory: Memory
    nodes: list[int]


def put(memory: dict[int, list[int]], address: int, field: BitField, value: int) -> None:
    mask = (1 << field.width) - 1
    words = memory[address]
    words[field.word] = words[field.word] & ~(mask << field.low) | (value & mask) << field.low


@st.composite
def trees(draw: st.DrawFn, roots: int = 1) -> Tree:
    """Random forests of 1 to 24 nodes at random addresses, with every field random that no link needs.

    Some are deep and some are broad: a parent is one of the first `breadth` nodes or of all before it.
    """
    breadth = draw(st.sampled_from((2, 4, 24)))
    count = draw(st.integers(roots, 24))
    nodes = draw(st.lists(st.integers(1, 4000), min_size=count, max_size=count, unique=True))
    memory: dict[int, list[int]] = {}
    depth: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, node in enumerate(nodes):
        parent = nodes[draw(st.integers(0, min(index, breadth) - 1))] if index >= roots else 0
        memory[node] = [0] * 8
        depth[node] = depth[parent] + 1 if parent else 0
        put(memory, node, PARENT, parent)
        put(memory, node, SCORE, draw(SCORES))
        put(memory, node, DEPTH, depth[node])
        put(memory, node, FLAGS, draw(st.integers(0, 127)))
        put(memory, node, DEAD_BIT, draw(st.sampled_from((0, 0, 1))))
        put(memory, node, UNTRIED, draw(st.sampled_from((0, 0, 1, 4095))))
        put(memory, node, SKIP, draw(st.integers(0, 0xFFFFFFFF)))
        put(memory, node, VISITS, draw(st.sampled_from((0, 7, 65534, 65535))))
        put(memory, node, STATE_LENGTH, draw(st.integers(0, 65535)))
        if parent and parent not in last:
            put(memory, parent, CHILD, node)
        elif parent:
            put(memory, last[parent], SIBLING, node)
        last[parent] = node
    return Tree({node: tuple(words) for node, words in memory.items()}, nodes)


@st.composite
def candidate_lists(draw: st.DrawFn) -> Memory:
    """Random candidate lists from atom 1 on, of 1 to 12 records, in any order of sequence numbers."""
    count = draw(st.integers(1, 12))
    sequences = draw(st.permutations(range(count)))
    memory: dict[int, list[int]] = {}
    for index in range(count):
        address = 1 + 3 * index
        memory[address] = [0] * 8
        for name, value in (
            ("node", draw(st.integers(1, 5))),
            ("score", draw(SCORES) & 0xFFFFFFFF),
            ("sequence", sequences[index]),
            ("next", address + 3 if index + 1 < count else 0),
            ("status", draw(st.sampled_from((0, 1 << DEAD_BIT.low)))),
        ):
            memory[address][CANDIDATE[name]] = value
    return {address: tuple(words) for address, words in memory.items()}


def run(name: str, memory: Memory, start: int, *registers: int, writable: bool = False) -> WalkResult:
    image = default_image()
    return run_walk(
        image.instructions,
        memory,
        address=start,
        entry=image.entries[name],
        registers=[value & 0xFFFFFFFF for value in registers],
        window=WINDOW,
        writable=writable,
        budget=BUDGET_MAX,
    )


def test_the_programs_fit_together() -> None:
    image = default_image()
    assert len(image.words) <= 64
    assert {"climb", "best_sibling", "select_k", "common_ancestor", "visited", "descend", "backup"} <= set(
        image.entries
    )


def test_climb_is_one_instruction_a_hop() -> None:
    assert str(default_image().hop_costs["climb"]) == "1 instruction a hop"


@given(trees(), st.data())
def test_climb(tree: Tree, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(tree.nodes))
    result = run("climb", tree.memory, start)
    expected = climb.reference(tree.memory, start=start)
    path = list(ancestors(tree.memory, start))
    assert result.status is (WalkStatus.DONE if expected else WalkStatus.NULL_POINTER)
    assert (result.registers[0], result.value) == (expected, expected)
    assert result.hops == result.steps == (path.index(expected) + 1 if expected else len(path))


@settings(max_examples=200)
@given(trees(), st.data())
def test_best_sibling(tree: Tree, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(tree.nodes[:4]))
    least = data.draw(st.sampled_from((best_sibling.LIVE_CHILDREN, best_sibling.EVERY_CHILD, 1)))
    result = run("best_sibling", tree.memory, start, 0, 0, least)
    expected = best_sibling.reference(tree.memory, start=start, least_live=least)
    assert (result.status, result.registers[0]) == (WalkStatus.DONE, expected)
    if expected:
        assert result.registers[1] == read(tree.memory, expected, SCORE) & 0xFFFFFFFF
    assert result.hops == 1 + len(list(children(tree.memory, start)))


@given(candidate_lists(), st.integers(0, 14), st.booleans(), st.booleans())
def test_select_k(memory: Memory, k: int, live_only: bool, by_entry: bool) -> None:
    if live_only and by_entry:
        result = run("select_k_live", memory, 1, k)
    else:
        result = run("select_k", memory, 1, k, int(live_only))
    expected = select_k.reference(memory, start=1, k=k, live_only=live_only)
    assert (result.status, list(result.yields)) == (WalkStatus.DONE, expected)
    assert result.registers[0] == k - len(expected)
    every = len(select_k.reference(memory, start=1, k=len(memory), live_only=live_only))
    assert result.hops == (len(memory) * (len(expected) + (k > every)) if k else 1)


@given(trees(roots=2), st.data())
def test_common_ancestor(tree: Tree, data: st.DataObject) -> None:
    a = data.draw(st.sampled_from(tree.nodes))
    b = data.draw(st.sampled_from(tree.nodes))
    result = run("common_ancestor", tree.memory, a, b)
    expected = common_ancestor.reference(tree.memory, start=a, other=b)
    assert (result.status, result.registers[0]) == (WalkStatus.DONE, expected)
    depths = [read(tree.memory, node, DEPTH) for node in (a, b)]
    # Different roots meet where a common root above both would be, one level up and never read.
    meeting = read(tree.memory, expected, DEPTH) if expected else -1
    hops = sum(depths) - 2 * meeting + (expected in (a, b))
    assert result.hops == hops
    assert len(set(result.addresses)) == hops, "no record is read twice"


def test_common_ancestor_of_a_node_and_nothing() -> None:
    result = run("common_ancestor", {5: (0,) * 8}, 5, 0)
    assert result.status is WalkStatus.NULL_POINTER


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=10), st.data())
def test_visited(keys: list[tuple[int, int, int, int]], data: st.DataObject) -> None:
    memory: Memory = {}
    for index, key in enumerate(keys, 1):
        words = [*key, *[0] * 4]
        words[HASH_ENTRY["node"]] = 100 + index
        words[HASH_ENTRY["next"]] = index + 1 if index < len(keys) else 0
        memory[index] = tuple(words)
    key = data.draw(st.sampled_from(keys) | st.tuples(*[st.integers(0, 2)] * 4))
    result = run("visited", memory, 1, *key)
    expected = visited.reference(memory, start=1, key=key)
    assert (result.status, result.registers[0]) == (WalkStatus.DONE, expected)
    assert result.hops == (keys.index(key) + 1 if expected else len(keys))


def test_visited_in_an_empty_chain() -> None:
    result = run("visited", {}, 0, 1, 2, 3, 4)
    assert (result.status, result.value, result.hops) == (WalkStatus.NULL_POINTER, 0, 0)
    assert visited.reference({}, start=0, key=(1, 2, 3, 4)) == 0


@settings(max_examples=200)
@given(trees(), st.data())
def test_descend(tree: Tree, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(tree.nodes[:4]))
    result = run("descend", tree.memory, start)
    leaf = descend.reference(tree.memory, start=start)
    assert (result.status, result.registers[0]) == (WalkStatus.DONE, leaf)
    way = list(ancestors(tree.memory, leaf))
    way = way[: way.index(start) + 1]
    assert result.hops == 1 + sum(len(list(children(tree.memory, node))) for node in way)
    assert not any(is_dead(tree.memory, node) for node in way[:-1])


@given(trees(), st.integers(-(1 << 31), (1 << 31) - 1), st.data())
def test_backup(tree: Tree, value: int, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(tree.nodes))
    path = list(ancestors(tree.memory, start))
    saturated = sum(read(tree.memory, node, VISITS) == 65535 for node in path)
    expected = dict(tree.memory) | backup.reference(tree.memory, start=start, value=value)
    result = run("backup", tree.memory, start, value, writable=True)
    assert (result.status, result.value) == (WalkStatus.DONE, path[-1])
    assert tree.memory == expected
    assert result.hops == len(path)
    assert len(result.stores) == 2 * len(path) - saturated
    assert result.steps == 5 * len(path) - saturated


def test_backup_without_permission_changes_nothing() -> None:
    memory: Memory = {3: (0,) * 8}
    assert run("backup", memory, 3, 1).status is WalkStatus.WRITE_DENIED
    assert memory == {3: (0,) * 8}


@settings(max_examples=5)
@given(st.sampled_from(["climb", "descend", "best_sibling", "select_k", "visited", "common_ancestor"]))
def test_every_program_but_backup_runs_without_write_permission(name: str) -> None:
    memory: Memory = {3: (0,) * 8}
    assert run(name, memory, 3, 1).status in (WalkStatus.DONE, WalkStatus.NULL_POINTER)


def test_the_reference_functions_refuse_a_ring() -> None:
    memory: Memory = {3: (4, *(0,) * 7), 4: (3, *(0,) * 7)}
    with pytest.raises(ValueError, match="expected a chain that ends in 0"):
        list(linked(memory, 3, PARENT))
