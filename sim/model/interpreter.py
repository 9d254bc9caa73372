"""The golden interpreter of the walker's instruction set: pure Python, one walk at a time.

It is written from the semantics in `hdl/walker/isa.py` alone and shares no code with the RTL. What the
instruction set leaves to the walker is pinned here:

* the start address is checked like a load and read, then `entry` executes on that record;
* `hops` counts the record reads that were issued, the start included: a null pointer or an address
  outside the window issues none, an address beyond the memory or an unreadable record was issued;
* a load's address and a yielded value are (pointer + offset) modulo 2**32; the null and window checks
  see that sum;
* an instruction fetched with no budget left ends the walk with BUDGET_SPENT before any effect;
* a store checks the permission first: WRITE_DENIED touches no memory (the register update stays). It
  changes the context's copy of the record whether or not a conditional store was written;
* the order is test, update, store (of the updated register), exit (sees updated registers and the stored
  word); the update's source is read before the update;
* `value` of the end is the address of the current record: 0 after NULL_POINTER and when the start itself
  failed, and for a load that failed otherwise the record that the load came from;
* the pointer kind IMMEDIATE in an exit is the instruction's immediate;
* bits of a field beyond bit 31 read as 0; a program word that was never written is the all-zero
  instruction, which is ``always: goto 0``.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from hdl.layouts import ATOM_BYTES, WalkStatus
from hdl.walker.isa import AKind, BKind, Exit, ExitKind, Instruction, Op, PointerKind, UpdateKind

__all__ = ["BUDGET_MAX", "Atom", "Memory", "Store", "WalkResult", "record_words", "run_walk"]

#: The largest step budget: CONTEXT_BUDGET holds 24 bits.
BUDGET_MAX = (1 << 24) - 1

#: One atom of memory: 32 bytes, little endian, or its eight 32-bit words.
Atom = bytes | bytearray | memoryview | tuple[int, ...]
#: Memory by atom address; an address that is missing holds zeros.
Memory = MutableMapping[int, Atom]

_MASK = 0xFFFFFFFF
_WORDS = ATOM_BYTES // 4
_UNWRITTEN = Instruction.decode(0)


@dataclass(frozen=True, kw_only=True)
class Store:
    """One store of a walk: word `word` of the atom at `address`, in program order."""

    address: int
    word: int
    value: int
    written: bool
    """False: a conditional store whose word had changed in memory."""


@dataclass(frozen=True, kw_only=True)
class WalkResult:
    """Everything that one walk did and how it ended; numbers are unsigned 32-bit."""

    status: WalkStatus
    code: int
    """The 8-bit code of `done`; 0 for every other status."""
    value: int
    """The address of the current record, as the verdict reports it."""
    registers: tuple[int, ...]
    """r0..r7 at the end."""
    hops: int
    """Record reads issued, the start included."""
    steps: int
    """Instructions executed."""
    yields: tuple[int, ...]
    """Yielded values in order."""
    yield_hops: tuple[int, ...]
    """For each yield, the hops so far."""
    yield_registers: tuple[tuple[int, ...], ...]
    """For each yield, r0..r7 when it was yielded."""
    addresses: tuple[int, ...]
    """Addresses of the record reads in order; `hops` of them."""
    stores: tuple[Store, ...]


def record_words(atom: Atom) -> list[int]:
    """The eight 32-bit words of an atom. Raises ValueError for one that is not 32 bytes or 8 words."""
    if isinstance(atom, tuple):
        if len(atom) != _WORDS or not all(0 <= word <= _MASK for word in atom):
            raise ValueError(f"record {atom!r}: expected {_WORDS} unsigned 32-bit words")
        return list(atom)
    data = bytes(atom)
    if len(data) != ATOM_BYTES:
        raise ValueError(f"record of {len(data)} bytes: expected {ATOM_BYTES}")
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, ATOM_BYTES, 4)]


def run_walk(
    program: Sequence[Instruction],
    memory: Memory,
    *,
    address: int,
    entry: int,
    registers: Sequence[int],
    window: tuple[int, int],
    writable: bool,
    budget: int,
    memory_atoms: int | None = None,
    unreadable: Mapping[int, WalkStatus] | None = None,
) -> WalkResult:
    """The result of one walk from `address`; its stores change `memory`, an atom keeps its type.

    `registers` are r0..r5 (missing ones are 0), `window` is [base, limit), `budget` is in instructions.
    A read at or beyond `memory_atoms` (None: no end) ends the walk with OUT_OF_WINDOW, a read of an
    address in `unreadable` with the status there. Raises ValueError for arguments that no launch can carry.
    """
    _check(program, address=address, entry=entry, registers=registers, budget=budget)
    walk = _Walk(memory, registers, window, writable, memory_atoms, unreadable or {})
    status = walk.load(address)
    code = steps = 0
    counter = entry
    while status is None:
        if steps == budget:
            status = WalkStatus.BUDGET_SPENT
            break
        steps += 1
        instruction = program[counter] if counter < len(program) else _UNWRITTEN
        if _test(instruction, walk.record, walk.registers, walk.address):
            walk.update(instruction)
            if instruction.store and not walk.store(instruction):
                status = WalkStatus.WRITE_DENIED
                break
            leave = instruction.taken
        else:
            leave = instruction.not_taken
        if leave.kind == ExitKind.DONE:
            status, code = WalkStatus.DONE, leave.offset & 0xFF
        elif leave.kind == ExitKind.LOAD:
            status = walk.load(walk.pointer(leave, instruction.immediate))
        elif leave.kind == ExitKind.YIELD:
            walk.yields.append(walk.pointer(leave, instruction.immediate))
            walk.yield_hops.append(len(walk.addresses))
            walk.yield_registers.append(tuple(walk.registers))
        counter = leave.target
    return WalkResult(
        status=status,
        code=code,
        value=0 if status is WalkStatus.NULL_POINTER else walk.address,
        registers=tuple(walk.registers),
        hops=len(walk.addresses),
        steps=steps,
        yields=tuple(walk.yields),
        yield_hops=tuple(walk.yield_hops),
        yield_registers=tuple(walk.yield_registers),
        addresses=tuple(walk.addresses),
        stores=tuple(walk.stores),
    )


class _Walk:
    """The state of a context: its record, the record's address, its registers, and what it did so far."""

    def __init__(
        self,
        memory: Memory,
        registers: Sequence[int],
        window: tuple[int, int],
        writable: bool,
        memory_atoms: int | None,
        unreadable: Mapping[int, WalkStatus],
    ) -> None:
        self.memory = memory
        self.registers = [*registers, *([0] * (8 - len(registers)))]
        self.base, self.limit = window
        self.writable = writable
        self.memory_atoms = memory_atoms
        self.unreadable = unreadable
        self.record = [0] * _WORDS
        self.address = 0
        self.addresses: list[int] = []
        self.yields: list[int] = []
        self.yield_hops: list[int] = []
        self.yield_registers: list[tuple[int, ...]] = []
        self.stores: list[Store] = []

    def load(self, address: int) -> WalkStatus | None:
        """Makes `address` the current record; a status if that ends the walk."""
        if address == 0:
            return WalkStatus.NULL_POINTER
        if not self.base <= address < self.limit:
            return WalkStatus.OUT_OF_WINDOW
        self.addresses.append(address)
        if self.memory_atoms is not None and address >= self.memory_atoms:
            return WalkStatus.OUT_OF_WINDOW
        if address in self.unreadable:
            return self.unreadable[address]
        self.record = _read(self.memory, address)
        self.address = address
        return None

    def update(self, instruction: Instruction) -> None:
        """Does the register update of a taken instruction."""
        update = instruction.update
        if update.kind == UpdateKind.NONE:
            return
        source = self.operand(update.source_kind, update.source_index, instruction.immediate)
        self.registers[update.register] = _update(update.kind, self.registers[update.register], source)

    def store(self, instruction: Instruction) -> bool:
        """Does the store of a taken instruction; False if the context may not write."""
        if not self.writable:
            return False
        word, value = instruction.store_word, self.registers[instruction.store_register]
        atom = _read(self.memory, self.address)
        written = not instruction.store_conditional or atom[word] == self.record[word]
        if written:
            atom[word] = value
            _write(self.memory, self.address, atom)
        self.record[word] = value
        self.stores.append(Store(address=self.address, word=word, value=value, written=written))
        return True

    def operand(self, kind: PointerKind, index: int, immediate: int) -> int:
        """The 32-bit value that an update, a load or a yield takes."""
        if kind == PointerKind.WORD:
            return self.record[index]
        if kind == PointerKind.REGISTER:
            return self.registers[index]
        return self.address if kind == PointerKind.ADDRESS else immediate

    def pointer(self, leave: Exit, immediate: int) -> int:
        """The value of a load or yield exit: its operand plus its offset."""
        return (self.operand(leave.pointer_kind, leave.pointer_index, immediate) + leave.offset) & _MASK


def _test(instruction: Instruction, record: list[int], registers: list[int], address: int) -> bool:
    if instruction.op == Op.ALWAYS:
        return True
    if instruction.a_kind == AKind.WORD:
        a = record[instruction.a_index] >> instruction.a_low & (2 << instruction.a_width_minus_1) - 1
        if instruction.a_signed and a >> instruction.a_width_minus_1:
            a = (a - (2 << instruction.a_width_minus_1)) & _MASK
    else:
        a = registers[instruction.a_index] if instruction.a_kind == AKind.REGISTER else address
    if instruction.b_kind == BKind.IMMEDIATE:
        b = instruction.immediate
    else:
        b = (registers if instruction.b_kind == BKind.REGISTER else record)[instruction.b_index]
    match instruction.op:
        case Op.EQ:
            return a == b
        case Op.NE:
            return a != b
        case Op.LT_S:
            return _signed(a) < _signed(b)
        case Op.GE_S:
            return _signed(a) >= _signed(b)
        case Op.LT_U:
            return a < b
        case Op.GE_U:
            return a >= b
        case _:
            return a & b != 0


def _update(kind: UpdateKind, register: int, source: int) -> int:
    match kind:
        case UpdateKind.ADD:
            return (register + source) & _MASK
        case UpdateKind.SUB:
            return (register - source) & _MASK
        case UpdateKind.MIN:
            return min(register, source, key=_signed)
        case UpdateKind.MAX:
            return max(register, source, key=_signed)
        case UpdateKind.AND:
            return register & source
        case UpdateKind.OR:
            return register | source
        case _:
            return source


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _read(memory: Mapping[int, Atom], address: int) -> list[int]:
    return record_words(memory[address]) if address in memory else [0] * _WORDS


def _write(memory: Memory, address: int, words: list[int]) -> None:
    if isinstance(memory.get(address), tuple):
        memory[address] = tuple(words)
    else:
        memory[address] = b"".join(word.to_bytes(4, "little") for word in words)


def _check(
    program: Sequence[Instruction], *, address: int, entry: int, registers: Sequence[int], budget: int
) -> None:
    if len(program) > 64:
        raise ValueError(f"program of {len(program)} instructions: expected at most 64")
    if not 0 <= entry < 64:
        raise ValueError(f"entry is {entry}: expected 0 to 63")
    if not 0 <= address <= _MASK:
        raise ValueError(f"start address is {address}: expected an unsigned 32-bit number")
    if len(registers) > 6 or not all(0 <= value <= _MASK for value in registers):
        raise ValueError(f"registers are {tuple(registers)}: expected at most six unsigned 32-bit numbers")
    if not 0 <= budget <= BUDGET_MAX:
        raise ValueError(f"budget is {budget}: expected 0 to {BUDGET_MAX}")
