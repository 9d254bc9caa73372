"""The bounds against an ideal memory that obeys nothing but the timing table."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.config import MemoryConfig
from hdl.layouts import RowClass
from hdl.memory.address import AddressMap, Place
from hdl.memory.timing import PRESETS, Command, TimingPreset, Value
from sim.model.bounds import dependent_bound, isolated_bound, row_classes
from tests.protocol import Issue, Reference

CONFIG = MemoryConfig(rows=8)
MAP = AddressMap(CONFIG)
TIMING = CONFIG.timing


def ideal_cycles(addresses: list[int], timing: TimingPreset) -> list[int]:
    """Cycles of each read of a chain on an open-page memory whose commands come as soon as they may.

    A read's first command may be on its bus in the cycle in which the data of the read before ends.
    """
    reference = Reference(timing)
    rows: dict[tuple[int, int], int] = {}
    now = 1000
    cycles = []
    for address in addresses:
        place = MAP.decode(address)
        bank = place.pseudo_channel, place.bank
        commands = [Command.RD]
        if rows.get(bank) != place.row:
            commands = [Command.ACT, *commands]
            if bank in rows:
                commands = [Command.PRE, *commands]
        rows[bank] = place.row
        time = now
        for command in commands:
            lag = timing.activate_lag if command is Command.ACT else 0
            issue = Issue(time=time + lag, command=command, pseudo_channel=bank[0], bank=bank[1])
            while reference.broken(issue):
                issue = dataclasses.replace(issue, time=issue.time + 1)
            reference.accept(issue)
            # The next command's first slot may come before: only the table forbids it.
            time = issue.time - lag
        end = issue.time + timing["tCL"] + timing.burst_cycles
        cycles.append(end - now)
        now = end
    return cycles


@st.composite
def chains(draw: st.DrawFn) -> list[int]:
    """Addresses of few banks and rows, so that every state of a row turns up."""
    places = st.builds(
        Place,
        pseudo_channel=st.integers(0, 1),
        bank=st.sampled_from((0, 1, 4)),
        row=st.integers(0, 2),
        column=st.integers(0, 3),
    )
    return [int(MAP.encode(place)) for place in draw(st.lists(places, min_size=1, max_size=25))]


@settings(deadline=None, max_examples=150)
@given(chains())
def test_the_bound_is_what_an_ideal_memory_takes(addresses: list[int]) -> None:
    bound = dependent_bound(addresses, np.zeros(len(addresses)), TIMING, MAP)
    assert bound.tolist() == ideal_cycles(addresses, TIMING)


@settings(deadline=None, max_examples=100)
@given(chains(), st.integers(4, 40), st.integers(0, 60))
def test_the_bound_is_never_above_it_for_other_timings(addresses: list[int], trp: int, slack: int) -> None:
    base = PRESETS["hbm2_2000"]
    tras = base["tRAS"] + slack
    changed = {"tRP": trp, "tRAS": tras, "tRC": tras + trp}
    values = base.values | {name: Value(cycles=value, source="test") for name, value in changed.items()}
    timing = dataclasses.replace(base, name="other", values=values)
    bound = dependent_bound(addresses, np.zeros(len(addresses)), timing, MAP)
    assert (bound <= ideal_cycles(addresses, timing)).all()


def at(row: int, column: int = 0, *, pseudo_channel: int = 0, bank: int = 0) -> int:
    return int(MAP.encode(Place(pseudo_channel, bank, row, column)))


def test_the_figures_of_hbm2() -> None:
    chain = [at(0), at(0, 5), at(1), at(2), at(2, 1, bank=1), at(0), at(0, bank=1), at(2, bank=1)]
    bound = dependent_bound(chain, [0] * len(chain), TIMING, MAP)
    #                       closed, hit, conflict after a hit, after an ACT, closed, conflict ...
    assert bound.tolist() == [31, 16, 44, 48, 31, 44, 44, 48]
    assert row_classes(chain, [0] * len(chain), MAP).tolist() == [2, 1, 3, 3, 2, 3, 3, 3]
    assert [isolated_bound(c, TIMING) for c in (RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT)] == [
        16,
        31,
        44,
    ]
    with pytest.raises(ValueError, match="expected HIT, CLOSED or CONFLICT"):
        isolated_bound(RowClass.NONE, TIMING)


def test_a_new_batch_finds_every_row_closed() -> None:
    chain = [at(0), at(0, 1), at(0, 2), at(0, 3)]
    assert dependent_bound(chain, [4, 4, 5, 4], TIMING, MAP).tolist() == [31, 16, 31, 31]


def test_other_walks_open_rows_but_do_not_delay() -> None:
    addresses = [at(0), at(1), at(2), at(2, 1), at(3)]
    walks = [0, 1, 0, 1, 0]
    # The second read of walk 0 finds what walk 1 opened: how long ago is not known, so tRC is not claimed.
    bound = dependent_bound(addresses, [0] * 5, TIMING, MAP, walk_ids=walks)
    assert bound.tolist() == [31, 44, 44, 16, 44]
    assert dependent_bound(addresses, [0] * 5, TIMING, MAP).tolist() == [31, 48, 48, 16, 44]


def test_ten_walks_at_once_equal_a_plain_loop() -> None:
    generator = random.Random(9)
    count = 600
    addresses = [at(generator.randrange(3), bank=generator.randrange(6)) for _ in range(count)]
    batches = np.arange(count) // 140
    walks = [generator.randrange(5) for _ in range(count)]
    expected = []
    for index, (address, walk) in enumerate(zip(addresses, walks, strict=True)):
        place = MAP.decode(address)
        same_batch = [i for i in range(index) if batches[i] == batches[index]]
        in_bank = [i for i in same_batch if MAP.decode(addresses[i])[:2] == place[:2]][-1:]
        in_walk = [i for i in same_batch if walks[i] == walk][-1:]
        if not in_bank:
            expected.append(31)
        elif MAP.decode(addresses[in_bank[0]]).row == place.row:
            expected.append(16)
        else:
            expected.append(48 if in_bank == in_walk and expected[in_bank[0]] != 16 else 44)
    bound = dependent_bound(addresses, batches, TIMING, MAP, walk_ids=walks)
    assert bound.tolist() == expected
    assert set(expected) == {16, 31, 44, 48}


def test_arrays_that_do_not_fit_are_refused() -> None:
    assert len(dependent_bound([], [], TIMING, MAP)) == 0
    with pytest.raises(ValueError, match="batch_ids has shape"):
        dependent_bound([1, 2], [0], TIMING, MAP)
    with pytest.raises(ValueError, match="walk_ids has shape"):
        dependent_bound([1, 2], [0, 0], TIMING, MAP, walk_ids=[1])
    with pytest.raises(ValueError, match="address"):
        dependent_bound([MAP.atoms], [0], TIMING, MAP)
