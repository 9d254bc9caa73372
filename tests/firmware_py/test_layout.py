"""Layouts: distinct places, rows as the address map has them, families and paths together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_py.design import design_for
from firmware_py.layout import LAYOUTS, layout_named
from hdl.memory.address import AddressMap
from sim.trace.events import Node

MEMORIES = {
    "usual": design_for("hbm2_2000").memory,
    "hashed": design_for(
        "hbm2_2000", address_map="pseudo_channel,bank_group,column,bank^row[1:0],row"
    ).memory,
    "hbm4": design_for("hbm4_8000").memory,
}


def tree(parents):
    nodes = []
    for index, parent in enumerate(parents):
        depth = 0 if parent is None else nodes[parent].depth + 1
        nodes.append(Node(id=index, parents=() if parent is None else (parent,), depth=depth))
    return nodes


def rows_of(memory, layout, offsets, base_number=3):
    """The row of each node, when the tree lies at some multiple of the alignment."""
    place = AddressMap(memory).decode(base_number * layout.alignment + offsets)
    return list(zip(place.pseudo_channel.tolist(), place.bank.tolist(), place.row.tolist(), strict=True))


@st.composite
def shapes(draw):
    count, near = draw(st.integers(1, 120)), draw(st.sampled_from((1, 3, 120)))
    return [None] + [draw(st.integers(max(0, index - near), index - 1)) for index in range(1, count)]


@settings(max_examples=60, deadline=None)
@given(shapes(), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 9), st.sampled_from(sorted(MEMORIES)))
def test_every_node_has_a_place_of_its_own_within_the_span(shape, name, turn, memory):
    layout = layout_named(name, MEMORIES[memory])
    offsets, span = layout.place(tree(shape), turn=turn)
    assert len(set(offsets.tolist())) == len(shape)
    assert offsets.min() >= 0 and offsets.max() < span
    assert span % layout.alignment == 0


@pytest.mark.parametrize("memory", sorted(MEMORIES))
def test_a_family_that_fits_lies_in_one_row(memory):
    config = MEMORIES[memory]
    columns = config.organisation.columns
    layout = layout_named("siblings", config)
    shape = [None] + [0] * columns + [1] * (columns // 2) + [2] * columns
    rows = rows_of(config, layout, layout.place(tree(shape))[0])
    first = 1 + columns
    second = first + columns // 2
    assert len(set(rows[1:first])) == len(set(rows[first:second])) == len(set(rows[second:])) == 1


def test_a_family_longer_than_a_row_is_cut():
    config = MEMORIES["usual"]
    columns = config.organisation.columns
    layout = layout_named("siblings", config)
    rows = rows_of(config, layout, layout.place(tree([None] + [0] * 3 * columns))[0])
    assert len(set(rows)) == 4


@pytest.mark.parametrize("memory", sorted(MEMORIES))
def test_a_path_stays_in_one_row_until_it_is_full(memory):
    config = MEMORIES[memory]
    columns = config.organisation.columns
    layout = layout_named("path", config)
    rows = rows_of(config, layout, layout.place(tree([None, *range(2 * columns - 1)]))[0])
    assert len(set(rows[:columns])) == len(set(rows[columns:])) == 1
    assert rows[0] != rows[-1]


def test_side_branches_of_a_full_row_share_the_next_one():
    config = MEMORIES["usual"]
    columns = config.organisation.columns
    layout = layout_named("path", config)
    shape = [None, *range(columns - 1), *range(columns)]
    rows = rows_of(config, layout, layout.place(tree(shape))[0])
    assert len(set(rows)) == 2


def test_small_trees_one_after_another_begin_in_different_banks_until_all_are_used():
    config = MEMORIES["usual"]
    banks = config.organisation.pseudo_channels * config.organisation.banks
    for name in ("siblings", "path"):
        layout = layout_named(name, config)
        firsts = set()
        for turn in range(banks):
            offsets, span = layout.place(tree([None]), turn=turn)
            assert span == layout.alignment
            firsts.add(rows_of(config, layout, offsets, base_number=turn)[0][:2])
        assert len(firsts) == banks


def test_the_rows_of_creation_order_are_many():
    config = MEMORIES["usual"]
    layout = layout_named("creation", config)
    offsets, span = layout.place(tree([None, *range(15)]))
    assert np.array_equal(offsets, np.arange(16)) and span == 16
    assert len(set(rows_of(config, layout, offsets))) == 8
