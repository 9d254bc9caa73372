"""A board, bit-true through the RTL bridge: the replay as in process, on good and bad lines; and LiteX."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from litex.tools.litex_client import RemoteClient
from litex.tools.remote.comm_uart import CommUART

from firmware_py.board import Board, open_accelerator
from firmware_py.far_help import FarHelp
from firmware_py.machine import compiled_machine
from firmware_py.place import Place, ReplayFigures
from firmware_py.programs import default_image
from firmware_py.replay import Plan
from firmware_py.transport.serial import SerialTransport
from hdl.config import named_config
from hdl.layouts import RefreshMode
from hdl.registers import ID_VALUE, REGISTER_BY_NAME, SCRATCHPAD_WINDOW, VERSION_VALUE
from sim.board import BoardModel, board_library, pseudo_terminal, served
from tests.compare_schema import require_board_schema
from tests.firmware_py.serial_line import Noise, nobody, noisy

from .replays import plan_of, write_traces
from .test_compare import _clew

CONFIG = named_config("small")
#: 17 walks in 65 atoms.
_SEED, _NODES = 3, 20
_FAR = "v100_hbm2"


@contextmanager
def _relay(port: str, up: Noise, down: Noise) -> Iterator[str]:
    """The path of a port from which bytes go to `port` and back, over a line with that noise."""
    board = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    stop = threading.Event()
    with pseudo_terminal() as (host, path):

        def carry() -> None:
            while not stop.is_set():
                for end in select.select([host, board], [], [], 0.05)[0]:
                    data = os.read(end, 4096)
                    os.write(*((board, up(data)) if end == host else (host, down(data))))

        thread = threading.Thread(target=carry, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            stop.set()
            thread.join()
            os.close(board)


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """The port of a simulated board."""
    with BoardModel(board_library(CONFIG)) as model, served(model) as path:
        yield path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "random.jsonl"
    write_traces(path, seed=_SEED, nodes=_NODES)
    return path


def _figures(machine: Any, plan: Plan, place: int) -> ReplayFigures:
    near, far = Place.near("memory", _FAR, CONFIG), Place.far(_FAR, CONFIG, far_help=FarHelp())
    return machine.measure(
        plan,
        (near, far)[place],
        name=("near", "far")[place],
        program=default_image(),
        refresh=RefreshMode.ALL_BANK,
        progress=lambda name, done, total: None,
    )


@pytest.fixture(scope="module")
def in_process(traces: Path) -> tuple[Plan, list[ReplayFigures]]:
    plan = plan_of(traces, config=CONFIG, concurrent=2)
    with compiled_machine(CONFIG, lambda text: None) as machine:
        return plan, [_figures(machine, plan, place) for place in (0, 1)]


@pytest.mark.parametrize("share", [0.0, 0.0005])
def test_a_board_gives_the_verdicts_and_cycles_of_the_model_in_process(
    port: str, share: float, in_process: tuple[Plan, list[ReplayFigures]]
) -> None:
    """Cycle by cycle, walk by walk; on a line that loses, doubles, changes and inserts bytes too."""
    plan, expected = in_process
    seed = int(os.environ.get("CLEW_SEED") or random.SystemRandom().getrandbits(31))
    print(f"seed {seed} (repeat with CLEW_SEED={seed})")
    up, down = (noisy(seed + way, share) if share else nobody for way in (0, 1))
    with _relay(port, up, down) as path, SerialTransport(path, baud=4_000_000) as transport:
        board = Board(accelerator=open_accelerator(transport, where=path), config=CONFIG)
        for place, model in enumerate(expected):
            found = _figures(board, plan, place)
            assert found.run.answers == model.run.answers
            assert found.run.walk_cycles.tolist() == model.run.walk_cycles.tolist()
            assert found.run.batch_cycles.tolist() == model.run.batch_cycles.tolist()
            assert found.run.wrong == found.run.not_golden == found.run.memory_differs == []
            assert found.loop.count == model.loop.count
            assert found.counters["reads"] >= found.loop.count
        if share:
            assert transport.retries > 0


def test_drive_writes_the_document_of_compare(
    port: str,
    traces: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    documents = []
    for name, options in (("compare", ("--config", "small")), ("drive", ("--port", port))):
        out = tmp_path / f"{name}.json"
        assert _clew(monkeypatch, name, traces, *options, "--json", out) == 0
        documents.append(json.loads(out.read_text(encoding="utf-8")))
    model, board = documents
    require_board_schema(board)
    for same in ("schema", "memory", "clock_ns", "concurrent", "traces"):
        assert board[same] == model[same]
    for place in ("near", "far"):
        for same in ("walk_ns", "reads_per_walk"):
            assert board["paths"][place][same] == model["paths"][place][same]
        assert (
            board["details"]["replay_cycles"][place]
            == model["details"]["layers"][place]["replay"]["cycles"]["max"]
        )
    assert board["details"]["negative_control"] == model["details"]["negative_control"]
    assert "not measured on a board:" in capsys.readouterr().out


def test_litex_tools_reach_the_design_unchanged(port: str) -> None:
    """LiteX's `litex_server` and `RemoteClient`: registers, bursts, fixed addresses."""
    comm = CommUART(port, 1_000_000)
    words = [random.Random(1).getrandbits(32) for _ in range(20)]
    comm.write(SCRATCHPAD_WINDOW, words)
    assert comm.read(SCRATCHPAD_WINDOW + 4, 3, "fixed") == [words[1]] * 3
    comm.close()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        number = free.getsockname()[1]
    options = ["--uart", "--uart-port", port, "--uart-baudrate", "1000000", "--bind-port", str(number)]
    server = subprocess.Popen(
        [sys.executable, "-u", "-P", "-m", "litex.tools.litex_server", *options], stdout=subprocess.DEVNULL
    )
    client = RemoteClient(port=number)
    try:
        while not client.binded:
            assert server.poll() is None
            with contextlib.suppress(ConnectionError):
                client.open()
        assert client.read(REGISTER_BY_NAME["ID"].offset) == ID_VALUE
        assert client.read(0, 2) == [ID_VALUE, VERSION_VALUE]
        assert client.read(SCRATCHPAD_WINDOW, 20) == words
        client.write(SCRATCHPAD_WINDOW, words[::-1])
        assert client.read(SCRATCHPAD_WINDOW, 20) == words[::-1]
        client.close()
    finally:
        server.terminate()
        server.wait()


def test_board_serves_until_it_is_stopped() -> None:
    """`clew board --simulate` prints its port in a line of its own; SIGTERM and Ctrl-C end it.

    Memory and clock gate of the default configuration lie outside the design.
    """
    command = [sys.executable, "-P", "-m", "firmware_py.cli", "board", "--simulate"]
    for number, status in ((signal.SIGTERM, 128 + 15), (signal.SIGINT, 128 + 2)):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline().split()
            assert line[0] == "port"
            with SerialTransport(line[1]) as transport:
                assert transport.read32(0) == ID_VALUE
            process.send_signal(number)
            assert process.wait(timeout=60) == status
            assert process.stderr.read() == ""
