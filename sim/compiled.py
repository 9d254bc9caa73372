"""The compiled model: the design's Verilog in a shared library that Python loads and runs."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from hdl.generate import verilog
from hdl.layouts import ATOM_CHECK_WIDTH, ATOM_WIDTH
from hdl.memory.stack import StackMap
from hdl.top import Clew

from . import surroundings
from .model.ecc import atom_checks
from .surroundings import simulated
from .verilator import (
    AXI_MEMORY_SOURCES,
    CACHE_SOURCES,
    CLOCK_GATE_SOURCES,
    STORAGE_SOURCES,
    Training,
    build_once,
    build_shared_library,
    content_key,
    source_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from hdl.config import DesignConfig

__all__ = [
    "ACCESS_RECORD",
    "BATCH_RECORD",
    "COMMAND_RECORD",
    "HOP_RECORD",
    "PORT_RECORD",
    "AxiTimes",
    "BusError",
    "CompiledModel",
    "WaveFormat",
    "build_library",
    "compile_library",
    "copy_records",
    "design_verilog",
]

#: Waveform formats that a compiled model can record.
WaveFormat = Literal["vcd", "fst"]

_NATIVE = Path(__file__).parent / "native"

#: One command on a bus: bus is 0 row, 1 column; op is a RowOp or ColumnOp. Logged in every cycle.
COMMAND_RECORD = np.dtype(
    [
        ("cycle", "<u8"),
        ("bus", "u1"),
        ("op", "u1"),
        ("pseudo_channel", "u1"),
        ("bank", "u1"),
        ("row_or_column", "<u4"),
    ]
)
#: One `HopEvent` of a walker: place is 0 near, 1 far; channel that of a near walker. Logged inside batches.
HOP_RECORD = np.dtype(
    [
        ("cycle", "<u8"),
        ("address", "<u4"),
        ("event", "u1"),
        ("context", "u1"),
        ("place", "u1"),
        ("channel", "u1"),
    ]
)
#: One column access: `Source`, context or number of its tag, `RowClass`, write, channel. Logged inside
#: batches.
ACCESS_RECORD = np.dtype(
    [
        ("cycle", "<u8"),
        ("source", "u1"),
        ("context", "u1"),
        ("row_class", "u1"),
        ("write", "u1"),
        ("channel", "<u4"),
    ]
)

#: What passed the memory port of a channel's controller. response: 0 a request that was accepted, 1 a
#: response that left. write: 0 a read, 1 a write, 2 a conditional write (a response: 0 or 1). The others are
#: as in ACCESS_RECORD. Logged inside batches.
PORT_RECORD = np.dtype(
    [
        ("cycle", "<u8"),
        ("source", "u1"),
        ("context", "u1"),
        ("write", "u1"),
        ("response", "u1"),
        ("channel", "<u4"),
    ]
)

#: The cycles [begin, end) of one batch; refresh began anew in its first.
BATCH_RECORD = np.dtype([("begin", "<u8"), ("end", "<u8")])

#: Names of the AXI4-Lite responses that are errors.
_RESPONSES = {2: "SLVERR", 3: "DECERR"}


@dataclass(frozen=True, kw_only=True)
class AxiTimes:
    """What a memory behind an AXI port takes, in cycles and ps; `sim/native/axi_memory.cpp` says how."""

    hit: int
    """From the address to the first data, when the row is open."""
    closed: int
    """When no row is."""
    miss: int
    """When another row is."""
    row_cycle: int
    """From the opening of a row to that of the next in its bank."""
    refresh_interval: int
    """0: no refresh."""
    refresh_cycles: int
    """After each interval nothing begins for so long, and no row is open."""
    clock_ps: int
    beat_ps: int
    """From one beat of data to the next, each way."""

    @classmethod
    def of_device(cls, config: DesignConfig) -> AxiTimes:
        """Of a port that adds nothing to the device of the design's preset, without refresh."""
        timing = config.memory.timing
        clock_ps = round(1000 * timing.clock_ns)
        return cls(
            hit=timing.row_hit,
            closed=timing.row_closed,
            miss=timing.row_conflict,
            row_cycle=timing["tRC"],
            refresh_interval=0,
            refresh_cycles=0,
            clock_ps=clock_ps,
            beat_ps=clock_ps,
        )


class BusError(RuntimeError):
    """An access of the host port that was refused or never answered."""


def _tell(announce: Callable[[str], None] | None, text: str) -> None:
    if announce is not None:
        announce(text)


def design_verilog(config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> Path:
    """The Verilog file of the top `clew` in `config`, from the cache when the hardware is unchanged."""

    def build(folder: Path) -> None:
        _tell(announce, "generating Verilog")
        (folder / "clew.v").write_text(verilog(Clew(config), name="clew", registered_reset=True))

    key = content_key(source_key(), config.content)
    return build_once("verilog", key, build) / "clew.v"


def _simulation_verilog(config: DesignConfig, *, announce: Callable[[str], None] | None) -> Path:
    """The Verilog file of the design with whatever memory is outside of it."""
    if config.memory.end == "model":
        return design_verilog(config, announce=announce)

    def build(folder: Path) -> None:
        _tell(announce, "generating Verilog")
        (folder / "clew.v").write_text(verilog(simulated(config), name="clew", registered_reset=True))

    key = content_key(source_key(), config.content, Path(surroundings.__file__))
    return build_once("verilog", key, build) / "clew.v"


def build_library(
    config: DesignConfig,
    *,
    training: Training | None = None,
    waves: WaveFormat | None = None,
    announce: Callable[[str], None] | None = None,
) -> Path:
    """The shared library of the top in `config`, with its memory, wherever that is; built when it is new.

    With `training` it is optimised by a run (`build_shared_library`); with `waves` it can record a waveform
    of that format. `announce` is told what is being done that takes long. Raises BuildError when a tool
    fails.
    """
    design = _simulation_verilog(config, announce=announce)
    return compile_library(
        design,
        channels=config.memory.channels,
        storage=config.memory.controlled and config.memory.storage == "dpi",
        modules=() if config.memory.controlled else AXI_MEMORY_SOURCES,
        cache=config.cache.body == "dpi",
        clock_gate=config.sleeps,
        training=training,
        waves=waves,
        announce=announce,
    )


def compile_library(
    design: Path,
    *,
    channels: int = 1,
    storage: bool = True,
    cache: bool = False,
    clock_gate: bool = False,
    modules: Sequence[Path] = (),
    flags: Sequence[str] = (),
    training: Training | None = None,
    waves: WaveFormat | None = None,
    announce: Callable[[str], None] | None = None,
) -> Path:
    """The shared library of the Verilog file `design`, whose top has the ports of `Clew` with `channels`.

    With `storage` and `cache` it has the `dpi` bodies of these, with `clock_gate` the cell of one, with
    `waves` the recorder of that format; `modules` are further files that the design needs, `flags` further
    ones of Verilator.
    """
    header = f"#define CLEW_CHANNELS {channels}\n"
    if waves is not None:
        header += f"#define CLEW_WAVES_{waves.upper()}\n"
    return build_shared_library(
        design,
        toplevel="clew",
        sources=[
            *modules,
            _NATIVE / "model.cpp",
            # Where the design has its own memory, the C++ part stays empty.
            *(STORAGE_SOURCES if storage else STORAGE_SOURCES[1:]),
            *(CACHE_SOURCES if cache else ()),
            *(CLOCK_GATE_SOURCES if clock_gate else ()),
        ],
        header=("channels.h", header),
        flags=[*flags, *(() if waves is None else (f"--trace-{waves}",))],
        training=training,
        announce=announce,
    )


@cache
def _library(path: Path, *, waves: bool) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, words = ctypes.c_void_p, ctypes.c_void_p
    u32, u64, i32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
    recording = (("open_waves", i32, [handle, ctypes.c_char_p, u64, u64]), ("close_waves", None, [handle]))
    for name, result, arguments in (
        *(recording if waves else ()),
        ("create", handle, []),
        ("destroy", None, [handle]),
        ("reset", None, [handle]),
        ("cycle", u64, [handle]),
        ("set_logging", None, [handle, i32]),
        ("write", i32, [handle, u32, words, u32]),
        ("read", i32, [handle, u32, words, u32]),
        ("run", i32, [handle, u64]),
        ("load", None, [handle, u64, words, words]),
        ("fetch", None, [handle, u64, words, words]),
        ("commands", ctypes.c_void_p, [handle, u32, ctypes.POINTER(u64)]),
        ("load_checks", None, [handle, u64, words, words]),
        ("flip", None, [handle, u64, u32]),
        ("set_axi_times", None, [handle, words]),
        ("log", ctypes.c_void_p, [handle, i32, ctypes.POINTER(u64)]),
        ("clear_logs", None, [handle]),
    ):
        function = getattr(library, f"clew_model_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


def copy_records(data: int | None, count: int, record: np.dtype) -> NDArray[np.void]:
    """A copy of the `count` records at address `data`, which may be None when there are none."""
    if not data or not count:
        return np.zeros(0, dtype=record)
    raw = ctypes.cast(data, ctypes.POINTER(ctypes.c_uint8))
    return np.ctypeslib.as_array(raw, shape=(count * record.itemsize,)).view(record).copy()


class CompiledModel:
    """One running design. The clock moves only inside `reset`, bus accesses and `run`.

    With `waves` it can record a waveform of that format; it is slower for it.

    Models are independent of one another; one may be used by one thread at a time, and several threads may
    run one each, because Python's lock is released while C++ runs.
    """

    def __init__(
        self,
        config: DesignConfig,
        *,
        library: Path | None = None,
        waves: WaveFormat | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        """`library` is what `build_library` made of both; None: the untrained one, built when it is new."""
        self.config = config
        self._map = StackMap(config.memory)
        library = library or build_library(config, waves=waves, announce=announce)
        self._library = _library(library, waves=waves is not None)
        self._handle = self._library.clew_model_create()
        if not config.memory.controlled:
            self.set_axi_times(AxiTimes.of_device(config))
        self.seconds = 0.0
        """Processor seconds of the calling thread spent in `run`."""
        self.cycles_run = 0
        """Cycles that `run` simulated."""
        self.reset()

    def close(self) -> None:
        """Frees the model and its memory. Using it afterwards is an error."""
        if self._handle is not None:
            self._library.clew_model_destroy(self._handle)
            self._handle = None

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cycle(self) -> int:
        """Cycles since the model was created."""
        return self._library.clew_model_cycle(self._handle)

    def reset(self) -> None:
        """Holds `rst` for four cycles. The memory's content stays."""
        self._library.clew_model_reset(self._handle)

    # -- The host's bus --

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes 32-bit words to consecutive byte addresses. Raises BusError."""
        block = np.ascontiguousarray(words, dtype=np.uint32).ravel()
        status = self._library.clew_model_write(self._handle, address, block.ctypes.data, block.size)
        self._check(status, "write", address, block.size)

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """Reads `count` 32-bit words from consecutive byte addresses. Raises BusError."""
        block = np.zeros(count, dtype=np.uint32)
        status = self._library.clew_model_read(self._handle, address, block.ctypes.data, count)
        self._check(status, "read", address, count)
        return block

    @staticmethod
    def _check(status: int, what: str, address: int, count: int) -> None:
        if status:
            reason = _RESPONSES.get(status, "no answer" if status < 0 else f"response {status}")
            raise BusError(f"{what} of {count} words from {address:#07x}: {reason}")

    def run(self, cycles: int) -> bool:
        """Runs until the interrupt pin is high, at most `cycles`. True when it is."""
        before, began = self.cycle, time.thread_time()
        status = self._library.clew_model_run(self._handle, cycles)
        self.seconds += time.thread_time() - began
        self.cycles_run += self.cycle - before
        if status < 0:
            raise RuntimeError(f"the design stopped itself in cycle {self.cycle}: an assertion failed")
        return bool(status)

    @property
    def cycles_per_second(self) -> float:
        """Simulated cycles for each processor second spent in `run`; 0 before the first."""
        return self.cycles_run / self.seconds if self.seconds else 0.0

    # -- Backdoor: memory content without the bus and without cycles. Each raises ValueError beyond the memory
    # and in a design that has no backdoor. --

    @property
    def has_backdoor(self) -> bool:
        """The memory lies outside the design, in C: storage is `dpi`, not block RAM."""
        return not self.config.memory.controlled or self.config.memory.storage == "dpi"

    def load(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Puts `atoms` (uint32, [n, 8]) at consecutive atom addresses."""
        index = self._storage_index(address, len(atoms))
        block = np.ascontiguousarray(atoms, dtype=np.uint32)
        self._library.clew_model_load(self._handle, len(atoms), index.ctypes.data, block.ctypes.data)
        if self.config.controller.ecc:
            checks = atom_checks(block)
            self._library.clew_model_load_checks(
                self._handle, len(atoms), index.ctypes.data, checks.ctypes.data
            )

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) from atom address `address`."""
        index = self._storage_index(address, count)
        block = np.zeros((count, 8), dtype=np.uint32)
        self._library.clew_model_fetch(self._handle, count, index.ctypes.data, block.ctypes.data)
        return block

    def flip(self, address: int, bit: int) -> None:
        """Flips a stored bit of an atom: 0 to 255 are its data, 256 to 287 its check bits."""
        if not 0 <= bit < ATOM_WIDTH + ATOM_CHECK_WIDTH:
            raise ValueError(f"bit is {bit}: expected 0 to {ATOM_WIDTH + ATOM_CHECK_WIDTH - 1}")
        index = self._storage_index(address, 1)
        self._library.clew_model_flip(self._handle, int(index[0]), bit)

    def _storage_index(self, address: int, count: int) -> NDArray[np.uint64]:
        if not self.has_backdoor:
            raise ValueError("memory.storage is 'array': expected 'dpi' for a backdoor")
        atoms = self._map.atoms
        if not 0 <= address <= address + count <= atoms:
            raise ValueError(
                f"atoms {address} to {address + count - 1}: expected within the memory's {atoms}"
            )
        addresses = np.arange(address, address + count, dtype=np.int64)
        if not self.config.memory.controlled:
            # Behind an AXI port the storage is by address.
            return addresses.astype(np.uint64)
        return np.ascontiguousarray(self._map.storage_index(addresses), dtype=np.uint64)

    def set_axi_times(self, times: AxiTimes) -> None:
        """What the memory behind an AXI port takes from now on; at first `AxiTimes.of_device`."""
        values = np.array(dataclasses.astuple(times), dtype=np.uint32)
        self._library.clew_model_set_axi_times(self._handle, values.ctypes.data)

    # -- Logs --

    def set_logging(self, enable: bool) -> None:
        """Whether the logs record; they do at first."""
        self._library.clew_model_set_logging(self._handle, int(enable))

    def commands(self, channel: int = 0) -> NDArray[np.void]:
        """The command log of a channel since the last `clear_logs`, as COMMAND_RECORD."""
        channels = self.config.memory.channels
        if not 0 <= channel < channels:
            raise ValueError(f"channel is {channel}: expected 0 to {channels - 1}")
        return self._records(self._library.clew_model_commands, channel, COMMAND_RECORD)

    def hops(self) -> NDArray[np.void]:
        """The hop log since the last `clear_logs`, as HOP_RECORD."""
        return self._records(self._library.clew_model_log, 0, HOP_RECORD)

    def accesses(self) -> NDArray[np.void]:
        """The access log since the last `clear_logs`, as ACCESS_RECORD."""
        return self._records(self._library.clew_model_log, 1, ACCESS_RECORD)

    def ports(self) -> NDArray[np.void]:
        """The log of the controllers' memory ports since the last `clear_logs`, as PORT_RECORD."""
        return self._records(self._library.clew_model_log, 3, PORT_RECORD)

    def _records(self, log: Callable[..., int], which: int, record: np.dtype) -> NDArray[np.void]:
        count = ctypes.c_uint64()
        data = log(self._handle, which, ctypes.byref(count))
        return copy_records(data, count.value, record)

    def batch_windows(self) -> NDArray[np.void]:
        """The batches since the last `clear_logs`, as BATCH_RECORD."""
        return self._records(self._library.clew_model_log, 2, BATCH_RECORD)

    def clear_logs(self) -> None:
        """Empties every log."""
        self._library.clew_model_clear_logs(self._handle)

    # -- Waveform, of a model that was made with `waves` --

    def open_waves(self, path: Path, *, cycles: int) -> None:
        """Records every signal in the next `cycles` cycles of batches into `path`; time starts at 0.

        Cycles outside batches are left out. Raises OSError when the file cannot be opened.
        """
        tck_ps = round(1000 * self.config.memory.timing.clock_ns)
        if not self._library.clew_model_open_waves(self._handle, os.fsencode(path), tck_ps, cycles):
            raise OSError(errno.EIO, "the waveform cannot be written", str(path))

    def close_waves(self) -> None:
        """Ends the recording: the file is whole."""
        self._library.clew_model_close_waves(self._handle)
