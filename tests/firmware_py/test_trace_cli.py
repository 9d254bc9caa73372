"""`clew trace`: import, info, validate, as a user runs them."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from firmware_py.cli import main
from sim.trace.schema import read_traces, write_traces
from tests.sim.trace.samples import shared, short_trace, write_json

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Run:
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def _clew(*arguments: str | Path) -> Run:
    """Run `clew trace` in this process, through the entry point of the command line."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["clew", "trace", *map(str, arguments)])
        try:
            main()
        except SystemExit as done:
            status = done.code or 0
    assert isinstance(status, int)
    return Run(status, out.getvalue(), err.getvalue())


def _good(path: Path, name: str = "good") -> Path:
    write_traces(path, [short_trace(name)])
    return path


def _crosswords(path: Path) -> Path:
    count, info = {"impossible": 0}, {"r_word": 0.0}
    records = [
        {"env_step": len(actions), "actions": actions, "count": count, "info": info}
        for actions in (["h1. a"], ["h1. a", "v1. b"], ["h2. c"])
    ]
    return write_json(path, [records, []])


def test_import_joins_kinds(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run = _clew("import", _good(tmp_path / "a"), _crosswords(tmp_path / "b"), "-o", out)
    assert (run.returncode, run.stderr) == (0, "")
    assert [trace.name for trace in read_traces(out)] == [
        "good",
        "tot_crosswords/0",
        "tot_crosswords/1",
    ]
    assert "problems   2 (1 empty, 1 exhausted)" in run.stdout
    assert "checked    1 climb" in run.stdout
    assert "climbs by  1 lookahead" in run.stdout


def test_import_keeps_names_unique(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    out = tmp_path / "out.jsonl"
    sources = [_good(tmp_path / "a.x"), _good(tmp_path / "b.x"), _good(tmp_path / "more" / "b.x")]
    assert _clew("import", *sources, "-o", out).returncode == 0
    assert [trace.name for trace in read_traces(out)] == ["good", "b/good", "b.2/good"]
    assert [trace.events for trace in read_traces(out)] == [short_trace()[1:-1]] * 3


def test_import_into_one_of_its_sources(tmp_path: Path) -> None:
    path = _good(tmp_path / "a")
    assert _clew("import", path, path, "-o", path).returncode == 0
    assert [trace.name for trace in read_traces(path)] == ["good", "a/good"]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ("content: expected a trace, found an empty file",)),
        ("id,score\n1,2\n", ("content: expected one of the known kinds (clew, tot_game24, ",)),
        ('{"event": "begin"}\n', ("line 1: begin.version: expected a value",)),
        ('[[{"env_step": 1, "actions": ["a"', ("record 0: JSON: expected a complete value",)),
    ],
)
def test_bad_input_leaves_no_output(tmp_path: Path, content: str, parts: tuple[str, ...]) -> None:
    bad = tmp_path / "bad"
    bad.write_text(content)
    good = _good(tmp_path / "good")
    run = _clew("import", good, bad, "-o", tmp_path / "out.jsonl")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith(f"clew: {bad}: ") and run.stderr.count("\n") == 1
    for part in parts:
        assert part in run.stderr
    assert sorted(tmp_path.iterdir()) == [bad, good]


def test_files_that_cannot_be_opened_are_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for arguments in (
        ("import", missing, "-o", tmp_path / "out"),
        ("info", missing),
        ("info", tmp_path),
        ("validate", missing),
        ("import", _good(tmp_path / "a"), "-o", tmp_path / "no" / "out"),
    ):
        run = _clew(*arguments)
        assert run.returncode == 2
        assert run.stderr.startswith("clew: ") and run.stderr.count("\n") == 1
        assert "Traceback" not in run.stderr


def test_info_in_words_and_json(tmp_path: Path) -> None:
    files = [_good(tmp_path / "a"), _crosswords(tmp_path / "b")]
    words = _clew("info", *files)
    assert (words.returncode, words.stderr) == (0, "")
    assert f"{files[0]}: clew\n" in words.stdout and f"{files[1]}: tot_crosswords\n" in words.stdout
    assert "not in it  token counts" in words.stdout
    run = _clew("info", *files, "--json")
    document = json.loads(run.stdout)
    assert (run.returncode, run.stderr) == (0, "")
    assert document["schema"] == "clew.trace-info/1"
    own, crosswords = document["files"]
    assert own == {
        "file": str(files[0]),
        "format": "clew",
        "problems": 1,
        "nodes": 5,
        "events": len(short_trace()),
        "by_event": Counter(event.name for event in short_trace()),
        "max_depth": 2,
        "statuses": {"exhausted": 1},
        "checked": {"climb": 2, "ancestor": 1, "select": 1, "backup": 1},
        "climbs_by_source": {"declared": 2},
        "unchecked": {},
        "remarks": {},
        "lacks": [],
    }
    assert (crosswords["problems"], crosswords["nodes"]) == (2, 5)
    assert crosswords["climbs_by_source"] == {"lookahead": 1}


def test_validate_reports_every_file(tmp_path: Path) -> None:
    good, bad, worse = _good(tmp_path / "good"), tmp_path / "bad", tmp_path / "worse"
    bad.write_bytes(good.read_bytes()[:-20])
    worse.write_text("?")
    assert _clew("validate", good).stdout == f"{good}: clew, 1 problems, 5 nodes\n"
    run = _clew("validate", bad, good, worse)
    assert run.returncode == 2
    assert run.stdout == f"{good}: clew, 1 problems, 5 nodes\n"
    first, second = run.stderr.splitlines()
    assert first.startswith(f"clew: {bad}: line 22: JSON: expected one complete JSON object")
    assert second.startswith(f"clew: {worse}: content: expected one of the known kinds")


def test_info_says_what_is_not_checked() -> None:
    run = _clew("info", shared("sos/sos_search_paths.jsonl"))
    assert "  unchecked  229: the source moves to a terminal that no single id names\n" in run.stdout
    assert "  climbs by  280 recomputed\n" in run.stdout


def test_usage_is_said_without_a_command() -> None:
    run = _clew("--help")
    assert run.returncode == 0
    for command in ("import", "info", "validate"):
        assert command in run.stdout


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Quiet in a pipe: no bar, no colour, the faults on standard error and the status that a shell sees."""
    good, bad = _good(tmp_path / "good"), tmp_path / "bad"
    bad.write_text("?")
    command = [sys.executable, "-m", "firmware_py.cli", "trace", "validate", str(good), str(bad)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 2
    assert run.stdout == f"{good}: clew, 1 problems, 5 nodes\n"
    assert run.stderr.count("\n") == 1 and "\x1b" not in run.stdout + run.stderr
