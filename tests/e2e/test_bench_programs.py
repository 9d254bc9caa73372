"""The bench of programs and pools on the compiled design, small: every figure is there, and they fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from firmware_py.bench.walker.decisions import decision_measures
from firmware_py.bench.walker.launches import launch_measures
from firmware_py.bench.walker.machine import walker_design
from firmware_py.bench.walker.pools import contended_measures, lease_measures
from firmware_py.bench.walker.programs import FAR, backtrack_measures
from firmware_py.bench.walker.reclaims import reclaim_measures
from firmware_py.bench.walker.synthetic import deep_searches
from firmware_py.driver import Accelerator
from firmware_py.paths import far_path
from firmware_py.programs import CLIMBS
from firmware_py.transport.inprocess import InProcessTransport
from sim.compiled import CompiledModel

_CONFIG = walker_design()
_PATH = far_path(FAR, _CONFIG)


@pytest.fixture(scope="module")
def model() -> Iterator[CompiledModel]:
    with CompiledModel(_CONFIG) as running:
        yield running


@pytest.fixture
def accelerator(model: CompiledModel) -> Accelerator:
    machine = Accelerator(InProcessTransport(model))
    machine.set_link(latency_up=_PATH.latency_up, latency_down=_PATH.latency_down)
    return machine


def _quiet(name: str, done: int, of: int) -> None:
    pass


def test_the_compressed_climb_reads_less_and_is_never_slower_where_climbs_are_deep(model) -> None:
    traces = deep_searches(2, seed=7)
    ns: dict[tuple[str, str, str], float] = {}
    reads: dict[str, float] = {}
    for program in ("climb", "climb_compressed"):
        for measure in backtrack_measures(
            model, "synthetic", traces, program=program, layout="path", concurrent=2
        ):
            if measure.name == "reads_per_backtrack":
                reads[program] = measure.value
            if measure.name == "ns_per_backtrack":
                ns[program, str(measure.where["place"]), str(measure.where["layer"])] = measure.value
                if measure.bound is not None:
                    assert measure.value >= measure.bound > 0
    assert reads["climb_compressed"] <= 2 < reads["climb"]
    for place in ("near", "far"):
        for layer in ("loop", "walk", "elapsed"):
            assert ns["climb_compressed", place, layer] < ns["climb", place, layer]
        # Two searches walk at the same time.
        assert ns["climb", place, "walk"] / 2 <= ns["climb", place, "elapsed"] < ns["climb", place, "walk"]


def test_a_whole_decision_in_one_walk_saves_a_near_search_its_crossings(model) -> None:
    found = {
        (measure.where["fused"], measure.where["place"], measure.where["program"]): measure.value
        for measure in decision_measures(
            model, "synthetic", deep_searches(1, seed=7), far=FAR, progress=_quiet
        )
    }
    assert set(found) == set(product(("yes", "no"), ("near", "far"), CLIMBS))
    crossings = (_PATH.latency_up + _PATH.latency_down) * _CONFIG.memory.timing.clock_ns
    for program in CLIMBS:
        assert found["no", "near", program] - found["yes", "near", program] > crossings
        assert found["yes", "near", program] < found["yes", "far", program]
    for fused, place in product(("yes", "no"), ("near", "far")):
        assert found[fused, place, "climb_compressed"] < found[fused, place, "climb"]


def test_climbs_of_one_launch_take_less_of_the_link_and_no_longer(model) -> None:
    found = {
        (
            m.name,
            m.where["launch"],
            m.where["walks"],
            m.where["place"],
            m.where.get("bytes_per_cycle"),
        ): m.value
        for m in launch_measures(model, far=FAR, progress=_quiet)
    }
    for walks, place, width in product((4, 7), ("near", "far"), ("any", 16, 4)):
        one, each, in_turn = (
            found["ns_per_walk", way, walks, place, width] for way in ("one", "each", "in_turn")
        )
        assert each < in_turn / 2
        # Launches cross the link to a near walker only, and take it for some time when it is narrow.
        assert one < each if (place, width) == ("near", 4) else one <= each
    assert found["link_bytes_per_walk", "each", 4, "near", None] == 32 + 32
    assert found["link_bytes_per_walk", "one", 4, "near", None] == 32 / 4 + 32
    # Four reads of a header up, and of an atom with a header down.
    assert found["link_bytes_per_walk", "one", 7, "far", None] == 4 * (8 + 40)


def test_leases_near_and_far(accelerator) -> None:
    found = {
        (m.name, m.where["place"], m.where["occupancy"], m.where["blocks"], m.where["start"]): m.value
        for m in lease_measures(accelerator, _PATH, _quiet, occupancies=(75,))
    }
    crossings = (_PATH.latency_up + _PATH.latency_down) * accelerator.clock_ns
    for (name, place, *case), value in found.items():
        if name == "pool_ns_per_lease":
            assert value == crossings if place == "host" else value > crossings
            assert found[name, "near", *case] < found[name, "far", *case]
    free, any_block = (found["pool_ns_per_lease", "near", 75, 1, start] for start in ("free", "random"))
    assert free < any_block
    assert {m.where["start"] for m in contended_measures(accelerator)} == {"random", "same"}


def test_reclaim_moves_fewest_bytes_near_the_memory(model, accelerator) -> None:
    found = {
        (m.name, m.where["place"]): m.value
        for m in reclaim_measures(model, accelerator, "synthetic", deep_searches(1, seed=7), progress=_quiet)
    }
    moved = {place: value for (name, place), value in found.items() if name == "reclaim_bytes_per_block"}
    assert list(moved) == ["near", "far", "host_scan", "host_mirror"]
    assert min(moved, key=lambda place: moved[place]) == "near"
    assert found["reclaim_ns_per_block", "near"] < found["reclaim_ns_per_block", "far"]
