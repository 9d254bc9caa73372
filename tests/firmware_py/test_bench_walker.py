"""The parts of `clew bench walker` without a simulation: topics, documents, and the command line."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from firmware_py.bench.measures import Measure, Target
from firmware_py.bench.walker import TOPICS, require_topics, walker_document, walker_measures
from firmware_py.bench.walker.area import area_measures
from firmware_py.bench.walker.instructions import LAUNCHES, instructions_measures
from firmware_py.bench.walker.latency import measured_parts, over_bound_target
from firmware_py.bench.walker.machine import ClimbRun, walker_design
from firmware_py.bench.walker.parts_table import parts_table, without_parts
from firmware_py.bench.walker.programs import best_decisions, best_measures
from firmware_py.bench.walker.throughput import counted_hops, hops_target
from firmware_py.completion import COMPLETION
from firmware_py.errors import InputError, InternalError
from firmware_py.loop_parts import LOOP_PARTS, RowState, loop_parts
from firmware_py.programs import default_image
from hdl.config import DesignConfig
from hdl.layouts import HopEvent, RefreshMode, RowClass, RowOp
from sim.compiled import ACCESS_RECORD, COMMAND_RECORD, HOP_RECORD
from sim.synthesis import Area

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


# -- The table of parts -----------------------------------------------------------------------------------


def parts(config: DesignConfig, row: RowState) -> list[Measure]:
    where = {
        "row": row,
        "ecc": "off",
        "stages": config.walker.execute_stages,
        "clock_ratio": config.clock_ratio,
    }
    return [
        Measure(name="loop_part", where={"part": part, **where}, value=cycles, unit="cycles")
        for part, cycles in loop_parts(config, row).items()
    ]


def test_the_parts_of_a_loop_are_one_line_that_adds_up() -> None:
    measures = [
        *parts(walker_design(), "hit"),
        HOPS,
        *parts(walker_design(clock_ratio=4, stages=2), "closed"),
    ]
    heading, *rows = parts_table(measures)
    assert heading[:3] == ("row", "stages", "clock ratio") and heading[-2:] == (
        "loop",
        "over the bound",
    )
    assert rows == [
        ("hit", "1", "1", "0", "1", "1", "16", "0", "0", "1", "19", "3"),
        ("closed", "2", "4", "0", "4", "1", "31", "0", "4", "8", "48", "17"),
    ]
    assert without_parts(measures) == [HOPS]
    assert len(parts_table([HOPS])) == 1


# -- What is measured -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "at_most"),
    [({}, 4), ({"ecc": True}, 5), ({"stages": 2}, None), ({"clock_ratio": 4}, None)],
)
def test_the_loop_has_a_target_where_nothing_is_slower_than_it_must_be(options, at_most) -> None:
    target = over_bound_target(walker_design(**options))
    assert (None if target is None else target.at_most) == at_most


@pytest.mark.parametrize(
    ("contexts", "refresh", "at_least"),
    [
        (16, RefreshMode.NONE, 0.28),
        (16, RefreshMode.PER_BANK, 0.26),
        (16, RefreshMode.ALL_BANK, 0.26),
        (64, RefreshMode.NONE, 0.45),
        (64, RefreshMode.PER_BANK, 0.45),
        (64, RefreshMode.ALL_BANK, 0.43),
        (32, RefreshMode.NONE, None),
    ],
)
def test_the_targets_of_throughput_are_those_of_the_issue(contexts, refresh, at_least) -> None:
    target = hops_target(contexts, refresh)
    assert (None if target is None else target.at_least) == at_least


def climb_run(
    events: list[tuple[int, HopEvent, int]], *, columns: list[tuple[int, RowClass]], activates: list[int]
) -> ClimbRun:
    """Logs of climbs: (cycle, event, context) of hops, (cycle, what it found) of reads, cycles of ACT."""
    hops = np.zeros(len(events), dtype=HOP_RECORD)
    for row, (cycle, event, context) in zip(hops, events, strict=True):
        row["cycle"], row["event"], row["context"], row["address"] = cycle, event.value, context, cycle
    accesses = np.zeros(len(columns), dtype=ACCESS_RECORD)
    for row, (cycle, found) in zip(accesses, columns, strict=True):
        row["cycle"], row["row_class"] = cycle, found.value
    bus = np.zeros(len(activates), dtype=COMMAND_RECORD)
    bus["cycle"], bus["op"] = activates, RowOp.ACTIVATE.value
    return ClimbRun(records=np.zeros(0, dtype=COMPLETION), hops=hops, accesses=accesses, commands=bus)


def test_a_loop_is_cut_at_its_commands_and_its_data() -> None:
    config = walker_design()
    request, verdict = HopEvent.REQUEST, HopEvent.VERDICT
    # A closed row whose ACT comes a cycle late, a row hit whose answer the walker takes two cycles more for.
    run = climb_run(
        [(100, request, 0), (135, request, 0), (156, verdict, 0)],
        columns=[(118, RowClass.CLOSED), (137, RowClass.HIT)],
        activates=[103],
    )
    (closed, closed_parts), (hit, hit_parts) = measured_parts(config, run)
    assert (closed, hit) == (RowClass.CLOSED, RowClass.HIT)
    assert closed_parts == {**loop_parts(config, "closed"), "command": 2}
    assert hit_parts == {**loop_parts(config, "hit"), "walker": 3}
    assert sum(closed_parts.values()) == 35 and sum(hit_parts.values()) == 21


def test_a_read_that_the_hops_do_not_know_is_an_error() -> None:
    run = climb_run(
        [(100, HopEvent.REQUEST, 0), (119, HopEvent.VERDICT, 0)],
        columns=[(102, RowClass.HIT), (104, RowClass.HIT)],
        activates=[],
    )
    with pytest.raises(InternalError, match="2 accesses of a climb: expected its 1 reads"):
        list(measured_parts(walker_design(), run))


def test_hops_count_from_the_warm_up_to_the_first_verdict() -> None:
    request = [(cycle, HopEvent.REQUEST, cycle // 100 % 2) for cycle in range(1000, 4000, 100)]
    hops = climb_run([*request, (3950, HopEvent.VERDICT, 0)], columns=[], activates=[]).hops
    counts, cycles = counted_hops(hops, contexts=2)
    # 3,000 is the end of the warm-up.
    assert (counts.tolist(), cycles) == ([5, 5], 950)


def test_a_context_costs_what_it_adds_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    areas = {1: (5000, 200), 4: (5300, 230), 16: (6500, 350), 64: (11300, 830)}
    sizes = iter(areas)

    def counted(verilog: str, *, top: str) -> Area:
        contexts = next(sizes)
        assert (verilog, top) == (f"walker of {contexts}", "walker")
        luts, flip_flops = areas[contexts]
        return Area(luts=luts, flip_flops=flip_flops, memory_bits=8192 + 900 * contexts)

    monkeypatch.setattr("firmware_py.bench.walker.area.Walker", lambda config, source: config.walker.contexts)
    monkeypatch.setattr("firmware_py.bench.walker.area.verilog", lambda walker, name: f"{name} of {walker}")
    monkeypatch.setattr("firmware_py.bench.walker.area.synthesized_area", counted)
    measures = area_measures(files=[], announce=lambda _: None, progress=lambda *_: None)
    found = {(m.name, m.where["contexts"], m.where["resource"]): m.value for m in measures}
    assert found["walker_area", 64, "luts"] == 11300 and ("area_per_context", 1, "luts") not in found
    for contexts in (4, 16, 64):
        costs = [found["area_per_context", contexts, name] for name in ("luts", "flip_flops", "memory_bits")]
        assert costs == [100, 10, 900]


def test_every_entry_of_the_default_image_is_counted() -> None:
    assert set(LAUNCHES) == set(default_image().entries)


def test_instructions_a_hop_are_those_that_a_program_says_of_itself() -> None:
    measured = {
        measure.where["program"]: measure.value
        for measure in instructions_measures(files=[], announce=lambda _: None, progress=lambda *_: None)
    }
    assert (measured["climb"], measured["backup"]) == (1, 5)
    assert 1 < measured["best_sibling"] < 4 and 2 <= measured["visited"] <= 5
    assert 2 < measured["select_k"] <= 11 and 2 < measured["descend"] <= 6


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
    assert (status, errors) == (0, "") and "hops_per_ns" not in text and "Where the cycles" not in text


def test_the_parts_of_a_loop_are_printed_in_a_table_of_their_own(monkeypatch, capsys, topics) -> None:
    topics["second"] = parts(walker_design(), "hit")
    status, text, errors = clew(monkeypatch, capsys, "bench", "walker")
    assert (status, errors) == (0, "") and "loop_part" not in text
    table = text[text.index("Where the cycles of a near loop go") :]
    assert all(part in table for part in LOOP_PARTS)


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


def test_the_best_backtrack_has_its_target_in_every_place_and_layer() -> None:
    measures = [
        Measure(
            name="ns_per_backtrack",
            where={
                "program": program,
                "layout": "creation",
                "trace": trace,
                "concurrent": 1,
                "place": place,
                "layer": layer,
            },
            value=value if program == "climb_compressed" else 400.0,
            unit="ns",
        )
        for trace in ("synthetic", "tot_crosswords")
        for place, layer, value in (("near", "loop", 160.0), ("near", "walk", 320.0), ("far", "walk", 120.0))
        for program in ("climb", "climb_compressed")
    ]
    found = {(m.where["trace"], m.where["place"], m.where["layer"]): m for m in best_measures(measures)}
    assert len(found) == 6
    assert found["synthetic", "near", "walk"].value == 0.8
    assert {key for key, measure in found.items() if measure.missed} == {("synthetic", "near", "walk")}
    assert {key[0] for key, measure in found.items() if measure.target is not None} == {"synthetic"}


def test_the_time_of_searches_at_once_is_compared_with_as_many() -> None:
    measures = [
        Measure(
            name="ns_per_backtrack",
            where={
                "program": program,
                "layout": "creation",
                "trace": "synthetic",
                "concurrent": concurrent,
                "place": "near",
                "layer": layer,
            },
            value=value,
            unit="ns",
        )
        for concurrent, program, value in (
            (1, "climb", 400.0),
            (1, "climb_compressed", 320.0),
            (16, "climb", 60.0),
            (16, "climb_compressed", 40.0),
            (256, "climb", 20.0),
            (256, "climb_compressed", 9.0),
        )
        for layer in ("walk", "elapsed")
    ]
    found = {(m.where["concurrent"], m.where["layer"]): m for m in best_measures(measures)}
    assert {key: measure.missed for key, measure in found.items()} == {
        (1, "walk"): True,
        (16, "elapsed"): True,
        (256, "elapsed"): False,
    }
    assert found[256, "elapsed"].value == 0.45


def test_the_best_decision_is_one_walk_over_plain_parts() -> None:
    measures = [
        Measure(
            name="ns_per_decision",
            where={"fused": fused, "place": place, "program": program, "trace": "synthetic"},
            value=value,
            unit="ns",
        )
        for place in ("near", "far")
        for fused, program, value in (
            ("no", "climb", 1000.0),
            ("no", "climb_compressed", 300.0),
            ("yes", "climb", 500.0),
            ("yes", "climb_compressed", 400.0),
        )
    ]
    near, far = best_decisions(measures)
    assert near.where == {"trace": "synthetic", "place": "near", "program": "climb_compressed"}
    assert (near.value, near.target, far.where["place"]) == (0.4, None, "far")
