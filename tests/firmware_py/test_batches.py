"""Where batches end: only the commands and the ring's size decide, and nothing is lost or reordered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.batches import BatchBuilder, RingSize, WalkCommand, Window, ring_size
from firmware_py.image import WriteRun
from hdl.config import named_config
from hdl.registers import CommandOp


def _run(address, count, mask=0xFFFFFFFF):
    data = np.arange(8 * count, dtype=np.uint32).reshape(count, 8)
    return WriteRun(address=address, mask=mask, data=data)


def _decode(batch):
    rows = batch.atoms.tolist()
    index, commands = 0, []
    while index < len(rows):
        op = rows[index][0] & 15
        if op == CommandOp.WRITE:
            count = (rows[index][0] >> 4) + 1
            data = rows[index + 1 : index + 1 + count]
            commands.append(("write", rows[index][1], data))
            index += count
        elif op == CommandOp.WALK:
            assert index in batch.walk_rows
            commands.append(("walk", rows[index][1]))
        else:
            commands.append(("fence",))
        index += 1
    return commands


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 1000), st.integers(1, 40)),
        st.tuples(st.just("walk"), st.integers(1, 1000), st.integers(1, 4)),
        st.tuples(st.just("fence")),
    ),
    max_size=40,
)


@given(steps, st.integers(2, 20), st.integers(4, 9))
def test_batches_fit_their_rings_and_keep_every_command_in_order(script, room, completions):
    builder = BatchBuilder(RingSize(commands=room, completions=completions))
    written, walks, asked = [], [], {}
    for step in script:
        if step[0] == "write":
            run = _run(step[1], step[2])
            builder.write(run)
            written += [(step[1] + i, atom) for i, atom in enumerate(run.data.tolist())]
        elif step[0] == "walk":
            builder.walk(
                WalkCommand(entry=0, context=0, address=step[1], completions=step[2]), number=len(walks)
            )
            asked[len(walks)] = step[2]
            walks.append(step[1])
        else:
            builder.fence()
    batches = builder.finish()
    got_written, got_walks, numbers = [], [], []
    for batch in batches:
        assert 0 < len(batch.atoms) <= room
        assert sum(asked[number] for number in batch.walk_numbers) == batch.completions <= completions
        numbers += batch.walk_numbers
        for command in _decode(batch):
            if command[0] == "write":
                got_written += [(command[1] + i, atom) for i, atom in enumerate(command[2])]
            elif command[0] == "walk":
                got_walks.append(command[1])
    assert got_written == written
    assert got_walks == walks
    assert numbers == list(range(len(walks)))


@given(steps, st.integers(2, 12))
def test_a_fence_or_a_batch_end_stands_between_what_a_fence_parts(script, room):
    builder = BatchBuilder(RingSize(commands=room, completions=9))
    epoch = 0
    epochs: list[tuple[str, int]] = []
    for step in script:
        if step[0] == "write":
            builder.write(_run(step[1], step[2]))
            epochs += [("write", epoch)] * step[2]
        elif step[0] == "walk":
            builder.walk(WalkCommand(entry=0, context=0, address=step[1]), number=0)
            epochs.append(("walk", epoch))
        else:
            builder.fence()
            epoch += 1
    parts, part = [], 0
    for batch in builder.finish():
        for command in _decode(batch):
            if command[0] == "fence":
                part += 1
            elif command[0] == "write":
                parts += [("write", part)] * len(command[2])
            else:
                parts.append(("walk", part))
        part += 1
    assert [kind for kind, _ in parts] == [kind for kind, _ in epochs]
    for index in range(1, len(parts)):
        if epochs[index][1] != epochs[index - 1][1]:
            assert parts[index][1] > parts[index - 1][1]


def test_a_window_starts_a_batch_and_comes_before_it():
    builder = BatchBuilder(RingSize(commands=100, completions=10))
    first = Window(context=0, base=1, limit=9, writable=True)
    second = Window(context=1, base=9, limit=20, writable=True)
    third = Window(context=0, base=20, limit=30, writable=True)
    builder.window(first)
    builder.window(second)
    builder.write(_run(1, 2))
    builder.window(third)
    builder.write(_run(20, 2))
    batches = builder.finish()
    assert [batch.windows for batch in batches] == [(first, second), (third,)]


def test_only_the_place_bit_of_walks_differs_between_places():
    builder = BatchBuilder(RingSize(commands=100, completions=10))
    builder.write(_run(1, 3))
    builder.fence()
    builder.walk(WalkCommand(entry=5, context=3, address=2, registers=(7,)), number=0)
    (batch,) = builder.finish()
    difference = batch.in_place(0) ^ batch.in_place(1)
    assert difference.sum() == 1 << 4
    assert difference[batch.walk_rows[0], 0] == 1 << 4


def test_a_walk_with_more_completions_than_the_ring_is_refused():
    builder = BatchBuilder(RingSize(commands=100, completions=10))
    with pytest.raises(ValueError, match="11 completion records: expected at most 10"):
        builder.walk(WalkCommand(entry=0, context=0, address=1, completions=11), number=0)


def test_a_fence_after_a_fence_is_left_out():
    builder = BatchBuilder(RingSize(commands=100, completions=10))
    builder.fence()
    builder.write(_run(1, 1))
    builder.fence()
    builder.fence()
    (batch,) = builder.finish()
    assert _decode(batch)[1:] == [("fence",)]


def test_the_rings_share_the_scratchpad():
    config = named_config("simulation")
    ring = ring_size(config)
    assert ring == RingSize(commands=1536, completions=512)
    assert ring.commands + ring.completions == config.scratchpad.atoms
