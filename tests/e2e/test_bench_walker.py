"""`clew bench walker` on the compiled design: the loop's targets, throughput, and that no context starves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from firmware_py.bench.measures import missed
from firmware_py.bench.simulation.replay import write_replay
from firmware_py.bench.walker.latency import chain_measures
from firmware_py.bench.walker.throughput import context_measures
from firmware_py.bench.walker.trace_loops import depth_first, trace_loops
from hdl.config import named_config
from hdl.layouts import RefreshMode, RowClass
from sim.compiled import CompiledModel

CONFIG = named_config("simulation")
#: The least share of the mean that every context must get.
FAIR = 0.95


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(CONFIG) as running:
        yield running


@pytest.mark.parametrize(("ecc", "over"), [(False, 3), (True, 4)])
def test_the_loop_is_over_its_bound_by_its_parts(ecc: bool, over: int) -> None:
    controller = dataclasses.replace(CONFIG.controller, ecc=ecc)
    with CompiledModel(dataclasses.replace(CONFIG, controller=controller)) as running:
        measures = list(chain_measures(running))
    loops = {m.where["row"]: m for m in measures if m.name == "loop_over_bound"}
    assert {row: (m.value, m.missed) for row, m in loops.items()} == {
        "hit": (over, False),
        "closed": (over, False),
    }
    where = {"row": "hit", "ecc": "on" if ecc else "off", "stages": 1, "clock_ratio": 1}
    assert loops["hit"].where == where
    parts = [m.value for m in measures if m.name == "loop_part" and m.where["row"] == "hit"]
    assert sum(parts) == 16 + over


def test_climbs_of_a_depth_first_trace_are_as_close_to_their_bound(model: CompiledModel, tmp_path) -> None:
    trace = tmp_path / "search.jsonl"
    write_replay(trace, depth=4)
    (traces,) = depth_first([trace]).values()
    over = trace_loops(model, traces)
    assert set(over[RowClass.HIT]) == {3} and len(over[RowClass.HIT]) > 100
    assert not over[RowClass.CONFLICT]


@pytest.mark.parametrize("refresh", RefreshMode, ids=lambda mode: mode.name.lower())
def test_sixteen_contexts_reach_their_target_and_none_starves(
    model: CompiledModel, refresh: RefreshMode
) -> None:
    hops, share = context_measures(model, 16, refresh)
    assert hops.where == {"contexts": 16, "refresh": refresh.name.lower()} and hops.target is not None
    assert not missed([hops, share]), (hops.value, share.value)
    assert FAIR <= share.value <= 1
    assert hops.bound is not None and hops.value < hops.bound
