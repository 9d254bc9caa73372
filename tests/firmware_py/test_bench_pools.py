"""The models behind the bench of programs and pools: allocators, lifetimes, moments, synthetic searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.bench.measures import Measure
from firmware_py.bench.walker.allocators import BlockPool, Buddy, FirstFit
from firmware_py.bench.walker.lifetimes import waste
from firmware_py.bench.walker.moment_instructions import moment_instructions
from firmware_py.bench.walker.moments import BLOCK_BYTES, LESSEE, moments
from firmware_py.bench.walker.pools import fragmentation_measures
from firmware_py.bench.walker.programs import best_measures, climbing_traces
from firmware_py.bench.walker.synthetic import deep_searches
from firmware_py.programs import climb, decide, decision_image, pool_image, reclaim
from firmware_py.programs.memory_view import children, read
from firmware_py.records import PARENT, STATE, STATE_BLOCK, BitField
from sim.trace.events import Backtrack, Expand, Node, Prune, Select
from sim.trace.schema import Trace
from sim.trace.validator import Validator

from .test_replay import node, trace

_OWNER = BitField(STATE_BLOCK["owner"])


@given(
    st.sampled_from((FirstFit, Buddy)), st.lists(st.tuples(st.booleans(), st.integers(1, 200)), max_size=60)
)
def test_live_runs_never_overlap_and_lie_within_the_extent(make, steps) -> None:
    allocator = make()
    live: dict[int, int] = {}
    for give_back, size in steps:
        if give_back and live:
            address = next(iter(live))
            allocator.release(address)
            del live[address]
            continue
        address = allocator.allocate(size)
        assert address + size <= allocator.extent
        assert all(address + size <= other or other + length <= address for other, length in live.items())
        live[address] = size


def test_first_fit_takes_the_lowest_hole_that_is_long_enough() -> None:
    heap = FirstFit(unit=16)
    assert [heap.allocate(size) for size in (16, 40, 16, 16)] == [0, 16, 64, 80]
    heap.release(0)
    heap.release(64)
    assert heap.allocate(17) == 96
    heap.release(16)
    assert heap.allocate(60) == 0 and heap.extent == 128
    with pytest.raises(KeyError):
        heap.release(999)


def test_a_buddy_system_rounds_up_and_merges() -> None:
    buddy = Buddy(least=16)
    first, second = buddy.allocate(17), buddy.allocate(1)
    assert (first, second, buddy.extent) == (0, 32, 48)
    buddy.release(first)
    buddy.release(second)
    assert buddy.allocate(64) == 0 and buddy.extent == 64


def test_a_pool_uses_any_free_block_again() -> None:
    pool = BlockPool(block=100)
    first, _ = pool.allocate(250), pool.allocate(1)
    assert pool.extent == 400
    pool.release(first)
    pool.allocate(300)
    assert pool.extent == 400


def test_waste_counts_states_that_live_at_once() -> None:
    search = trace(
        node(0, state_bytes=100),
        Expand(id=0, untried=2, untried_source="declared"),
        node(1, 0, state_bytes=50),
        Backtrack(from_=1, to=0),
        node(2, 0, state_bytes=50),
    )
    # The second child's state takes the place of the first one's.
    assert waste([search], BlockPool(block=50), concurrent=1) == 0
    assert waste([search], BlockPool(block=100), concurrent=1) == pytest.approx(1 - 150 / 200)
    assert waste([trace(node(0))], FirstFit(), concurrent=1) is None


def test_a_selection_gives_back_what_it_drops() -> None:
    beam = trace(
        node(0),
        *(node(index, 0, state_bytes=10) for index in (1, 2, 3)),
        Select(candidates=(1, 2, 3), chosen=(2,)),
        *(node(index, 2, depth=2, state_bytes=10) for index in (4, 5)),
    )
    pool = BlockPool(block=10)
    assert waste([beam], pool, concurrent=1) == 0 and pool.extent == 30


def test_searches_at_a_time_share_the_arena() -> None:
    search = trace(node(0, state_bytes=64))
    pools = [BlockPool(block=64) for _ in range(2)]
    for concurrent, pool in zip((1, 3), pools, strict=True):
        waste([search] * 3, pool, concurrent=concurrent)
    assert [pool.extent for pool in pools] == [64, 192]


def test_synthetic_searches_are_valid_and_deep_and_always_the_same() -> None:
    first, again = deep_searches(3, seed=1), deep_searches(3, seed=1)
    assert [found.events for found in first] == [found.events for found in again]
    validator = Validator()
    for found in first:
        for event in found:
            validator.feed(event)
        assert max(event.depth for event in found.events if isinstance(event, Node)) >= 8
        assert any(isinstance(event, Backtrack) for event in found.events)
    validator.finish()


def _memory(moment):
    return {1 + index: tuple(atom.tolist()) for index, atom in enumerate(moment.atoms)}


def test_a_moment_is_the_search_at_its_backtrack() -> None:
    for search in deep_searches(2, seed=3):
        backs = [event for event in search.events if isinstance(event, Backtrack)]
        found = list(moments(search))
        assert len(found) == len(backs) > 0
        for event, moment in zip(backs, found, strict=True):
            memory = _memory(moment)
            assert event.to is not None
            assert (moment.failed, moment.resumed) == (1 + event.from_, 1 + event.to)
            parent = read(memory, moment.failed, PARENT)
            assert climb.reference(memory, start=parent) == moment.resumed
            assert read(memory, moment.dead, PARENT) == moment.resumed
            point, child, blocks = decide.reference(memory, start=moment.failed, least_live=1)
            assert point == moment.resumed
            # The child that the search visits next is the best one that is open.
            ahead = [one for one in children(memory, point) if one > moment.failed]
            assert child == ahead[0]
            size = next(e.state_bytes for e in search.events if isinstance(e, Node) and e.id == event.to)
            assert len(blocks) == -(-size // BLOCK_BYTES)


def test_what_was_given_up_before_holds_no_state() -> None:
    (search,) = deep_searches(1, seed=5)
    gone: set[int] = set()
    for moment in moments(search):
        memory = _memory(moment)
        assert not any(read(memory, one, STATE) for one in gone)
        assert all(read(memory, b, _OWNER) == LESSEE for b in reclaim.blocks_of(memory, start=moment.dead))
        below = [moment.dead]
        for one in below:
            below += children(memory, one)
        gone |= set(below)


def test_only_climbs_are_left_of_a_file(tmp_path) -> None:
    assert list(climbing_traces([])) == ["synthetic"]


def test_the_best_combination_is_over_the_plain_one() -> None:
    def measure(program: str, layout: str, value: float, concurrent: int = 1, layer: str = "loop") -> Measure:
        where = {"trace": "synthetic", "place": "near", "layer": layer, "program": program, "layout": layout}
        return Measure(
            name="ns_per_backtrack", where={**where, "concurrent": concurrent}, value=value, unit="ns"
        )

    alone, together = best_measures(
        [
            measure("climb", "creation", 100.0),
            measure("climb", "path", 90.0),
            measure("climb_compressed", "path", 40.0),
            # Alone a search is judged by its layers, many at once by the time that passes.
            measure("climb_compressed", "path", 10.0, layer="elapsed"),
            measure("climb_compressed", "path", 20.0, concurrent=16),
            measure("climb", "creation", 50.0, concurrent=16, layer="elapsed"),
            measure("climb_compressed", "siblings", 30.0, concurrent=16, layer="elapsed"),
        ]
    )
    assert alone.value == pytest.approx(0.4) and not alone.missed
    assert (alone.where["program"], alone.where["layout"]) == ("climb_compressed", "path")
    assert together.value == pytest.approx(0.6) and together.missed
    assert (together.where["concurrent"], together.where["layout"]) == (16, "siblings")
    (worse,) = best_measures([measure("climb", "creation", 100.0), measure("climb", "path", 60.0)])
    assert worse.missed


def test_fragmentation_of_the_synthetic_searches() -> None:
    found = {measure.where["allocator"]: measure.value for measure in fragmentation_measures([])}
    assert set(found) == {"first_fit", "buddy", "pool_32", "pool_256", "pool_1024"}
    assert all(0 <= value < 100 for value in found.values())
    assert found["pool_32"] < found["pool_256"] < found["pool_1024"]


def test_a_pruned_leaf_is_alive_until_it_is_decided() -> None:
    search: Trace = trace(
        node(0, state_bytes=1),
        Expand(id=0, untried=1, untried_source="declared"),
        node(1, 0, depth=1, state_bytes=1),
        Prune(id=1, reason="dead end"),
        Backtrack(from_=1, to=0),
        Expand(id=0, untried=0, untried_source="declared"),
        node(2, 0, depth=1),
    )
    (moment,) = moments(search)
    assert not int(moment.atoms[1, 4]) >> 12 & 1
    assert np.count_nonzero(moment.atoms[:, STATE.word]) == 2


def test_instructions_of_every_program_are_within_what_its_code_can_take() -> None:
    found = {m.where["program"]: m.value for m in moment_instructions(deep_searches(1, seed=2))}
    entries = {*decision_image().entries, *pool_image().entries} - {"climb", "best_sibling"}
    assert set(found) == entries
    assert found["blocks"] == 2 and found["pool_give"] == 3
    assert all(1 <= value <= 7 for value in found.values())
