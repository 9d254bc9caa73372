"""The accelerator as a Python object: needs the register map and a transport, and nothing of a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import ATOM_CHECK_WIDTH, ATOM_WIDTH, CHANNEL_WIDTH, CONTEXT_WIDTH, RefreshMode
from hdl.memory.injector import LANE_WIDTH, LANES
from hdl.registers import (
    ID_VALUE,
    MEMORY_WINDOW,
    MEMORY_WINDOW_BYTES,
    REGISTER_BY_NAME,
    SCRATCHPAD_WINDOW,
    VERSION_VALUE,
)

from .completion import Completions, parse
from .transport.base import Transport

if TYPE_CHECKING:
    from .simulated import SimulatedAccelerator

__all__ = [
    "Accelerator",
    "BatchError",
    "MemoryErrors",
    "NoErrorCorrection",
    "NoHistograms",
    "NotAnAccelerator",
]

_ATOM_BYTES = 32
_STATUS_DONE = 2
_STATUS_ERROR = 4


class NotAnAccelerator(RuntimeError):
    """What answers at the transport's other end is not a Clew that this driver knows."""


class BatchError(RuntimeError):
    """A batch that did not end, or that the Sequencer refused."""


class NoErrorCorrection(RuntimeError):
    """The design was built without ECC, so it has no fault injector."""


class NoHistograms(RuntimeError):
    """The design was built without histograms."""


@dataclass(frozen=True, kw_only=True)
class MemoryErrors:
    """What ECC has found since the counters were reset: reads by kind, and the atom of the last of each."""

    corrected: int
    uncorrectable: int
    corrected_address: int | None
    """None: there was none."""
    uncorrectable_address: int | None


class Accelerator:
    """One Clew behind a transport. Every method blocks; settings may be changed only between batches.

    The scratchpad holds two rings: commands in its first three quarters, completion records in the rest.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        found = self.read_register("ID")
        if found != ID_VALUE:
            raise NotAnAccelerator(f"register ID is {found:#010x}: expected {ID_VALUE:#010x}")
        version = self.read_register("VERSION")
        if version >> 16 != VERSION_VALUE >> 16 or version < VERSION_VALUE:
            raise NotAnAccelerator(
                f"interface version is {version >> 16}.{version & 0xFFFF}: expected "
                f"{VERSION_VALUE >> 16}.{VERSION_VALUE & 0xFFFF} or a later minor version"
            )
        self.config_hash = self.read_register("CONFIG_HASH")
        self.clock_ns = self.read_register("CLOCK_PS") / 1000
        self.contexts = self.read_register("CONTEXTS")
        self.memory_atoms = self.read_register("MEMORY_ATOMS")
        self.channels = self.read_register("CHANNELS")
        self.scratchpad_atoms = self.read_register("SCRATCHPAD_ATOMS")
        self.completion_atoms = self.scratchpad_atoms // 4
        self.command_atoms = self.scratchpad_atoms - self.completion_atoms
        self.cache_lines = self.read_register("CACHE_LINES")
        self.histogram_bins = self.read_register("HISTOGRAM_BINS")
        self.walk_bin_cycles = self.read_register("WALK_BIN_CYCLES")
        self.write_register("INTERRUPT_ENABLE", 1)
        self.write_register("COMMAND_BASE", 0)
        self.write_register("COMPLETION_BASE", self.command_atoms)
        self.write_register("COMPLETION_SIZE", self.completion_atoms)

    @staticmethod
    def simulate(
        memory: str = "hbm2_2000",
        *,
        channels: int = 1,
        ecc: bool = False,
        address_map: str | None = None,
        contexts: int | None = None,
        stages: int = 1,
        clock_ratio: int = 1,
        announce: Callable[[str], None] | None = None,
    ) -> SimulatedAccelerator:
        """An accelerator that is simulated in this process, cycle by cycle; see `SimulatedAccelerator`.

        `memory` is a memory preset (`clew timing` lists them) or a file FILE.toml, of which the stack has
        `channels` (1, 2, 4, 8 or 16); `ecc` corrects memory errors, for a cycle more a read; `address_map`
        lists the entries of another map than the usual one, with commas. Each walker has `contexts` (1 to
        64; 16) and execute `stages` (1 to 6); the logic at the memory runs at the memory's clock over
        `clock_ratio` (1, 2 or 4). The first call for a design compiles it, which takes a minute or two;
        `announce` is told, for example `print`. Raises InputError (a ValueError) for a setting that cannot
        be, OSError for a preset file that cannot be read, BuildError when a tool fails.
        """
        # A board's host has no simulator.
        from .settings import DesignSettings
        from .simulated import SimulatedAccelerator

        settings = DesignSettings(
            memory=memory,
            channels=channels,
            ecc=ecc,
            address_map=address_map,
            contexts=contexts,
            stages=stages,
            clock_ratio=clock_ratio,
        )
        return SimulatedAccelerator(settings.config(), announce=announce)

    def __repr__(self) -> str:
        channels = "1 channel" if self.channels == 1 else f"{self.channels} channels"
        memory = self.memory_atoms * _ATOM_BYTES / (1 << 20)
        return (
            f"<{type(self).__name__}: {channels} of memory, {memory:,g} MiB in all, {self.contexts} contexts "
            f"a walker, 1 cycle = {self.clock_ns:g} ns>"
        )

    # -- Registers --

    def read_register(self, name: str) -> int:
        """The value of the register called `name`."""
        return self.transport.read32(REGISTER_BY_NAME[name].offset)

    def write_register(self, name: str, value: int) -> None:
        """Writes the register called `name`. Raises ValueError when `value` is not 32 bits."""
        if not 0 <= value < 1 << 32:
            raise ValueError(f"register {name}: {value} does not fit: expected 32 bits")
        self.transport.write32(REGISTER_BY_NAME[name].offset, value)

    # -- Settings --

    def load_program(self, words: Sequence[int], *, first: int = 0) -> None:
        """Writes 128-bit instructions to all walkers' program memory from index `first`."""
        if not 0 <= first <= first + len(words) <= 64:
            raise ValueError(f"instructions {first} to {first + len(words) - 1}: expected within 0 to 63")
        for index, word in enumerate(words, start=first):
            if not 0 <= word < 1 << 128:
                raise ValueError(f"instruction {index} is {word:#x}: expected 128 bits")
            self.write_register("PROGRAM_INDEX", index)
            for part in range(4):
                self.write_register(f"PROGRAM_WORD{part}", word >> 32 * part & 0xFFFFFFFF)

    def configure_context(
        self,
        context: int,
        *,
        base: int,
        limit: int,
        writable: bool,
        budget: int = (1 << 24) - 1,
        channel: int = 0,
        tenant: int = 0,
    ) -> None:
        """Sets what walks in `context` may do, in the far walker and in the near walker of `channel`.

        Their window is the atoms base <= address < limit, `writable` permits stores, and a walk ends after
        `budget` steps. While contexts of both tenants (0 and 1) walk, each tenant gets its share of the
        walker and the memory.
        """
        if not 0 <= context < self.contexts:
            raise ValueError(f"context is {context}: expected 0 to {self.contexts - 1}")
        if not 0 <= channel < self.channels:
            raise ValueError(f"channel is {channel}: expected 0 to {self.channels - 1}")
        if not 0 <= budget < 1 << 24:
            raise ValueError(f"budget is {budget}: expected 24 bits")
        if tenant not in (0, 1):
            raise ValueError(f"tenant is {tenant}: expected 0 or 1")
        self.write_register("CONTEXT_INDEX", context | channel << CONTEXT_WIDTH)
        self.write_register("CONTEXT_BASE", base)
        self.write_register("CONTEXT_LIMIT", limit)
        self.write_register("CONTEXT_WRITE", int(writable) | tenant << 1)
        self.write_register("CONTEXT_BUDGET", budget)

    def set_link(self, *, latency_up: int, latency_down: int, bytes_per_cycle: int = 0) -> None:
        """Sets the off-chip link: cycles added each way, and its width (0: a message a cycle)."""
        for name, value in (
            ("LINK_LATENCY_UP", latency_up),
            ("LINK_LATENCY_DOWN", latency_down),
            ("LINK_BYTES_PER_CYCLE", bytes_per_cycle),
        ):
            if not 0 <= value < 1 << 16:
                raise ValueError(f"{name} is {value}: expected 16 bits")
            self.write_register(name, value)

    def set_refresh(self, mode: RefreshMode) -> None:
        """How the memory is refreshed from the next batch on; all-bank at first."""
        self.write_register("REFRESH", mode.value)

    def set_cache(self, *, sets_log2: int, ways: int, hit_latency: int) -> None:
        """Sets the geometry of the compute side's cache (`ways` 0: off) and forgets its lines.

        A hit takes `hit_latency` cycles more than the least. Raises ValueError for a geometry beyond what the
        design has, also for one without a cache.
        """
        lines = ways << sets_log2
        if not 0 <= lines <= self.cache_lines or not 0 <= sets_log2 < 32 or not 0 <= ways < 64:
            raise ValueError(
                f"cache of {ways} ways in 2**{sets_log2} sets: expected at most the design's "
                f"{self.cache_lines} lines"
            )
        if not 0 <= hit_latency < 1 << 16:
            raise ValueError(f"hit latency is {hit_latency}: expected 16 bits")
        self.write_register("CACHE_SETS_LOG2", sets_log2)
        self.write_register("CACHE_WAYS", ways)
        self.write_register("CACHE_HIT_LATENCY", hit_latency)
        self.write_register("CACHE_CLEAR", 1)

    # -- Memory --

    def write_memory(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Writes atoms (uint32, [n, 8]) to consecutive atom addresses, through the memory window.

        The window writes 32 bits at a time, which with ECC reads first: an atom that cannot be corrected is
        healed by a WRITE or a COPY of a batch only, which write it whole.
        """
        words = self._words(atoms)
        for offset, page, window, count in self._window(address, len(words) // 8):
            self.write_register("MEMORY_PAGE", page)
            self.transport.write_block(window, words[8 * offset : 8 * (offset + count)])

    def read_memory(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) at consecutive atom addresses, through the memory window."""
        atoms = np.zeros((count, 8), dtype=np.uint32)
        for offset, page, window, part in self._window(address, count):
            self.write_register("MEMORY_PAGE", page)
            atoms[offset : offset + part] = self.transport.read_block(window, 8 * part).reshape(-1, 8)
        return atoms

    def load_image(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Puts an initial image into memory: by the transport's backdoor when it has one."""
        backdoor = self.transport.backdoor
        if backdoor is not None:
            self._require_memory(address, len(atoms))
            backdoor.load(address, self._words(atoms).reshape(-1, 8))
        else:
            self.write_memory(address, atoms)

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        """As `read_memory`, for much of it: the link's latency, which each word takes, is 0 meanwhile."""
        link = {name: self.read_register(name) for name in ("LINK_LATENCY_UP", "LINK_LATENCY_DOWN")}
        for name in link:
            self.write_register(name, 0)
        atoms = self.read_memory(address, count)
        for name, cycles in link.items():
            self.write_register(name, cycles)
        return atoms

    @staticmethod
    def _words(atoms: NDArray[np.uint32]) -> NDArray[np.uint32]:
        if atoms.ndim != 2 or atoms.shape[1] != 8:
            raise ValueError(f"atoms have the shape {atoms.shape}: expected [n, 8]")
        return np.ascontiguousarray(atoms, dtype=np.uint32).ravel()

    def _require_memory(self, address: int, count: int) -> None:
        if not 0 <= address <= address + count <= self.memory_atoms:
            raise ValueError(
                f"atoms {address} to {address + count - 1}: expected within the memory's {self.memory_atoms}"
            )

    def _window(self, address: int, count: int) -> list[tuple[int, int, int, int]]:
        """The pages of an access: offset in it, number of the page, byte address in the window, atoms."""
        self._require_memory(address, count)
        parts = []
        offset = 0
        while offset < count:
            byte = (address + offset) * _ATOM_BYTES
            within = byte % MEMORY_WINDOW_BYTES
            part = min(count - offset, (MEMORY_WINDOW_BYTES - within) // _ATOM_BYTES)
            parts.append((offset, byte // MEMORY_WINDOW_BYTES, MEMORY_WINDOW + within, part))
            offset += part
        return parts

    # -- Batches --

    def run_batch(
        self, command_atoms: NDArray[np.uint32], *, timeout_cycles: int = 1_000_000_000
    ) -> Completions:
        """Executes a batch of commands (uint32, [n, 8]) and returns its completion records and cycles.

        Raises ValueError when the commands do not fit in their ring, BatchError when the batch has not
        ended after `timeout_cycles`, held an undefined command, wrote more records than there is room, or a
        write or copy of it failed.
        """
        words = self._words(command_atoms)
        count = len(words) // 8
        if count > self.command_atoms:
            raise ValueError(f"the batch has {count} atoms: expected at most the ring's {self.command_atoms}")
        self.transport.write_block(SCRATCHPAD_WINDOW, words)
        self.write_register("COMMAND_COUNT", count)
        self.write_register("INTERRUPT_PENDING", 1)
        self.write_register("START", 1)
        if not self.transport.wait_interrupt(timeout_cycles):
            raise BatchError(
                f"the batch of {count} atoms has not ended after {timeout_cycles} cycles: "
                f"STATUS is {self.read_register('STATUS'):#x}"
            )
        status = self.read_register("STATUS")
        arrived = self.read_register("COMPLETION_COUNT")
        if status & _STATUS_ERROR or not status & _STATUS_DONE:
            raise BatchError(
                f"the Sequencer ended the batch of {count} atoms after {arrived} completions with STATUS "
                f"{status:#x}: expected defined commands, at most {self.completion_atoms} completions, and "
                "no write or copy that failed"
            )
        base = SCRATCHPAD_WINDOW + _ATOM_BYTES * self.command_atoms
        atoms = self.transport.read_block(base, 8 * arrived).reshape(-1, 8)
        return Completions(records=parse(atoms), cycles=self.read_register("BATCH_CYCLES"))

    # -- Counters --

    def cache_counts(self) -> tuple[int, int]:
        """Hits and misses of the compute side's cache since `reset_counters`, inside batches."""
        return self.read_register("COUNT_CACHE_HITS"), self.read_register("COUNT_CACHE_MISSES")

    def reset_counters(self) -> None:
        """Zeroes the cycle counter, the event counters and the histograms.

        The histograms read as zero at once; the design clears one bin of each a cycle, and a batch that is
        started meanwhile waits for it.
        """
        self.write_register("RESET_COUNTERS", 1)

    def count_channels(self, channels: Iterable[int]) -> None:
        """Which channels' events the counters count from now on; all at first. Violations always count."""
        mask = 0
        for channel in channels:
            if not 0 <= channel < self.channels:
                raise ValueError(f"channel is {channel}: expected 0 to {self.channels - 1}")
            mask |= 1 << channel
        self.write_register("COUNTED_CHANNELS", mask)

    def counters(self) -> dict[str, int]:
        """The event counters by register name in lower case, and `cycles` inside batches.

        They count the events of all channels, or of those that `count_channels` chose.
        """
        names = [name for name in REGISTER_BY_NAME if name.startswith("COUNT_")]
        counts = {name.removeprefix("COUNT_").lower(): self.read_register(name) for name in names}
        counts["cycles"] = self.read_register("CYCLES_LOW") | self.read_register("CYCLES_HIGH") << 32
        return counts

    def loop_histogram(self, place: int, channel: int = 0) -> NDArray[np.int64]:
        """Loops inside batches since `reset_counters`, by their cycles: bin n holds those of n cycles.

        Those of the far walker (`place` 1) or of the near walker (0) of `channel`, by the definition of
        `firmware_py.ledger.loops`; of `histogram_bins` bins the last holds all that took as long or longer.
        Counts are 32 bits and wrap. Raises ValueError for a place or channel that is not there, NoHistograms
        for a design without.
        """
        if not 0 <= channel < self.channels:
            raise ValueError(f"channel is {channel}: expected 0 to {self.channels - 1}")
        return self._histogram(walks=0, place=place, channel=channel)

    def walk_histogram(self, place: int) -> NDArray[np.int64]:
        """Walks inside batches since `reset_counters`, from launch to verdict, both at the compute side.

        Those of the near walkers (`place` 0) or of the far one (1). Bin n holds walks of at least n and fewer
        than n + 1 times `walk_bin_cycles` cycles, the last bin longer ones too. Raises ValueError for another
        place, NoHistograms for a design without.
        """
        return self._histogram(walks=1, place=place, channel=0)

    def _histogram(self, *, walks: int, place: int, channel: int) -> NDArray[np.int64]:
        if place not in (0, 1):
            raise ValueError(f"place is {place}: expected 0 near or 1 far")
        if not self.histogram_bins:
            raise NoHistograms("the design has no histograms: expected one built with `histogram.bins`")
        self.write_register("HISTOGRAM_SELECT", channel | place << CHANNEL_WIDTH | walks << CHANNEL_WIDTH + 1)
        counts = np.zeros(self.histogram_bins, dtype=np.int64)
        for index in range(self.histogram_bins):
            self.write_register("HISTOGRAM_INDEX", index)
            counts[index] = self.read_register("HISTOGRAM_DATA")
        return counts

    # -- Error correction --

    def memory_errors(self) -> MemoryErrors:
        """What ECC has found since `reset_counters`; nothing in a design without ECC."""
        corrected, uncorrectable = (self.read_register(f"COUNT_{k}") for k in ("CORRECTED", "UNCORRECTABLE"))
        return MemoryErrors(
            corrected=corrected,
            uncorrectable=uncorrectable,
            corrected_address=self.read_register("CORRECTED_ADDRESS") if corrected else None,
            uncorrectable_address=self.read_register("UNCORRECTABLE_ADDRESS") if uncorrectable else None,
        )

    def inject_fault(self, address: int, bits: Iterable[int], *, sticky: bool = False) -> None:
        """Lets the next read of an atom (`sticky`: every read) return with `bits` flipped.

        Bits 0 to 255 are the atom's data, 256 to 287 its check bits. What is stored stays as it is. There is
        one fault at a time. Raises ValueError for a bit or an atom that does not exist and NoErrorCorrection
        for a design without ECC.
        """
        self._require_memory(address, 1)
        flips = [0] * LANES
        for bit in bits:
            if not 0 <= bit < ATOM_WIDTH + ATOM_CHECK_WIDTH:
                raise ValueError(f"bit is {bit}: expected 0 to {ATOM_WIDTH + ATOM_CHECK_WIDTH - 1}")
            flips[bit // LANE_WIDTH] ^= 1 << bit % LANE_WIDTH
        for lane, mask in enumerate(flips):
            self.write_register("INJECT_LANE", lane)
            self.write_register("INJECT_FLIPS", mask)
        self.write_register("INJECT_ADDRESS", address)
        self.write_register("INJECT_CONTROL", 3 if sticky else 1)
        if not self.fault_armed:
            raise NoErrorCorrection("the design has no fault injector: expected one built with ECC")

    def withdraw_fault(self) -> None:
        """No read is disturbed any more."""
        self.write_register("INJECT_CONTROL", 0)

    @property
    def fault_armed(self) -> bool:
        """An injected fault still waits for a read, or is sticky."""
        return bool(self.read_register("INJECT_CONTROL") & 1)
