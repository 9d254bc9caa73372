"""Where records live, and the mirror of a tree: fields, links, writes of what changed and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.errors import InputError
from firmware_py.image import AddressSpace, CreationOrder, MemoryFull, TreeImage, layout_named
from firmware_py.records import NO_SCORE, UNTRIED_MAX, order_preserving
from hdl.config import named_config
from sim.trace.events import Node


def _tree(parents, *, list_atoms=4, base=100):
    nodes = []
    for index, parent in enumerate(parents):
        depth = 0 if parent is None else nodes[parent].depth + 1
        nodes.append(Node(id=index, parents=() if parent is None else (parent,), depth=depth))
    image = TreeImage(nodes, layout=CreationOrder(), list_atoms=list_atoms)
    image.move_to(base)
    for node in nodes:
        image.make_node(node)
    return image


def test_a_new_node_has_its_parent_its_depth_and_no_score():
    image = _tree([None, 0, 1])
    assert image.address(2) == 102
    assert [image.word(2, word) for word in range(8)] == [101, 0, 0, NO_SCORE & 0xFFFFFFFF, 2 << 20, 0, 0, 0]


def test_children_are_linked_in_order_of_creation():
    image = _tree([None, 0, 0, 1, 0])
    children = []
    address = image.word(0, 1)
    while address:
        children.append(address - image.base)
        address = image.word(children[-1], 2)
    assert children == [1, 2, 4]
    assert image.word(1, 1) == image.address(3)


def test_status_fields_share_their_word_without_touching_one_another():
    image = _tree([None, 0])
    image.set_untried(1, 5)
    image.set_dead(1)
    assert image.word(1, 4) == 1 << 20 | 1 << 12 | 5
    image.set_untried(1, UNTRIED_MAX + 10)
    assert image.word(1, 4) == 1 << 20 | 1 << 12 | UNTRIED_MAX


def test_a_score_is_order_preserving_and_may_be_taken_back():
    image = _tree([None])
    image.set_score(0, -2.5)
    assert image.word(0, 3) == order_preserving(-2.5) & 0xFFFFFFFF
    image.set_score(0, None)
    assert image.word(0, 3) == NO_SCORE & 0xFFFFFFFF


def test_a_candidate_list_copies_score_and_dead_bit_and_counts_its_sequence():
    image = _tree([None, 0, 0])
    image.set_score(1, 1.0)
    image.set_dead(2)
    first = image.put_candidates([1, 2, 1])
    assert first == image.base + 3
    records = [image[first + index] for index in range(3)]
    one, none = order_preserving(1.0), NO_SCORE & 0xFFFFFFFF
    assert records[0] == (101, one, 0, first + 1, 0, 0, 0, 0)
    assert records[1] == (102, none, 1, first + 2, 1 << 12, 0, 0, 0)
    assert records[2] == (101, one, 2, 0, 0, 0, 0, 0)


def test_only_changed_words_are_written_and_consecutive_equals_share_a_write():
    image = _tree([None, 0, 0])
    runs = image.flush()
    assert [(run.address, run.mask, len(run.data)) for run in runs] == [(100, 0xFFFFFFFF, 3)]
    assert image.flush() == []
    image.set_untried(0, 1)
    image.set_dead(1)
    image.set_score(2, 0.5)
    runs = image.flush()
    assert [(run.address, run.mask, len(run.data)) for run in runs] == [(100, 0xF0000, 2), (102, 0xF000, 1)]


def test_what_a_walk_stores_is_in_the_mirror_and_needs_no_write():
    image = _tree([None])
    image.flush()
    image[100] = tuple(range(8))
    assert image.word(0, 5) == 5
    assert image.flush() == []
    with pytest.raises(KeyError):
        image[99] = tuple(range(8))
    assert 99 not in image and 100 in image


@given(st.data())
def test_writes_bring_a_memory_up_to_date(data):
    count = data.draw(st.integers(1, 12))
    parents = [None] + [data.draw(st.integers(0, index - 1)) for index in range(1, count)]
    nodes = []
    for index, parent in enumerate(parents):
        depth = 0 if parent is None else nodes[parent].depth + 1
        nodes.append(Node(id=index, parents=() if parent is None else (parent,), depth=depth))
    image = TreeImage(nodes, layout=CreationOrder(), list_atoms=6)
    image.move_to(7)
    memory = np.zeros((7 + image.size, 8), dtype=np.uint32)
    made = 0
    for _ in range(data.draw(st.integers(1, 30))):
        action = data.draw(st.sampled_from(["node", "untried", "score", "dead", "list", "flush"]))
        if action == "node" and made < count:
            image.make_node(nodes[made])
            made += 1
        elif made and action == "untried":
            image.set_untried(data.draw(st.integers(0, made - 1)), data.draw(st.integers(0, 5000)))
        elif made and action == "score":
            image.set_score(data.draw(st.integers(0, made - 1)), data.draw(st.floats(-9, 9, width=32)))
        elif made and action == "dead":
            image.set_dead(data.draw(st.integers(0, made - 1)))
        elif made and action == "list":
            image.put_candidates(data.draw(st.lists(st.integers(0, made - 1), min_size=1, max_size=6)))
        if action == "flush":
            _apply(memory, image.flush())
            assert (memory[7:] == image.words).all()
    _apply(memory, image.flush())
    assert (memory[7:] == image.words).all()


def _apply(memory, runs):
    for run in runs:
        for offset, atom in enumerate(run.data):
            for word in range(8):
                if run.mask >> 4 * word & 1:
                    memory[run.address + offset, word] = atom[word]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Node(id=0, parents=(), depth=4096), "field depth is 4096: expected 0 to 4095"),
        (Node(id=0, parents=(), depth=0, state_bytes=32 * 65536), "field state_bytes (blocks) is 65536"),
    ],
)
def test_a_value_beyond_its_field_is_refused(node, message):
    image = TreeImage([node], layout=CreationOrder(), list_atoms=0)
    with pytest.raises(InputError) as caught:
        image.make_node(node)
    assert message in str(caught.value)


def test_address_ranges_follow_one_another_and_are_used_again_when_the_end_is_reached():
    space = AddressSpace(atoms=100)
    assert [space.allocate(30), space.allocate(30), space.allocate(30)] == [1, 31, 61]
    space.release(1)
    space.release(31)
    assert space.allocate(50) == 1
    space.release(61)
    assert space.allocate(20) == 51
    with pytest.raises(MemoryFull) as caught:
        space.allocate(40)
    assert str(caught.value) == (
        "needs 40 atoms of memory: expected at most 29 (memory of 100 atoms, 70 in use)"
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=60))
def test_live_ranges_never_overlap_and_never_hold_atom_zero(steps):
    space = AddressSpace(atoms=64)
    live: dict[int, int] = {}
    for give_back, count in steps:
        if give_back and live:
            base = next(iter(live))
            space.release(base)
            del live[base]
            continue
        try:
            base = space.allocate(count)
        except MemoryFull:
            continue
        assert base >= 1 and base + count <= 64
        assert all(base + count <= other or other + length <= base for other, length in live.items())
        live[base] = count


def test_an_unknown_layout_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown layout 'spiral': expected one of creation, siblings, path"):
        layout_named("spiral", named_config("simulation").memory)


def test_atoms_between_the_nodes_of_a_layout_are_not_known():
    nodes = [Node(id=0, parents=(), depth=0), Node(id=1, parents=(0,), depth=1)]
    layout = layout_named("path", named_config("simulation").memory)
    image = TreeImage(nodes, layout=layout, list_atoms=1)
    for node in nodes:
        image.make_node(node)
    assert image.size > 3
    assert set(np.flatnonzero(image.known)) == {image.address(0), image.address(1)}


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 20), st.sampled_from((1, 4, 16))), max_size=60))
def test_aligned_ranges_begin_at_a_multiple_and_never_overlap(steps):
    space = AddressSpace(atoms=128)
    live: dict[int, int] = {}
    for give_back, count, alignment in steps:
        if give_back and live:
            base = next(iter(live))
            space.release(base)
            del live[base]
            continue
        try:
            base = space.allocate(count, alignment=alignment)
        except MemoryFull:
            continue
        assert base % alignment == 0 and base >= 1 and base + count <= 128
        assert all(base + count <= other or other + length <= base for other, length in live.items())
        live[base] = count
