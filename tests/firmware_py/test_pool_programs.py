"""Leases, returns, reclaim and whole decisions against their references on random trees and pools."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_py.assembler import Image
from firmware_py.pool import chain_blocks, pool_records
from firmware_py.programs import best_sibling, decide, decision_image, pool_image, pool_take, reclaim
from firmware_py.programs.climb_compressed import skip_word
from firmware_py.programs.memory_view import children, linked, read
from firmware_py.programs.pool_give import NOT_LEASED
from firmware_py.records import PARENT, STATE, STATE_BLOCK, STATUS, BitField
from hdl.layouts import WalkStatus
from sim.model.interpreter import BUDGET_MAX, Memory, WalkResult, run_walk

from .test_programs import Tree, trees

_POOL = 5000
_WINDOW = (1, 1 << 16)
_NEXT, _OWNER = BitField(STATE_BLOCK["next"]), BitField(STATE_BLOCK["owner"])


def run(image: Image, entry: str, memory: Memory, start: int, *registers: int) -> WalkResult:
    return run_walk(
        image.instructions,
        memory,
        address=start,
        entry=image.entries[entry],
        registers=[value & 0xFFFFFFFF for value in registers],
        window=_WINDOW,
        writable=True,
        budget=BUDGET_MAX,
    )


def pool(owners: list[int]) -> Memory:
    records = pool_records(base=_POOL, count=len(owners), block_bytes=32)
    records[:, STATE_BLOCK["owner"]] = owners
    return {_POOL + index: tuple(record.tolist()) for index, record in enumerate(records)}


def with_states(tree: Tree, data: st.DataObject) -> dict[int, list[int]]:
    """Give some nodes chains of blocks; the chains by node."""
    lengths = [data.draw(st.sampled_from((0, 0, 1, 2, 5))) for _ in tree.nodes]
    count = sum(lengths) + 2
    records = pool_records(base=_POOL, count=count, block_bytes=32)
    free = data.draw(st.permutations(range(_POOL, _POOL + count)))
    chains: dict[int, list[int]] = {}
    for node, length in zip(tree.nodes, lengths, strict=True):
        chains[node], free = list(free[:length]), free[length:]
        first = chain_blocks(records, base=_POOL, blocks=chains[node], owner=9)
        words = list(tree.memory[node])
        words[STATE.word] = first
        tree.memory[node] = tuple(words)
    for index, record in enumerate(records):
        tree.memory[_POOL + index] = tuple(record.tolist())
    return chains


@given(st.lists(st.sampled_from((0, 0, 7)), min_size=1, max_size=20), st.integers(1, 8), st.data())
def test_a_lease_takes_the_next_free_blocks_of_the_ring(owners, count, data) -> None:
    memory = pool(owners)
    start = data.draw(st.integers(0, len(owners) - 1))
    order = [(start + step) % len(owners) for step in range(len(owners))]
    free = [_POOL + index for index in order if not owners[index]]
    registers = pool_take.launch_registers(start=_POOL + start, owner=3, count=count)
    result = run(pool_image(), "pool_take", memory, _POOL + start, *registers)
    assert result.status is WalkStatus.DONE
    assert list(result.yields) == free[:count]
    assert result.registers[1] == max(0, count - len(free))
    assert result.code == (pool_take.EXHAUSTED if len(free) < count else 0)
    if free:
        assert list(linked(memory, result.registers[2], _NEXT)) == free[:count][::-1]
    assert {address for address in memory if read(memory, address, _OWNER) == 3} == set(free[:count])
    looked = order.index(free[count - 1] - _POOL) + 1 if len(free) >= count else len(order)
    assert result.hops == looked + min(count, len(free))
    if not result.code:
        assert result.registers[0] == _POOL + (result.value - _POOL + 1) % len(owners)


@given(st.integers(1, 12), st.data())
def test_what_was_leased_can_be_given_back(count, data) -> None:
    memory = pool([0] * 12)
    start = _POOL + data.draw(st.integers(0, 11))
    before = {address: tuple(atom) for address, atom in memory.items()}
    registers = pool_take.launch_registers(start=start, owner=3, count=count)
    taken = run(pool_image(), "pool_take", memory, start, *registers)
    result = run(pool_image(), "pool_give", memory, taken.registers[2], 3, 0)
    assert (result.status, result.code, result.registers[1]) == (WalkStatus.DONE, 0, count)
    assert result.hops == count == len(result.stores)
    assert all(read(memory, address, _OWNER) == 0 for address in before)
    assert [atom[4:] for atom in memory.values()] == [atom[4:] for atom in before.values()]


@pytest.mark.parametrize("owner", (0, 4))
def test_a_block_of_another_or_of_nobody_is_not_given_back(owner: int) -> None:
    memory = pool([owner] * 3)
    result = run(pool_image(), "pool_give", memory, _POOL, 3, 0)
    assert (result.code, result.registers[1], result.stores) == (NOT_LEASED, 0, ())


@pytest.mark.parametrize(("owner", "count"), ((0, 1), (1, 0)))
def test_a_lease_of_nothing_or_for_nobody_is_refused(owner: int, count: int) -> None:
    with pytest.raises(ValueError, match="expected at least 1 block and an owner not 0"):
        pool_take.launch_registers(start=1, owner=owner, count=count)


def test_a_pool_that_cannot_be_is_refused() -> None:
    for base, count in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="expected at least 1 block, from atom 1 on"):
            pool_records(base=base, count=count, block_bytes=32)
    records = pool_records(base=1, count=2, block_bytes=32)
    chain_blocks(records, base=1, blocks=[2], owner=1)
    with pytest.raises(ValueError, match="block 0x2 is leased to 1"):
        chain_blocks(records, base=1, blocks=[2], owner=1)


@settings(max_examples=200)
@given(trees(), st.data())
def test_reclaim(tree: Tree, data: st.DataObject) -> None:
    chains = with_states(tree, data)
    start = data.draw(st.sampled_from(tree.nodes))
    below = _subtree(tree.memory, start)
    expected = reclaim.reference(tree.memory, start=start)
    told = run(pool_image(), "reclaim", tree.memory, start, start, 0, 0)
    assert (told.status, list(told.yields)) == (WalkStatus.DONE, expected)
    assert expected == [chains[node][0] for node in below if chains[node]]
    assert told.registers[1] == len(expected) and not told.stores
    inner = sum(1 for node in below if any(True for _ in children(tree.memory, node)))
    assert told.hops == len(below) + inner

    blocks = reclaim.blocks_of(tree.memory, start=start)
    assert blocks == [block for node in below for block in chains[node]]
    memory = dict(tree.memory)
    given_back = run(pool_image(), "reclaim_release", memory, start, start, 0, 0)
    assert (given_back.status, given_back.registers[1]) == (WalkStatus.DONE, len(blocks))
    states = sum(1 for node in below if chains[node])
    assert given_back.hops == len(below) + inner + len(blocks) + states
    assert len(given_back.stores) == len(blocks) + states
    for node in tree.nodes:
        assert read(memory, node, STATE) == (0 if node in below else read(tree.memory, node, STATE))
    for chain in chains.values():
        for block in chain:
            assert read(memory, block, _OWNER) == (0 if block in blocks else 9)
    again = run(pool_image(), "reclaim_release", memory, start, start, 0, 0)
    assert (again.registers[1], again.stores) == (0, ())


@settings(max_examples=200)
@given(trees(), st.data())
def test_decide(tree: Tree, data: st.DataObject) -> None:
    with_states(tree, data)
    start = data.draw(st.sampled_from(tree.nodes))
    least = data.draw(st.sampled_from((best_sibling.LIVE_CHILDREN, best_sibling.EVERY_CHILD, 1)))
    memory = dict(tree.memory)
    result = run(decision_image(), "decide", memory, start, 0, 0, least, 0, decide.NO_SKIPS)
    # The node is dead from the first step on, so it cannot be the best child.
    point, child, blocks = decide.reference(memory, start=start, least_live=least)
    assert result.status is (WalkStatus.DONE if point else WalkStatus.NULL_POINTER)
    assert (result.registers[0], result.registers[1], list(result.yields)) == (point, child, blocks)
    words = list(tree.memory[start])
    words[STATUS.word] |= 1 << 12
    assert memory == {**tree.memory, start: tuple(words)}
    if point:
        up = [read(memory, start, PARENT)]
        while up[-1] != point:
            up.append(read(memory, up[-1], PARENT))
        assert result.hops == 1 + len(up) + len(list(children(memory, point))) + len(blocks)


def _subtree(memory: Memory, node: int) -> list[int]:
    return [node, *(below for child in children(memory, node) for below in _subtree(memory, child))]


def test_a_decision_goes_along_the_skips_of_its_tree() -> None:
    # A chain of 8 nodes below an open root; the last one fails, its parent skips to the root.
    memory: Memory = {n: (n - 1, 0, 0, 0, 0, 0, 0, 0) for n in range(1, 9)}
    memory[1] = (0, 0, 0, 0, 1, 0, 0, 0)
    memory[7] = (6, 0, 0, 0, 0, skip_word(stamp=2, target=1), 0, 0)
    hops = {
        stamp: run(decision_image(), "decide", dict(memory), 8, 0, 0, 0, 0, stamp).hops
        for stamp in (2, 3, decide.NO_SKIPS)
    }
    assert hops == {2: 3, 3: 8, decide.NO_SKIPS: 8}
