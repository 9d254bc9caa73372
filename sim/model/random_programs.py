"""Random walk programs on random memories, repeatable from a seed: the common test material of every model.

A case is one program memory and several walks. Every walk has a region of memory of its own, which its
window never leaves, so that walks may run at once and in any order and still have one right outcome.
Only the last region's window may go on past the end of memory.

Instructions use every operation, field and exit, but are weighted so that walks get somewhere: most loads
meet a record, most tests go either way, and every status ends a fair share of the walks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hdl.layouts import WalkStatus
from hdl.walker.isa import AKind, BKind, Exit, ExitKind, Instruction, Op, PointerKind, Update, UpdateKind

from .interpreter import Memory, WalkResult, run_walk

__all__ = [
    "RandomCase",
    "RandomWalk",
    "expected_results",
    "random_case",
    "random_instruction",
    "random_record",
]

_WORD_MAX = 0xFFFFFFFF
#: Record words that hold pointers most of the time.
_LINKS = (0, 1, 2, 5)


@dataclass(frozen=True, kw_only=True)
class RandomWalk:
    """The launch of one walk and the configuration of its context."""

    address: int
    entry: int
    registers: tuple[int, ...]
    """r0..r5."""
    window: tuple[int, int]
    """[base, limit)."""
    writable: bool
    budget: int


@dataclass(frozen=True, kw_only=True)
class RandomCase:
    """One program, one memory, and walks that do not disturb each other."""

    seed: int
    program: tuple[Instruction, ...]
    """All 64 instructions."""
    memory: dict[int, tuple[int, ...]]
    """Every atom from 1 up to `memory_atoms`, as eight words."""
    memory_atoms: int
    unreadable: dict[int, WalkStatus]
    """Atoms that cannot be read, with the status in which that ends a walk: POISONED or BUS_ERROR."""
    walks: tuple[RandomWalk, ...]


def random_case(seed: int, *, walks: int = 16, region_atoms: int = 12, poison: float = 0.0) -> RandomCase:
    """The case of `seed`: `walks` walks on regions of `region_atoms` atoms, from atom 1 up.

    `poison` is the probability that an atom cannot be read. Raises ValueError for a size below 1.
    """
    if walks < 1 or region_atoms < 1:
        raise ValueError(f"{walks} walks on regions of {region_atoms} atoms: expected at least 1 of each")
    rng = random.Random(seed)
    program = tuple(random_instruction(rng) for _ in range(64))
    memory_atoms = 1 + walks * region_atoms
    memory: dict[int, tuple[int, ...]] = {}
    launches = []
    for index in range(walks):
        base = 1 + index * region_atoms
        region = range(base, base + region_atoms)
        for address in region:
            memory[address] = random_record(rng, region)
        launches.append(_launch(rng, region, last=index == walks - 1))
    unreadable = {
        address: rng.choice((WalkStatus.POISONED, WalkStatus.BUS_ERROR))
        for address in memory
        if rng.random() < poison
    }
    return RandomCase(
        seed=seed,
        program=program,
        memory=memory,
        memory_atoms=memory_atoms,
        unreadable=unreadable,
        walks=tuple(launches),
    )


def expected_results(case: RandomCase) -> tuple[list[WalkResult], Memory]:
    """What the golden interpreter says of every walk of a case, and memory afterwards."""
    memory: Memory = dict(case.memory)
    results = [
        run_walk(
            case.program,
            memory,
            address=walk.address,
            entry=walk.entry,
            registers=walk.registers,
            window=walk.window,
            writable=walk.writable,
            budget=walk.budget,
            memory_atoms=case.memory_atoms,
            unreadable=case.unreadable,
        )
        for walk in case.walks
    ]
    return results, memory


def random_instruction(rng: random.Random) -> Instruction:
    """One valid instruction: every field defined, no field beyond bit 31."""
    low = rng.choice((0, 0, rng.randrange(32)))
    width = rng.choice((32 - low, rng.randint(1, 32 - low), min(13, 32 - low)))
    op = rng.choice(list(Op))
    store = rng.random() < 0.1
    return Instruction(
        immediate=_immediate(rng),
        op=op,
        a_kind=rng.choices(list(AKind), (6, 3, 1))[0],
        a_index=rng.randrange(8),
        a_low=low,
        a_width_minus_1=width - 1,
        a_signed=rng.random() < 0.5,
        b_kind=rng.choice(list(BKind)),
        b_index=rng.randrange(8),
        update=_update(rng),
        store=store,
        store_conditional=store and rng.random() < 0.4,
        store_word=rng.choices(range(8), (1, 1, 1, 6, 6, 1, 6, 6))[0],
        store_register=rng.randrange(8),
        taken=_exit(rng),
        not_taken=_exit(rng),
    )


def _update(rng: random.Random) -> Update:
    if rng.random() < 0.3:
        return Update()
    kind = rng.choice(list(UpdateKind)[1:])
    # Registers 0 and 1 keep pointers most of the time.
    register = rng.choices(range(8), (1, 1, 4, 4, 4, 4, 4, 4))[0]
    if register < 2 and rng.random() < 0.8:
        # A mov of a link or of the address leaves a pointer there.
        return Update(
            kind=UpdateKind.MOV,
            register=register,
            source_kind=rng.choice((PointerKind.WORD, PointerKind.ADDRESS)),
            source_index=rng.choice(_LINKS),
        )
    return Update(
        kind=kind,
        register=register,
        source_kind=rng.choice(list(PointerKind)),
        source_index=rng.randrange(8),
    )


def _exit(rng: random.Random) -> Exit:
    kind = rng.choices(list(ExitKind), (30, 50, 10, 5))[0]
    target = rng.randrange(64)
    if kind == ExitKind.DONE:
        return Exit(kind=kind, target=target, offset=rng.randrange(256))
    pointer_kind = rng.choices((PointerKind.WORD, PointerKind.REGISTER, PointerKind.ADDRESS), (7, 2, 1))[0]
    if kind == ExitKind.LOAD and rng.random() < 0.98:
        index = rng.choice(_LINKS) if pointer_kind == PointerKind.WORD else rng.randrange(2)
        offset = rng.choices((0, rng.randint(-3, 3)), (19, 1))[0]
    else:
        index = rng.randrange(8)
        offset = rng.choice((0, rng.randint(-(1 << 11), (1 << 11) - 1)))
    return Exit(kind=kind, target=target, pointer_kind=pointer_kind, pointer_index=index, offset=offset)


def _immediate(rng: random.Random) -> int:
    return rng.choice((rng.randrange(4), rng.randrange(1 << 13), -rng.randrange(8) & _WORD_MAX, _any(rng)))


def _any(rng: random.Random) -> int:
    return rng.getrandbits(32)


def _pointer(rng: random.Random, region: Sequence[int]) -> int:
    """An address in the region; one time in 40 null, one time in 40 just outside or anywhere."""
    choice = rng.randrange(40)
    if choice == 0:
        return 0
    if choice == 1:
        return rng.choice((max(region[0] - 1, 0), region[-1] + 1, region[-1] + 9, _any(rng)))
    return rng.choice(region)


def random_record(rng: random.Random, region: Sequence[int]) -> tuple[int, ...]:
    """Links, a score of few values, a status word with a small low part, and two words of any bits."""
    return tuple(
        _pointer(rng, region)
        if word in _LINKS
        else rng.choice((rng.randrange(4), -rng.randrange(4) & _WORD_MAX))
        if word == 3
        else rng.getrandbits(12) << 20 | rng.choice((0, 1, 2, 1 << 12))
        if word == 4
        else _any(rng)
        for word in range(8)
    )


def _launch(rng: random.Random, region: Sequence[int], *, last: bool) -> RandomWalk:
    base, limit = region[0], region[-1] + 1
    shape = rng.randrange(20)
    if shape == 0:
        base += rng.randrange(len(region))
        limit -= rng.randrange(limit - base)
    elif last:
        limit += 16
    if shape == 1:
        base = 0 if base == 1 else base
    return RandomWalk(
        address=_pointer(rng, region),
        entry=rng.randrange(64),
        registers=(
            _pointer(rng, region),
            _pointer(rng, region),
            rng.randrange(4),
            _any(rng),
            rng.randrange(1 << 13),
            -rng.randrange(4) & _WORD_MAX,
        ),
        window=(base, limit),
        writable=rng.random() < 0.7,
        budget=rng.choices((rng.randrange(4), rng.randrange(60), rng.randrange(300), 300), (1, 2, 6, 6))[0],
    )
