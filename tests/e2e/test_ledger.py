"""The ledger on the compiled design: the parts add up, and what refresh caused is what is gone without it."""

import pytest

from firmware_py.bench.walker.synthetic import deep_searches
from firmware_py.compare import Comparison, TraceFile, compare
from firmware_py.design import design_for
from firmware_py.image import CreationOrder
from firmware_py.loop_parts import loop_parts
from firmware_py.machine import compiled_machine
from firmware_py.programs import replay_image
from hdl.fabric.link import Link
from hdl.fabric.message import LAUNCH_BYTES, READ_REQUEST_BYTES, READ_RESPONSE_BYTES, VERDICT_BYTES
from hdl.layouts import RefreshMode

CONFIG = design_for("hbm2_2000")
TIMING = CONFIG.memory.timing


def _measured(refresh: RefreshMode, *, concurrent: int = 1) -> Comparison:
    traces = deep_searches(3, seed=2026)
    return compare(
        [TraceFile(file="deep", format="synthetic", traces=traces)],
        config=CONFIG,
        far="v100_hbm2",
        concurrent=concurrent,
        program=replay_image("climb"),
        layout=CreationOrder(),
        refresh=refresh,
        open_machine=compiled_machine,
        announce=lambda text: None,
        progress=lambda place, done, of: None,
    )


@pytest.fixture(scope="module")
def runs() -> dict[RefreshMode, Comparison]:
    return {mode: _measured(mode) for mode in RefreshMode}


def test_every_loop_and_every_walk_is_the_sum_of_its_parts(runs: dict[RefreshMode, Comparison]) -> None:
    for result in (*runs.values(), _measured(RefreshMode.ALL_BANK, concurrent=3)):
        for figures in (result.near, result.far):
            assert figures.loop_time.total.tolist() == figures.ledger.loops.cycles.tolist()
            assert figures.walk_time.total.tolist() == figures.run.walk_cycles.tolist()


def test_the_least_of_each_part_is_that_of_an_isolated_loop(runs: dict[RefreshMode, Comparison]) -> None:
    result = runs[RefreshMode.NONE]
    isolated = loop_parts(CONFIG, "hit")
    crossing = result.far_path.latency_up + result.far_path.latency_down + 2 * Link.minimum_latency
    for figures, link in ((result.near, 0), (result.far, crossing)):
        least = {name: int(cycles.min()) for name, cycles in figures.loop_time.parts.items()}
        assert least == {
            "link": link,
            "queue": 0,
            "arbitration": isolated["arbiter"],
            "controller": isolated["intake"] + isolated["command"],
            "device": isolated["device"],
            "cache": 0,
            "walker": isolated["walker"],
            "help": 0,
        }
        # One walk at a time waits for nobody's turn.
        assert not figures.loop_time.parts["arbitration"].any()
    assert result.near.walk_time.parts["link"].tolist() == [crossing] * result.near.walk.count


@pytest.mark.parametrize("mode", [RefreshMode.ALL_BANK, RefreshMode.PER_BANK])
def test_what_refresh_caused_is_what_is_gone_without_it(
    runs: dict[RefreshMode, Comparison], mode: RefreshMode
) -> None:
    for place in ("near", "far"):
        with_, without = (getattr(runs[each], place).layers for each in (mode, RefreshMode.NONE))
        for layer, bare in zip(with_, without, strict=True):
            assert bare.refresh.max == 0
            assert layer.cycles.mean is not None and bare.cycles.mean is not None
            caused = layer.cycles.mean - bare.cycles.mean
            assert layer.refresh.mean == pytest.approx(caused, rel=0.1), (place, layer.name)


def test_layers_enclose_one_another_and_bytes_are_those_of_the_messages(
    runs: dict[RefreshMode, Comparison],
) -> None:
    result = runs[RefreshMode.ALL_BANK]
    for figures in (result.near, result.far):
        means = [layer.cycles.mean or 0 for layer in figures.layers]
        assert means == sorted(means)
    reads, walks = result.far.loop.count, result.far.walk.count
    far, near = result.far.link_bytes, result.near.link_bytes
    assert (far.walk_up, far.walk_down) == (reads * READ_REQUEST_BYTES, reads * READ_RESPONSE_BYTES)
    assert (near.walk_up, near.walk_down) == (walks * LAUNCH_BYTES, walks * VERDICT_BYTES)
    # The host's writes are the same in both places.
    assert (near.bulk_up, near.bulk_down) == (far.bulk_up, far.bulk_down)
