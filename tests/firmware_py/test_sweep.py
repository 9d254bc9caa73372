"""Sweeps without a simulation: the definition, the points, what is kept, what is reported."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet
import pytest
from distributed import Client

from firmware_py import cli
from firmware_py.errors import InputError
from firmware_py.machine import Machine
from firmware_py.sweep.definition import read_definition
from firmware_py.sweep.points import sweep_points
from firmware_py.sweep.run import prepare
from firmware_py.sweep.store import Store
from firmware_py.sweep.task import run_task
from hdl.config import DesignConfig, named_config
from hdl.memory import timing
from sim.trace.schema import write_traces
from sim.verilator import BuildError

from .fake_accelerator import FakeAccelerator
from .test_replay import beam, depth_first

TRACES = '[traces]\none = "t.jsonl"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_traces(tmp_path / "t.jsonl", [depth_first("a"), beam()])
    return tmp_path


def _write(folder: Path, text: str) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


# -- The definition --


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[traces", "expected TOML: "),
        ("tarces = 1", "tarces: unknown key: expected one of invalid, traces, axes"),
        ("", "traces: expected a table [traces] with at least one set"),
        ("traces = 3", "traces is 3: expected a table [traces]"),
        ('invalid = "maybe"\n' + TRACES, "invalid is 'maybe': expected one of error, skip"),
        ("[traces]\none = []", "traces.one is an empty list: expected at least one value"),
        ("[traces]\none = [3]", "traces.one holds 3: expected names or patterns of trace files"),
        ('[traces]\none = "no_*.jsonl"', "traces.one: no file matches 'no_*.jsonl': expected at least one"),
        ('[traces]\none = ["t.jsonl", "*.jsonl"]', "t.jsonl twice: expected it once"),
        (TRACES + "[axes]\nfra = 1", "axes.fra: unknown key: expected one of memory, channels, "),
        (TRACES + '[axes]\nfar = "moon"', "axes.far: unknown far preset 'moon': expected one of seed_"),
        (
            TRACES + '[axes]\nnear = "v100_hbm2"',
            "axes.near: unknown near preset 'v100_hbm2': expected one of m",
        ),
        (TRACES + '[axes]\nmemory = ["sram"]', "axes.memory: unknown memory preset 'sram': expected one of"),
        (TRACES + '[axes]\nfar_help = "luck"', "axes.far_help: unknown far help 'luck'"),
        (TRACES + '[axes]\nlayout = "spiral"', "axes.layout: unknown layout 'spiral': expected one of crea"),
        (TRACES + '[axes]\nprogram = "jump"', "axes.program: unknown program 'jump'"),
        (TRACES + '[axes]\nrefresh = "never"', "axes.refresh: unknown refresh 'never'"),
        (TRACES + '[axes]\nplacement = "best"', "axes.placement: unknown placement 'best'"),
        (TRACES + "[axes]\nconcurrent = [1, 0]", "axes.concurrent: --concurrent is 0: expected 1 to 10000"),
        (TRACES + "[axes]\ncontexts = 65", "axes.contexts: walker.contexts is 65: expected 1 to 64"),
        (TRACES + "[axes]\nstages = 7", "axes.stages: walker.execute_stages is 7: expected 1 to 6"),
        (TRACES + "[axes]\nclock_ratio = 3", "axes.clock_ratio: clock_ratio is 3: expected 1, 2 or 4"),
        (TRACES + "[axes]\nchannels = 3", "axes.channels: memory.channels is 3: expected a power of two"),
        (TRACES + "[axes]\necc = 1", "axes.ecc holds 1: expected true or false, or a list of them"),
        (TRACES + "[axes]\nstages = true", "axes.stages holds True: expected a whole number"),
        (TRACES + "[axes]\nstages = [1, 1]", "axes.stages holds 1 twice: expected it once"),
        (TRACES + "[axes]\nstages = []", "axes.stages is an empty list: expected at least one value"),
    ],
)
def test_a_bad_definition_is_one_line_that_names_file_and_key(folder: Path, text: str, message: str) -> None:
    path = _write(folder, text)
    with pytest.raises(InputError) as caught:
        read_definition(path)
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)


def test_a_definition_in_another_encoding_is_refused(folder: Path) -> None:
    path = folder / "sweep.toml"
    path.write_bytes("invalid = 'é'".encode("latin-1"))
    with pytest.raises(InputError, match="expected text in UTF-8"):
        read_definition(path)


def test_the_points_are_the_cross_product_in_order(folder: Path) -> None:
    text = TRACES + 'two = ["t.jsonl"]\n[axes]\nstages = [1, 2]\nconcurrent = [1, 17]\necc = true\n'
    points = sweep_points(read_definition(_write(folder, text)))
    assert points.varying == ("traces", "stages", "concurrent")
    found = [
        (point.traces, point.design.stages, point.replay.concurrent, point.design.ecc)
        for point in points.points
    ]
    assert found == [
        (traces, stages, concurrent, True)
        for traces in ("one", "two")
        for stages in (1, 2)
        for concurrent in (1, 17)
    ]


CROSS = TRACES + '[axes]\nmemory = ["hbm2_2000", "hbm3_6400"]\nfar = ["v100_hbm2", "gh200_hbm3"]\n'


def test_a_combination_that_cannot_be_is_an_error_or_skipped_and_told(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        sweep_points(read_definition(_write(folder, CROSS)))
    assert "memory hbm2_2000, far gh200_hbm3: far preset 'gh200_hbm3' was measured on hbm3_6400" in str(
        caught.value
    )
    points = sweep_points(read_definition(_write(folder, f'invalid = "skip"\n{CROSS}')))
    assert [(point.design.memory, point.replay.far) for point in points.points] == [
        ("hbm2_2000", "v100_hbm2"),
        ("hbm3_6400", "gh200_hbm3"),
    ]
    assert [skipped.point.replay.far for skipped in points.skipped] == ["gh200_hbm3", "v100_hbm2"]


def test_skipping_leaves_something(folder: Path) -> None:
    text = f'invalid = "skip"\n{TRACES}[axes]\nfar = "gh200_hbm3"\n'
    with pytest.raises(InputError, match="every combination is invalid: expected a point; the first: far pr"):
        sweep_points(read_definition(_write(folder, text)))


# -- Tasks --


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAccelerator:
    """The machine of every task, except that logic at half the clock does not build."""
    accelerator = FakeAccelerator(named_config("simulation"))

    @contextmanager
    def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
        if config.clock_ratio == 2:
            raise BuildError("verilator ended with 1:\nand much more")
        yield Machine(driver=accelerator, monitor=accelerator)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("firmware_py.sweep.task.compiled_machine", open_machine)
    return accelerator


def test_a_key_is_made_of_contents(folder: Path) -> None:
    text = TRACES + 'two = "u.jsonl"\n'
    (folder / "u.jsonl").write_bytes((folder / "t.jsonl").read_bytes())
    first = prepare(read_definition(_write(folder, text)))
    assert first.keys[0] == first.keys[1]
    write_traces(folder / "u.jsonl", [beam()])
    changed = prepare(read_definition(_write(folder, text)))
    assert changed.keys[0] == first.keys[0] != changed.keys[1]
    keys = {first.keys[0]}
    for axes in ("stages = 2", "ecc = true", "refresh = 'none'", "concurrent = 2", "contexts = 17"):
        keys.update(prepare(read_definition(_write(folder, f"{TRACES}[axes]\n{axes}\n"))).keys)
    assert len(keys) == 6


def test_a_task_needs_no_file_of_the_one_who_asks(folder: Path, fake: FakeAccelerator) -> None:
    own = Path(timing.__file__).parent / "presets" / "hbm2_2000.toml"
    (folder / "mine.toml").write_text(own.read_text().replace('name = "hbm2_2000"', 'name = "mine"', 1))
    text = TRACES + '[axes]\nmemory = "mine.toml"\nfar = "cxl_memory"\n'
    prepared = prepare(read_definition(_write(folder, text)))
    for path in list(folder.iterdir()):
        path.unlink()
    outcome = run_task(prepared.tasks[0], prepared.files["one"], folder=folder)
    assert outcome.document is not None, outcome.error
    assert outcome.document["memory"] == "mine"
    assert outcome.document["traces"][0]["file"] == str(folder / "t.jsonl")
    assert list(folder.iterdir()) == []


def test_a_store_gives_back_what_was_put_and_nothing_of_what_is_broken(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert store.get("a") is None
    store.put("a", {"x": 1.5})
    assert store.get("a") == {"x": 1.5}
    (tmp_path / "store" / "b.json").write_text('{"cut')
    assert store.get("b") is None


# -- The command --


@pytest.fixture
def clew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> Callable[..., tuple[int, str, str]]:
    """Exit status, standard output and standard error of `clew sweep sweep.toml` in the folder."""

    @contextmanager
    def threads(workers: int | None = None) -> Iterator[Client]:
        with Client(
            processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as client:
            yield client

    monkeypatch.setattr("firmware_py.sweep.cluster.local_cluster", threads)
    monkeypatch.chdir(folder)

    def run(*options: str) -> tuple[int, str, str]:
        arguments = ["clew", "sweep", "sweep.toml", "-o", "out.parquet", "--store", "store", *options]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


Clew = Callable[..., tuple[int, str, str]]


def test_a_point_that_fails_stops_nothing_and_is_tried_again(
    clew: Clew, folder: Path, fake: FakeAccelerator
) -> None:
    _write(folder, TRACES + 'two = "t.jsonl"\n[axes]\nclock_ratio = [1, 2, 4]\n')
    status, text, errors = clew("--json", "out.json", "--plot", "out.png")
    assert (status, errors) == (1, "")
    assert "failed: traces two, clock_ratio 2: verilator ended with 1:" in text and "much more" not in text
    rows = pyarrow.parquet.read_table("out.parquet").to_pylist()
    assert [row["point.status"] for row in rows] == ["good", "failed", "good"] * 2
    assert [row["point.number"] for row in rows] == list(range(6))
    assert rows[1]["paths.near.walk_ns.mean"] is None and rows[1]["point.reason"] is not None
    assert rows[0]["point.address_map"] is None and rows[0]["paths.near.walk_ns.mean"] > 0
    points = json.loads(Path("out.json").read_text())["points"]
    assert [point["status"] for point in points] == [row["point.status"] for row in rows]
    assert points[1]["comparison"] is None
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    # Two sets of the same bytes are measured once.
    assert len(list(Path("store").iterdir())) == 2
    batches = len(fake.batches)
    assert clew()[0] == 1 and len(fake.batches) == batches


def test_names_are_those_of_the_one_who_asks(clew: Clew, folder: Path, fake: FakeAccelerator) -> None:
    _write(folder, TRACES)
    assert clew()[0] == 0
    Path("t.jsonl").rename("moved.jsonl")
    _write(folder, '[traces]\nother = "moved.jsonl"\n')
    batches = len(fake.batches)
    assert clew()[0] == 0 and len(fake.batches) == batches
    (row,) = pyarrow.parquet.read_table("out.parquet").to_pylist()
    assert (row["traces.0.file"], row["point.traces"]) == ("moved.jsonl", "other")


def test_a_wrong_point_is_exit_status_one_with_its_figures(
    clew: Clew, folder: Path, fake: FakeAccelerator
) -> None:
    fake.bad_command = True
    _write(folder, TRACES)
    status, text, _ = clew()
    assert status == 1 and "wrong: the point: " in text
    (row,) = pyarrow.parquet.read_table("out.parquet").to_pylist()
    assert row["point.status"] == "wrong" and row["violations"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plot", "out.gif"], "out.gif: expected a name that ends in one of .png, .svg, .pdf"),
        (["--json", "t.jsonl"], "t.jsonl: expected another file than the input t.jsonl"),
        (["--json", "sweep.toml"], "sweep.toml: expected another file than the input sweep.toml"),
        (["--json", "no/out.json"], "no/out.json: expected its folder to exist"),
        (["--workers", "0"], "Invalid value for '--workers'"),
        (["--workers", "1", "--scheduler", "tcp://127.0.0.1:1"], "expected it without --scheduler"),
    ],
)
def test_a_bad_option_is_one_line_and_exit_status_two(
    clew: Clew, folder: Path, options: list[str], message: str
) -> None:
    _write(folder, TRACES)
    status, text, errors = clew(*options)
    assert (status, text) == (2, "")
    assert errors.startswith("clew: ") and message in errors and errors.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == {"t.jsonl", "sweep.toml"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "t.jsonl: content: expected a trace"), (None, "t.jsonl: No such file or directory")],
)
def test_a_bad_trace_file_is_told_before_anything_runs(
    clew: Clew, folder: Path, content: bytes | None, message: str
) -> None:
    _write(folder, TRACES)
    if content is None:
        Path("t.jsonl").unlink()
    else:
        Path("t.jsonl").write_bytes(content)
    status, text, errors = clew()
    assert (status, text) == (2, "") and errors.startswith("clew: ") and message in errors
    assert not Path("out.parquet").exists() and not Path("store").exists()


def test_a_scheduler_that_does_not_answer_is_one_line(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firmware_py.sweep.cluster._PATIENCE", 1)
    _write(folder, TRACES)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        status, text, errors = clew("--scheduler", address)
        assert (status, text) == (2, "")
        assert errors.startswith(f"clew: --scheduler {address}: expected a Dask scheduler")
        assert errors.count("\n") == 1
