"""The command encoders against the layout that `CommandOp` documents, decoded here by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py import commands
from hdl.registers import CommandOp


def _bits(word, low, width):
    return int(word) >> low & (1 << width) - 1


@given(
    place=st.integers(0, 1),
    entry=st.integers(0, 63),
    context=st.integers(0, 63),
    address=st.integers(0, (1 << 32) - 1),
    registers=st.lists(st.integers(-(1 << 31), (1 << 32) - 1), max_size=6),
)
def test_a_walk_has_every_field_in_its_place(place, entry, context, address, registers):
    atoms = commands.walk(place=place, entry=entry, context=context, address=address, registers=registers)
    assert atoms.shape == (1, 8) and atoms.dtype == np.uint32
    word = atoms[0, 0]
    assert _bits(word, 0, 4) == CommandOp.WALK
    assert _bits(word, 4, 1) == place
    assert _bits(word, 5, 1) == 0
    assert _bits(word, 6, 6) == entry
    assert _bits(word, 12, 6) == context
    assert _bits(word, 18, 14) == 0
    assert atoms[0, 1] == address
    expected = [value & 0xFFFFFFFF for value in registers] + [0] * (6 - len(registers))
    assert atoms[0, 2:].tolist() == expected


@given(
    place=st.integers(0, 1),
    entry=st.integers(0, 63),
    context=st.integers(0, 57),
    addresses=st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=7),
)
def test_several_walks_are_a_walk_with_a_count_and_their_addresses(place, entry, context, addresses):
    atoms = commands.walks(place=place, entry=entry, context=context, addresses=addresses)
    assert atoms.shape == (1, 8) and atoms.dtype == np.uint32
    alone = commands.walk(place=place, entry=entry, context=context, address=addresses[0])
    assert atoms[0, 0] ^ alone[0, 0] == len(addresses) - 1 << 18
    assert _bits(atoms[0, 0], 18, 3) == len(addresses) - 1
    assert atoms[0, 1:].tolist() == addresses + [0] * (7 - len(addresses))


@pytest.mark.parametrize(
    ("context", "addresses", "message"),
    [
        (0, [], "0 walks in a launch: expected 1 to 7"),
        (0, [1] * 8, "8 walks in a launch: expected 1 to 7"),
        (60, [1] * 5, "command field last context is 64: expected 0 to 63"),
        (0, [1, 1 << 32], "command field address is 4294967296: expected 0 to 4294967295"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(context, addresses, message):
    with pytest.raises(ValueError) as caught:
        commands.walks(place=0, entry=0, context=context, addresses=addresses)
    assert str(caught.value) == message


@given(
    address=st.integers(0, (1 << 32) - 5000), count=st.integers(1, 4096), mask=st.integers(0, (1 << 32) - 1)
)
def test_a_write_is_its_command_and_its_data(address, count, mask):
    data = np.arange(8 * count, dtype=np.uint32).reshape(count, 8)
    atoms = commands.write(address=address, data=data, mask=mask)
    assert len(atoms) == 1 + count
    assert _bits(atoms[0, 0], 0, 4) == CommandOp.WRITE
    assert _bits(atoms[0, 0], 4, 12) == count - 1
    assert _bits(atoms[0, 0], 16, 16) == 0
    assert atoms[0, 1] == address and atoms[0, 2] == mask
    assert not atoms[0, 3:].any()
    assert (atoms[1:] == data).all()


@given(
    to_memory=st.booleans(),
    memory=st.integers(0, (1 << 32) - 1),
    scratchpad=st.integers(0, 65535),
    count=st.integers(1, 65536),
)
def test_a_copy_has_every_field_in_its_place(to_memory, memory, scratchpad, count):
    atoms = commands.copy(
        to_memory=to_memory, memory_address=memory, scratchpad_address=scratchpad, count=count
    )
    assert _bits(atoms[0, 0], 0, 4) == CommandOp.COPY
    assert _bits(atoms[0, 0], 4, 1) == to_memory
    assert _bits(atoms[0, 0], 16, 16) == count - 1
    assert atoms[0, 1] == memory and atoms[0, 2] == scratchpad


def test_a_fence_is_its_operation_only():
    assert commands.fence().tolist() == [[CommandOp.FENCE, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"place": 2}, "command field place is 2: expected 0 to 1"),
        ({"entry": 64}, "command field entry is 64: expected 0 to 63"),
        ({"context": -1}, "command field context is -1: expected 0 to 63"),
        ({"address": 1 << 32}, "command field address is 4294967296: expected 0 to 4294967295"),
        ({"registers": [0] * 7}, "7 initial registers: expected at most 6"),
        ({"registers": [1 << 32]}, "command field r0 is 4294967296: expected a 32-bit value"),
    ],
)
def test_a_walk_field_that_does_not_fit_is_named(arguments, message):
    good = {"place": 0, "entry": 0, "context": 0, "address": 1, "registers": []}
    with pytest.raises(ValueError) as caught:
        commands.walk(**(good | arguments))
    assert str(caught.value) == message


@pytest.mark.parametrize("count", [0, 4097])
def test_a_write_of_too_few_or_too_many_atoms_is_refused(count):
    with pytest.raises(ValueError, match=r"expected \[1 to 4096, 8\]"):
        commands.write(address=1, data=np.zeros((count, 8), dtype=np.uint32))


def test_a_copy_of_nothing_is_refused():
    with pytest.raises(ValueError, match="command field count - 1 is -1"):
        commands.copy(to_memory=True, memory_address=1, scratchpad_address=0, count=0)


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_another_place_changes_the_place_bit_of_walks_and_nothing_else(kinds):
    walks = [index for index, is_walk in enumerate(kinds) if is_walk]
    near = np.concatenate(
        [
            commands.walk(place=0, entry=3, context=2, address=9) if is_walk else commands.fence()
            for is_walk in kinds
        ]
    )
    far = commands.with_place(near, walks, 1)
    difference = near ^ far
    assert (difference[walks, 0] == 1 << 4).all()
    difference[walks, 0] = 0
    assert not difference.any()
    assert (commands.with_place(far, walks, 0) == near).all()
    assert [commands.place_of(atom) for atom in far[walks]] == [1] * len(walks)
