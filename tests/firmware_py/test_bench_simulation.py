"""The parts of `clew bench simulation` that need no compiled design: its figures, targets and document."""

from __future__ import annotations

import json

import pytest

from firmware_py.bench import simulation
from firmware_py.bench.large_replay import LargeReplay
from firmware_py.bench.measures import missed
from firmware_py.bench.simulation.compiled_speed import ReplaySpeed
from firmware_py.errors import InternalError

from .test_cli import clew


@pytest.fixture
def speeds(monkeypatch):
    """Speeds that reach every target; a test changes them."""
    found = {"replay": 1.2e6, "random": 6e5, "walks": 3e5, "seconds": 60.0, "bytes": 1 << 30, "failures": []}

    def large(*, shape, announce) -> LargeReplay:
        return LargeReplay(
            problems=250 if shape == "many" else 1,
            nodes=100_000,
            walks=5,
            failures=found["failures"],
            seconds=found["seconds"],
            peak_bytes=found["bytes"],
        )

    for name, function in (
        ("replay_speed", lambda _: ReplaySpeed(cycles_per_second=found["replay"], walks_per_second=900.0)),
        ("random_speed", lambda _: found["random"]),
        ("walks_speed", lambda _: found["walks"]),
        ("cocotb_speed", lambda _: 1.4e5),
        ("large_replay", large),
    ):
        monkeypatch.setattr(simulation, name, function)
    return found


def _measured():
    return simulation.simulation_measures(announce=lambda _: None, progress=lambda *_: None)


def test_every_figure_of_the_issue_is_there_with_its_target(speeds):
    measured = _measured()
    found = {(m.name, m.where.get("load"), m.where.get("problems")): m for m in measured}
    assert set(found) == {
        ("compiled_cycles_per_second", "replay", None),
        ("compiled_cycles_per_second", "random", None),
        ("compiled_cycles_per_second", "walks", None),
        ("cocotb_cycles_per_second", None, None),
        ("walks_per_second", None, None),
        *(("replay_100k_nodes_seconds", None, problems) for problems in (250, 1)),
        *(("replay_100k_nodes_peak_bytes", None, problems) for problems in (250, 1)),
    }
    assert not missed(measured)


@pytest.mark.parametrize(
    ("what", "value", "name"),
    [
        ("replay", 999_999.0, "compiled_cycles_per_second"),
        ("random", 499_999.0, "compiled_cycles_per_second"),
        ("seconds", 180.1, "replay_100k_nodes_seconds"),
        ("bytes", 2_000_000_001, "replay_100k_nodes_peak_bytes"),
    ],
)
def test_what_falls_short_is_missed(speeds, what, value, name):
    speeds[what] = value
    assert {measure.name for measure in missed(_measured())} == {name}


def test_a_large_replay_that_is_not_good_has_no_figures(speeds):
    speeds["failures"] = ["near: 3 of 9 verdicts are wrong"]
    with pytest.raises(InternalError, match="3 of 9 verdicts"):
        _measured()


def test_the_command_writes_the_document_and_says_what_was_missed(speeds, monkeypatch, capsys, tmp_path):
    out = tmp_path / "speed.json"
    status, text, errors = clew(monkeypatch, capsys, "bench", "simulation", "--json", out)
    assert (status, errors) == (0, "") and "reached" in text
    document = json.loads(out.read_text())
    assert document["schema"] == "clew.bench.simulation/1"
    assert document["measures"][0] == {
        "name": "compiled_cycles_per_second",
        "where": {"load": "replay"},
        "value": 1.2e6,
        "unit": "cycles/s",
        "bound": None,
        "ratio": None,
    }
    speeds["replay"] = 1.0
    assert clew(monkeypatch, capsys, "bench", "simulation")[0] == 1
