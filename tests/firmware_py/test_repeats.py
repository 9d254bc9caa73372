"""Answers of repeated traces: moved with the tree, and interpreted wherever that is not certain."""

import pytest

from firmware_py.repeats import Interpreted, RepeatedAnswers
from firmware_py.walks import Answer


def answer(*, value=0, registers=(0, 0, 0), hops=1, yields=(), status=0):
    return Answer(status=status, code=0, value=value, registers=registers, hops=hops, yields=yields)


class Interpreter:
    """Says what `make(base)` says, and counts."""

    def __init__(self, make, *, stores=False):
        self.make, self.stores, self.asked = make, stores, 0

    def at(self, repeats, base, event=3, tree="t"):
        def interpret():
            self.asked += 1
            return Interpreted(answer=self.make(base), stores=self.stores)

        return repeats.answer(tree, event, base, interpret)


def test_addresses_move_and_numbers_stay():
    def make(base):
        return answer(value=base + 7, registers=(base + 1, 5, 0), hops=4, yields=(base + 9, base + 2))

    repeats, golden = RepeatedAnswers(), Interpreter(make)
    for base in (100, 250, 1000, 40, 100):
        assert golden.at(repeats, base) == make(base)
    assert golden.asked == 2


def test_events_and_trees_are_told_apart():
    repeats, golden = RepeatedAnswers(), Interpreter(lambda base: answer(value=base))
    for event, tree in ((1, "a"), (2, "a"), (1, "b")):
        for base in (10, 20):
            golden.at(repeats, base, event=event, tree=tree)
    assert golden.asked == 6


@pytest.mark.parametrize(
    "make",
    [
        lambda base: answer(value=2 * base),
        lambda base: answer(hops=base),
        lambda base: answer(status=base % 3),
        lambda base: answer(yields=(base,) * (base % 4)),
    ],
)
def test_what_is_neither_address_nor_number_is_interpreted_each_time(make):
    repeats, golden = RepeatedAnswers(), Interpreter(make)
    for base in (10, 21, 33, 47):
        assert golden.at(repeats, base) == make(base)
    assert golden.asked == 4


def test_a_walk_that_stores_is_interpreted_each_time():
    repeats, golden = RepeatedAnswers(), Interpreter(lambda base: answer(value=base), stores=True)
    for base in (10, 20, 30):
        golden.at(repeats, base)
    assert golden.asked == 3


def test_two_trees_at_one_base_tell_nothing():
    repeats, golden = RepeatedAnswers(), Interpreter(lambda base: answer(value=base))
    for base in (10, 10, 20, 30):
        assert golden.at(repeats, base).value == base
    assert golden.asked == 3
