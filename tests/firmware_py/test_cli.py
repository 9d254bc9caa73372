"""The command line: exit statuses, one line for every bad input, nothing left behind, quiet in a pipe."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_py import cli
from firmware_py.machine import Machine
from hdl.config import named_config
from hdl.registers import markdown
from sim.trace.errors import printable
from sim.trace.schema import TraceWriter, write_traces

from .fake_accelerator import FakeAccelerator
from .test_replay import beam, depth_first

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fake(monkeypatch):
    accelerator = FakeAccelerator(named_config("simulation"))

    @contextmanager
    def open_machine(config, announce):
        announce("compiling")
        yield Machine(driver=accelerator, monitor=accelerator)

    monkeypatch.setattr("firmware_py.machine.compiled_machine", open_machine)
    return accelerator


@pytest.fixture
def traces(tmp_path):
    path = tmp_path / "t.jsonl"
    write_traces(path, [depth_first("a"), beam()])
    return path


def clew(monkeypatch, capsys, *arguments):
    """Exit status, standard output and standard error of one command."""
    monkeypatch.setattr(sys, "argv", ["clew", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    captured = capsys.readouterr()
    return caught.value.code or 0, captured.out, captured.err


def test_compare_prints_the_table_and_writes_the_document(monkeypatch, capsys, fake, traces, tmp_path):
    out = tmp_path / "out.json"
    status, text, errors = clew(monkeypatch, capsys, "compare", traces, "--json", out, "--concurrent", 2)
    assert (status, errors) == (0, "")
    assert "walk latency" in text and "\x1b" not in text
    assert json.loads(out.read_text())["concurrent"] == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.json", "t.jsonl"]


def test_a_wrong_verdict_is_exit_status_one_with_a_line_and_a_document(
    monkeypatch, capsys, fake, traces, tmp_path
):
    fake.bad_command = True
    out = tmp_path / "out.json"
    status, text, _ = clew(monkeypatch, capsys, "compare", traces, "--json", out)
    assert status == 1
    assert text.splitlines()[-1].startswith("far: ")
    assert json.loads(out.read_text())["violations"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "sram"], "unknown memory preset 'sram': expected one of hbm2_2000"),
        (["--memory", "absent.toml"], "absent.toml: No such file or directory"),
        (["--memory", "pyproject.toml"], "pyproject.toml: unknown key build-system: expected one of name, "),
        (["--far", "moon"], "unknown far preset 'moon': expected one of seed_conventional, v100_hbm2"),
        (["--far", "seed_near_memory"], "was measured beside the memory"),
        (
            ["--near", "v100_hbm2"],
            "near preset 'v100_hbm2' was measured across a path: expected one of u280_",
        ),
        (["--near", "sun"], "unknown near preset 'sun': expected one of u280_hbm_axi_hit"),
        (["--far-help", "luck"], "unknown far help 'luck': expected cache=NAME[:SIZE], stack or stream"),
        (["--far-help", "stack=2"], "unknown far help 'stack=2'"),
        (["--far-help", "stack,stack"], "--far-help names 'stack' twice"),
        (["--far-help", "cache=mine"], "unknown far cache 'mine': expected one of v100_l2, a100_l2"),
        (["--far-help", "cache=v100_l2:3"], "size '3': expected a number with B, KiB or MiB behind it, or 0"),
        (["--far-help", "cache=v100_l2:33KiB"], "a cache of 33KiB: expected a number of 32-byte lines"),
        (["--far-help", "cache=v100_l2:128MiB"], "has 128MiB: expected at most 64MiB"),
        (["--far-help", "cache=mi300x_infinity_cache"], "mi300x_infinity_cache:64MiB takes its hit latency"),
        (["--far-help", "stack", "--program", "climb_compressed"], "expected --program climb"),
        (["--far", "gh200_hbm3"], "was measured on hbm3_6400: expected one that fits hbm2_2000"),
        (["--concurrent", "10001"], "--concurrent is 10001: expected 1 to 10000"),
        (["--concurrent", "0"], "--concurrent is 0: expected 1 to 10000"),
        (["--layout", "spiral"], "unknown layout 'spiral': expected one of creation, siblings, path"),
        (["--program", "jump"], "unknown program 'jump': expected one of climb, climb_compressed"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_status_two(
    monkeypatch, capsys, fake, traces, tmp_path, arguments, message
):
    out = tmp_path / "out.json"
    status, text, errors = clew(monkeypatch, capsys, "compare", traces, "--json", out, *arguments)
    assert (status, text) == (2, "")
    assert len(errors.splitlines()) == 1 and errors.startswith("clew: ") and message in errors
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.jsonl"]
    assert fake.batches == []


def _begin(**more):
    return json.dumps({"event": "begin", "version": 1, "trace": "t", "algorithm": "dfs"} | more)


def _event(name, **fields):
    return json.dumps({"event": name} | fields)


ROOT_NODE = _event("node", id=0, parents=[], depth=0)
END = _event("end", status="unknown")

BAD_FILES = {
    "empty": ("", "content: expected a trace, found an empty file"),
    "foreign": ("name,age\n", "content: expected one of the known kinds"),
    "truncated": (f"{_begin()}\n{ROOT_NODE}\n", "line 3: event: expected an `end` event"),
    "cut in a line": (f"{_begin()}\n{ROOT_NODE[:20]}", "line 2: JSON: expected one complete JSON object"),
    "cycle": (
        f"{_begin()}\n{ROOT_NODE}\n{_event('node', id=1, parents=[1], depth=1)}\n{END}\n",
        "line 3: node.parents[0]: expected an id below 1",
    ),
    "id before its node": (
        f"{_begin()}\n{ROOT_NODE}\n{_event('eval', id=4, score=1.0)}\n{END}\n",
        "line 3: eval.id: expected the id of a node before it",
    ),
    "score that is NaN": (
        f"{_begin()}\n{ROOT_NODE}\n{_event('eval', id=0, score=float('nan'))}\n{END}\n",
        "line 3: eval.score: expected a finite number",
    ),
    "empty trace": (f"{_begin()}\n{END}\n", "line 2: event: expected at least one `node`"),
    "field overflow": (
        f"{_begin()}\n{_event('node', id=0, parents=[], depth=0, state_bytes=1 << 40)}\n{END}\n",
        "line 2: node.state_bytes: expected 0 to ",
    ),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_one_line_that_names_it_and_exit_status_two(monkeypatch, capsys, fake, tmp_path, kind):
    content, message = BAD_FILES[kind]
    path, out = tmp_path / "bad.jsonl", tmp_path / "out.json"
    path.write_text(content)
    status, text, errors = clew(monkeypatch, capsys, "compare", path, "--json", out)
    assert (status, text) == (2, "")
    assert len(errors.splitlines()) == 1 and str(path) in errors and message in errors
    assert not out.exists() and fake.batches == []


def test_a_list_longer_than_the_completion_ring_names_file_trace_event(monkeypatch, capsys, fake, tmp_path):
    path = tmp_path / "wide.jsonl"
    lines = [_begin(), ROOT_NODE]
    lines += [_event("node", id=index, parents=[0], depth=1) for index in range(1, 701)]
    everyone = list(range(1, 701))
    lines += [_event("select", candidates=everyone, chosen=everyone), END]
    path.write_text("\n".join(lines) + "\n")
    status, _, errors = clew(monkeypatch, capsys, "compare", path)
    assert status == 2
    assert errors == (
        f"clew: {path}: trace t: event 701 (select): walk writes 701 completion records: "
        "expected at most 512, the completion ring's size\n"
    )


def test_a_file_that_is_not_there_is_one_line(monkeypatch, capsys, fake, tmp_path):
    status, _, errors = clew(monkeypatch, capsys, "compare", tmp_path / "no.json")
    assert (status, errors) == (2, f"clew: {tmp_path / 'no.json'}: No such file or directory\n")


def test_a_folder_that_is_not_there_is_told_before_anything_runs(monkeypatch, capsys, fake, traces, tmp_path):
    out = tmp_path / "nowhere" / "out.json"
    status, _, errors = clew(monkeypatch, capsys, "compare", traces, "--json", out)
    assert (status, errors) == (2, f"clew: {out}: expected its folder to exist\n")
    assert fake.batches == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["trace", "nonsense"], "No such command 'nonsense'"),
        (["compare"], "Missing argument 'files'"),
        (["compare", "f", "--nonsense"], "No such option: --nonsense"),
        (["compare", "f", "--memory"], "Option '--memory' requires an argument"),
        (["compare", "f", "--concurrent", "abc"], "Invalid value for '--concurrent'"),
        (["compare", "f", "--concurrent", "1.5"], "Invalid value for '--concurrent'"),
        (["registers", "extra"], "Got unexpected extra argument(s) (extra)"),
        (["verilog"], "Missing option '-o' / '--out'"),
    ],
)
def test_a_fault_of_usage_is_one_line_and_exit_status_two(monkeypatch, capsys, arguments, message):
    status, text, errors = clew(monkeypatch, capsys, *arguments)
    assert (status, text) == (2, "")
    assert errors.startswith(f"clew: {message}") and errors.endswith(": see --help\n")
    assert errors.count("\n") == 1


def test_no_command_is_answered_with_help(monkeypatch, capsys):
    status, text, errors = clew(monkeypatch, capsys)
    assert (status, text) == (2, "") and errors.startswith("Usage: ") and "compare" in errors


@pytest.mark.parametrize(
    "out", ["", ".", "folder", "pipe", "t.jsonl", "same.jsonl", "t.jsonl/out.json", "x" * 300]
)
def test_a_document_that_cannot_be_written_is_told_before_anything_runs(
    monkeypatch, capsys, fake, traces, tmp_path, out
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.link(traces, tmp_path / "same.jsonl")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    content = traces.read_bytes()
    for command in (("compare", traces), ("bench", "design", traces)):
        status, text, errors = clew(monkeypatch, capsys, *command, "--json", out)
        assert (status, text) == (2, "")
        assert errors.startswith(f"clew: {out or '.'}: ") and errors.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert traces.read_bytes() == content and fake.batches == []


def test_a_document_goes_where_a_link_points(monkeypatch, capsys, fake, traces, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    assert clew(monkeypatch, capsys, "compare", traces, "--json", tmp_path / "link.json")[0] == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text())["schema"] == "clew.compare/1"


@pytest.mark.parametrize(
    "arguments", [["--far", "moon"], ["--concurrent", "10001"], ["--layout", "x"], ["--json", "no/out.json"]]
)
def test_the_demonstration_searches_only_with_good_options(monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    status, _, errors = clew(monkeypatch, capsys, "demo", "--out", "traces", *arguments)
    assert status == 2 and errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["plain", "\ud800", "caf\u00e9 \u2248", "a\x1b[31m\nb"])
def test_a_lying_trace_is_told_with_what_it_claims(monkeypatch, capsys, fake, tmp_path, name):
    path, out = tmp_path / "lie.jsonl", tmp_path / "out.json"
    lines = [
        _begin(trace=name),
        ROOT_NODE,
        _event("node", id=1, parents=[0], depth=1),
        _event("node", id=2, parents=[1], depth=2),
        _event("expand", id=1, untried=1, untried_source="declared"),
        _event("backtrack", **{"from": 2, "to": 0}, untried_source="declared"),
        END,
    ]
    path.write_text("\n".join(lines) + "\n")
    status, text, errors = clew(monkeypatch, capsys, "compare", path, "--json", out)
    assert (status, errors) == (1, "")
    shown = printable(name)
    assert text.splitlines()[-1] == (
        f"far: 1 of 1 verdicts are wrong; the first: {path}: trace {shown}: event 4 (backtrack): "
        "expected an end at node 0, found DONE at node 1 after 1 reads, r0 0x2; "
        "the golden interpreter finds the same"
    )
    assert json.loads(out.read_text())["traces"][0]["verdicts_wrong"] == 1


def test_registers_prints_the_page(monkeypatch, capsys, tmp_path):
    assert clew(monkeypatch, capsys, "registers") == (0, markdown(), "")
    page = tmp_path / "registers.md"
    assert clew(monkeypatch, capsys, "registers", "-o", page)[0] == 0
    assert page.read_text() == markdown()


def test_an_unknown_configuration_is_refused(monkeypatch, capsys, tmp_path):
    for options, expected in (
        (("--memory", "ddr"), "unknown memory end 'ddr': expected one of model, bus, axi4"),
        (
            ("--channels", "3"),
            "'default': memory.channels is 3: expected a power of two up to 16",
        ),
        (
            ("--memory", "axi4", "--config", "testbench"),
            "configuration 'testbench': checker is True: expected False with memory.end 'axi4'",
        ),
    ):
        status, _, errors = clew(monkeypatch, capsys, "verilog", "-o", tmp_path / "v", *options)
        assert status == 2
        assert expected in errors
    status, _, errors = clew(monkeypatch, capsys, "verilog", "-o", tmp_path / "v", "--config", "huge")
    assert status == 2
    assert errors.startswith("clew: unknown configuration 'huge': expected one of default, small, ")
    assert not (tmp_path / "v").exists()


def _process(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | options.pop("env", {})
    command = [sys.executable, "-m", "firmware_py.cli", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )


def test_a_file_name_that_no_encoding_has_is_escaped(traces, tmp_path):
    path = traces.rename(tmp_path / os.fsdecode(b"caf\xe9.jsonl"))
    run = _process("trace", "validate", path, tmp_path / os.fsdecode(b"\xff"))
    text, errors = run.communicate(timeout=120)
    assert run.returncode == 2
    assert text.startswith(f"{tmp_path}/caf\\udce9.jsonl: clew, ")
    assert errors == f"clew: {tmp_path}/\\udcff: No such file or directory\n"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 128 + signal.SIGINT), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_ends_an_import_quietly_and_leaves_nothing(tmp_path, number, status):
    source = tmp_path / "large.jsonl"
    nodes = (_event("node", id=index, parents=[0], depth=1) for index in range(1, 200_000))
    source.write_text("\n".join([_begin(), ROOT_NODE, *nodes, END]) + "\n")
    run = _process("trace", "import", source, "-o", tmp_path / "out.jsonl")
    while not list(tmp_path.glob(".out.jsonl.*.part")) and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(number)
    text, errors = run.communicate(timeout=120)
    assert (run.returncode, text, errors) == (status, "", "")
    assert list(tmp_path.iterdir()) == [source]


def test_a_signal_between_opening_a_file_and_writing_it_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, traces: Path
) -> None:
    opens = TraceWriter.__enter__

    def interrupted(writer: TraceWriter) -> TraceWriter:
        opens(writer)
        assert list(tmp_path.glob(".out.jsonl.*.part"))
        raise KeyboardInterrupt

    monkeypatch.setattr(TraceWriter, "__enter__", interrupted)
    out = tmp_path / "out.jsonl"
    assert clew(monkeypatch, capsys, "trace", "import", traces, "-o", out)[0] == 130
    assert list(tmp_path.glob(".*")) == []


def test_an_interrupt_while_modules_load_is_quiet(monkeypatch, capsys):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.__import__", interrupt)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    monkeypatch.undo()
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_the_command_runs_as_a_process_and_shows_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "firmware_py.cli", "compare", str(tmp_path / "no.json")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("clew: ") and "Traceback" not in done.stderr
