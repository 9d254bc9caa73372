"""The compiled memory subsystem: controller, device and RTL checker alone, under a list of requests in C++.

    with CompiledMemory(DesignConfig(memory=MemoryConfig(storage="dpi"))) as memory:
        run = memory.run(requests(rng.integers(1 << 20, size=100_000)), cycles=200_000)
        run.require_clean()
        print(run.bandwidth(memory.config.memory.timing, after=2_000), run.latencies.mean())

`run` restarts the subsystem, offers a list of requests (REQUEST_RECORD) as fast as it is allowed to, and
returns when each is answered; no Python runs in between, about a million cycles a second. The same arguments
after a restart take the same cycles. What a run may vary:

* `outstanding`: requests offered and not answered (the port's own queues are filled within that);
* `refresh`: the `RefreshMode`, set while the subsystem is held in restart;
* `cycles`: nothing is offered any more from this cycle of the run on (default: when all are offered);
  shorter lists leave the port idle until then;
* `idle`, `stall`: `Pauses` in which no request is newly offered, or no response is taken, drawn by `seed`;
* the list itself: independent requests go out in its order, none before its `delay`; a request `after`
  another goes out `delay` cycles after that one's answer (1: as a walker does). `chain` makes such a list.

A scoreboard in C++ lets requests take effect in the order of acceptance. What it finds wrong (data, status,
an answer to nothing, one that changed before it was taken, none at all) is in `Run.faults`; rules that the
RTL checker sees broken are in `Run.violations`. Commands and accesses are in the logs of the compiled model.
All cycles count from the creation of the memory.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hdl.generate import verilog
from hdl.layouts import (
    ATOM_BYTES,
    ATOM_CHECK_WIDTH,
    ATOM_WIDTH,
    CONTEXT_WIDTH,
    MemoryRequest,
    MemoryResponse,
    MemoryStatus,
    RefreshMode,
    Source,
)
from hdl.memory.address import AddressMap
from hdl.memory.checker_rules import published_rules

from .bench.memory import MemorySubsystem
from .bench.packing import Packing
from .compiled import ACCESS_RECORD, COMMAND_RECORD, copy_records
from .model.ecc import atom_checks
from .verilator import STORAGE_SOURCES, build_once, build_shared_library, content_key, source_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from hdl.config import DesignConfig
    from hdl.memory.timing import TimingPreset

__all__ = [
    "ANSWER_RECORD",
    "ERROR_RECORD",
    "EXPECT_HELD",
    "NEVER",
    "REQUEST_RECORD",
    "TAGS",
    "CompiledMemory",
    "Pauses",
    "Run",
    "chain",
    "compile_memory",
    "memory_verilog",
    "requests",
]

_NATIVE = Path(__file__).parent / "native"
_FULL_MASK = (1 << ATOM_BYTES) - 1

#: Requests that one source may have outstanding.
TAGS = 1 << CONTEXT_WIDTH
#: One request. `after` is the index of the request whose answer releases this one, or -1.
REQUEST_RECORD = np.dtype(
    [
        ("address", "<u4"),
        ("mask", "<u4"),
        ("expected", "<u4"),
        ("after", "<i4"),
        ("delay", "<u4"),
        ("source", "u1"),
        ("write", "u1"),
        ("conditional", "u1"),
        ("priority", "u1"),
        ("data", "<u4", (8,)),
    ]
)
#: `conditional` of a write that expects what its word holds at that moment; 1 expects `expected`.
EXPECT_HELD = 2
#: What became of the request of the same index: cycles in which it was offered, accepted and answered.
ANSWER_RECORD = np.dtype(
    [
        ("offered", "<u8"),
        ("accepted", "<u8"),
        ("answered", "<u8"),
        ("data", "<u4", (8,)),
        ("tag", "<u2"),
        ("status", "u1"),
        ("unused", "u1", (5,)),
    ]
)
#: A cycle that did not come.
NEVER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_VIOLATION_RECORD = np.dtype([("cycle", "<u8"), ("rule", "<u8")])
_FAULT_RECORD = np.dtype([("cycle", "<u8"), ("request", "<u4"), ("kind", "<u4")])
_FAULTS = (
    "wrong data",
    "wrong status",
    "a write answered as a read, or a read as a write",
    "an answer to nothing",
    "an answer changed before it was taken",
    "not answered",
)
_NO_REQUEST = 0xFFFF_FFFF
#: What ECC found in one read: the cycle in which its data reached the responses.
ERROR_RECORD = np.dtype([("cycle", "<u8"), ("address", "<u4"), ("uncorrectable", "<u4")])


class _Pattern(ctypes.Structure):
    _fields_ = (("share", ctypes.c_double), ("length", ctypes.c_uint32), ("unused", ctypes.c_uint32))


class _Options(ctypes.Structure):
    _fields_ = (
        ("cycles", ctypes.c_uint64),
        ("patience", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("idle", _Pattern),
        ("stall", _Pattern),
        ("outstanding", ctypes.c_uint32),
        ("refresh", ctypes.c_uint32),
        ("restart", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
    )


@dataclass(frozen=True, kw_only=True)
class Pauses:
    """Pauses of geometric length: their share of all cycles (0 to 0.99) and their mean length in cycles."""

    share: float = 0.0
    length: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 0.99:
            raise ValueError(f"share of pauses is {self.share!r}: expected 0 to 0.99")
        if self.length < 1:
            raise ValueError(f"length of pauses is {self.length!r}: expected at least 1 cycle")


#: No pause.
_NEVER_PAUSE = Pauses()


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run did. `requests` and `answers` go together, index by index."""

    requests: NDArray[np.void]
    answers: NDArray[np.void]
    """ANSWER_RECORD; NEVER for what was not offered before the run's last cycle."""
    begin: int
    """The first cycle after the restart."""
    end: int
    """The cycle after the last."""
    offering: int
    """Cycles from `begin` in which requests were offered: the run's `cycles`, or all."""
    commands: NDArray[np.void]
    """COMMAND_RECORD of this run and of the restart before it; cycles run on from run to run."""
    accesses: NDArray[np.void]
    """ACCESS_RECORD, likewise."""
    errors: NDArray[np.void]
    """ERROR_RECORD: what ECC corrected, and what it could not; empty without ECC."""
    refresh: RefreshMode
    """The mode that was on."""
    refresh_window: tuple[int, int] | None
    """Cycles [begin, end) in which refresh was on without a restart, for `command_checker.check`."""
    violations: tuple[str, ...]
    """What the RTL checker saw: `cycle: rule`."""
    faults: tuple[str, ...]
    """What the scoreboard saw."""

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Where a request was answered."""
        return self.answers["answered"] != NEVER

    @property
    def latencies(self) -> NDArray[np.int64]:
        """Cycles from acceptance to answer of every answered request, in the order of the list."""
        done = self.answers[self.answered]
        return (done["answered"] - done["accepted"]).astype(np.int64)

    @property
    def waits(self) -> NDArray[np.int64]:
        """Cycles from being offered to the answer, of every answered request."""
        done = self.answers[self.answered]
        return (done["answered"] - done["offered"]).astype(np.int64)

    def bandwidth(self, timing: TimingPreset, *, after: int = 0) -> float:
        """GB/s of the requests answered while requests were offered, from cycle `after` of the run on."""
        first, last = self.begin + after, self.begin + self.offering
        when = self.answers["answered"]
        count = int(np.count_nonzero((when >= first) & (when < last)))
        return count * ATOM_BYTES / ((last - first) * timing.clock_ns)

    def require_clean(self) -> None:
        """Raises AssertionError with the first faults and violations, if there are any."""
        wrong = [*self.faults, *self.violations]
        assert not wrong, f"{len(wrong)} faults and violations; the first: {'; '.join(wrong[:5])}"


def requests(addresses: ArrayLike, **fields: ArrayLike) -> NDArray[np.void]:
    """REQUEST_RECORD of independent bulk reads of `addresses`, the other fields as given (or broadcast).

    A write's mask is full unless `mask` is given. Raises ValueError for an unknown field.
    """
    where = np.asarray(addresses, dtype=np.uint32)
    made = np.zeros(len(where), dtype=REQUEST_RECORD)
    made["address"] = where
    made["mask"] = _FULL_MASK
    made["after"] = -1
    made["source"] = Source.HOST.value
    known = REQUEST_RECORD.names or ()
    for name, value in fields.items():
        if name not in known:
            raise ValueError(f"unknown field {name!r}: expected one of {', '.join(known)}")
        made[name] = value
    return made


def chain(
    addresses: ArrayLike,
    *,
    chains: int = 1,
    think: int = 1,
    gap: int = 0,
    every: int = 0,
    **fields: ArrayLike,
) -> NDArray[np.void]:
    """REQUEST_RECORD of `chains` dependent sequences: request n goes out after the answer of n - `chains`.

    `think` cycles after that answer (1: as a walker with one execute stage), and in every `every`-th link of
    a chain `gap` cycles later still. Priority reads of the near walker unless `fields` say otherwise.
    """
    fields = {"source": Source.NEAR_WALKER.value, "priority": 1} | fields
    made = requests(addresses, **fields)
    index = np.arange(len(made))
    follows = index >= chains
    made["after"] = np.where(follows, index - chains, -1)
    link = index // chains
    pause = gap * (link % every == 0) if every else 0
    made["delay"] = np.where(follows, think + pause, 0)
    return made


def _port_header() -> str:
    """The C++ header with the bit positions of the memory port's structs, and its statuses."""
    lines = [
        "// Made from hdl/layouts.py.",
        "#pragma once",
        "#include <cstdint>",
        "struct Field { uint32_t low, width; };",
    ]
    for name, layout in (("REQUEST", MemoryRequest), ("RESPONSE", MemoryResponse)):
        fields = Packing(layout).fields
        width = max(low + bits for low, bits in fields.values())
        lines.append(f"constexpr uint32_t {name}_WORDS = {-(-width // 32)};")
        lines += [
            f"constexpr Field {name}_{path.upper().replace('.', '_')}{{{low}, {bits}}};"
            for path, (low, bits) in fields.items()
        ]
    lines += [f"constexpr uint8_t STATUS_{status.name} = {status.value};" for status in MemoryStatus]
    outside = [source.value for source in Source if source is not Source.CONTROLLER]
    lines.append(f"constexpr uint32_t TAG_SOURCES = {max(outside) + 1};")
    return "\n".join(lines) + "\n"


def memory_verilog(config: DesignConfig, *, announce: Callable[[str], None] | None = None) -> Path:
    """The Verilog file of `memory_subsystem` in `config`, from the cache when the hardware is unchanged."""

    def build(folder: Path) -> None:
        if announce is not None:
            announce("generating the memory's Verilog")
        (folder / "memory_subsystem.v").write_text(
            verilog(MemorySubsystem(config), name="memory_subsystem", registered_reset=True),
            encoding="utf-8",
        )

    bench = Path(__file__).parent / "bench" / "memory.py"
    folder = build_once("verilog-memory", content_key(source_key(), bench, config.content), build)
    return folder / "memory_subsystem.v"


def compile_memory(design: Path, *, announce: Callable[[str], None] | None = None) -> Path:
    """The shared library of the Verilog file `design`, whose top has the ports of `MemorySubsystem`."""
    return build_shared_library(
        design,
        toplevel="memory_subsystem",
        sources=[_NATIVE / "memory.cpp", *STORAGE_SOURCES],
        header=("memory_port.h", _port_header()),
        announce=announce,
    )


@cache
def _library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    handle, block = ctypes.c_void_p, ctypes.c_void_p
    u32, u64, i32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
    pointer = ctypes.POINTER
    for name, result, arguments in (
        ("create", handle, [u64]),
        ("destroy", None, [handle]),
        ("cycle", u64, [handle]),
        ("set_logging", None, [handle, i32]),
        ("run", i32, [handle, block, block, u32, pointer(_Options), pointer(u64)]),
        ("load", None, [handle, u64, u64, block, block]),
        ("fetch", None, [handle, u64, block, block]),
        ("load_checks", None, [handle, u64, block, block]),
        ("fetch_checks", None, [handle, u64, block, block]),
        ("flip", None, [handle, u64, block, block]),
        ("reference", None, [handle, u64, u64, block]),
        ("clear", None, [handle]),
        ("log", ctypes.c_void_p, [handle, i32, pointer(u64)]),
        ("clear_logs", None, [handle]),
    ):
        function = getattr(library, f"clew_memory_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


class CompiledMemory:
    """One memory subsystem. The clock moves only inside `run`; the content stays from run to run.

    `config` must use the `dpi` storage; `library` replaces the one built from it (a broken design under
    test). Raises ValueError for another storage and BuildError when a tool fails.
    """

    def __init__(
        self,
        config: DesignConfig,
        *,
        library: Path | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        if config.memory.storage != "dpi":
            raise ValueError(
                f"memory.storage is {config.memory.storage!r}: expected dpi for a compiled memory"
            )
        self.config = config
        self.map = AddressMap(config.memory)
        self._rules = published_rules(config.memory.timing)
        built = library or compile_memory(memory_verilog(config, announce=announce), announce=announce)
        self._library = _library(built)
        self._handle = self._library.clew_memory_create(self.map.atoms)
        self._refresh = RefreshMode.NONE
        self._refresh_since: int | None = None

    def close(self) -> None:
        """Frees the memory. Using it afterwards is an error."""
        if self._handle is not None:
            self._library.clew_memory_destroy(self._handle)
            self._handle = None

    def __enter__(self) -> CompiledMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cycle(self) -> int:
        """Cycles since the memory was created."""
        return self._library.clew_memory_cycle(self._handle)

    def set_logging(self, enable: bool) -> None:
        """Whether commands and accesses are recorded; they are at first."""
        self._library.clew_memory_set_logging(self._handle, int(enable))

    def run(
        self,
        requests: NDArray[np.void],
        *,
        outstanding: int = 64,
        refresh: RefreshMode = RefreshMode.NONE,
        cycles: int | None = None,
        idle: Pauses = _NEVER_PAUSE,
        stall: Pauses = _NEVER_PAUSE,
        seed: int = 0,
        restart: bool = True,
        poison: bool = False,
        patience: int = 100_000,
    ) -> Run:
        """Offers `requests` (REQUEST_RECORD) and returns when every one that was offered is answered.

        Without `restart` the run follows the one before, whose `refresh` goes on. With `poison` an answer
        POISONED is no fault. After `patience` cycles in which nothing was accepted or answered the run gives
        up with faults. Raises ValueError for requests that the port does not have, and RuntimeError when
        the design stops itself.
        """
        self._check(requests, outstanding)
        offered = np.ascontiguousarray(requests)
        answers = np.zeros(len(offered), dtype=ANSWER_RECORD)
        options = _Options(
            cycles=int(NEVER) if cycles is None else cycles,
            patience=patience,
            seed=seed,
            idle=_Pattern(idle.share, idle.length, 0),
            stall=_Pattern(stall.share, stall.length, 0),
            outstanding=outstanding,
            refresh=refresh.value,
            restart=int(restart),
            poison=int(poison),
        )
        begin = ctypes.c_uint64()
        self._library.clew_memory_clear_logs(self._handle)
        outcome = self._library.clew_memory_run(
            self._handle,
            offered.ctypes.data,
            answers.ctypes.data,
            len(offered),
            ctypes.byref(options),
            ctypes.byref(begin),
        )
        if outcome == _STOPPED:
            raise RuntimeError(f"the design stopped itself in cycle {self.cycle}: an assertion failed")
        if restart:
            self._refresh = refresh
            self._refresh_since = None if refresh is RefreshMode.NONE else begin.value
        end = self.cycle
        return Run(
            requests=offered,
            answers=answers,
            begin=begin.value,
            end=end,
            offering=end - begin.value if cycles is None else cycles,
            commands=self._log(0, COMMAND_RECORD),
            accesses=self._log(1, ACCESS_RECORD),
            errors=self._log(4, ERROR_RECORD),
            refresh=self._refresh,
            refresh_window=None if self._refresh_since is None else (self._refresh_since, end),
            violations=tuple(
                f"cycle {cycle}: {self._rules[rule]}" for cycle, rule in self._log(2, _VIOLATION_RECORD)
            ),
            faults=tuple(self._fault(offered, *record) for record in self._log(3, _FAULT_RECORD)),
        )

    def _check(self, requests: NDArray[np.void], outstanding: int) -> None:
        if requests.dtype != REQUEST_RECORD:
            raise ValueError(f"requests have dtype {requests.dtype}: expected REQUEST_RECORD")
        if outstanding < 1:
            raise ValueError(f"outstanding is {outstanding}: expected at least 1")
        if len(requests):
            tags = len(np.unique(requests["source"])) * TAGS
            if outstanding > tags:
                raise ValueError(
                    f"outstanding is {outstanding}: expected at most {tags}, "
                    "the tags of the requests' sources"
                )
            wrong = requests["source"] >= Source.CONTROLLER.value
            allowed = [source.value for source in Source if source is not Source.CONTROLLER]
            wrong |= ~np.isin(requests["source"], allowed)
            wrong |= requests["after"] >= np.arange(len(requests))
            wrong |= (requests["after"] >= 0) & (requests["delay"] < 1)
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                raise ValueError(
                    f"request {at} is {requests[at]}: expected a source outside the controller, and `after` "
                    "an earlier request with a delay of at least 1"
                )

    @staticmethod
    def _fault(requests: NDArray[np.void], cycle: int, request: int, kind: int) -> str:
        where = ""
        if request != _NO_REQUEST:
            one = requests[request]
            access = "write" if one["write"] else "read"
            where = f", request {request} ({access} of atom {one['address']:#x})"
        return f"cycle {cycle}{where}: {_FAULTS[kind]}"

    def _log(self, which: int, record: np.dtype) -> NDArray[np.void]:
        count = ctypes.c_uint64()
        data = self._library.clew_memory_log(self._handle, which, ctypes.byref(count))
        return copy_records(data, count.value, record)

    # -- Backdoor --

    def load(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Puts `atoms` (uint32, [n, 8]) at consecutive atom addresses, in the scoreboard's memory as well."""
        index = self._storage_index(address, len(atoms))
        block = np.ascontiguousarray(atoms, dtype=np.uint32)
        self._library.clew_memory_load(
            self._handle, address, len(atoms), index.ctypes.data, block.ctypes.data
        )
        if self.config.controller.ecc:
            checks = atom_checks(block)
            self._library.clew_memory_load_checks(
                self._handle, len(atoms), index.ctypes.data, checks.ctypes.data
            )

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) that the storage holds from `address` on."""
        index = self._storage_index(address, count)
        block = np.zeros((count, 8), dtype=np.uint32)
        self._library.clew_memory_fetch(self._handle, count, index.ctypes.data, block.ctypes.data)
        return block

    def fetch_checks(self, address: int, count: int) -> NDArray[np.uint32]:
        """The check bits (uint32, [count]) that the storage holds from `address` on, one word an atom."""
        index = self._storage_index(address, count)
        block = np.zeros(count, dtype=np.uint32)
        self._library.clew_memory_fetch_checks(self._handle, count, index.ctypes.data, block.ctypes.data)
        return block

    def flip(self, addresses: ArrayLike, bits: ArrayLike) -> None:
        """Flips stored bits, one of each atom of `addresses`: 0 to 255 are data, 256 to 287 check bits.

        The scoreboard does not know.
        """
        where, which = (np.atleast_1d(a) for a in np.broadcast_arrays(addresses, bits))
        if which.size and not 0 <= which.min() <= which.max() < ATOM_WIDTH + ATOM_CHECK_WIDTH:
            raise ValueError(
                f"bits are {which.min()} to {which.max()}: expected 0 to {ATOM_WIDTH + ATOM_CHECK_WIDTH - 1}"
            )
        index = np.ascontiguousarray(self.map.storage_index(where.astype(np.int64)), dtype=np.uint64)
        flips = np.ascontiguousarray(which, dtype=np.uint32)
        self._library.clew_memory_flip(self._handle, len(index), index.ctypes.data, flips.ctypes.data)

    def reference(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) that the scoreboard expects from `address` on."""
        block = np.zeros((count, 8), dtype=np.uint32)
        self._library.clew_memory_reference(self._handle, address, count, block.ctypes.data)
        return block

    def clear(self) -> None:
        """Forgets all content, the scoreboard's as well."""
        self._library.clew_memory_clear(self._handle)

    def _storage_index(self, address: int, count: int) -> NDArray[np.uint64]:
        addresses = np.arange(address, address + count, dtype=np.int64)
        return np.ascontiguousarray(self.map.storage_index(addresses), dtype=np.uint64)


#: What `clew_memory_run` returns when the design stopped itself.
_STOPPED = -2
