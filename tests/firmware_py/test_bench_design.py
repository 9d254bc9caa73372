"""The parts of the bench that need no compiled design: its trace and its table."""

from rich.console import Console

from firmware_py.bench.design import Figure, figures_document, print_figures
from firmware_py.bench.simulation.replay import replay_plan, write_replay
from firmware_py.programs import default_image
from firmware_py.replay import run_plan
from hdl.config import named_config

from .fake_accelerator import FakeAccelerator


def test_the_bench_trace_is_a_valid_search_with_right_answers(tmp_path):
    path = tmp_path / "replay.jsonl"
    write_replay(path, depth=3)
    config = named_config("simulation")
    plan = replay_plan(path, config)
    assert len(plan.walks) == 4**3
    assert plan.traces[0].nodes == 1 + 4 + 16 + 64
    fake = FakeAccelerator(config)
    run = run_plan(plan, program=default_image(), place=0, driver=fake, monitor=fake)
    assert run.wrong == [] and run.not_golden == []


def test_figures_are_shown_with_their_targets():
    measured = [
        Figure(name="loop", value=3, unit="cycles", target="at most 6", reached=True),
        Figure(name="speed", value=1234567.4, unit="cycles/s", target="at least 9", reached=False),
    ]
    target = Console(width=100, no_color=True)
    with target.capture() as capture:
        print_figures(measured, target)
    text = capture.get()
    assert "3 cycles" in text and "at most 6" in text and "reached" in text and "MISSED" in text
    document = figures_document(measured)
    assert document["schema"] == "clew.bench/1"
    assert document["figures"][1] == {
        "name": "speed",
        "value": 1234567.4,
        "unit": "cycles/s",
        "target": "at least 9",
        "reached": False,
    }
