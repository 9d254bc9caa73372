"""The histograms of the hardware are those of the hop log and of the completion records, count for count."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from firmware_py.batches import ring_size
from firmware_py.design import design_for
from firmware_py.driver import Accelerator
from firmware_py.image import CreationOrder
from firmware_py.ledger import loops
from firmware_py.placement import FewestSearches
from firmware_py.programs import default_image
from firmware_py.replay import Plan, make_plan, run_plan
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig, named_config
from sim.compiled import CompiledModel
from sim.trace.importers import import_file
from sim.trace.searches.demonstration import demonstration_traces


@pytest.fixture(scope="module", params=[1, 2], ids=["one channel", "two channels"])
def model(request: pytest.FixtureRequest) -> Iterator[CompiledModel]:
    config = design_for("hbm2_2000", channels=request.param)
    config = dataclasses.replace(config, histogram=named_config("default").histogram)
    with CompiledModel(config) as running:
        yield running


def _plan(folder: Path, config: DesignConfig, *, concurrent: int) -> Plan:
    """Of the demonstration's crosswords, which backtrack, enough of them for every context."""
    (crossword,) = (path for path in demonstration_traces(folder) if path.name == "crossword.jsonl")
    traces = list(import_file(crossword))
    return make_plan(
        traces * -(-concurrent // len(traces)),
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.atoms,
        contexts=config.walker.contexts,
        concurrent=concurrent,
        channels=config.memory.channels,
        placement=FewestSearches(),
    )


def _binned(values: NDArray[np.int64], bins: int) -> list[int]:
    return np.bincount(np.minimum(values, bins - 1), minlength=bins).tolist()


@pytest.mark.parametrize("concurrent", [1, 16])
def test_histograms_equal_the_logs_near_and_far(
    model: CompiledModel, tmp_path: Path, concurrent: int
) -> None:
    plan = _plan(tmp_path, model.config, concurrent=concurrent)
    channels = model.config.memory.channels
    accelerator = Accelerator(InProcessTransport(model))
    for place in (0, 1):
        # What ran before does not count: here the negative control of the place before.
        accelerator.reset_counters()
        # A far loop takes about 1,000 cycles: some are in the last bin.
        accelerator.set_link(latency_up=470, latency_down=489)
        found: dict[str, list[int]] = {}

        def batch_done(done: int, place: int = place, found: dict[str, list[int]] = found) -> None:
            if done == len(plan.batches):
                found["far"] = accelerator.loop_histogram(1).tolist()
                for channel in range(channels):
                    found[f"near {channel}"] = accelerator.loop_histogram(0, channel).tolist()
                found["walks"] = accelerator.walk_histogram(place).tolist()
                assert not accelerator.walk_histogram(1 - place).any()

        run = run_plan(
            plan, program=default_image(), place=place, driver=accelerator, monitor=model, progress=batch_done
        )
        bins = accelerator.histogram_bins
        assert bins == model.config.histogram.bins > 1000
        hops, batch = run.logs.hops, run.logs.hop_batch
        for name in ("far", *(f"near {channel}" for channel in range(channels))):
            far = name == "far"
            mine = hops["place"] == far
            if not far:
                mine &= hops["channel"] == int(name[-1])
            taken = loops(
                batch=batch[mine],
                **{column: hops[column][mine] for column in ("cycle", "context", "event", "address")},
            ).cycles
            assert (len(taken) > 0) == (far == place) or channels > concurrent
            assert found[name] == _binned(taken, bins), name
        if place:
            assert found["far"][-1] and any(found["far"][:-1]), "a loop in the last bin, and one before"
        walk_bins = run.walk_cycles // accelerator.walk_bin_cycles
        assert found["walks"] == _binned(walk_bins, bins)
