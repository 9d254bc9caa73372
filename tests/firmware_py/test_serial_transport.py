"""The serial transport against the bridge's golden model: good lines, bad lines, no line at all."""

from __future__ import annotations

import os
import random
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import serial

from firmware_py import cli
from firmware_py.board import found_config, open_accelerator
from firmware_py.driver import NotAnAccelerator
from firmware_py.errors import InputError
from firmware_py.transport import polling
from firmware_py.transport import serial as serial_transport
from firmware_py.transport.base import PortError, TransportError
from firmware_py.transport.checked import CheckedTransport
from firmware_py.transport.serial import SerialTransport
from firmware_py.transport.serial_frames import Request, lock_sequence
from hdl.config import named_config
from hdl.fabric.serial_protocol import Command
from hdl.registers import ID_VALUE, REGISTER_BY_NAME, SCRATCHPAD_WINDOW
from tests.e2e.replays import write_traces
from tests.hdl.fabric.bridge_model import plain

from .serial_line import FakeBus, answering, board_of_the_model, noisy, slow_board_of_the_model


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of these tests takes no time, so that nobody need wait long for what was lost."""
    monkeypatch.setattr(serial_transport, "_PATIENCE", 0.03)
    monkeypatch.setattr(serial_transport, "_GAP", 0.02)


def test_words_are_read_and_written_in_frames_of_256() -> None:
    bus = FakeBus()
    words = np.arange(600, dtype=np.uint32) * 0x01000193
    with board_of_the_model(bus) as path, SerialTransport(path) as transport:
        transport.write_block(SCRATCHPAD_WINDOW, words)
        assert np.array_equal(transport.read_block(SCRATCHPAD_WINDOW, 600), words)
        transport.write32(SCRATCHPAD_WINDOW + 4, 7)
        assert transport.read32(SCRATCHPAD_WINDOW + 4) == 7
        assert transport.read32(0) == ID_VALUE
        for refused in (lambda: transport.read32(0x2000), lambda: transport.write32(0x2000, 1)):
            with pytest.raises(TransportError, match="1 words from 0x02000: SLVERR"):
                refused()
        assert transport.read32(0) == ID_VALUE and transport.retries == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_bad_line_changes_no_result(seed: int) -> None:
    rng = random.Random(seed)
    bus = FakeBus()
    made: list[tuple[int, int]] = []
    memory: dict[int, int] = {}
    line = board_of_the_model(bus, up=noisy(seed, 0.004), down=noisy(seed + 100, 0.004))
    with line as path, SerialTransport(path, baud=4_000_000) as transport:
        checked = CheckedTransport(transport)
        for _ in range(120):
            count = rng.choice((1, 1, 2, 9, 40))
            address = SCRATCHPAD_WINDOW + 4 * rng.randrange(200)
            if rng.random() < 0.5:
                words = np.array([rng.getrandbits(32) for _ in range(count)], dtype=np.uint32)
                checked.write_block(address, words)
                done = [(address + 4 * index, int(word)) for index, word in enumerate(words)]
                made += done
                memory |= dict(done)
            else:
                expected = [memory.get(address + 4 * index, 0) for index in range(count)]
                assert checked.read_block(address, count).tolist() == expected
        checked.check()
        assert transport.retries > 0
    # Every write was executed, once, in order, and nothing besides.
    assert bus.written == made


def test_plain_commands_work_before_and_after_but_not_meanwhile() -> None:
    bus = FakeBus()
    write = plain(Command.WRITE, SCRATCHPAD_WINDOW, [1])
    with board_of_the_model(bus) as path:
        with SerialTransport(path) as transport:
            os.write(transport._port.fileno(), write)
            assert transport.read32(SCRATCHPAD_WINDOW) == 0 and not bus.written
        with serial.Serial(path) as line:
            line.write(write)
            line.write(plain(Command.READ, SCRATCHPAD_WINDOW, 1))
            assert line.read(4) == b"\0\0\0\1"


def test_a_lock_that_lost_bytes_is_no_plain_command() -> None:
    for command in (Command.LOCK, Command.RELEASE):
        frame = Request(command=command, sequence=lock_sequence(command)).encoded()
        assert not set(frame) & {1, 2, 3, 4}
        # Even then a plain write is longer.
        assert len(frame) < len(plain(Command.WRITE, 0, [0]))


def test_what_the_host_did_not_do_is_found() -> None:
    bus = FakeBus()
    with board_of_the_model(bus) as path, SerialTransport(path) as transport:
        checked = CheckedTransport(transport)
        checked.write32(SCRATCHPAD_WINDOW, 1)
        checked.check()
        bus.write(SCRATCHPAD_WINDOW + 8, 5)  # as a command of somebody else would
        with pytest.raises(TransportError, match=r"accepted 2 writes .*: expected 1 with"):
            checked.check()
        checked.write32(SCRATCHPAD_WINDOW, 2)
        checked.check()


def test_a_batch_is_waited_for_by_the_designs_own_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = FakeBus()
    pending, low = (REGISTER_BY_NAME[name].offset for name in ("INTERRUPT_PENDING", "CYCLES_LOW"))
    with board_of_the_model(bus) as path, SerialTransport(path) as transport:
        read = transport.read_block

        def counting(address: int, count: int) -> np.ndarray:
            bus.words[low] += 100
            bus.words[pending] = int(bus.words[low] >= 1000)
            return read(address, count)

        monkeypatch.setattr(transport, "read_block", counting)
        assert not transport.wait_interrupt(300)
        assert transport.wait_interrupt(100_000)
        monkeypatch.setattr(transport, "read_block", read)
        bus.words[pending] = 0
        monkeypatch.setattr(polling, "STALLED_SECONDS", 0.05)
        assert not transport.wait_interrupt(100_000)


def test_an_unplugged_line_is_one_clear_error() -> None:
    with board_of_the_model(FakeBus()) as path:
        transport = SerialTransport(path)
        assert transport.read32(0) == ID_VALUE
    with pytest.raises(PortError, match=rf"^{path}: the line is gone: \w+"):
        for _ in range(3):
            transport.read32(0)
    transport.close()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"ID": 0x12345678}, "register ID is 0x12345678: expected 0x434c4557"),
        ({"VERSION": 0x00010000}, r"interface version is 1\.0: expected 2\.\d+ or a later minor version"),
    ],
)
def test_what_is_no_clew_of_this_version_is_refused(found: dict[str, int], message: str) -> None:
    bus = FakeBus(**found)
    with board_of_the_model(bus) as path, SerialTransport(path) as transport:
        with pytest.raises(NotAnAccelerator, match=f"^{path}: {message}"):
            open_accelerator(transport, where=path)
    assert not bus.written


def test_a_batch_that_a_killed_program_left_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    status, pending = (REGISTER_BY_NAME[name].offset for name in ("STATUS", "INTERRUPT_PENDING"))
    monkeypatch.setattr(polling, "STALLED_SECONDS", 0.05)
    bus = FakeBus(STATUS=1)
    with board_of_the_model(bus) as path, SerialTransport(path) as transport:
        with pytest.raises(PortError, match=f"^{path}: a batch that is not ours has not ended: expected an"):
            open_accelerator(transport, where=path)
        bus.words |= {status: 2, pending: 1}
        open_accelerator(transport, where=path)


def test_another_configuration_is_refused() -> None:
    with board_of_the_model(FakeBus()) as path, SerialTransport(path) as transport:
        accelerator = open_accelerator(transport, where=path)
        assert found_config(accelerator, None, where=path) == named_config("small")
        with pytest.raises(InputError, match=r"CONFIG_HASH is 0x.*: expected 0x.*, that of stack"):
            found_config(accelerator, "stack", where=path)
    with board_of_the_model(FakeBus(CONFIG_HASH=1)) as path, SerialTransport(path) as transport:
        accelerator = open_accelerator(transport, where=path)
        with pytest.raises(InputError, match="CONFIG_HASH is 0x00000001: expected that of one of default, "):
            found_config(accelerator, None, where=path)


def test_a_slow_line_is_waited_for() -> None:
    """A simulated netlist hands over its bytes some at a time: an answer that has begun is not given up."""
    with slow_board_of_the_model(FakeBus(), pause=0.3) as path:
        with SerialTransport(path, baud=4_800) as transport:
            assert transport.read32(0) == ID_VALUE
            assert transport.retries == 0


def test_a_line_that_is_slower_than_its_rate_says_is_waited_for_longer_each_time() -> None:
    """As a simulated board on a machine that is busy with something else."""
    with slow_board_of_the_model(FakeBus(), pause=0.1) as path, SerialTransport(path) as transport:
        assert transport.read32(0) == ID_VALUE
        assert transport.retries > 0


class TestCommandLine:
    """Every way to a board that leads nowhere: one line, exit status 2."""

    @pytest.fixture
    def trace(self, tmp_path: Path) -> Path:
        write_traces(tmp_path / "trace.jsonl", seed=3, nodes=20)
        return tmp_path / "trace.jsonl"

    @staticmethod
    def line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["clew", "drive", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        shown = capsys.readouterr()
        assert caught.value.code == 2 and shown.out == "" and shown.err.count("\n") == 1
        return shown.err.removeprefix("clew: ").strip()

    def test_a_port_that_is_not_there(self, trace, monkeypatch, capsys) -> None:
        found = self.line(monkeypatch, capsys, trace, "--port", "/dev/ttyNOBODY")
        assert found == "/dev/ttyNOBODY: No such file or directory"
        found = self.line(monkeypatch, capsys, trace, "--xdma", "/dev/nobody")
        assert found == "/dev/nobody_user: No such file or directory"

    def test_a_file_that_is_no_port(self, trace, monkeypatch, capsys) -> None:
        assert self.line(monkeypatch, capsys, trace, "--port", trace) == f"{trace}: expected a serial port"

    def test_a_port_that_may_not_be_opened(self, trace, monkeypatch, capsys) -> None:
        def denied(*arguments: object, **options: object) -> None:
            raise serial.SerialException(13, "could not open port /dev/ttyUSB0: [Errno 13] Permission denied")

        monkeypatch.setattr(serial, "Serial", denied)
        found = self.line(monkeypatch, capsys, trace, "--port", "/dev/ttyUSB0")
        assert found == "/dev/ttyUSB0: Permission denied"

    def test_a_port_that_dies_as_it_is_opened(self, trace, monkeypatch, capsys) -> None:
        def dying(*arguments: object, **options: object) -> None:
            raise serial.SerialException("Could not configure port: (5, 'Input/output error')")

        monkeypatch.setattr(serial, "Serial", dying)
        found = self.line(monkeypatch, capsys, trace, "--port", "/dev/ttyUSB0")
        assert found == "/dev/ttyUSB0: Input/output error"

    def test_a_port_in_use(self, trace, monkeypatch, capsys) -> None:
        with board_of_the_model(FakeBus()) as path, SerialTransport(path):
            found = self.line(monkeypatch, capsys, trace, "--port", path)
            assert found == f"{path}: another program uses it"

    def test_a_port_where_nobody_answers(self, trace, monkeypatch, capsys) -> None:
        with answering(lambda data: b"") as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert found == (
            f"{path}: asked 4 times, received nothing: expected the serial bridge of a Clew at 1000000 baud"
        )

    def test_a_port_that_answers_garbage(self, trace, monkeypatch, capsys) -> None:
        with answering(lambda data: b"OK\r\n" if data else b"") as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert found.startswith(f"{path}: asked 4 times, received 4 bytes that mean nothing: expected")

    def test_a_port_that_never_falls_silent(self, trace, monkeypatch, capsys) -> None:
        with answering(lambda data: b"U") as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert re.match(rf"{path}: asked 4 times, received \d+ bytes that mean nothing: expected", found)

    def test_a_bridge_that_answers_what_none_does(self, trace, monkeypatch, capsys) -> None:
        def strange(data: bytes) -> bytes:
            frame = data[:2] + b"\7"
            return frame + zlib.crc32(frame).to_bytes(4, "big") if data else b""

        with answering(strange) as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert found.startswith(f"{path}: a frame was answered with status 7: expected 0 (DONE), 1 (REFUSED)")

    def test_a_bus_that_refuses_to_be_read(self, trace, monkeypatch, capsys) -> None:
        bus = FakeBus()
        monkeypatch.setattr(bus, "read", lambda address: (0, True))
        with board_of_the_model(bus) as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert found.endswith("from 0x00000: SLVERR: expected the registers of a Clew"), found

    def test_a_bridge_of_something_else(self, trace, monkeypatch, capsys) -> None:
        with board_of_the_model(FakeBus(ID=0)) as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path)
        assert found == f"{path}: register ID is 0x00000000: expected {ID_VALUE:#010x}"

    def test_options_that_do_not_fit(self, trace, monkeypatch, capsys) -> None:
        only = "expected one of --port and --xdma, which name the board"
        assert self.line(monkeypatch, capsys, trace) == only
        assert self.line(monkeypatch, capsys, trace, "--port", "a", "--xdma", "b") == only
        assert self.line(monkeypatch, capsys, trace, "--xdma", "") == only
        found = self.line(monkeypatch, capsys, trace, "--port", "a", "--near", "axi4")
        assert found == "--near axi4 needs a design of its own: expected a place that the board has"
        found = self.line(monkeypatch, capsys, trace, "--port", "a", "--baud", "0")
        assert found == "--baud is 0: expected 1 or more"
        found = self.line(monkeypatch, capsys, trace, "--port", "a", "--config", "mine")
        assert found.startswith("unknown configuration 'mine': expected one of default, ")
        missing = trace.with_name("missing.jsonl")
        assert self.line(monkeypatch, capsys, missing, "--port", "a").startswith(f"{missing}: No such file")

    def test_another_configuration(self, trace, monkeypatch, capsys) -> None:
        with board_of_the_model(FakeBus()) as path:
            found = self.line(monkeypatch, capsys, trace, "--port", path, "--config", "stack")
        assert found.startswith(f"{path}: register CONFIG_HASH is 0x") and found.endswith("that of stack")
