"""The parts of `clew bench memory` without a simulation: targets, documents, pages, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware_py.bench.design import Figure
from firmware_py.bench.measures import Measure, Target, measures_document, missed, print_measures
from firmware_py.bench.memory import outstanding_requests
from firmware_py.bench.near_loop import refresh_caused
from firmware_py.bench.page import figures_page
from firmware_py.bench.targets import PRESETS_WITH_TARGETS, target_of
from firmware_py.design import design_for
from firmware_py.errors import InternalError
from firmware_py.ledger import Loops
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.address import AddressMap, Place
from hdl.memory.timing import PRESETS
from sim.compiled import COMMAND_RECORD
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

from .test_cli import clew

HBM2 = PRESETS["hbm2_2000"]
READ = Measure(
    name="random_read",
    where={"refresh": "none", "outstanding": 64},
    value=12.0,
    unit="GB/s",
    bound=16.0,
    target=Target(at_least=15.2),
)
LATENCY = Measure(
    name="read_latency", where={"row": "hit"}, value=18, unit="cycles", bound=16, target=Target(at_most=18)
)
HOPS = Measure(
    name="hops_per_ns",
    where={"contexts": 16, "refresh": "none"},
    value=0.25,
    unit="hops/ns",
    bound=0.5,
    target=Target(at_least=0.28),
)
LOOP = Measure(name="loop_p999", where={"refresh": "all_bank", "gap": 0}, value=357.0, unit="ns")


# -- Measures and targets ---------------------------------------------------------------------------------


def test_a_target_holds_up_to_its_limits() -> None:
    target = Target(at_least=50.28, at_most=52.28)
    assert [target.reached(value) for value in (50.27, 50.28, 52.28, 52.29)] == [False, True, True, False]
    assert str(target) == "at least 50.28, at most 52.28"
    assert str(Target(at_most=100)) == "at most 100"


def test_the_document_has_exactly_the_keys_of_its_schema() -> None:
    document = measures_document(HBM2, [READ, LOOP])
    assert json.loads(json.dumps(document)) == {
        "schema": "clew.bench.memory/1",
        "preset": "hbm2_2000",
        "measures": [
            {
                "name": "random_read",
                "where": {"refresh": "none", "outstanding": 64},
                "value": 12.0,
                "unit": "GB/s",
                "bound": 16.0,
                "ratio": 0.75,
            },
            {
                "name": "loop_p999",
                "where": {"refresh": "all_bank", "gap": 0},
                "value": 357.0,
                "unit": "ns",
                "bound": None,
                "ratio": None,
            },
        ],
    }


def test_what_misses_its_target_is_said() -> None:
    assert missed([READ, LATENCY, LOOP]) == [READ]
    target = Console(width=120, no_color=True)
    with target.capture() as capture:
        print_measures(HBM2, [READ, LATENCY, LOOP], target)
    lines = {words[1]: words for line in capture.get().splitlines() if len(words := line.split()) > 2}
    assert "MISSED" in lines["random_read"] and "75.0%" in lines["random_read"]
    assert "reached" in lines["read_latency"]
    assert not {"MISSED", "reached"} & set(lines["loop_p999"])
    assert "peak 32 GB/s" in capture.get()


@pytest.mark.parametrize(
    ("preset", "name", "where", "bound", "limits"),
    [
        ("hbm2_2000", "read_latency", {"row": "hit"}, 16, (None, 18)),
        ("hbm2_2000", "read_latency", {"row": "conflict", "ecc": "on"}, 44, (None, 47)),
        ("hbm2_2000", "read_latency", {"row": "same_bank"}, 48, (None, 48)),
        ("hbm2_2000", "read_latency", {"row": "same_bank", "ecc": "on"}, 48, (None, 48)),
        # A conflict, with what the port and the requester add to it, takes longer than tRC there.
        ("hbm3_6400", "read_latency", {"row": "same_bank"}, 72, (None, 82)),
        ("hbm2_2000", "random_read", {"refresh": "per_bank", "outstanding": 64}, 15.5, (15.0, None)),
        ("hbm2_2000", "random_mixed", {"refresh": "none", "outstanding": 64}, 16.0, (12.0, None)),
        ("hbm2_2000", "stream_read", {"refresh": "all_bank", "outstanding": 64}, 29.8, (0.923 * 32, None)),
        ("hbm2_2000", "stream_linear", {"refresh": "none", "outstanding": 64}, 32.0, (31.9, None)),
        ("hbm2_2000", "refresh_count", {"refresh": "per_bank"}, 51.3, (50.3, 52.3)),
        ("hbm2_2000", "loop_p999", {"refresh": "per_bank", "gap": 0}, None, (None, 195)),
        ("hbm2_2000", "loop_p999", {"refresh": "per_bank", "gap": 400}, None, (None, 52)),
        ("hbm2_2000", "near_loop_p99", {"traffic": "mover", "refresh": "per_bank"}, None, (None, 100)),
        (
            "hbm2_2000",
            "near_loop_p99",
            {"traffic": "mover", "refresh": "per_bank", "walks": 16},
            None,
            None,
        ),
        ("hbm3_6400", "near_loop_p99", {"traffic": "mover", "refresh": "per_bank"}, None, None),
        ("hbm3_6400", "random_read", {"refresh": "none", "outstanding": 96}, 17.1, (16.7, None)),
        ("hbm3_6400", "read_latency", {"row": "closed"}, 53, (None, 55)),
        ("hbm3_6400", "random_read", {"refresh": "none", "outstanding": 64}, 17.1, None),
        ("hbm2_2000", "near_loop_p999", {"traffic": "mover", "refresh": "per_bank"}, None, None),
        ("hbm2_2000", "random_mixed", {"refresh": "all_bank", "outstanding": 64}, 14.9, None),
    ],
)
def test_the_targets_are_those_of_the_issue(
    preset: str,
    name: str,
    where: dict[str, str | int],
    bound: float | None,
    limits: tuple[float | None, float | None] | None,
) -> None:
    target = target_of(PRESETS[preset], name, where, bound)
    if limits is None:
        assert target is None
    else:
        assert target is not None
        assert (target.at_least, target.at_most) == pytest.approx(limits, nan_ok=True)


def test_presets_with_longer_latencies_have_more_outstanding() -> None:
    assert [outstanding_requests(design_for(name)) for name in PRESETS_WITH_TARGETS] == [64, 96]


# -- Loops and refresh ------------------------------------------------------------------------------------


def test_a_loop_is_caused_by_refresh_of_its_bank_while_it_lasts() -> None:
    address_map = AddressMap(design_for("hbm2_2000").memory)
    commands = np.array(
        [
            # cycle, bus, op, pseudo channel, bank, row or column
            (1000, ROW_BUS, RowOp.REFRESH_ALL.value, 1, 0, 0),
            (5000, ROW_BUS, RowOp.REFRESH_BANK.value, 0, 3, 0),
            (8000, COLUMN_BUS, ColumnOp.WRITE_AUTO.value, 0, 3, 0),
        ],
        dtype=COMMAND_RECORD,
    )
    rfc, rfcpb = HBM2["tRFC"], HBM2["tRFCpb"]
    cases = [
        # pseudo channel, bank, request, next request, caused by refresh
        (1, 7, 950, 1000, False),
        (1, 7, 950, 1001, True),
        (1, 7, 1000 + rfc - 1, 1000 + rfc + 20, True),
        (1, 7, 1000 + rfc, 1000 + rfc + 20, False),
        (0, 7, 1000, 1040, False),
        (0, 3, 4990, 5010, True),
        (0, 3, 5000 + rfcpb - 1, 5000 + rfcpb + 9, True),
        (0, 3, 5000 + rfcpb, 5000 + rfcpb + 9, False),
        (0, 4, 4990, 5010, False),
        (1, 3, 4990, 5010, False),
        (0, 3, 7990, 8010, False),
    ]
    begin = np.array([case[2] for case in cases])
    nobody = np.zeros(len(cases), dtype=np.int64)
    found = Loops(
        cycles=np.array([case[3] for case in cases]) - begin,
        requested=begin,
        address=np.array([address_map.encode(Place(case[0], case[1], 9, 2)) for case in cases]),
        context=nobody,
        batch=nobody,
        walk=nobody,
    )
    assert refresh_caused(found, commands, HBM2, address_map).tolist() == [case[4] for case in cases]


# -- The page ---------------------------------------------------------------------------------------------


def test_the_page_has_every_figure_with_its_target() -> None:
    design = [Figure(name="loop | near", value=3, unit="cycles", target="at most 6", reached=True)]
    text = figures_page(
        design, [(HBM2, [READ, LATENCY]), (PRESETS["hbm3_6400"], [LOOP])], (HBM2, [HOPS]), [], []
    )
    lines = text.splitlines()
    assert r"| loop \| near | 3 cycles | at most 6 | reached |" in lines
    assert (
        "| random_read | refresh none, outstanding 64 | 12 GB/s | 16 | 75.0% | at least 15.2 | MISSED |"
        in lines
    )
    assert "## The memory: hbm3_6400" in lines and "## The walkers: hbm2_2000" in lines
    widths = {line.count("|") - line.count(r"\|") for line in lines if line.startswith("|")}
    assert widths == {5, 8}


# -- The command line -------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Measure]:
    """What `memory_measures` gives; tests fill it. Nothing is simulated."""
    result: list[Measure] = []

    def memory_measures(config: Any, *, announce: Any, progress: Any) -> list[Measure]:
        announce("compiling")
        progress("measuring", 1, 2)
        return result

    monkeypatch.setattr("firmware_py.bench.memory.memory_measures", memory_measures)
    return result


def test_figures_go_to_table_and_document(monkeypatch, capsys, tmp_path, measured) -> None:
    measured += [LATENCY, LOOP]
    out = tmp_path / "m.json"
    status, text, errors = clew(monkeypatch, capsys, "bench", "memory", "--json", out)
    assert (status, errors) == (0, "")
    assert "read_latency" in text and "\x1b" not in text
    assert json.loads(out.read_text())["preset"] == "hbm2_2000"
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_a_missed_target_is_exit_status_one_with_a_document(monkeypatch, capsys, tmp_path, measured) -> None:
    measured.append(READ)
    out = tmp_path / "m.json"
    status, text, _ = clew(monkeypatch, capsys, "bench", "memory", "--preset", "hbm3_6400", "--json", out)
    assert status == 1 and "MISSED" in text
    assert json.loads(out.read_text())["preset"] == "hbm3_6400"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["memory", "--preset", "sram"], "unknown memory preset 'sram': expected one of hbm2_2000"),
        (["memory", "--preset", "absent.toml"], "absent.toml: No such file or directory"),
        (["memory", "--json", "absent/m.json"], "absent/m.json: expected its folder to exist"),
        (["memory", "--json", "."], "."),
        (["memory", "trace.jsonl"], "unexpected extra argument"),
        (["all", "--preset", "sram", "--out", "page.md"], "unknown memory preset 'sram'"),
        (["all"], "Missing option"),
        (["speed"], "No such command 'speed'"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_status_two(
    monkeypatch, capsys, tmp_path, measured, arguments, message
) -> None:
    monkeypatch.chdir(tmp_path)
    status, text, errors = clew(monkeypatch, capsys, "bench", *arguments)
    assert (status, text) == (2, "")
    assert errors.startswith("clew: ") and errors.count("\n") == 1 and message in errors
    assert not list(tmp_path.iterdir())


def test_a_faulty_memory_is_exit_status_one(monkeypatch, capsys, tmp_path) -> None:
    def memory_measures(config: Any, **_: Any) -> list[Measure]:
        raise InternalError("the memory is at fault: tRP")

    monkeypatch.setattr("firmware_py.bench.memory.memory_measures", memory_measures)
    out = tmp_path / "m.json"
    status, text, errors = clew(monkeypatch, capsys, "bench", "memory", "--json", out)
    assert (status, text, errors) == (1, "", "clew: the memory is at fault: tRP\n")
    assert not out.exists()


def test_every_bench_goes_to_one_page(monkeypatch, capsys, tmp_path, measured) -> None:
    walks: list[Measure] = []
    figure = Figure(name="speed", value=7, unit="cycles/s", target="at least 5", reached=True)
    monkeypatch.setattr("firmware_py.bench.design.figures", lambda *_, **__: [figure])
    monkeypatch.setattr("firmware_py.bench.walker.walker_measures", lambda **_: walks)
    speeds = [Measure(name="walks_per_second", where={}, value=9, unit="walks/s", target=Target(at_least=8))]
    monkeypatch.setattr("firmware_py.bench.simulation.simulation_measures", lambda **_: speeds)
    board = Measure(name="fmax_mhz", where={"board": "b"}, value=51, unit="MHz", target=Target(at_least=50))
    monkeypatch.setattr("firmware_py.bench.fpga.fpga_measures", lambda **_: [board])
    measured.append(LATENCY)
    page = tmp_path / "build" / "bench.md"
    status, text, errors = clew(monkeypatch, capsys, "bench", "all", "--out", page)
    assert (status, errors) == (0, "") and "speed" in text and "hbm3_6400" in text
    assert page.read_text().count("## The memory: ") == len(PRESETS_WITH_TARGETS)
    assert "| fmax_mhz | board b | 51 MHz |" in page.read_text()
    walks.append(HOPS)
    assert clew(monkeypatch, capsys, "bench", "all", "--out", page)[0] == 1
    assert "| hops_per_ns | contexts 16, refresh none |" in page.read_text()
    walks.clear()
    speeds[0] = replace(speeds[0], value=7)
    assert clew(monkeypatch, capsys, "bench", "all", "--out", page)[0] == 1
    assert "| walks_per_second |" in page.read_text()
    speeds.clear()
    measured.append(READ)
    assert clew(monkeypatch, capsys, "bench", "all", "--out", page)[0] == 1
