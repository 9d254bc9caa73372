"""The ledger's statistics and its reading of the logs, against slow definitions written out here."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.ledger import loops, row_shares, statistics
from hdl.layouts import HopEvent, RowClass, Source

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
    waiting, found = {}, []
    for batch, cycle, context, event, address in sorted(rows):
        if event == STORE:
            continue
        if (batch, context) in waiting:
            since, what = waiting.pop((batch, context))
            found.append((batch, since, cycle - since, what))
        if event == REQUEST:
            waiting[batch, context] = (cycle, address)
    return [(elapsed, address, batch) for batch, _, elapsed, address in sorted(found)]


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
    found = loops(batch=columns[0], cycle=columns[1], context=columns[2], event=columns[3], address=columns[4])
    pairs = zip(found.cycles.tolist(), found.address.tolist(), found.batch.tolist(), strict=True)
    assert list(pairs) == _slow_loops(rows)


def test_a_request_without_a_successor_is_an_error():
    with pytest.raises(ValueError, match="the request for 0x9 in batch 0 has no successor"):
        loops(batch=[0], cycle=[1], context=[0], event=[REQUEST], address=[9])


def test_row_shares_count_the_reads_of_one_walker():
    hit, closed, conflict = RowClass.HIT.value, RowClass.CLOSED.value, RowClass.CONFLICT.value
    near, far = Source.NEAR_WALKER.value, Source.FAR_WALKER.value
    shares = row_shares(
        row_class=[hit, hit, closed, conflict, hit, hit],
        source=[near, near, near, near, far, near],
        write=[0, 0, 0, 0, 0, 1],
        walker=near,
    )
    assert (shares.hit, shares.closed, shares.conflict) == (2, 1, 1)
    assert shares.as_dict() == {"hit": 0.5, "closed": 0.25, "conflict": 0.25}


def test_row_shares_of_no_read_are_none():
    shares = row_shares(row_class=[], source=[], write=[], walker=0)
    assert shares.as_dict() == {"hit": None, "closed": None, "conflict": None}
