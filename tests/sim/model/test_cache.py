"""The golden model of the cache against sequences worked out by hand."""

from sim.model.cache import CacheModel


def reads(model, *addresses):
    return [model.read_through(address) for address in addresses]


def test_what_was_read_hits_until_enough_others_of_its_set_were():
    model = CacheModel(sets_log2=1, ways=2)
    assert reads(model, 0, 2, 0, 2) == [False, False, True, True]
    assert reads(model, 1, 0) == [False, True]  # another set
    assert reads(model, 4, 2, 0) == [False, False, False]  # 2 was used longest ago, then 0
    assert (model.hits, model.misses) == (3, 6)


def test_a_line_is_there_when_it_has_been_filled():
    model = CacheModel(sets_log2=0, ways=2)
    assert not model.read(5, owner=1)
    assert not model.read(5, owner=2)
    model.fill(5, owner=1)  # no longer awaited from this one
    assert not model.read(5)
    model.fill(5, owner=2)
    assert model.read(5)


def test_a_read_without_an_owner_leaves_nothing():
    model = CacheModel(sets_log2=0, ways=1)
    assert not model.read(5) and not model.read(5)


def test_whole_writes_leave_their_line_and_partial_ones_do_not():
    model = CacheModel(sets_log2=0, ways=2)
    model.write(1, whole=False)
    assert not model.read(1)
    model.write(1, whole=True)
    model.write(1, whole=False)
    assert model.read(1)
    model.read(2, owner=0)
    model.write(2, whole=False)
    model.fill(2, owner=0)
    assert not model.read(2)
    model.read(2, owner=0)
    model.write(2, whole=True)
    assert model.read(2)


def test_a_dropped_line_leaves_its_place():
    model = CacheModel(sets_log2=0, ways=2)
    assert reads(model, 1, 2) == [False, False]
    model.drop(1)
    assert reads(model, 3, 2, 3) == [False, True, True]
    model.clear()
    assert reads(model, 2, 3) == [False, False]


def test_without_ways_nothing_hits():
    model = CacheModel(sets_log2=3, ways=0)
    model.write(1, whole=True)
    assert reads(model, 1, 1) == [False, False]
