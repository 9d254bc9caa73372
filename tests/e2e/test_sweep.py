"""Sweeps on a real Dask scheduler with two worker processes: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from distributed import Client

from firmware_py.sweep.cluster import local_cluster, remote_cluster
from firmware_py.sweep.definition import read_definition
from firmware_py.sweep.report import sweep_rows
from firmware_py.sweep.run import Prepared, prepare, run_sweep
from firmware_py.sweep.store import Store
from firmware_py.sweep.task import run_task
from sim.trace.recorder import Recorder
from sim.trace.searches.game24 import Game24, beam

ROOT = Path(__file__).parents[2]
DEFINITION = """
[traces]
game24 = "game24.jsonl"
[axes]
far = ["v100_hbm2", "seed_conventional", "cxl_memory"]
concurrent = [1, 2]
"""
POINTS = 6


@dataclass(frozen=True, kw_only=True)
class Cluster:
    address: str
    workers: list[subprocess.Popen[bytes]]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers, processes all, which nobody starts again."""
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    python = [sys.executable, "-P", "-m"]
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    scheduler = [*python, "distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"]
    worker = [*python, "distributed.cli.dask_worker", *common, "--no-nanny", "--nthreads", "1"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [subprocess.Popen(scheduler, cwd=folder, env=_environment(), **quiet)]
    try:
        workers = [subprocess.Popen(worker, cwd=folder, env=_environment(), **quiet) for _ in range(2)]
        running += workers
        while not file.exists():
            assert running[0].poll() is None
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        yield Cluster(address=address, workers=workers)
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    with Recorder(tmp_path / "game24.jsonl") as trace:
        trace.begin("4 5 6 10", algorithm="beam")
        trace.end(beam(trace, Game24((4, 5, 6, 10)), width=3).status)
    path = tmp_path / "sweep.toml"
    path.write_text(DEFINITION)
    return path


def _clew(definition: Path, *options: object, **environment: str) -> subprocess.Popen[str]:
    code = "import sys; sys.argv[0] = 'clew'; from firmware_py.cli import main; main()"
    folder = definition.parent
    command = [sys.executable, "-P", "-c", code, "sweep", definition, "-o", folder / "out.parquet"]
    command += ["--store", folder / "store", *options]
    return subprocess.Popen(
        list(map(str, command)),
        env=_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _alone(prepared: Prepared, number: int) -> dict[str, Any]:
    """The document of one point, made in this process."""
    task, point = prepared.tasks[number], prepared.points.points[number]
    outcome = run_task(task, prepared.files[point.traces])
    assert outcome.document is not None, outcome.error
    return outcome.document


def test_ctrl_c_keeps_what_is_finished_and_the_next_sweep_goes_on(cluster: Cluster, definition: Path) -> None:
    folder = definition.parent
    inputs = {definition.name, "game24.jsonl", "store"}
    first = _clew(definition, "--scheduler", cluster.address)
    while not list((folder / "store").glob("*.json")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)
    assert (first.communicate(timeout=120), first.returncode) == (("", ""), 130)
    kept = {path: path.stat().st_mtime_ns for path in (folder / "store").iterdir()}
    assert {path.name for path in folder.iterdir()} == inputs
    assert 1 <= len(kept) < POINTS and all(path.suffix == ".json" for path in kept)

    outputs = ("--json", folder / "out.json", "--plot", folder / "out.svg")
    second = _clew(definition, "--scheduler", cluster.address, *outputs)
    text, errors = second.communicate(timeout=120)
    assert (second.returncode, errors) == (0, ""), text
    assert f"{POINTS} points" in text and text.count("good") == POINTS
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(list((folder / "store").iterdir())) == POINTS
    assert {path.name for path in folder.iterdir()} == inputs | {"out.parquet", "out.json", "out.svg"}

    document = json.loads((folder / "out.json").read_text())
    rows = pyarrow.parquet.read_table(folder / "out.parquet").to_pylist()
    assert document["schema"] == "clew.sweep/1" and len(document["points"]) == len(rows) == POINTS
    for row, point in zip(rows, document["points"], strict=True):
        assert {name: row[f"point.{name}"] for name in point["settings"]} == point["settings"]
        assert row["paths.near.walk_ns.mean"] == point["comparison"]["paths"]["near"]["walk_ns"]["mean"]
        assert (
            row["details.walks_per_second.far"] == point["comparison"]["details"]["walks_per_second"]["far"]
        )
        assert row["point.status"] == "good"


def test_a_killed_worker_loses_nothing_and_nothing_is_counted_twice(
    cluster: Cluster, definition: Path
) -> None:
    killed: list[int] = []
    seen: list[int] = []
    clients: list[Client] = []

    @contextmanager
    def open_cluster() -> Iterator[Client]:
        with remote_cluster(cluster.address) as client:
            clients.append(client)
            yield client

    def progress(name: str, done: int, total: int) -> None:
        seen.append(done)
        assert total == POINTS
        if done == 2:
            (client,) = clients
            pids: dict[str, int] = client.run(os.getpid)
            busy = [worker for worker, keys in client.processing().items() if keys]
            assert len(pids) == 2 and busy
            os.kill(pids[busy[0]], signal.SIGKILL)
            killed.append(pids[busy[0]])

    prepared = prepare(read_definition(definition))
    store = Store(definition.parent / "store")
    swept = run_sweep(
        prepared, store=store, open_cluster=open_cluster, announce=lambda text: None, progress=progress
    )
    died = next(worker for worker in cluster.workers if worker.pid == killed[0])
    assert died.wait(timeout=60) == -signal.SIGKILL
    assert swept.good and [measured.point for measured in swept.measured] == list(prepared.points.points)
    # Every point is done once: the count goes from 0 to all by ones.
    assert seen == list(range(POINTS + 1))
    keys = Counter(measured.key for measured in swept.measured)
    assert len(keys) == POINTS and set(keys.values()) == {1}
    assert len(list((definition.parent / "store").iterdir())) == POINTS
    # What the survivor made of the killed worker's points is what this process makes of them.
    for number in (0, POINTS - 1):
        assert swept.measured[number].document == _alone(prepared, number)

    # A sweep of what is known needs no cluster, and says the same.
    again = run_sweep(
        prepare(read_definition(definition)),
        store=store,
        open_cluster=lambda: pytest.fail("expected every point from the store"),
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    assert sweep_rows(again) == sweep_rows(swept)


def test_ctrl_c_while_workers_start_is_quiet_and_leaves_nothing(definition: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    before = set(definition.parent.iterdir())
    run = _clew(definition, "--workers", 2, TMPDIR=str(scratch))
    while not list(scratch.glob("clew-sweep-*")):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    # The scheduler starts in the process that was called, then the workers.
    while len(_processes(run.pid)) < 3:
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    assert (run.communicate(timeout=120), run.returncode) == (("", ""), 130)
    assert set(definition.parent.iterdir()) == before and list(scratch.iterdir()) == []
    # What it started ends with it, but the system may not have taken the last of that away.
    for _ in range(6_000):
        if not _processes(run.pid):
            break
        time.sleep(0.01)
    else:
        pytest.fail(f"processes are left: {_processes(run.pid)}")


def _processes(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


def test_worker_processes_of_this_machine_measure_what_this_process_does(definition: Path) -> None:
    definition.write_text(DEFINITION.replace("[1, 2]", "1").replace('["v100_hbm2", ', '["v100_hbm2"] # '))
    prepared = prepare(read_definition(definition))
    swept = run_sweep(
        prepared,
        store=Store(definition.parent / "store"),
        open_cluster=lambda: local_cluster(1),
        announce=lambda text: None,
        progress=lambda name, done, total: None,
    )
    (measured,) = swept.measured
    assert measured.document == _alone(prepared, 0)


def test_a_worker_with_other_code_measures_nothing(definition: Path) -> None:
    prepared = prepare(read_definition(definition))
    task = prepared.tasks[0]
    other = type(task)(design=task.design, replay=task.replay, preset=None, code="another")
    outcome = run_task(other, prepared.files["game24"])
    assert outcome.document is None and "the worker runs other code" in (outcome.error or "")
