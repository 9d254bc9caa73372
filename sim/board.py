"""The simulated board: a design behind its UART, of which the host sees a pseudo-terminal only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pty
import select
import threading
import time
import tty
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hdl.generate import verilog
from hdl.serial_top import SerialClew

from .verilator import (
    CLOCK_GATE_SOURCES,
    STORAGE_SOURCES,
    build_once,
    build_shared_library,
    content_key,
    source_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hdl.config import DesignConfig

__all__ = [
    "SIMULATED_DIVISOR",
    "BoardModel",
    "board_library",
    "board_verilog",
    "compile_board",
    "pseudo_terminal",
    "serve",
    "served",
]

_SOURCE = Path(__file__).parent / "native" / "serial.cpp"

#: Cycles of a bit of a simulated line: the fewest, because every cycle takes time.
SIMULATED_DIVISOR = 4
#: Bytes of the host that are handed to the model at a time.
_BYTES = 512
#: Cycles after which the host is looked for again, while a batch executes and while nothing happens.
_BATCH_CYCLES, _IDLE_CYCLES = 20_000, 1_000
#: Cycles for which the clock runs on as fast as it can after the last byte: the bridge's time-out, twice.
_AWAKE_CYCLES = 2 * 1024 * 10 * SIMULATED_DIVISOR
#: Seconds between looks at a line on which nothing happens; the clock then runs slowly.
_ASLEEP_SECONDS = 0.05


def board_verilog(config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> Path:
    """The Verilog file of `SerialClew` in `config`, its top called `clew`, made when it is new."""

    def build(folder: Path) -> None:
        if announce is not None:
            announce("generating Verilog")
        component = SerialClew(config, divisor=SIMULATED_DIVISOR)
        (folder / "clew.v").write_text(verilog(component, name="clew", registered_reset=True))

    key = content_key(source_key(), config.content, str(SIMULATED_DIVISOR))
    return build_once("verilog-serial", key, build) / "clew.v"


def compile_board(
    design: Path,
    *,
    storage: bool = False,
    clock_gate: bool = False,
    modules: Sequence[Path] = (),
    flags: Sequence[str] = (),
    announce: Callable[[str], None] | None = None,
) -> Path:
    """The shared library of the Verilog file `design`, whose top has the ports of `SerialClew`.

    With `storage` it has the `dpi` body of the memory, with `clock_gate` the cell of one; `modules` are
    further files that the design needs, `flags` further ones of Verilator. Raises BuildError.
    """
    # Where the design has its own memory, the C++ part stays empty.
    sources = [
        *modules,
        _SOURCE,
        *(STORAGE_SOURCES if storage else STORAGE_SOURCES[1:]),
        *(CLOCK_GATE_SOURCES if clock_gate else ()),
    ]
    return build_shared_library(design, toplevel="clew", sources=sources, flags=flags, announce=announce)


def board_library(config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> Path:
    """The shared library of `SerialClew` in `config`, built when it is new.

    `announce` is told what takes long. Raises BuildError when a tool fails.
    """
    design = board_verilog(config, announce=announce)
    return compile_board(
        design, storage=config.memory.storage == "dpi", clock_gate=config.sleeps, announce=announce
    )


@cache
def _library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, data = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("create", handle, [ctypes.c_uint32]),
        ("destroy", None, [handle]),
        ("cycle", ctypes.c_uint64, [handle]),
        ("busy", ctypes.c_int32, [handle]),
        ("run", ctypes.c_int32, [handle, ctypes.c_uint64, data, ctypes.c_uint32, data]),
    ):
        function = getattr(library, f"clew_board_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


class BoardModel:
    """One running board. The clock moves only inside `run`; use it in one thread at a time."""

    def __init__(self, library: Path) -> None:
        """`library` is what `board_library` or `compile_board` made."""
        self._library = _library(library)
        self._handle = self._library.clew_board_create(SIMULATED_DIVISOR)
        self._seconds = 0.0

    def close(self) -> None:
        """Frees the board. Using it afterwards is an error."""
        if self._handle is not None:
            self._library.clew_board_destroy(self._handle)
            self._handle = None

    def __enter__(self) -> BoardModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cycle(self) -> int:
        """Cycles since power-on."""
        return self._library.clew_board_cycle(self._handle)

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles for each processor second spent in `run`; 0 before the first."""
        return self.cycle / self._seconds if self._seconds else 0.0

    @property
    def busy(self) -> bool:
        """A batch is executing."""
        return bool(self._library.clew_board_busy(self._handle))

    def run(self, sent: bytes, *, cycles: int) -> bytes:
        """Sends the bytes to the board and runs for `cycles` after them; returns those that came from it.

        It ends sooner when an answer is whole. Raises RuntimeError when an assertion of the design failed.
        """
        room = ctypes.create_string_buffer(len(sent) + cycles // (10 * SIMULATED_DIVISOR) + 2)
        began = time.thread_time()
        count = self._library.clew_board_run(self._handle, cycles, sent, len(sent), room)
        self._seconds += time.thread_time() - began
        if count < 0:
            raise RuntimeError(f"the design stopped itself in cycle {self.cycle}: an assertion failed")
        return room.raw[:count]


@contextlib.contextmanager
def pseudo_terminal() -> Iterator[tuple[int, str]]:
    """A new pseudo-terminal that carries every byte as it is: the board's end, and the path of the host's."""
    board, host = pty.openpty()
    try:
        tty.setraw(host)
        os.set_blocking(board, False)
        # `host` stays open, so that the line outlives the programs that open and close it.
        yield board, os.ttyname(host)
    finally:
        os.close(board)
        os.close(host)


def serve(model: BoardModel, line: int, *, stop: Callable[[], bool] = lambda: False) -> None:
    """Runs the board on the line (a file descriptor) until `stop`, which is asked often.

    The clock runs as fast as it can while a batch executes or bytes come, and slowly while nothing happens.
    Bytes that nobody takes are lost, as on a wire.
    """
    last_byte = model.cycle
    while not stop():
        awake = model.busy or model.cycle - last_byte < _AWAKE_CYCLES
        readable, _, _ = select.select([line], [], [], 0 if awake else _ASLEEP_SECONDS)
        sent = os.read(line, _BYTES) if readable else b""
        came = model.run(sent, cycles=_BATCH_CYCLES if model.busy else _IDLE_CYCLES)
        if sent or came:
            last_byte = model.cycle
        if came:
            with contextlib.suppress(BlockingIOError):
                os.write(line, came)


@contextlib.contextmanager
def served(model: BoardModel, *, cycles: int | None = None) -> Iterator[str]:
    """The path of a new port at which a thread serves the board until the end.

    After cycle `cycles` of the board, if that is given, the line is closed, as one pulls a cable: so that
    nobody waits for a design that never answers.
    """
    stop = threading.Event()
    ends = contextlib.ExitStack()
    line, path = ends.enter_context(pseudo_terminal())

    def work() -> None:
        with ends:
            serve(model, line, stop=lambda: stop.is_set() or (cycles is not None and model.cycle > cycles))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield path
    finally:
        stop.set()
        thread.join()
