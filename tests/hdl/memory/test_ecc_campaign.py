"""The fault campaign: stored bits are flipped under every kind of access, and every fault is accounted for.

Every single and every double error of a code word, in each word of an atom, is put into the storage; then
the atoms are read, or written whole, in part or on a condition. A model in Python says what each access is
answered with, what the error monitor reports, and what the storage holds afterwards, bit for bit, neighbours
included. The scoreboard of the harness compares the data. Seeds are fixed: a failure repeats.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np
import pytest
from numpy.typing import NDArray

from hdl.layouts import MemoryStatus, RefreshMode
from hdl.memory.ecc import ATOM_WORDS, CHECK_WIDTH, WORD_BYTES, WORD_WIDTH
from sim.compiled_memory import EXPECT_HELD, CompiledMemory, Pauses, Run, chain, requests
from sim.model.ecc import atom_checks

from .soak import Traffic
from .subsystem import ECC_CONFIG

TIMING = ECC_CONFIG.memory.timing
BITS = WORD_WIDTH + CHECK_WIDTH
#: Every single and every double error of a code word, as positions in it: check bits follow the data.
FAULTS = [*itertools.combinations(range(BITS), 1), *itertools.combinations(range(BITS), 2)]
FULL = 0xFFFF_FFFF


@pytest.fixture(scope="module")
def memory() -> Iterator[CompiledMemory]:
    with CompiledMemory(ECC_CONFIG) as compiled:
        yield compiled


def _bit(word: int, position: int) -> int:
    """The position in the atom with its check bits (0 to 287) of a position in a code word."""
    check = position - WORD_WIDTH
    return WORD_WIDTH * word + position if check < 0 else WORD_WIDTH * ATOM_WORDS + CHECK_WIDTH * word + check


def _word(bit: int) -> int:
    """The code word that a bit of the atom belongs to."""
    check = bit - WORD_WIDTH * ATOM_WORDS
    return bit // WORD_WIDTH if check < 0 else check // CHECK_WIDTH


@dataclass
class Region:
    """Consecutive atoms of random content, some of which have wrong bits, and what accesses find there."""

    memory: CompiledMemory
    base: int
    count: int
    rng: np.random.Generator
    wrong: dict[int, set[int]] = field(default_factory=dict)
    """Wrong stored bits by address, against the code word of what the scoreboard holds."""
    reported: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """(address, uncorrectable) of every error that the monitor must report."""

    def __post_init__(self) -> None:
        self.memory.clear()
        self.memory.load(self.base, self.rng.integers(1 << 32, size=(self.count, 8), dtype=np.uint32))

    def draw(self, number: int) -> NDArray[np.int64]:
        """Different addresses of the region."""
        return self.base + self.rng.choice(self.count, size=number, replace=False)

    def spoil(self, address: int, bits: set[int]) -> None:
        self.wrong[address] = bits
        self.memory.flip([address] * len(bits), sorted(bits))

    def _read(self, address: int) -> MemoryStatus:
        words = Counter(_word(bit) for bit in self.wrong.get(address, ()))
        if not words:
            return MemoryStatus.OK
        bad = max(words.values()) > 1
        self.reported[address, bad] += 1
        return MemoryStatus.POISONED if bad else MemoryStatus.CORRECTED

    def answer(self, request: np.void) -> MemoryStatus:
        """What a request is answered with; takes effect on the wrong bits."""
        address, mask = int(request["address"]), int(request["mask"])
        if not request["write"]:
            return self._read(address)
        enables = [mask >> WORD_BYTES * word & 0xFF for word in range(ATOM_WORDS)]
        if request["conditional"] or not set(enables) <= {0, 0xFF}:
            if self._read(address) is MemoryStatus.POISONED:
                return MemoryStatus.POISONED
            if request["conditional"] not in (0, EXPECT_HELD):
                return MemoryStatus.MISMATCH
        self.wrong[address] = {bit for bit in self.wrong.get(address, ()) if not enables[_word(bit)]}
        return MemoryStatus.OK

    def run(self, accesses: NDArray[np.void], *, seed: int) -> Run:
        """Runs the requests and holds everything against the model."""
        expected = [self.answer(request) for request in accesses]
        run = self.memory.run(
            accesses,
            refresh=RefreshMode.ALL_BANK,
            idle=Pauses(share=0.1, length=20),
            stall=Pauses(share=0.3, length=5),
            seed=seed,
            poison=True,
        )
        run.require_clean()
        answers = run.answers
        found = [MemoryStatus(status) for status in answers["status"].tolist()]
        differ = [n for n, (one, other) in enumerate(zip(found, expected, strict=True)) if one is not other]
        assert not differ, f"{accesses[differ[0]]} was answered {found[differ[0]]}: {expected[differ[0]]}"
        poisoned = (answers["status"] == MemoryStatus.POISONED.value) & (accesses["write"] == 0)
        assert not answers["data"][poisoned].any(), "an uncorrectable read returned data"
        errors = zip(run.errors["address"].tolist(), run.errors["uncorrectable"].tolist(), strict=True)
        assert Counter((address, bool(bad)) for address, bad in errors) == self.reported
        self.reported.clear()
        self.check_storage()
        return run

    def check_storage(self) -> None:
        """The storage is what the scoreboard holds, with its check bits and the wrong bits that are left."""
        self.memory.run(requests([]))  # a restart brings buffered writes to the storage
        held = self.memory.reference(self.base, self.count)
        atoms = np.concatenate((held, atom_checks(held)[:, np.newaxis]), axis=1)
        for address, bits in self.wrong.items():
            for bit in bits:
                atoms[address - self.base, bit // 32] ^= np.uint32(1 << bit % 32)
        stored = self.memory.fetch(self.base, self.count)
        checks = self.memory.fetch_checks(self.base, self.count)
        differ = np.flatnonzero((np.column_stack((stored, checks)) != atoms).any(axis=1))
        assert not len(differ), f"atom {self.base + differ[0]:#x} is not stored as it should be"


def _region(memory: CompiledMemory, seed: int) -> tuple[Region, np.random.Generator]:
    rng = np.random.default_rng(seed)
    count = 1 << 15
    base = int(rng.integers(memory.map.atoms - count))
    return Region(memory=memory, base=base, count=count, rng=rng), rng


def _spoil_every_way(region: Region) -> NDArray[np.int64]:
    """One atom for each fault in each of the four words; returns their addresses."""
    cases = list(itertools.product(range(ATOM_WORDS), FAULTS))
    victims = region.draw(len(cases))
    for address, (word, positions) in zip(victims.tolist(), cases, strict=True):
        region.spoil(address, {_bit(word, position) for position in positions})
    return victims


def test_reads_of_every_single_and_double_fault(memory: CompiledMemory) -> None:
    """10,512 faults; every atom of the region is read, the good ones too, and then again."""
    region, rng = _region(memory, 1)
    victims = _spoil_every_way(region)
    assert len(victims) == ATOM_WORDS * (72 + 2556)
    for seed in range(2):
        accesses = requests(region.base + rng.permutation(region.count))
        run = region.run(accesses, seed=seed)
        statuses = Counter(run.answers["status"].tolist())
        assert statuses == {
            MemoryStatus.OK.value: region.count - len(victims),
            MemoryStatus.CORRECTED.value: ATOM_WORDS * 72,
            MemoryStatus.POISONED.value: ATOM_WORDS * 2556,
        }
    # Whole atoms and whole words: they need not read, and heal what they cover.
    masks = rng.choice([FULL, 0x0000_00FF, 0xFF00_FF00, 0xFFFF_0000], size=len(victims))
    data = rng.integers(1 << 32, size=(len(victims), 8), dtype=np.uint32)
    healing = requests(victims, write=1, mask=masks, data=data)
    run = region.run(healing, seed=2)
    assert not len(run.errors), "a write of whole words read what it overwrites"
    region.run(requests(rng.permutation(victims)), seed=3)
    healed = sum(not bits for bits in region.wrong.values())
    assert len(victims) / 4 < healed < len(victims)


def test_single_faults_in_several_words_are_all_corrected(memory: CompiledMemory) -> None:
    region, rng = _region(memory, 2)
    victims = region.draw(2000)
    for address in victims.tolist():
        words = rng.choice(ATOM_WORDS, size=rng.integers(2, ATOM_WORDS + 1), replace=False)
        region.spoil(address, {_bit(int(word), int(rng.integers(BITS))) for word in words})
    run = region.run(requests(victims), seed=0)
    assert set(run.answers["status"].tolist()) == {MemoryStatus.CORRECTED.value}


def _then_read(rng: np.random.Generator, writes: NDArray[np.void]) -> NDArray[np.void]:
    """Each write followed, at once or much later, by a read of its atom."""
    reads = requests(writes["address"])
    order = np.concatenate(
        (np.arange(len(writes)), np.arange(len(writes)) + rng.choice([0.5, 300.5], size=len(writes)))
    )
    return np.concatenate((writes, reads))[np.argsort(order, kind="stable")]


def test_partial_writes_over_every_fault(memory: CompiledMemory) -> None:
    """They read first: a corrected word is merged and healed; an uncorrectable one stops the write."""
    region, rng = _region(memory, 3)
    victims = _spoil_every_way(region)
    masks = rng.integers(1 << 32, size=len(victims), dtype=np.uint32)
    # Some bytes of one word and nothing or everything of the others as well.
    few = rng.random(len(victims)) < 0.5
    masks[few] = (masks & np.uint32(0xFF) << (8 * rng.integers(4, size=len(victims))).astype(np.uint32))[few]
    data = rng.integers(1 << 32, size=(len(victims), 8), dtype=np.uint32)
    run = region.run(_then_read(rng, requests(victims, write=1, mask=masks, data=data)), seed=0)
    written = run.requests["write"] == 1
    statuses = Counter(run.answers["status"][written].tolist())
    assert statuses[MemoryStatus.OK.value] > 300 and statuses[MemoryStatus.POISONED.value] > 5000
    healed = Counter(run.answers["status"][~written].tolist())
    assert healed[MemoryStatus.OK.value] > 50 and healed[MemoryStatus.CORRECTED.value] > 50


def test_conditional_writes_over_every_fault(memory: CompiledMemory) -> None:
    """The comparison is made with the corrected word; an uncorrectable one is neither equal nor written."""
    region, rng = _region(memory, 4)
    victims = _spoil_every_way(region)
    lanes = rng.integers(8, size=len(victims))
    writes = requests(
        victims,
        write=1,
        mask=0xF << 4 * lanes,
        conditional=rng.choice([1, EXPECT_HELD], size=len(victims)),
        expected=rng.integers(1 << 32, size=len(victims)),
        data=rng.integers(1 << 32, size=(len(victims), 8), dtype=np.uint32),
    )
    run = region.run(_then_read(rng, writes), seed=0)
    statuses = Counter(run.answers["status"][run.requests["write"] == 1].tolist())
    assert statuses[MemoryStatus.POISONED.value] == ATOM_WORDS * 2556
    assert statuses[MemoryStatus.OK.value] > 100 and statuses[MemoryStatus.MISMATCH.value] > 100


def test_mixed_traffic_over_single_faults_is_answered_right(memory: CompiledMemory) -> None:
    """Every atom has a wrong bit until that word is written, and nobody notices: reads, partial and
    conditional writes, hot atoms, stalls, refresh, restarts."""
    traffic = Traffic(5, ECC_CONFIG.memory)
    atoms = traffic.universe
    memory.clear()
    memory.flip(atoms, np.random.default_rng(5).integers(ATOM_WORDS * BITS, size=len(atoms)))
    begin, restart = memory.cycle, True
    statuses: Counter[int] = Counter()
    while memory.cycle - begin < 150_000:
        asked = traffic.round(restart=restart)
        restart = False
        options = {f.name: getattr(asked, f.name) for f in fields(asked) if f.name != "requests"}
        run = memory.run(asked.requests, **options)
        run.require_clean()
        statuses.update(run.answers["status"][run.answered].tolist())
    assert statuses[MemoryStatus.CORRECTED.value] > 3000, statuses
    assert not statuses[MemoryStatus.POISONED.value]


def test_a_read_takes_one_cycle_more(memory: CompiledMemory) -> None:
    """Closed, hit, conflict: the device's time, two cycles of the controller, and one of the correction."""
    at = memory.map.encode
    first, hit, conflict = (
        memory.map.decode(0)._replace(row=row, column=c) for row, c in ((3, 0), (3, 5), (9, 0))
    )
    accesses = chain([int(at(place)) for place in (first, hit, conflict)], think=TIMING["tRAS"])
    run = memory.run(accesses)
    run.require_clean()
    bounds = [TIMING.row_closed, TIMING.row_hit, TIMING.row_conflict]
    assert run.latencies.tolist() == [bound + 3 for bound in bounds]


def test_a_partial_write_costs_a_read(memory: CompiledMemory) -> None:
    """It is accepted when the read is back: the cost shows in its wait and in the accesses."""
    for mask, reads in ((FULL, 0), (0xFF, 0), (0xF, 1), (0x1FF, 1)):
        run = memory.run(requests([77], write=1, mask=mask), refresh=RefreshMode.NONE)
        run.require_clean()
        memory.run(requests([]))
        wait = int(run.waits[0])
        assert (wait > TIMING.row_closed) == bool(reads), (hex(mask), wait)
        assert np.count_nonzero(run.accesses["write"] == 0) == reads
