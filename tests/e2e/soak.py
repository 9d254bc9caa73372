"""Random batches for the whole design, and a host-side model in plain Python of what they must leave behind.

Between two fences every region of memory belongs to one requester: near walks or far walks of one context,
writes, copies, or readers only. The order of one requester's accesses to an atom is promised and a fence
orders the rest, so commands executed one after the other give the one right outcome.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from firmware_py import commands
from firmware_py.commands import Atoms
from hdl.config import DesignConfig
from hdl.layouts import VerdictKind, WalkStatus
from hdl.walker.isa import Instruction
from sim.model.interpreter import Memory, WalkResult, run_walk
from sim.model.random_programs import random_instruction, random_record

__all__ = ["ERRORS", "Context", "Record", "Soak", "SoakBatch"]

#: How a batch may go wrong, each of which must set the error bit and break nothing else.
ERRORS = ("undefined operation", "missing context", "truncated write", "write beyond", "copy in", "copy out")

#: Atoms of a region, and of the one that is long enough to use every tag of the DataMover more than once.
_REGION, _LONG = 24, 150
#: Regions of memory: one for every context that may write, one that readers share, one for nobody's walks,
#: the last atoms of the memory, and the long one.
_WRITERS = 9
#: The scratchpad's atoms that copies use; commands lie below, completion records above.
PAD = range(1100, 1300)
#: Completion records that a batch may write.
COMPLETIONS = 500
_COMMANDS = 900

Atom = tuple[int, ...]
_ZERO: Atom = (0,) * 8


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the host configures of a context before a batch."""

    window: tuple[int, int]
    writable: bool
    budget: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """A completion record without its cycles."""

    tag: int
    context: int
    place: int
    kind: int
    status: int
    hops: int
    code: int
    value: int
    registers: tuple[int, ...]


@dataclass(kw_only=True)
class SoakBatch:
    """One batch: its commands, and what must be there when it has ended."""

    atoms: Atoms
    contexts: list[Context]
    error: bool
    records: list[Record] = field(default_factory=list)
    """In order for each walk, and for the walks of one context in one place."""


class Soak:
    """A memory, a scratchpad and a program, and batches that change them."""

    def __init__(self, seed: int, config: DesignConfig) -> None:
        self.random = random.Random(seed)
        self.memory_atoms = config.memory.organisation.atoms
        self.contexts = config.walker.contexts
        self.program: list[Instruction] = [random_instruction(self.random) for _ in range(64)]
        # Few rows of few banks, so that regions meet in a bank, in a row, and in neither.
        places = [row << 10 | chunk << 5 for row in range(1, 5) for chunk in range(32)]
        bases = self.random.sample(places, _WRITERS + 2)
        self.writers = [range(base, base + _REGION) for base in bases[:_WRITERS]]
        self.shared = range(bases[-2], bases[-2] + _REGION)
        self.plain = range(bases[-1], bases[-1] + _REGION)
        self.end = range(self.memory_atoms - _REGION, self.memory_atoms)
        self.long = range(5 << 10, (5 << 10) + _LONG)
        self.memory: Memory = {}
        for region in self.regions:
            for address in region:
                self.memory[address] = random_record(self.random, region)
        self.pad: dict[int, Atom] = {address: self._atom() for address in PAD}

    @property
    def regions(self) -> list[range]:
        """Every atom of memory that batches touch."""
        return [*self.writers, self.shared, self.plain, self.end, self.long]

    def image(self, region: range) -> Atoms:
        """What the memory must hold in `region`."""
        return np.array([self.memory[address] for address in region], dtype=np.uint32)

    def pad_image(self) -> Atoms:
        """What the scratchpad must hold in `PAD`."""
        return np.array([self.pad[address] for address in PAD], dtype=np.uint32)

    def batch(self, *, error: str | None = None) -> SoakBatch:
        """The next batch; the memory and the scratchpad of the model are what it leaves behind."""
        self._atoms: list[Atoms] = []
        self._length = 0
        self._records: list[Record] = []
        self._configured = [self._context(number) for number in range(self.contexts)]
        for _ in range(self.random.randint(1, 6)):
            self._epoch(self.random.choice((3, 12, 40)))
        if error is not None:
            self._fail(error)
        elif self.random.random() < 0.5:
            # The end of a batch is to wait for everything as a fence does.
            while self._atoms and int(self._atoms[-1][0, 0]) == commands.fence()[0, 0]:
                self._atoms.pop()
        return SoakBatch(
            atoms=np.concatenate([np.zeros((0, 8), dtype=np.uint32), *self._atoms]),
            contexts=self._configured,
            error=error is not None,
            records=self._records,
        )

    # -- What is drawn --

    def _atom(self) -> Atom:
        return tuple(self.random.getrandbits(32) for _ in range(8))

    def _context(self, number: int) -> Context:
        region = self.writers[number] if number < _WRITERS else self.shared
        base, limit = region[0], region[-1] + 1
        if self.random.random() < 0.1:
            base += self.random.randrange(_REGION)
        return Context(
            window=(base, limit),
            writable=number < _WRITERS and self.random.random() < 0.8,
            budget=self.random.choice((0, 1, 20, 60)),
        )

    def _epoch(self, length: int) -> None:
        owners = {region: self.random.choice(("near", "far", "write", "copy")) for region in self.regions}
        for _ in range(length):
            if self._length > _COMMANDS or len(self._records) > COMPLETIONS:
                break
            region = self.random.choice(self.regions)
            owner = owners[region]
            if self.random.random() < 0.1:
                self._put(np.zeros((1, 8), dtype=np.uint32))
            elif owner == "copy" or region is self.long:
                self._copy(region)
            elif owner == "write" or region in (self.plain, self.end):
                self._write(region)
            elif region is self.shared:
                number = self.random.randrange(_WRITERS, self.contexts)
                self._walk(number, place=self.random.randrange(2))
            else:
                self._walk(self.writers.index(region), place=int(owner == "far"))
        self._put(commands.fence())

    # -- Commands: each is put into the batch and done to the model --

    def _put(self, atoms: Atoms) -> int:
        index = self._length
        self._atoms.append(atoms)
        self._length += len(atoms)
        return index

    def _copy(self, region: range) -> None:
        count = self.random.randint(1, len(region))
        at = self.random.randrange(len(region) - count + 1)
        pad = self.random.choice((PAD[0], self.random.randrange(PAD[0], PAD[-1] + 2 - count)))
        to_memory = bool(self.random.getrandbits(1))
        self._put(
            commands.copy(to_memory=to_memory, memory_address=region[at], scratchpad_address=pad, count=count)
        )
        self._copied(to_memory=to_memory, memory=region[at], pad=pad, count=count)

    def _copied(self, *, to_memory: bool, memory: int, pad: int, count: int) -> None:
        for offset in range(count):
            if memory + offset >= self.memory_atoms:
                continue
            if to_memory:
                self.memory[memory + offset] = self.pad[pad + offset]
            else:
                atom = self.memory[memory + offset]
                assert isinstance(atom, tuple)
                self.pad[pad + offset] = atom

    def _write(self, region: range) -> None:
        count = self.random.randint(1, 8)
        at = self.random.randrange(len(region) - count + 1)
        mask = self.random.choice(
            (
                commands.FULL_MASK,
                self.random.getrandbits(32),
                1 << self.random.randrange(32),
                0xF << 4 * self.random.randrange(8),
                0,
            )
        )
        data = [self._atom() for _ in range(count)]
        self._put(commands.write(address=region[at], data=np.array(data, dtype=np.uint32), mask=mask))
        self._written(region[at], data, mask)

    def _written(self, address: int, data: Sequence[Atom], mask: int) -> None:
        for target, atom in enumerate(data, start=address):
            if target >= self.memory_atoms:
                continue
            old = self.memory[target]
            assert isinstance(old, tuple)
            self.memory[target] = tuple(
                sum((new if mask >> 4 * word + byte & 1 else before) & 0xFF << 8 * byte for byte in range(4))
                for word, (before, new) in enumerate(zip(old, atom, strict=True))
            )

    def _walk(self, number: int, *, place: int) -> None:
        context = self._configured[number]
        region = self.writers[number] if number < _WRITERS else self.shared
        start = self.random.choice((region[0] - 1, 0, *region))
        entry = self.random.randrange(64)
        registers = tuple(
            self.random.choice((self.random.choice(region), self.random.getrandbits(32))) for _ in range(6)
        )
        tag = self._put(
            commands.walk(place=place, entry=entry, context=number, address=start, registers=registers)
        )
        result = run_walk(
            self.program,
            self.memory,
            address=start,
            entry=entry,
            registers=registers,
            window=context.window,
            writable=context.writable,
            budget=context.budget,
            memory_atoms=self.memory_atoms,
        )
        self._records += _records(result, tag=tag, context=number, place=place)

    def _fail(self, error: str) -> None:
        nothing = np.zeros((1, 8), dtype=np.uint32)
        pad, count = PAD[0], 5
        if error == "undefined operation":
            nothing[0, 0] = self.random.randrange(5, 16)
            self._put(nothing)
            # What comes after it must not be executed.
            self._put(commands.write(address=self.plain[0], data=np.ones((3, 8), dtype=np.uint32)))
        elif error == "missing context":
            self._put(commands.walk(place=0, entry=0, context=self.contexts, address=self.plain[0]))
            self._put(commands.write(address=self.plain[0], data=np.ones((3, 8), dtype=np.uint32)))
        elif error == "truncated write":
            data = [self._atom() for _ in range(6)]
            have = self.random.randrange(6)
            atoms = commands.write(address=self.plain[3], data=np.array(data, dtype=np.uint32))
            self._put(atoms[: 1 + have])
            self._written(self.plain[3], data[:have], commands.FULL_MASK)
        elif error == "write beyond":
            data = [self._atom() for _ in range(count)]
            self._put(commands.write(address=self.end[-2], data=np.array(data, dtype=np.uint32)))
            self._written(self.end[-2], data, commands.FULL_MASK)
        else:
            to_memory = error == "copy out"
            self._put(
                commands.copy(
                    to_memory=to_memory, memory_address=self.end[-3], scratchpad_address=pad, count=count
                )
            )
            self._copied(to_memory=to_memory, memory=self.end[-3], pad=pad, count=count)


def _records(result: WalkResult, *, tag: int, context: int, place: int) -> Iterator[Record]:
    for value, hops, registers in zip(result.yields, result.yield_hops, result.yield_registers, strict=True):
        yield Record(
            tag=tag,
            context=context,
            place=place,
            kind=VerdictKind.YIELD.value,
            status=WalkStatus.DONE.value,
            hops=hops,
            code=0,
            value=value,
            registers=registers[:3],
        )
    yield Record(
        tag=tag,
        context=context,
        place=place,
        kind=VerdictKind.DONE.value,
        status=result.status.value,
        hops=result.hops,
        code=result.code,
        value=result.value,
        registers=result.registers[:3],
    )
