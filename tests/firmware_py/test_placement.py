"""Placement of trees: the policies, and plans whose trees lie in the channels that they chose."""

import pytest

from firmware_py.errors import InputError
from firmware_py.image import AddressSpace, CreationOrder, MemoryFull
from firmware_py.placement import PLACEMENTS, FewestSearches, RoundRobin, placement_named
from firmware_py.plan import make_plan
from firmware_py.programs import default_image

from .test_replay import RING, depth_first

#: Atoms of a channel of these plans.
CHANNEL = 1 << 10


def _plan(count, *, placement, concurrent=1, channels=4, atoms=4 * CHANNEL):
    return make_plan(
        (depth_first(str(number)) for number in range(count)),
        program=default_image(),
        layout=CreationOrder(),
        ring=RING,
        memory_atoms=atoms,
        contexts=16,
        concurrent=concurrent,
        channels=channels,
        placement=placement,
    )


def _channels(plan):
    return [planned.channel for planned in plan.traces]


def test_round_robin_goes_through_the_channels():
    assert _channels(_plan(10, placement=RoundRobin())) == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_fewest_searches_fills_the_emptiest_channel_and_takes_turns_among_equals():
    policy = FewestSearches()
    assert policy.order(number=0, searches=[0, 0, 0]) == [0, 1, 2]
    assert policy.order(number=4, searches=[0, 0, 0]) == [1, 2, 0]
    assert policy.order(number=4, searches=[2, 1, 1]) == [1, 2, 0]
    assert policy.order(number=5, searches=[2, 3, 1]) == [2, 0, 1]
    # One search at a time: every channel is empty whenever a tree is placed.
    assert _channels(_plan(6, placement=policy)) == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("concurrent", [1, 3, 8])
@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)
def test_a_tree_and_its_window_lie_in_its_channel(placement, concurrent):
    plan = _plan(12, placement=placement, concurrent=concurrent)
    for planned in plan.traces:
        assert set(planned.addresses // CHANNEL) == {planned.channel}
    windows = [window for batch in plan.batches for window in batch.windows]
    assert len(windows) == 12
    for window in windows:
        assert window.base // CHANNEL == (window.limit - 1) // CHANNEL == window.channel
    # Searches that run at a time have contexts of their own, whatever their channels.
    assert {window.context for window in windows} == set(range(concurrent))


def test_atom_0_is_null_in_the_stack_and_the_first_atom_of_a_channel_is_one():
    plan = _plan(2, placement=RoundRobin(), channels=2)
    assert [planned.addresses.min() for planned in plan.traces] == [1, 2 * CHANNEL]


def test_a_full_channel_is_passed_over_and_a_full_stack_is_an_error():
    """A tree takes 4 atoms; channel 0 has room for one of them, the others for two."""
    plan = _plan(3, placement=RoundRobin(), concurrent=3, channels=4, atoms=4 * 8)
    assert _channels(plan) == [0, 1, 2]
    plan = _plan(4, placement=_Always(), concurrent=4, channels=4, atoms=4 * 8)
    assert _channels(plan) == [0, 1, 1, 2]
    with pytest.raises(InputError, match=r"f\.jsonl: trace .*needs 4 atoms of memory: expected at most"):
        _plan(9, placement=_Always(), concurrent=9, channels=4, atoms=4 * 8)


class _Always:
    """Placement policy of this test: channel 0 while it has room."""

    name = "always"

    def order(self, *, number, searches):
        return list(range(len(searches)))


def test_ranges_of_a_channel_begin_at_its_first_atom():
    space = AddressSpace(atoms=20, first=40)
    assert [space.allocate(10), space.allocate(10)] == [40, 50]
    with pytest.raises(MemoryFull, match=r"expected at most 0 \(memory of 20 atoms, 20 in use\)"):
        space.allocate(1)
    space.release(40)
    assert space.allocate(4) == 40


def test_an_unknown_policy_is_an_input_error_that_lists_the_known_ones():
    assert [placement_named(name).name for name in PLACEMENTS] == list(PLACEMENTS)
    with pytest.raises(
        InputError, match="unknown placement 'best': expected one of round_robin, fewest_searches"
    ):
        placement_named("best")
