"""The parts of `clew bench walker` without a simulation: topics, documents, and the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firmware_py.bench.measures import Measure, Target
from firmware_py.bench.walker import TOPICS, require_topics, walker_document, walker_measures
from firmware_py.errors import InputError

from .test_cli import clew

OVER = Measure(
    name="loop_over_bound",
    where={"row": "hit", "ecc": "off", "stages": 1, "clock_ratio": 1},
    value=3,
    unit="cycles",
    target=Target(at_most=4),
)
HOPS = Measure(
    name="hops_per_ns",
    where={"contexts": 16, "refresh": "none"},
    value=0.25,
    unit="hops/ns",
    bound=0.5,
    target=Target(at_least=0.28),
)


def test_the_document_has_exactly_the_keys_of_its_schema() -> None:
    assert json.loads(json.dumps(walker_document([HOPS]))) == {
        "schema": "clew.bench.walker/1",
        "measures": [
            {
                "name": "hops_per_ns",
                "where": {"contexts": 16, "refresh": "none"},
                "value": 0.25,
                "unit": "hops/ns",
                "bound": 0.5,
                "ratio": 0.5,
            }
        ],
    }


# -- Topics -----------------------------------------------------------------------------------------------


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Measure]]:
    """What the topics `first` and `second`, the only ones, give; tests fill it. Nothing is simulated."""
    given: dict[str, list[Measure]] = {"first": [OVER], "second": []}

    def topic(name: str) -> Any:
        def measures(*, files: Any, announce: Any, progress: Any) -> list[Measure]:
            announce("compiling")
            progress(name, 1, 2)
            return given[name]

        return measures

    monkeypatch.setattr("firmware_py.bench.walker.TOPICS", {name: topic(name) for name in given})
    return given


def test_without_a_choice_every_topic_is_measured() -> None:
    assert require_topics([]) == tuple(TOPICS)
    assert require_topics(["latency"]) == ["latency"]
    with pytest.raises(InputError, match="unknown topic 'speed': expected one of latency, throughput"):
        require_topics(["latency", "speed"])


def test_measures_come_in_the_order_of_the_topics(topics: dict[str, list[Measure]]) -> None:
    topics["second"] = [HOPS]

    def measured(*chosen: str) -> list[Measure]:
        return walker_measures(files=[], topics=chosen, announce=lambda _: None, progress=lambda *_: None)

    assert measured("first", "second") == [OVER, HOPS]
    assert measured("second") == [HOPS]


# -- The command line -------------------------------------------------------------------------------------


def test_a_missed_target_is_exit_status_one_and_still_written(monkeypatch, capsys, tmp_path, topics) -> None:
    out = tmp_path / "walker.json"
    status, text, errors = clew(monkeypatch, capsys, "bench", "walker", "--json", out)
    assert (status, errors) == (0, "") and "reached" in text
    assert [m["name"] for m in json.loads(out.read_text())["measures"]] == ["loop_over_bound"]
    topics["second"] = [HOPS]
    status, text, errors = clew(monkeypatch, capsys, "bench", "walker", "--json", out)
    assert (status, errors) == (1, "") and "MISSED" in text
    assert [m["name"] for m in json.loads(out.read_text())["measures"]] == ["loop_over_bound", "hops_per_ns"]
    status, text, errors = clew(monkeypatch, capsys, "bench", "walker", "--topic", "first")
    assert (status, errors) == (0, "") and "hops_per_ns" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "speed"], "unknown topic 'speed': expected one of first, second"),
        (["--json", "absent/m.json"], "absent/m.json: expected its folder to exist"),
        (["--preset", "sram"], "No such option"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_status_two(
    monkeypatch, capsys, tmp_path, topics, arguments, message
) -> None:
    monkeypatch.chdir(tmp_path)
    status, text, errors = clew(monkeypatch, capsys, "bench", "walker", *arguments)
    assert (status, text) == (2, "")
    assert errors.startswith("clew: ") and errors.count("\n") == 1 and message in errors
