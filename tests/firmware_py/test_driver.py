"""The driver against a register file in Python: what it writes where, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from firmware_py.driver import (
    Accelerator,
    BatchError,
    MemoryErrors,
    NoErrorCorrection,
    NoHistograms,
    NotAnAccelerator,
)
from hdl.registers import (
    ID_VALUE,
    MEMORY_WINDOW,
    MEMORY_WINDOW_BYTES,
    REGISTER_BY_NAME,
    REGISTERS,
    SCRATCHPAD_WINDOW,
    VERSION_VALUE,
)

ATOMS = 2 * MEMORY_WINDOW_BYTES // 32


class Memory:
    """A `Backdoor` over an array."""

    def __init__(self) -> None:
        self.atoms = np.zeros((ATOMS, 8), dtype=np.uint32)

    def load(self, address: int, atoms: NDArray[np.uint32]) -> None:
        self.atoms[address : address + len(atoms)] = atoms

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        return self.atoms[address : address + count].copy()


class RegisterFile:
    """A `Transport` to registers, scratchpad and memory window that executes nothing.

    A batch "ends" at once with `completions` in the completion ring and `status`; `interrupts` False: never.
    """

    def __init__(self, *, backdoor: bool = False) -> None:
        self.memory = Memory()
        self.backdoor = self.memory if backdoor else None
        self.registers = {register.name: register.reset for register in REGISTERS}
        self.registers |= {
            "CLOCK_PS": 1000,
            "CONTEXTS": 16,
            "SCRATCHPAD_ATOMS": 64,
            "MEMORY_ATOMS": ATOMS,
            "CHANNELS": 2,
            "CONFIG_HASH": 77,
        }
        self.scratchpad = np.zeros(64 * 8, dtype=np.uint32)
        self.program: dict[int, int] = {}
        self.windows: dict[int, tuple[int, int, int, int]] = {}
        self.completions = np.zeros((0, 8), dtype=np.uint32)
        self.status = 2
        self.interrupts = True
        self.window_accesses = 0
        self.flips: dict[int, int] = {}
        self.ecc = True
        self.histograms: dict[int, list[int]] = {}

    def read32(self, address: int) -> int:
        name = REGISTERS[address // 4].name
        if name == "HISTOGRAM_DATA":
            chosen = self.histograms[self.registers["HISTOGRAM_SELECT"]]
            return chosen[self.registers["HISTOGRAM_INDEX"]]
        return self.registers[name]

    def write32(self, address: int, value: int) -> None:
        name = REGISTERS[address // 4].name
        self.registers[name] = value
        registers = self.registers
        if name == "PROGRAM_WORD3":
            words = [registers[f"PROGRAM_WORD{part}"] for part in range(4)]
            self.program[registers["PROGRAM_INDEX"]] = sum(word << 32 * i for i, word in enumerate(words))
        elif name == "CONTEXT_BUDGET":
            self.windows[registers["CONTEXT_INDEX"]] = (
                registers["CONTEXT_BASE"],
                registers["CONTEXT_LIMIT"],
                registers["CONTEXT_WRITE"],
                value,
            )
        elif name == "INJECT_FLIPS":
            self.flips[registers["INJECT_LANE"]] = value
        elif name == "INJECT_CONTROL" and not self.ecc:
            registers[name] = 0
        elif name == "START":
            base = 8 * registers["COMPLETION_BASE"]
            self.scratchpad[base : base + self.completions.size] = self.completions.ravel()
            registers |= {
                "STATUS": self.status,
                "COMPLETION_COUNT": len(self.completions),
                "BATCH_CYCLES": 1234,
            }

    def _target(self, address: int) -> tuple[NDArray[np.uint32], int]:
        if address < MEMORY_WINDOW:
            return self.scratchpad, (address - SCRATCHPAD_WINDOW) // 4
        self.window_accesses += 1
        page = self.registers["MEMORY_PAGE"] * MEMORY_WINDOW_BYTES
        return self.memory.atoms.reshape(-1), (page + address - MEMORY_WINDOW) // 4

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        words, first = self._target(address)
        return words[first : first + count].copy()

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        target, first = self._target(address)
        assert address + 4 * len(words) <= MEMORY_WINDOW + MEMORY_WINDOW_BYTES
        target[first : first + len(words)] = words

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        return self.interrupts


def test_knows_the_design_from_its_registers() -> None:
    accelerator = Accelerator(RegisterFile())
    assert accelerator.config_hash == 77
    assert accelerator.clock_ns == 1.0
    assert accelerator.contexts == 16
    assert accelerator.memory_atoms == ATOMS
    assert accelerator.channels == 2
    assert (accelerator.command_atoms, accelerator.completion_atoms) == (48, 16)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ID", 0xFFFFFFFF, f"ID is 0xffffffff: expected {ID_VALUE:#010x}"),
        ("VERSION", VERSION_VALUE + 0x10000, r"interface version is 3\.\d+: expected 2\.\d+"),
        ("VERSION", VERSION_VALUE - 1, r"interface version is 2\.\d+: expected 2\.\d+"),
    ],
)
def test_refuses_what_is_not_a_clew(name: str, value: int, message: str) -> None:
    transport = RegisterFile()
    transport.registers[name] = value
    with pytest.raises(NotAnAccelerator, match=message):
        Accelerator(transport)


def test_a_later_minor_version_is_known() -> None:
    transport = RegisterFile()
    transport.registers["VERSION"] = VERSION_VALUE + 5
    Accelerator(transport)


def test_program_words_reach_their_places() -> None:
    transport = RegisterFile()
    words = [0x0123456789ABCDEF0011223344556677, (1 << 128) - 1]
    Accelerator(transport).load_program(words, first=3)
    assert transport.program == {3: words[0], 4: words[1]}


def test_program_limits() -> None:
    accelerator = Accelerator(RegisterFile())
    with pytest.raises(ValueError, match="instructions 60 to 64: expected within 0 to 63"):
        accelerator.load_program([0] * 5, first=60)
    with pytest.raises(ValueError, match=r"instruction 0 .* expected 128 bits"):
        accelerator.load_program([1 << 128])


def test_context_is_configured_as_a_whole() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    accelerator.configure_context(5, base=10, limit=200, writable=True, budget=99)
    accelerator.configure_context(6, base=0, limit=1, writable=False)
    accelerator.configure_context(7, base=0, limit=1, writable=True, tenant=1)
    whole = (1 << 24) - 1
    assert transport.windows == {5: (10, 200, 1, 99), 6: (0, 1, 0, whole), 7: (0, 1, 3, whole)}
    with pytest.raises(ValueError, match="tenant is 2: expected 0 or 1"):
        accelerator.configure_context(7, base=0, limit=1, writable=False, tenant=2)
    with pytest.raises(ValueError, match="context is 16: expected 0 to 15"):
        accelerator.configure_context(16, base=0, limit=1, writable=False)


def test_link_settings() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    accelerator.set_link(latency_up=100, latency_down=90, bytes_per_cycle=64)
    values = [
        transport.registers[f"LINK_{name}"] for name in ("LATENCY_UP", "LATENCY_DOWN", "BYTES_PER_CYCLE")
    ]
    assert values == [100, 90, 64]
    with pytest.raises(ValueError, match="LINK_LATENCY_DOWN is 65536: expected 16 bits"):
        accelerator.set_link(latency_up=0, latency_down=1 << 16)


@pytest.mark.parametrize("first", [0, 8190, 8191, 8192])
def test_memory_window_crosses_pages(first: int) -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    atoms = np.arange(32, dtype=np.uint32).reshape(4, 8) + 7
    accelerator.write_memory(first, atoms)
    assert (transport.memory.fetch(first, 4) == atoms).all()
    assert transport.memory.atoms.sum() == atoms.sum()
    assert (accelerator.read_memory(first, 4) == atoms).all()


def test_memory_range_is_checked() -> None:
    accelerator = Accelerator(RegisterFile(backdoor=True))
    atoms = np.zeros((2, 8), dtype=np.uint32)
    for action in (accelerator.write_memory, accelerator.load_image):
        with pytest.raises(ValueError, match=f"atoms {ATOMS - 1} to {ATOMS}: expected within"):
            action(ATOMS - 1, atoms)


def test_an_image_takes_the_backdoor_when_there_is_one() -> None:
    atoms = np.arange(16, dtype=np.uint32).reshape(2, 8)
    for backdoor, accesses in ((True, 0), (False, 1)):
        transport = RegisterFile(backdoor=backdoor)
        Accelerator(transport).load_image(40, atoms)
        assert (transport.memory.fetch(40, 2) == atoms).all()
        assert transport.window_accesses == accesses


def test_batch_gives_completions_and_cycles() -> None:
    transport = RegisterFile()
    transport.completions = np.array([[3 | 1 << 27, 9, 50, 40, 0, 1, 2, 3]], dtype=np.uint32)
    accelerator = Accelerator(transport)
    commands = np.arange(24, dtype=np.uint32).reshape(3, 8)
    completions = accelerator.run_batch(commands)
    assert (transport.scratchpad[:24] == commands.ravel()).all()
    assert transport.registers["COMMAND_COUNT"] == 3
    assert completions.cycles == 1234
    assert len(completions.records) == 1
    assert completions.records[0]["tag"] == 3
    assert completions.records[0]["place"] == 1
    assert completions.records[0]["hops"] == 9


def test_batch_failures_are_told_apart() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    commands = np.zeros((1, 8), dtype=np.uint32)
    with pytest.raises(ValueError, match="has 49 atoms: expected at most the ring's 48"):
        accelerator.run_batch(np.zeros((49, 8), dtype=np.uint32))
    transport.status = 6
    with pytest.raises(BatchError, match="STATUS 0x6: expected defined commands"):
        accelerator.run_batch(commands)
    transport.interrupts = False
    with pytest.raises(BatchError, match="not ended after 500 cycles"):
        accelerator.run_batch(commands, timeout_cycles=500)


def test_memory_errors_have_an_address_only_if_there_was_one() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    transport.registers |= {"COUNT_CORRECTED": 3, "CORRECTED_ADDRESS": 0, "UNCORRECTABLE_ADDRESS": 9}
    assert accelerator.memory_errors() == MemoryErrors(
        corrected=3, corrected_address=0, uncorrectable=0, uncorrectable_address=None
    )
    transport.registers |= {"COUNT_UNCORRECTABLE": 1}
    assert accelerator.memory_errors().uncorrectable_address == 9


def test_a_fault_is_set_lane_by_lane_and_then_armed() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    accelerator.inject_fault(77, [0, 33, 287])
    assert transport.flips == {lane: 0 for lane in range(9)} | {0: 1, 1: 2, 8: 1 << 31}
    assert transport.registers["INJECT_ADDRESS"] == 77
    assert transport.registers["INJECT_CONTROL"] == 1 and accelerator.fault_armed
    accelerator.inject_fault(5, [255], sticky=True)
    assert transport.flips == {lane: 0 for lane in range(9)} | {7: 1 << 31}
    assert transport.registers["INJECT_CONTROL"] == 3
    accelerator.withdraw_fault()
    assert not accelerator.fault_armed


def test_faults_that_cannot_be_injected_are_refused() -> None:
    transport = RegisterFile()
    accelerator = Accelerator(transport)
    with pytest.raises(ValueError, match="bit is 288: expected 0 to 287"):
        accelerator.inject_fault(0, [288])
    with pytest.raises(ValueError, match="expected within the memory"):
        accelerator.inject_fault(ATOMS, [0])
    assert transport.registers["INJECT_CONTROL"] == 0
    transport.ecc = False
    with pytest.raises(NoErrorCorrection, match="expected one built with ECC"):
        accelerator.inject_fault(0, [0])


def test_counters_by_name() -> None:
    transport = RegisterFile()
    transport.registers |= {"CYCLES_LOW": 5, "CYCLES_HIGH": 1, "COUNT_ROW_HITS": 12}
    counts = Accelerator(transport).counters()
    assert counts["cycles"] == (1 << 32) + 5
    assert counts["row_hits"] == 12
    assert len(counts) == 1 + sum(name.startswith("COUNT_") for name in REGISTER_BY_NAME)


def test_sets_and_reads_the_cache() -> None:
    transport = RegisterFile()
    transport.registers |= {"CACHE_LINES": 64, "COUNT_CACHE_HITS": 9, "COUNT_CACHE_MISSES": 4}
    accelerator = Accelerator(transport)
    accelerator.set_cache(sets_log2=2, ways=16, hit_latency=151)
    names = ("CACHE_SETS_LOG2", "CACHE_WAYS", "CACHE_HIT_LATENCY", "CACHE_CLEAR")
    assert [transport.registers[name] for name in names] == [2, 16, 151, 1]
    assert accelerator.cache_counts() == (9, 4)
    accelerator.set_cache(sets_log2=0, ways=0, hit_latency=0)
    assert transport.registers["CACHE_WAYS"] == 0


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        (
            {"sets_log2": 2, "ways": 17, "hit_latency": 0},
            r"17 ways in 2\*\*2 sets: expected at most the design's 64",
        ),
        ({"sets_log2": 2, "ways": 16, "hit_latency": 1 << 16}, "hit latency is 65536: expected 16 bits"),
    ],
)
def test_refuses_a_cache_that_the_design_has_not(geometry: dict[str, int], message: str) -> None:
    transport = RegisterFile()
    transport.registers["CACHE_LINES"] = 64
    with pytest.raises(ValueError, match=message):
        Accelerator(transport).set_cache(**geometry)
    transport.registers["CACHE_LINES"] = 0
    with pytest.raises(ValueError, match="the design's 0 lines"):
        Accelerator(transport).set_cache(sets_log2=0, ways=1, hit_latency=0)


def test_histograms_are_read_bin_by_bin() -> None:
    transport = RegisterFile()
    transport.registers |= {"HISTOGRAM_BINS": 4, "WALK_BIN_CYCLES": 16}
    # By the value of the select register: near of both channels, far, walks near and far.
    transport.histograms = {
        select: [select, 1, 0, (1 << 32) - 1] for select in (0, 1, 1 << 4, 1 << 5, 1 << 4 | 1 << 5)
    }
    accelerator = Accelerator(transport)
    assert accelerator.walk_bin_cycles == 16
    assert accelerator.loop_histogram(0).tolist() == [0, 1, 0, (1 << 32) - 1]
    assert accelerator.loop_histogram(0, 1)[0] == 1
    assert accelerator.loop_histogram(1)[0] == 1 << 4
    assert accelerator.walk_histogram(0)[0] == 1 << 5
    assert accelerator.walk_histogram(1)[0] == 1 << 4 | 1 << 5
    with pytest.raises(ValueError, match="channel is 2: expected 0 to 1"):
        accelerator.loop_histogram(0, 2)
    with pytest.raises(ValueError, match="place is 2: expected 0 near or 1 far"):
        accelerator.walk_histogram(2)


def test_a_design_without_histograms_says_so() -> None:
    with pytest.raises(NoHistograms, match=r"expected one built with `histogram\.bins`"):
        Accelerator(RegisterFile()).loop_histogram(0)
