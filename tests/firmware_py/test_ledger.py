"""The ledger's statistics and its reading of the logs, against slow definitions written out here."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.ledger import (
    access_addresses,
    histogram_statistics,
    loops,
    make_ledger,
    row_shares,
    statistics,
)
from hdl.config import named_config
from hdl.layouts import ColumnOp, HopEvent, RowClass, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.stack import StackMap
from sim.compiled import ACCESS_RECORD, COMMAND_RECORD, HOP_RECORD
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

REQUEST, VERDICT, STORE = HopEvent.REQUEST.value, HopEvent.VERDICT.value, HopEvent.STORE.value


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=3000))
def test_percentiles_are_nearest_rank(values):
    summary = statistics(values)
    ordered = sorted(values)
    assert summary.count == len(values)
    assert summary.min == ordered[0] and summary.max == ordered[-1]
    assert summary.mean == pytest.approx(sum(values) / len(values))
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        value = getattr(summary, name)
        not_above = sum(v <= value for v in values)
        below = sum(v < value for v in values)
        assert not_above >= math.floor(share * len(values) - 1e-9)
        assert below < share * len(values)
        assert value in values


def test_percentiles_of_a_known_sample():
    summary = statistics(range(1, 1001))
    assert (summary.p50, summary.p99, summary.p999, summary.max) == (500, 990, 999, 1000)
    assert statistics([7]).as_dict() == {
        "count": 1,
        **dict.fromkeys(("min", "mean", "p50", "p99", "p999", "max"), 7.0),
    }


def test_an_empty_sample_has_a_count_and_nothing_else():
    assert statistics([]).as_dict() == {
        "count": 0,
        **dict.fromkeys(("min", "mean", "p50", "p99", "p999", "max")),
    }
    assert statistics([]).scaled(2.0) == statistics([])


def test_scaling_scales_every_value_but_the_count():
    assert statistics([2, 4]).scaled(0.5) == statistics([1, 2])


def _slow_loops(rows):
    """Walk by walk, by hand: (cycles, address, context, batch, walk)."""
    waiting, walks, found = {}, {}, []
    for batch, cycle, context, event, address in sorted(rows):
        if event == STORE:
            continue
        key = (batch, context)
        if key in waiting:
            since, what = waiting.pop(key)
            found.append((batch, context, since, cycle - since, what, walks[key]))
        if event == REQUEST:
            walks.setdefault(key, (batch, context, cycle))
            waiting[key] = (cycle, address)
        else:
            del walks[key]
    number = {walk: index for index, walk in enumerate(sorted({row[5] for row in found}))}
    return [
        (elapsed, address, context, batch, number[walk])
        for batch, context, _, elapsed, address, walk in sorted(found)
    ]


@st.composite
def _logs(draw):
    rows = []
    for batch in range(draw(st.integers(1, 3))):
        cycle = 0
        open_walks: set[int] = set()
        for _ in range(draw(st.integers(0, 30))):
            cycle += draw(st.integers(1, 50))
            context = draw(st.integers(0, 3))
            event = draw(st.sampled_from([REQUEST, STORE, VERDICT]))
            if event != REQUEST and context not in open_walks:
                event = REQUEST
            (open_walks.discard if event == VERDICT else open_walks.add)(context)
            rows.append((batch, cycle, context, event, draw(st.integers(1, 99))))
        for context in sorted(open_walks):
            cycle += 1
            rows.append((batch, cycle, context, VERDICT, 0))
    return rows


@given(_logs())
def test_loops_run_from_a_request_to_the_next_event_of_its_context(rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    found = loops(
        batch=columns[0], cycle=columns[1], context=columns[2], event=columns[3], address=columns[4]
    )
    lists = (found.cycles, found.address, found.context, found.batch, found.walk)
    assert list(zip(*(column.tolist() for column in lists), strict=True)) == _slow_loops(rows)


def test_a_request_without_a_successor_is_an_error():
    with pytest.raises(ValueError, match="the request for 0x9 in batch 0 has no successor"):
        loops(batch=[0], cycle=[1], context=[0], event=[REQUEST], address=[9])


def test_row_shares_count_classes():
    hit, closed, conflict = RowClass.HIT.value, RowClass.CLOSED.value, RowClass.CONFLICT.value
    shares = row_shares([hit, hit, closed, conflict])
    assert (shares.hit, shares.closed, shares.conflict) == (2, 1, 1)
    assert shares.as_dict() == {"hit": 0.5, "closed": 0.25, "conflict": 0.25}
    assert row_shares([]).as_dict() == {"hit": None, "closed": None, "conflict": None}


class _Memory:
    """Writes the logs of accesses that are served one at a time on a stack of open-page channels."""

    def __init__(self, channels=1):
        self.stack = StackMap(dataclasses.replace(MEMORY, channels=channels))
        self.channels = [[] for _ in range(channels)]
        self.commands = self.channels[0]
        self.accesses, self.batches, self.hops, self.hop_batches = [], [], [], []
        self.open: dict[tuple[int, int, int], int] = {}
        self.cycle = 0
        self.batch = 0

    def access(self, address, *, source, write=0, context=0):
        channel, place = self.stack.channel(address), MAP.decode(self.stack.local(address))
        unit, log = (place.pseudo_channel, place.bank), self.channels[channel]
        if self.open.get((channel, *unit)) == place.row:
            row_class = RowClass.HIT
        else:
            row_class = RowClass.CONFLICT if (channel, *unit) in self.open else RowClass.CLOSED
            log.append((self.cycle, ROW_BUS, RowOp.ACTIVATE.value, *unit, place.row))
            self.open[channel, *unit] = place.row
            self.cycle += 20
        log.append((self.cycle, COLUMN_BUS, ColumnOp.READ.value, *unit, place.column))
        self.accesses.append((self.cycle, source, context, row_class.value, write, channel))
        self.batches.append(self.batch)
        self.cycle += 16

    def event(self, kind, address=0, *, place=0, context=0, channel=0):
        self.hops.append((self.cycle, address, kind, context, place, channel))
        self.hop_batches.append(self.batch)

    def ledger(self, place=0):
        return make_ledger(
            place=place,
            hops=np.array(self.hops, dtype=HOP_RECORD),
            hop_batch=np.array(self.hop_batches, dtype=np.int64),
            accesses=np.array(self.accesses, dtype=ACCESS_RECORD),
            access_batch=np.array(self.batches, dtype=np.int64),
            commands=[np.array(log, dtype=COMMAND_RECORD) for log in self.channels],
            timing=TIMING,
            stack=self.stack,
        )


MEMORY = named_config("simulation").memory
TIMING = MEMORY.timing
MAP = AddressMap(MEMORY)
NEAR = Source.NEAR_WALKER.value
SEQUENCER = Source.SEQUENCER.value


def _row(row, column=0):
    return MAP.encode(Place(0, 0, row, column))


def test_the_bound_of_a_loop_follows_from_the_rows_that_every_requester_opened():
    memory = _Memory()
    memory.access(_row(3), source=SEQUENCER, write=1)
    for address in (_row(3, 5), _row(4), _row(5), _row(5, 1)):
        memory.event(REQUEST, address)
        memory.access(address, source=NEAR)
    memory.event(VERDICT)
    ledger = memory.ledger()
    same_bank = TIMING.same_bank
    read_to_read = TIMING["tRTP"] + TIMING["tRP"] + TIMING["tRCDRD"]
    assert ledger.bound_cycles.tolist() == [TIMING.row_hit, read_to_read, same_bank, TIMING.row_hit]
    assert ledger.rows.as_dict() == {"hit": 0.5, "closed": 0.0, "conflict": 0.5}
    assert ledger.ratio_to_bound == pytest.approx(ledger.loops.cycles.sum() / ledger.bound_cycles.sum())


def test_a_new_batch_and_a_refresh_close_the_rows_of_the_bound():
    memory = _Memory()
    for batch in range(2):
        memory.batch = batch
        memory.open.clear()
        memory.event(REQUEST, _row(3))
        memory.access(_row(3), source=NEAR)
        memory.event(VERDICT)
    for pseudo_channel in range(2):
        memory.commands.append((memory.cycle, ROW_BUS, RowOp.REFRESH_ALL.value, pseudo_channel, 0, 0))
        memory.cycle += 1
    memory.open.clear()
    memory.event(REQUEST, _row(3))
    memory.access(_row(3), source=NEAR)
    memory.event(VERDICT)
    assert memory.ledger().bound_cycles.tolist() == [TIMING.row_closed] * 3


def test_a_refresh_of_one_bank_closes_only_its_row():
    memory = _Memory()
    rows = [MAP.encode(Place(0, bank, 3, 0)) for bank in range(2)]
    for address in rows:
        memory.event(REQUEST, address)
        memory.access(address, source=NEAR)
    memory.commands.append((memory.cycle, ROW_BUS, RowOp.REFRESH_BANK.value, 0, 1, 0))
    memory.cycle += 1
    memory.open = {unit: row for unit, row in memory.open.items() if unit != (0, 1)}
    for address in rows:
        memory.event(REQUEST, address)
        memory.access(address, source=NEAR)
    memory.event(VERDICT)
    closed, hit = TIMING.row_closed, TIMING.row_hit
    assert memory.ledger().bound_cycles.tolist() == [closed, closed, hit, closed]


def test_channels_of_a_stack_have_rows_and_contexts_of_their_own():
    """Walks in one context of both channels, read by read in turn, over the same places of each."""
    memory = _Memory(channels=2)
    second = memory.stack.first(1)
    for address in (_row(3), _row(4), _row(4, 1)):
        for channel, first in enumerate((0, second)):
            memory.event(REQUEST, first + address, context=5, channel=channel)
            memory.access(first + address, source=NEAR, context=5)
    for channel in (0, 1):
        memory.event(VERDICT, context=5, channel=channel)
    ledger = memory.ledger()
    assert ledger.loops.address.tolist() == [
        first + address for first in (0, second) for address in (_row(3), _row(4), _row(4, 1))
    ]
    assert ledger.bound_cycles.tolist() == [TIMING.row_closed, TIMING.same_bank, TIMING.row_hit] * 2
    assert ledger.rows.as_dict() == pytest.approx({"hit": 1 / 3, "closed": 1 / 3, "conflict": 1 / 3})


def test_a_far_walk_that_changes_the_channel_is_not_held_up_by_the_bank_of_its_read_before():
    memory = _Memory(channels=2)
    for address in (_row(3), memory.stack.first(1) + _row(3), _row(4)):
        memory.event(REQUEST, address, place=1)
        memory.access(address, source=Source.FAR_WALKER.value)
    memory.event(VERDICT, place=1)
    ledger = memory.ledger(place=1)
    assert ledger.bound_cycles.tolist() == [TIMING.row_closed] * 3


def test_a_place_that_did_nothing_has_an_empty_ledger():
    memory = _Memory()
    memory.event(REQUEST, _row(3))
    memory.access(_row(3), source=NEAR)
    memory.event(VERDICT)
    ledger = memory.ledger(place=1)
    assert len(ledger.loops.cycles) == 0 and ledger.ratio_to_bound is None


def test_logs_that_do_not_belong_together_are_refused():
    memory = _Memory()
    memory.event(REQUEST, _row(3))
    memory.access(_row(4), source=NEAR)
    memory.event(VERDICT)
    with pytest.raises(ValueError, match="1 reads of the walker: expected the 1 of its hop log, address by"):
        memory.ledger()
    memory.commands.clear()
    with pytest.raises(ValueError, match="expected a column command in that cycle"):
        memory.ledger()


def test_addresses_of_accesses_are_read_off_the_buses():
    memory = _Memory()
    addresses = [int(address) for address in np.random.default_rng(1).integers(0, MAP.atoms, 200)]
    for address in addresses:
        memory.access(address, source=SEQUENCER)
    found = access_addresses(
        np.array(memory.accesses, dtype=ACCESS_RECORD), np.array(memory.commands, dtype=COMMAND_RECORD), MAP
    )
    assert found.tolist() == addresses


@pytest.mark.parametrize("seed", range(4))
def test_a_histogram_tells_what_its_sample_does_but_for_what_lies_in_the_last_bin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(3, 40, size=500)
    whole = np.bincount(values, minlength=64)
    assert histogram_statistics(whole) == statistics(values)
    cut = np.append(whole[:30], whole[30:].sum())
    found, exact = histogram_statistics(cut), statistics(values)
    assert (found.count, found.min, found.p50) == (exact.count, exact.min, exact.p50)
    assert found.mean is found.max is found.p999 is None
    assert histogram_statistics(np.zeros(4, dtype=np.int64)) == statistics([])
