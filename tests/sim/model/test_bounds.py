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
from sim.model.bounds import dependent_bound, isolated_bound
from tests.protocol import Issue, Reference

CONFIG = MemoryConfig(rows=8)
MAP = AddressMap(CONFIG)
TIMING = CONFIG.timing


def ideal_cycles(addresses: list[int], timing: TimingPreset, address_map: AddressMap = MAP) -> list[int]:
    """Cycles of each read of a chain on a memory that knows the chain, and whose commands come early.

    A read closes its row, as early as the table allows, unless the next one of its bank is to the same row. A
    read's first command may be on its bus in the cycle in which the data of the read before ends.
    """
    reference = Reference(timing)
    places = [address_map.decode(address) for address in addresses]
    now = 1000
    cycles = []
    for index, place in enumerate(places):
        bank = place.pseudo_channel, place.bank
        later = (other.row for other in places[index + 1 :] if other[:2] == bank)
        commands = [Command.RD if next(later, None) == place.row else Command.RDA]
        if bank not in reference.open:
            commands = [Command.ACT, *commands]
        time = now
        for command in commands:
            lag = timing.activate_lag if command is Command.ACT else 0
            issue = Issue(time=time + lag, command=command, pseudo_channel=bank[0], bank=bank[1])
            while reference.broken(issue):
                issue = dataclasses.replace(issue, time=issue.time + 1)
            reference.accept(issue)
            # The next command's first slot may come before: only the table forbids it.
            time = issue.time - lag
        end = time + timing["tCL"] + timing.burst_cycles
        cycles.append(end - now)
        now = end
    return cycles


def open_page_cycles(addresses: list[int], timing: TimingPreset) -> list[int]:
    """The same where rows stay open until another one of the bank is asked for."""
    rows: dict[tuple[int, int], int] = {}
    cycles = []
    just_opened = None
    for address in addresses:
        place = MAP.decode(address)
        bank = place[:2]
        if rows.get(bank) == place.row:
            cycles.append(timing.row_hit)
            just_opened = None
        else:
            reopened = max(timing.row_conflict, timing["tRC"]) if just_opened == bank else timing.row_conflict
            cycles.append(reopened if bank in rows else timing.row_closed)
            just_opened = bank
        rows[bank] = place.row
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


@settings(deadline=None, max_examples=200)
@given(chains(), st.sampled_from(sorted(PRESETS)))
def test_the_bound_is_what_an_ideal_memory_takes(addresses: list[int], preset: str) -> None:
    timing, address_map = PRESETS[preset], AddressMap(MemoryConfig(preset=preset, rows=8))
    bound = dependent_bound(addresses, np.zeros(len(addresses)), timing, address_map)
    assert bound.tolist() == ideal_cycles(addresses, timing, address_map)


@settings(deadline=None, max_examples=100)
@given(chains())
def test_no_memory_that_leaves_rows_open_is_faster(addresses: list[int]) -> None:
    bound = dependent_bound(addresses, np.zeros(len(addresses)), TIMING, MAP)
    assert (np.cumsum(bound) <= np.cumsum(open_page_cycles(addresses, TIMING))).all()


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
    #                       closed, hit, tRTP + tRP + tRCDRD, tRC, closed three times, tRC
    assert bound.tolist() == [31, 16, 33, 48, 31, 31, 31, 48]
    # The hit elsewhere takes 16 of the 48 cycles from ACT to ACT.
    assert dependent_bound([at(0, bank=1), at(0), at(0, 1), at(1)], [0] * 4, TIMING, MAP)[-1] == 33
    assert dependent_bound([at(0, bank=1), at(0), at(0, 1, bank=1), at(1)], [0] * 4, TIMING, MAP)[-1] == 32
    assert [isolated_bound(c, TIMING) for c in (RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT)] == [
        16,
        31,
        44,
    ]
    with pytest.raises(ValueError, match="expected HIT, CLOSED or CONFLICT"):
        isolated_bound(RowClass.NONE, TIMING)


@pytest.mark.parametrize("timing", PRESETS.values(), ids=PRESETS)
def test_dependent_reads_of_different_rows_of_a_bank_take_same_bank(timing: TimingPreset) -> None:
    address_map = AddressMap(MemoryConfig(preset=timing.name, rows=8))
    chain = [int(address_map.encode(Place(0, 1, row, 0))) for row in (0, 1, 2)]
    bound = dependent_bound(chain, [0] * 3, timing, address_map)
    assert bound.tolist() == [timing.row_closed, timing.same_bank, timing.same_bank]


def test_a_new_batch_finds_every_row_closed() -> None:
    chain = [at(0), at(0, 1), at(0, 2), at(0, 3)]
    assert dependent_bound(chain, [4, 4, 5, 4], TIMING, MAP).tolist() == [31, 16, 31, 31]
    # Nor has the bank anything to wait for.
    assert dependent_bound([at(0), at(1), at(2)], [0, 1, 1], TIMING, MAP).tolist() == [31, 31, 48]


def test_a_refresh_closes_the_row_and_what_was_before_is_past() -> None:
    chain = [at(0), at(0, 1), at(1)]
    assert dependent_bound(chain, [0] * 3, TIMING, MAP, refreshed=[0, 1, 1]).tolist() == [31, 31, 48]
    assert dependent_bound(chain, [0] * 3, TIMING, MAP, refreshed=[0, 0, 1]).tolist() == [31, 16, 31]


def test_other_walks_open_rows_but_do_not_delay() -> None:
    addresses = [at(0), at(1, bank=1), at(1), at(1, 1), at(2), at(3)]
    walks = [0, 0, 1, 0, 1, 0]
    # When walk 1 was in the bank is not known to walk 0, and the other way round.
    bound = dependent_bound(addresses, [0] * 6, TIMING, MAP, walk_ids=walks)
    assert bound.tolist() == [31, 31, 31, 16, 48, 31]
    assert dependent_bound(addresses, [0] * 6, TIMING, MAP).tolist() == [31, 31, 31, 16, 33, 48]


def test_ten_walks_at_once_equal_a_plain_loop() -> None:
    generator = random.Random(9)
    count = 1000
    addresses = [at(generator.randrange(3), bank=generator.randrange(6)) for _ in range(count)]
    places = [MAP.decode(address) for address in addresses]
    batches = np.arange(count) // 140
    walks = [generator.randrange(10) for _ in range(count)]
    expected: list[int] = []
    for index, place in enumerate(places):
        earlier = [i for i in range(index) if batches[i] == batches[index]]
        in_bank = [i for i in earlier if places[i][:2] == place[:2]][-1:]
        if in_bank and places[in_bank[0]].row == place.row:
            expected.append(16)
            continue
        cycles, elapsed = 31, 0
        for i in reversed([i for i in earlier if walks[i] == walks[index]]):
            if [i] == in_bank:
                cycles = max(cycles, 33 - elapsed)
            if expected[i] != 16:
                if places[i][:2] == place[:2]:
                    cycles = max(cycles, 48 - elapsed)
                break
            elapsed += 16
        expected.append(cycles)
    bound = dependent_bound(addresses, batches, TIMING, MAP, walk_ids=walks)
    assert bound.tolist() == expected
    assert set(expected) == {16, 31, 32, 33, 48}


def test_arrays_that_do_not_fit_are_refused() -> None:
    assert len(dependent_bound([], [], TIMING, MAP)) == 0
    with pytest.raises(ValueError, match="batch_ids has shape"):
        dependent_bound([1, 2], [0], TIMING, MAP)
    with pytest.raises(ValueError, match="walk_ids has shape"):
        dependent_bound([1, 2], [0, 0], TIMING, MAP, walk_ids=[1])
    with pytest.raises(ValueError, match="address"):
        dependent_bound([MAP.atoms], [0], TIMING, MAP)
