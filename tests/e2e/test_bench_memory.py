"""`clew bench memory` on the compiled memory and the compiled design: every figure and its target."""

from __future__ import annotations

from collections import defaultdict

import pytest

from firmware_py.bench import memory
from firmware_py.design import design_for
from firmware_py.errors import InternalError
from hdl.layouts import RefreshMode
from sim.compiled_memory import CompiledMemory, Pauses

CONFIG = design_for("hbm2_2000")

#: Short runs over random places: what chance may take from a bandwidth, and a tail that is too thin to judge.
_CHANCE = 0.005
_TOO_THIN = ("loop_p999", 400)


def test_every_figure_of_the_issue_is_measured_and_reaches_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_RANDOM_CYCLES", 200_000)
    monkeypatch.setattr(memory, "_HOPS", 40_000)
    steps: list[tuple[str, int, int]] = []
    measures = memory.memory_measures(
        CONFIG, announce=lambda what: None, progress=lambda *step: steps.append(step)
    )
    found = defaultdict(list)
    for measure in measures:
        found[measure.name].append(dict(measure.where))
    modes = ("none", "all_bank", "per_bank")
    rows = ("hit", "closed", "conflict", "same_bank")
    assert found["read_latency"] == [{"row": row} for row in rows] + [
        {"row": row, "ecc": "on"} for row in rows
    ]
    for name in ("random_read", "random_mixed", "stream_read", "stream_linear"):
        assert found[name] == [{"refresh": mode, "outstanding": 64} for mode in modes]
    assert found["refresh_count"] == [{"refresh": mode} for mode in modes[1:]]
    assert found["loop_p999"] == [{"refresh": mode, "gap": gap} for mode in modes[1:] for gap in (0, 400)]
    for name in ("near_loop_p99", "near_loop_p999"):
        assert {"traffic": "mover", "refresh": "all_bank"} in found[name]
        assert {"traffic": "mover", "refresh": "per_bank"} in found[name]
    assert steps[-1] == ("hbm2_2000", steps[-1][2], steps[-1][2])
    for measure in measures:
        assert measure.value > 0, measure
        if measure.unit == "GB/s" and measure.ratio is not None:
            # A random read may hit a row by luck, but no bound is beaten by that much.
            assert measure.ratio <= 1.01, measure
        if measure.unit == "cycles":
            assert measure.bound is not None and measure.value >= measure.bound, measure
        if measure.name.startswith("random"):
            assert measure.target is None or measure.target.reached(measure.value * (1 + _CHANCE)), measure
        elif (measure.name, measure.where.get("gap")) != _TOO_THIN:
            assert not measure.missed, measure


def test_a_faster_memory_is_offered_more_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_RANDOM_CYCLES", 100_000)
    with CompiledMemory(design_for("hbm3_6400")) as fast:
        figures = memory._Figures(fast)
        assert [measure.value for measure in figures.read_latency({})][:3] == [
            fast.config.memory.timing.row_hit + 2,
            fast.config.memory.timing.row_closed + 2,
            fast.config.memory.timing.row_conflict + 2,
        ]
        (bandwidth,) = figures.random_read(RefreshMode.NONE)
    assert bandwidth.where["outstanding"] == 96
    assert bandwidth.target is not None and bandwidth.target.reached(bandwidth.value * (1 + _CHANCE))


def test_figures_of_a_memory_at_fault_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CYCLES", 30_000)
    with CompiledMemory(CONFIG) as faulty:
        figures = memory._Figures(faulty)
        run = faulty.run

        def flipping(*arguments, **options):
            faulty.flip([0], 3)
            return run(*arguments, **options, stall=Pauses())

        monkeypatch.setattr(faulty, "run", flipping)
        with pytest.raises(InternalError, match=r"at fault, so its figures mean nothing: .*wrong data"):
            list(figures.stream_linear(RefreshMode.NONE))
