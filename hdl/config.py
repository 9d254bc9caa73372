"""Every size and option of the design, as frozen dataclasses that validate themselves."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field

from .memory.address_bits import address_of_place
from .memory.timing import Organisation, TimingPreset, preset

__all__ = [
    "CONFIGS",
    "MEMORY_ENDS",
    "AxiConfig",
    "CacheConfig",
    "ControllerConfig",
    "DesignConfig",
    "HistogramConfig",
    "LinkConfig",
    "MemoryConfig",
    "ScratchpadConfig",
    "WalkerConfig",
    "named_config",
]


#: What may be below the arbiter of a memory channel: controller and device, the controller alone with its
#: command and data buses as ports of the top, or an AXI4 manager.
MEMORY_ENDS = ("model", "bus", "axi4")


def _require(condition: bool, name: str, value: object, expected: str) -> None:
    if not condition:
        raise ValueError(f"{name} is {value!r}: expected {expected}")


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class WalkerConfig:
    """The size of a walker."""

    contexts: int = 16
    """Walks in flight; the tag of `MemoryPort` has room for 64."""
    execute_stages: int = 1
    """Pipeline stages of the execute path: 1 answers in the cycle a record arrives, 6 clocks fastest. With 4
    the instruction is fetched in a stage of its own, with 5 its exit has one too, with 6 what it puts out:
    then requests and verdicts leave in every other cycle at most."""
    outstanding: int = 64
    """Walks that may be launched and not yet answered, shared evenly by the contexts, but one of each: those
    that walk, cross the link or wait beside the walker. A near context of which only one may be stands idle
    while its verdict and the next launch cross."""
    program_words: int = 64
    """Instructions of program memory; entry points and branch targets are 6 bits."""

    def __post_init__(self) -> None:
        _require(1 <= self.contexts <= 64, "walker.contexts", self.contexts, "1 to 64")
        _require(1 <= self.execute_stages <= 6, "walker.execute_stages", self.execute_stages, "1 to 6")
        _require(
            _power_of_two(self.outstanding) and self.outstanding <= 64,
            "walker.outstanding",
            self.outstanding,
            "a power of two from 1 to 64",
        )
        _require(self.program_words == 64, "walker.program_words", self.program_words, "64")

    @property
    def outstanding_each(self) -> int:
        """Outstanding walks of a context, a power of two."""
        return 1 << max(1, self.outstanding // self.contexts).bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    """The size of the off-chip link. Latency and width are registers, not parameters."""

    walk_credits: int = 64
    """Messages in flight on the walk channel, each way: one for every context."""
    bulk_credits: int = 64
    """Messages in flight on the bulk channel, each way."""

    def __post_init__(self) -> None:
        for name in ("walk_credits", "bulk_credits"):
            value = getattr(self, name)
            _require(_power_of_two(value) and value >= 2, f"link.{name}", value, "a power of two from 2")


@dataclass(frozen=True, kw_only=True)
class CacheConfig:
    """The cache of the compute side, in front of the link; how much of it is used is a register."""

    body: str = "none"
    """`none`: there is no cache. `array`: Amaranth memories, synthesizable. `dpi`: in C, simulation only."""
    sets_log2: int = 17
    """log2 of the sets that the registers may ask for at most; a set is chosen by the low address bits."""
    ways: int = 32
    """Lines of a set that the registers may ask for at most."""

    def __post_init__(self) -> None:
        _require(self.body in ("none", "array", "dpi"), "cache.body", self.body, "none, array or dpi")
        _require(0 <= self.sets_log2 <= 17, "cache.sets_log2", self.sets_log2, "0 to 17")
        _require(1 <= self.ways <= 32, "cache.ways", self.ways, "1 to 32")
        _require(
            self.body != "array" or self.lines <= 4096,
            "cache lines of an array",
            self.lines,
            "at most 4096: reduce cache.sets_log2 and cache.ways or use 'dpi'",
        )

    @property
    def built(self) -> bool:
        """There is a cache."""
        return self.body != "none"

    @property
    def lines(self) -> int:
        """Lines of 32 bytes that it has at most; 0 without a cache."""
        return self.ways << self.sets_log2 if self.built else 0


@dataclass(frozen=True, kw_only=True)
class ScratchpadConfig:
    """The banked scratchpad of the compute side; addressed in 32-byte atoms, bank in the low bits."""

    banks: int = 4
    bank_bytes: int = 16 * 1024

    def __post_init__(self) -> None:
        _require(_power_of_two(self.banks), "scratchpad.banks", self.banks, "a power of two")
        _require(
            _power_of_two(self.bank_bytes) and self.bank_bytes >= 1024,
            "scratchpad.bank_bytes",
            self.bank_bytes,
            "a power of two from 1024",
        )
        _require(
            self.banks * self.bank_bytes <= 256 * 1024,
            "scratchpad size",
            self.banks * self.bank_bytes,
            "at most the 256 KiB window of the register map",
        )

    @property
    def atoms(self) -> int:
        """Capacity in 32-byte atoms."""
        return self.banks * self.bank_bytes // 32


@dataclass(frozen=True, kw_only=True)
class ControllerConfig:
    """The size and the policies of a channel controller."""

    decision_stages: int = 1
    """Cycles from what is queued to a command on its way to the bus: 1, or up to 5 for a faster clock. Each
    adds a cycle to every request. With 2 a bank that a command was decided for takes part again two cycles
    later, with 4 three and with 5 four; with 3 the queues are read for a command in the cycle after its
    decision; with 4 each bus carries a command in every second cycle at most, and one that waits for time
    since another comes a cycle later."""
    bank_queue: int = 4
    """Requests of one bank among which the scheduler chooses; the last place is for reads of walks."""
    overflow: int = 32
    """Requests that may wait behind those, all banks together, before they stop the port."""
    write_buffer: int = 32
    """Writes whose data waits for the drain."""
    drain_high: int = 24
    """Buffered writes at which a drain starts."""
    drain_low: int = 8
    """Buffered writes at which a drain ends."""
    drain_idle: int = 64
    """Cycles without a waiting read after which buffered writes are drained anyway."""
    drain_burst: int = 48
    """Cycles for which a drain may hold reads of its pseudo channel back, and then reads a drain."""
    row_hit_cap: int = 16
    """Row hits that may pass an older request of the same bank."""
    age_cap: int = 512
    """Cycles after which a waiting request goes before every younger one."""
    page_policy: str = "adaptive"
    """When a row is closed: `open` only for another row, `closed` by auto-precharge once no hit is queued,
    `adaptive` as the bank's last rows would have wanted it."""
    refresh_postpone: int = 8
    """Intervals of refresh that may be owed while walks wait; JEDEC lets eight be postponed."""
    per_bank_refresh: bool = True
    """Build per-bank refresh in, where the memory has it; without it the mode is all-bank refresh."""
    ecc: bool = False
    """SECDED over each 64 bits; a read takes one cycle more."""
    response_slots: int = 32
    """Responses that may wait for their taker; a read issues only with one reserved."""

    def __post_init__(self) -> None:
        _require(1 <= self.decision_stages <= 5, "controller.decision_stages", self.decision_stages, "1 to 5")
        _require(2 <= self.bank_queue <= 8, "controller.bank_queue", self.bank_queue, "2 to 8")
        _require(
            _power_of_two(self.overflow) and self.overflow >= 2,
            "controller.overflow",
            self.overflow,
            "a power of two from 2",
        )
        _require(
            _power_of_two(self.write_buffer) and self.write_buffer >= 4,
            "controller.write_buffer",
            self.write_buffer,
            "a power of two from 4",
        )
        _require(
            0 <= self.drain_low < self.drain_high <= self.write_buffer,
            "controller.drain_low, drain_high",
            (self.drain_low, self.drain_high),
            "0 <= low < high <= write_buffer",
        )
        for name in ("drain_idle", "drain_burst"):
            value = getattr(self, name)
            _require(1 <= value <= 1023, f"controller.{name}", value, "1 to 1023")
        _require(1 <= self.row_hit_cap <= 255, "controller.row_hit_cap", self.row_hit_cap, "1 to 255")
        _require(
            _power_of_two(self.age_cap) and self.age_cap >= 64,
            "controller.age_cap",
            self.age_cap,
            "a power of two from 64",
        )
        _require(
            self.page_policy in ("open", "closed", "adaptive"),
            "controller.page_policy",
            self.page_policy,
            "open, closed or adaptive",
        )
        _require(
            0 <= self.refresh_postpone <= 8, "controller.refresh_postpone", self.refresh_postpone, "0 to 8"
        )
        _require(
            _power_of_two(self.response_slots) and self.response_slots >= 8,
            "controller.response_slots",
            self.response_slots,
            "a power of two from 8",
        )


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """The memory below the arbiter: what ends there, preset, size, refresh and what stores the data.

    With the end `axi4` the preset says how long a cycle is and how large a channel; its timing, the address
    map and refresh are those of the memory behind the port.
    """

    end: str = "model"
    """`model`: controller and device. `bus`: the controller, its buses as ports of the top. `axi4`: an AXI4
    manager for each channel."""
    preset: str = "hbm2_2000"
    """The name of one of `PRESETS`, or a file of the same format that ends in .toml."""
    channels: int = 1
    """Channels of the stack, each with its own controller, device and near walker; 1 to 16."""
    bank_groups: int | None = None
    """Bank groups of a pseudo channel when fewer than the preset's (FPGA emulator)."""
    banks_per_group: int | None = None
    """Banks of a bank group when fewer than the preset's."""
    rows: int | None = None
    """Rows of a bank when smaller than the preset's (unit tests, FPGA emulator)."""
    columns: int | None = None
    """Atoms of a row when smaller than the preset's."""
    storage: str = "array"
    """`array`: Amaranth memory, synthesizable. `dpi`: sparse pages in C, simulation only. Of the device: with
    the ends `bus` and `axi4` that of a simulation around the design."""
    address_map: tuple[str, ...] = ("pseudo_channel", "bank_group", "column", "bank", "row")
    """The place's bits in an atom address, from the lowest up: fields, bits of fields, XORs of them. The
    notation is that of `hdl/memory/address_bits.py`: "bank", "row[2:0]", "row[3]", "bank^row[1:0]"."""

    def __post_init__(self) -> None:
        base = self.timing.organisation
        for name in ("bank_groups", "banks_per_group", "rows", "columns"):
            value = getattr(self, name)
            if value is not None:
                _require(
                    _power_of_two(value) and 2 <= value <= getattr(base, name),
                    f"memory.{name}",
                    value,
                    f"a power of two from 2 to the preset's {getattr(base, name)}",
                )
        _require(
            _power_of_two(self.channels) and self.channels <= 16,
            "memory.channels",
            self.channels,
            "a power of two up to 16",
        )
        _require(self.storage in ("array", "dpi"), "memory.storage", self.storage, "array or dpi")
        _require(self.end in MEMORY_ENDS, "memory.end", self.end, ", ".join(MEMORY_ENDS))
        try:
            address_of_place(self.address_map, self.organisation)
        except ValueError as error:
            raise ValueError(f"memory.address_map: {error}") from None

    @property
    def controlled(self) -> bool:
        """There is a controller of ours; else what is behind the AXI port has one."""
        return self.end != "axi4"

    @property
    def timing(self) -> TimingPreset:
        """The timing preset, with the preset's own organisation."""
        return preset(self.preset)

    @property
    def organisation(self) -> Organisation:
        """The organisation as built: the preset's, with what is smaller here put in."""
        names = ("bank_groups", "banks_per_group", "rows", "columns")
        smaller = {name: value for name in names if (value := getattr(self, name)) is not None}
        return dataclasses.replace(self.timing.organisation, **smaller)

    @property
    def atoms(self) -> int:
        """Capacity of the stack in 32-byte atoms, all channels together."""
        return self.channels * self.organisation.atoms

    @property
    def peak_bandwidth(self) -> float:
        """Of the stack, in GB/s: every data bus of every channel busy in every cycle."""
        return self.channels * self.timing.peak_bandwidth


@dataclass(frozen=True, kw_only=True)
class AxiConfig:
    """The AXI4 managers of a design whose memory ends with `axi4`; one for each channel, 256 bits wide."""

    id_bits: int = 6
    """Bits of AxID: ID 0 is that of bulk reads and all writes, the others are for single reads. 1 to 8; AMD's
    HBM takes at most 6."""
    address_bits: int = 33
    """Bits of AxADDR, a byte address. AMD's HBM has 33 (Alveo U50 and U280) or 34 (U55C)."""
    outstanding: int = 64
    """Atoms whose read, and atoms whose write, may be unanswered; each read has a place for its data."""
    hazard_buckets: int = 256
    """Addresses that the hazard table tells apart; two that share a bucket wait for each other in vain."""

    def __post_init__(self) -> None:
        _require(1 <= self.id_bits <= 8, "axi.id_bits", self.id_bits, "1 to 8")
        _require(12 <= self.address_bits <= 64, "axi.address_bits", self.address_bits, "12 to 64")
        _require(
            _power_of_two(self.outstanding) and 16 <= self.outstanding <= 256,
            "axi.outstanding",
            self.outstanding,
            "a power of two from 16 to 256",
        )
        _require(
            _power_of_two(self.hazard_buckets) and 16 <= self.hazard_buckets <= 4096,
            "axi.hazard_buckets",
            self.hazard_buckets,
            "a power of two from 16 to 4096",
        )


@dataclass(frozen=True, kw_only=True)
class HistogramConfig:
    """The histograms of loops and walks that the host reads by register."""

    bins: int = 0
    """Bins of each; loops have one for every cycle, and the last one is for all that are longer. 0: none."""
    walk_bin_cycles: int = 16
    """Cycles of a bin of walks."""

    def __post_init__(self) -> None:
        _require(
            self.bins == 0 or (_power_of_two(self.bins) and 2 <= self.bins <= 4096),
            "histogram.bins",
            self.bins,
            "0 or a power of two from 2 to 4096",
        )
        _require(
            _power_of_two(self.walk_bin_cycles),
            "histogram.walk_bin_cycles",
            self.walk_bin_cycles,
            "a power of two",
        )

    @property
    def built(self) -> bool:
        """There are histograms."""
        return self.bins != 0


@dataclass(frozen=True, kw_only=True)
class DesignConfig:
    """The whole design."""

    walker: WalkerConfig = field(default_factory=WalkerConfig)
    link: LinkConfig = field(default_factory=LinkConfig)
    cache: CacheConfig = field(default_factory=CacheConfig)
    scratchpad: ScratchpadConfig = field(default_factory=ScratchpadConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    axi: AxiConfig = field(default_factory=AxiConfig)
    """Counts with the memory end `axi4` only."""
    histogram: HistogramConfig = field(default_factory=HistogramConfig)
    clock_ratio: int = 1
    """Command clock over the clock of the logic beside the memory: near walker, arbiter, controller front end
    (the port, the atomic unit, the way into the bank queues). 1, 2 or 4."""
    boundary_registers: bool = False
    """A register between the link and what is at its ends, between the arbiter and what is below it, between
    the controller's atomic unit and its queues, and before the scratchpad's ports, for a faster clock. A near
    launch takes two cycles more, and its verdict one; a near read three, a far read five, three of them at
    the memory; a read of the scratchpad two."""
    checker: bool = False
    """Build the RTL protocol checker in. Compiled runs record their commands and check those instead."""
    clock_gate: bool = False
    """Leave out the clock edges at which nothing would change but counts of passing time, see `ClockGate`:
    it saves the power of an ASIC, and most of the time of a simulation. A board has no such clock. Designs of
    more than one channel, with stages, ECC, a cache, histograms or a checker have none either (`sleeps`)."""

    def __post_init__(self) -> None:
        _require(self.clock_ratio in (1, 2, 4), "clock_ratio", self.clock_ratio, "1, 2 or 4")
        _require(
            not (self.boundary_registers and self.clock_ratio > 1),
            "boundary_registers",
            self.boundary_registers,
            "False with a clock_ratio above 1",
        )
        if not self.memory.controlled:
            self._require_axi()

    def _require_axi(self) -> None:
        """What the memory behind an AXI port has of its own cannot be asked of this design."""
        where = "with memory.end 'axi4', where the memory has a controller of its own"
        _require(not self.controller.ecc, "controller.ecc", self.controller.ecc, f"False {where}")
        _require(not self.checker, "checker", self.checker, f"False {where}")
        usual = MemoryConfig().address_map
        _require(
            self.memory.address_map == usual,
            "memory.address_map",
            self.memory.address_map,
            f"the usual one, {', '.join(usual)}, {where}",
        )
        needed = (self.memory.atoms * 32 - 1).bit_length()
        _require(
            needed <= self.axi.address_bits,
            "axi.address_bits",
            self.axi.address_bits,
            f"at least the {needed} that the memory's bytes need",
        )

    @property
    def sleeps(self) -> bool:
        """There is a clock gate."""
        return (
            self.clock_gate
            and self.memory.end == "model"
            and self.memory.channels == 1
            and self.clock_ratio == 1
            and self.walker.execute_stages == 1
            and self.controller.decision_stages == 1
            and not (self.controller.ecc or self.boundary_registers or self.checker)
            and not (self.cache.built or self.histogram.built)
        )

    def as_dict(self) -> dict[str, object]:
        """Every parameter as plain JSON types."""
        return dataclasses.asdict(self)

    @property
    def content(self) -> str:
        """Every parameter as JSON text, with the content of the memory preset instead of its name or place.

        What is kept of a design is kept by this: a user's preset file may change, or lie elsewhere.
        """
        memory = dataclasses.asdict(self.memory) | {"preset": self.memory.timing.as_dict()}
        return json.dumps(self.as_dict() | {"memory": memory}, sort_keys=True)

    @property
    def hash(self) -> int:
        """The first 32 bits of the SHA-256 of the `content`; the CONFIG_HASH register holds it."""
        return int.from_bytes(hashlib.sha256(self.content.encode()).digest()[:4], "big")


#: Loops of up to 1,022 cycles and walks of up to 16,367 are not in the last bin.
_HISTOGRAM = HistogramConfig(bins=1024)

#: Named configurations of `clew verilog --config NAME`.
CONFIGS: dict[str, DesignConfig] = {
    "default": DesignConfig(
        # An Amaranth memory writes one line of Verilog for every word, and Yosys reads 2**14 of them for
        # minutes: 4 rows a bank are 2**12 atoms, 128 KiB.
        memory=MemoryConfig(rows=4, columns=32),
        histogram=_HISTOGRAM,
    ),
    "small": DesignConfig(
        walker=WalkerConfig(contexts=4, execute_stages=2, outstanding=4),
        link=LinkConfig(walk_credits=4, bulk_credits=4),
        scratchpad=ScratchpadConfig(banks=2, bank_bytes=2048),
        controller=ControllerConfig(
            bank_queue=3, overflow=4, write_buffer=4, drain_high=3, drain_low=1, response_slots=8
        ),
        memory=MemoryConfig(rows=2, columns=8),
    ),
    "stack": DesignConfig(
        walker=WalkerConfig(contexts=4, outstanding=8),
        link=LinkConfig(walk_credits=8, bulk_credits=8),
        scratchpad=ScratchpadConfig(banks=2, bank_bytes=2048),
        controller=ControllerConfig(
            bank_queue=3, write_buffer=4, drain_high=3, drain_low=1, response_slots=8
        ),
        memory=MemoryConfig(channels=2, rows=2, columns=8),
    ),
    # What fits an ECP5 board, for a fast clock: eight banks of HBM2 instead of 32, short queues, no ECC.
    "ulx3s": DesignConfig(
        walker=WalkerConfig(contexts=2, execute_stages=6, outstanding=1),
        link=LinkConfig(walk_credits=4, bulk_credits=4),
        scratchpad=ScratchpadConfig(banks=2, bank_bytes=2048),
        controller=ControllerConfig(
            decision_stages=5,
            per_bank_refresh=False,
            bank_queue=2,
            overflow=4,
            write_buffer=4,
            drain_high=3,
            drain_low=1,
            response_slots=8,
        ),
        memory=MemoryConfig(bank_groups=2, banks_per_group=2, rows=16, columns=32),
        boundary_registers=True,
    ),
    # Without histograms: its host has the logs of every hop, and they would cost a twentieth of the speed.
    "simulation": DesignConfig(memory=MemoryConfig(storage="dpi"), clock_gate=True),
    "testbench": DesignConfig(memory=MemoryConfig(storage="dpi"), histogram=_HISTOGRAM, checker=True),
}


def named_config(name: str) -> DesignConfig:
    """The configuration called `name`. Raises ValueError that lists the known names."""
    try:
        return CONFIGS[name]
    except KeyError:
        raise ValueError(f"unknown configuration {name!r}: expected one of {', '.join(CONFIGS)}") from None
