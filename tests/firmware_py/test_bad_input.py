"""Bad input for every command that reads files: one clear line, exit status 2, nothing half-written."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_py import cli
from firmware_py.machine import Machine
from hdl.config import named_config
from sim.trace.importers import import_file
from sim.trace.limits import RECORD_BYTES_MAX
from sim.trace.schema import write_traces

from .fake_accelerator import FakeAccelerator
from .test_replay import beam, depth_first

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAccelerator:
    accelerator = FakeAccelerator(named_config("simulation"))

    @contextmanager
    def open_machine(config: object, announce: object) -> Iterator[Machine]:
        yield Machine(driver=accelerator, monitor=accelerator)

    monkeypatch.setattr("firmware_py.machine.compiled_machine", open_machine)
    return accelerator


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    write_traces(path, [depth_first("a"), beam()])
    return path


Clew = Callable[..., tuple[int, str, str]]


@pytest.fixture
def clew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Clew:
    """Runs one command; gives exit status, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


# -- What there is instead of a trace ----------------------------------------------------------------

Maker = Callable[[Path], Path]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _empty(path: Path) -> Path:
    path.touch()
    return path


def _loop(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _device(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def _content(text: str) -> Maker:
    def make(path: Path) -> Path:
        path.write_text(text)
        return path

    return make


def _mixed(path: Path) -> Path:
    write_traces(path, [depth_first("a")])
    with path.open("a") as file:
        file.write('{"search_path": "Current State: 5:[2, 3]", "search_type": "dfs"}\n')
    return path


def _endless(begin: str) -> Maker:
    """A line of 200 MB, most of it a hole in the file."""

    def make(path: Path) -> Path:
        with path.open("w") as file:
            file.write(begin)
            file.truncate(200_000_000)
        return path

    return make


OWN = '{"event": "begin", "trace": "'
SOS = '{"search_type": "dfs", "search_path": "'
NODE = '{"tree": {"size": 1, "tree": {"node_type": "'
RECORD_LIMIT = f"at most {RECORD_BYTES_MAX >> 20} MiB in one record, found"

BAD: dict[str, tuple[Maker, str]] = {
    "folder": (_folder, "Is a directory"),
    "missing": (lambda path: path, "No such file or directory"),
    "empty file": (_empty, "content: expected a trace, found an empty file"),
    "blank file": (_content(" \n\n"), "content: expected a trace, found an empty file"),
    "symbolic link to itself": (_loop, "Too many levels of symbolic links"),
    "pipe": (_pipe, "content: expected a regular file, found a pipe or a device"),
    "endless device": (_device, "content: expected a regular file, found a pipe or a device"),
    "cut JSON": (_content('[[{"env_step": 1, "actions": ["a"'), "record 0: JSON: expected a complete value"),
    "cut line": (_content(OWN), "line 1: JSON: expected one complete JSON object"),
    "two kinds": (_mixed, "event: expected a key `event`, found the keys ['search_path', 'search_type']"),
    "long line, own": (_endless(OWN), f"line 1: line: expected {RECORD_LIMIT} a longer line"),
    "long line, sos": (_endless(SOS), f"line 1: line: expected {RECORD_LIMIT} a longer line"),
    "long record": (_endless(NODE), f"record 0: content: expected {RECORD_LIMIT} more"),
    "zeros in a list": (
        _endless('[[{"env_step": 1, "actions": ["'),
        "record 0: JSON: expected a value, found Invalid control character",
    ),
}

COMMANDS: dict[str, tuple[str, ...]] = {
    "trace info": ("trace", "info", "BAD"),
    "trace info, the second": ("trace", "info", "GOOD", "BAD"),
    "trace import": ("trace", "import", "GOOD", "BAD", "-o", "OUT"),
    "trace validate": ("trace", "validate", "BAD"),
    "compare": ("compare", "GOOD", "BAD", "--json", "OUT"),
    "crossover": ("crossover", "BAD", "--json", "OUT", "--concurrent", "1"),
    "bench walker": ("bench", "walker", "BAD", "--json", "OUT"),
    "bench design": ("bench", "design", "BAD", "--json", "OUT"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_line(kind: str, command: str, clew: Clew, good: Path, tmp_path: Path) -> None:
    make, message = BAD[kind]
    bad, out = make(tmp_path / "bad"), tmp_path / "out"
    names = {"BAD": bad, "GOOD": good, "OUT": out}
    status, text, errors = clew(*(names.get(word, word) for word in COMMANDS[command]))
    assert (status, text) == (2, "")
    assert errors.count("\n") == 1 and errors.startswith(f"clew: {bad}: ") and message in errors
    assert len(errors) < len(str(bad)) + 300
    assert {path.name for path in tmp_path.iterdir()} <= {"bad", "good.jsonl"}


@pytest.mark.parametrize("kind", [kind for kind in BAD if "long" in kind])
def test_a_record_without_end_is_not_kept(kind: str, clew: Clew, tmp_path: Path) -> None:
    bad = BAD[kind][0](tmp_path / "bad")
    tracemalloc.start()
    status, _, _ = clew("trace", "info", bad)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert status == 2
    assert peak < 4 * RECORD_BYTES_MAX


def test_a_list_element_without_end_is_refused(clew: Clew, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text('[[{"env_step": 1, "actions": ["' + "x" * (RECORD_BYTES_MAX + (1 << 20)))
    status, _, errors = clew("trace", "info", bad)
    assert (status, errors) == (2, f"clew: {bad}: record 0: JSON: expected {RECORD_LIMIT} more\n")


def test_a_file_that_vanishes_is_named(good: Path, tmp_path: Path) -> None:
    traces = import_file(good)
    good.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(traces)
    assert caught.value.filename == str(good)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("assemble", "BAD"), "program.txt"),
        (("disassemble", "BAD"), "program.txt"),
        (("compare", "GOOD", "--memory", "BAD", "--json", "OUT"), "memory.toml"),
        (("bench", "memory", "--preset", "BAD", "--json", "OUT"), "memory.toml"),
    ],
)
@pytest.mark.parametrize(
    "kind", ["folder", "missing", "symbolic link to itself", "pipe", "endless device", "long"]
)
def test_a_text_file_that_is_none_is_one_line(
    kind: str, command: tuple[str, ...], name: str, clew: Clew, good: Path, tmp_path: Path
) -> None:
    make = _endless("") if kind == "long" else BAD[kind][0]
    bad = make(tmp_path / name)
    names = {"BAD": bad, "GOOD": good, "OUT": tmp_path / "out"}
    status, text, errors = clew(*(names.get(word, word) for word in command))
    assert (status, text) == (2, "")
    assert errors.count("\n") == 1 and errors.startswith(f"clew: {bad}: ")
    assert not (tmp_path / "out").exists()


# -- Traces that ask nothing -------------------------------------------------------------------------


def test_traces_that_ask_nothing_are_told_what_they_hold(clew: Clew, tmp_path: Path) -> None:
    solution = {"id": "own", "generator": "none", "problem": "?", "steps": ["a", "b"], "label": -1}
    path, out = tmp_path / "linear", tmp_path / "out"
    path.write_text(json.dumps(solution | {"final_answer_correct": True}) + "\n")
    for command in (("compare", path), ("crossover", path)):
        status, text, errors = clew(*command, "--json", out)
        assert (status, text) == (2, "")
        assert errors == (
            f"clew: {path}: 1 problem (processbench: 2 eval, 3 node) that start no walk, so there is "
            "nothing to compare: expected a backtrack, jump, select or backup; `clew trace info` says what "
            "the kind does not record\n"
        )
    assert not out.exists()


def test_traces_that_ask_nothing_may_be_beside_others(clew: Clew, good: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "requests", tmp_path / "out"
    request = {"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0, 1]}
    path.write_text(json.dumps(request) + "\n")
    assert clew("compare", path, good, "--json", out)[0] == 0
    requests, searches = json.loads(out.read_text())["traces"]
    assert (requests["problems"], requests["nodes"], requests["walks"]) == (1, 0, 0)
    assert searches["walks"] > 0 and searches["verdicts_wrong"] == 0


# -- Output that cannot be written -------------------------------------------------------------------


@contextmanager
def _small_disk(limit: int) -> Iterator[None]:
    """No file may become larger than `limit` bytes: writing fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("trace", "import", "GOOD", "-o", "OUT"), "out.jsonl"),
        (("compare", "GOOD", "--json", "OUT"), "out.json"),
        (("crossover", "GOOD", "--concurrent", "1", "--json", "OUT"), "out.json"),
        (("crossover", "GOOD", "--concurrent", "1", "--plot", "OUT"), "out.png"),
        (("registers", "-o", "OUT"), "out.md"),
    ],
)
def test_a_full_disk_leaves_the_earlier_result(
    command: tuple[str, ...], name: str, clew: Clew, good: Path, tmp_path: Path
) -> None:
    out = tmp_path / name
    out.write_text("earlier")
    names = {"GOOD": good, "OUT": out}
    importlib.import_module("matplotlib.font_manager")  # keeps a file of its own the first time
    with _small_disk(64):
        status, text, errors = clew(*(names.get(word, word) for word in command))
    assert (status, text, errors) == (2, "", f"clew: {out}: File too large\n")
    assert out.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.jsonl", name]


def _process(*arguments: object, stdout: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "firmware_py.cli", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_full_standard_output_is_one_line(good: Path) -> None:
    with open("/dev/full", "w") as full:
        run = _process("trace", "info", good, stdout=full.fileno())
        _, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (2, "clew: standard output: No space left on device\n")


def test_a_reader_that_goes_away_is_no_error(good: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = _process("trace", "info", good, stdout=writing)
    os.close(writing)
    _, errors = run.communicate(timeout=120)
    assert (run.returncode, errors) == (1, "")


# -- An interrupt in the middle ----------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare", "crossover"])
def test_an_interrupt_leaves_the_earlier_result(
    command: str,
    clew: Clew,
    fake: FakeAccelerator,
    good: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out.json"
    out.write_text("earlier")
    runs = 0
    run_batch = fake.run_batch

    def interrupted(atoms: object) -> object:
        nonlocal runs
        runs += 1
        if runs == 2:
            raise KeyboardInterrupt
        return run_batch(atoms)

    monkeypatch.setattr(fake, "run_batch", interrupted)
    status, text, errors = clew(command, good, "--json", out)
    assert (status, text, errors) == (128 + signal.SIGINT, "", "")
    assert runs == 2 and out.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.jsonl", "out.json"]
