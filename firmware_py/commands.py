"""Encoders of command atoms, as numpy uint32 arrays of shape [n, 8]: what the Sequencer executes.

The layout of every command is declared by `hdl.registers.CommandOp`; nothing else in the host encodes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import LAUNCH_WALKS_MAX
from hdl.registers import CommandOp

__all__ = [
    "FULL_MASK",
    "REGISTERS_AT_LAUNCH",
    "WRITE_MAX",
    "Atoms",
    "copy",
    "fence",
    "place_of",
    "walk",
    "walks",
    "with_place",
    "write",
]

#: Atoms of memory or of the scratchpad: uint32 of shape [n, 8], word 0 first.
Atoms: TypeAlias = NDArray[np.uint32]

#: Byte mask that writes a whole atom.
FULL_MASK = 0xFFFFFFFF
#: Atoms that one WRITE carries at most: its count field is 12 bits and holds count - 1.
WRITE_MAX = 1 << 12
#: Registers r0..r5 that a WALK command initialises.
REGISTERS_AT_LAUNCH = 6

_PLACE_BIT = 4
_COUNT_BIT = 18


def _field(name: str, value: int, width: int) -> int:
    if not 0 <= value < 1 << width:
        raise ValueError(f"command field {name} is {value}: expected 0 to {(1 << width) - 1}")
    return value


def walk(*, place: int, entry: int, context: int, address: int, registers: Sequence[int] = ()) -> Atoms:
    """One WALK: start `entry` on the record at `address` in `context` of the near (0) or far (1) walker.

    `registers` are r0 upwards, at most six, as 32-bit values of either sign; the others start as 0.
    Raises ValueError naming the field that does not fit.
    """
    if len(registers) > REGISTERS_AT_LAUNCH:
        raise ValueError(f"{len(registers)} initial registers: expected at most {REGISTERS_AT_LAUNCH}")
    atom = np.zeros((1, 8), dtype=np.uint32)
    atom[0, 0] = (
        CommandOp.WALK
        | _field("place", place, 1) << _PLACE_BIT
        | _field("entry", entry, 6) << 6
        | _field("context", context, 6) << 12
    )
    atom[0, 1] = _field("address", address, 32)
    for index, value in enumerate(registers):
        if not -(1 << 31) <= value < 1 << 32:
            raise ValueError(f"command field r{index} is {value}: expected a 32-bit value")
        atom[0, 2 + index] = value & 0xFFFFFFFF
    return atom


def walks(*, place: int, entry: int, context: int, addresses: Sequence[int]) -> Atoms:
    """One WALK that launches `entry` on the records at `addresses`, at most `LAUNCH_WALKS_MAX`, at once.

    One message carries them. They run in as many consecutive contexts from `context` on, and their registers
    start as 0. Near walks must start in one channel. Their completion records have the same tag and are told
    apart by the context. Raises ValueError naming the field that does not fit.
    """
    if not 1 <= len(addresses) <= LAUNCH_WALKS_MAX:
        raise ValueError(f"{len(addresses)} walks in a launch: expected 1 to {LAUNCH_WALKS_MAX}")
    _field("last context", context + len(addresses) - 1, 6)
    first, *others = (_field("address", address, 32) for address in addresses)
    atom = walk(place=place, entry=entry, context=context, address=first, registers=others)
    atom[0, 0] |= len(others) << _COUNT_BIT
    return atom


def write(*, address: int, data: Atoms, mask: int = FULL_MASK) -> Atoms:
    """One WRITE of `data` to consecutive atoms from `address`: the command and its data atoms.

    `mask` is the byte mask of every atom. Raises ValueError for no atom, more than `WRITE_MAX`, or an
    address that does not fit.
    """
    if data.ndim != 2 or data.shape[1] != 8 or not 1 <= len(data) <= WRITE_MAX:
        raise ValueError(f"write data has the shape {data.shape}: expected [1 to {WRITE_MAX}, 8]")
    _field("address", address + len(data) - 1, 32)
    atoms = np.zeros((1 + len(data), 8), dtype=np.uint32)
    atoms[0, 0] = CommandOp.WRITE | (len(data) - 1) << 4
    atoms[0, 1] = _field("address", address, 32)
    atoms[0, 2] = _field("mask", mask, 32)
    atoms[1:] = data
    return atoms


def copy(*, to_memory: bool, memory_address: int, scratchpad_address: int, count: int) -> Atoms:
    """One COPY of `count` atoms (1 to 65,536) between memory and scratchpad, done by the DataMover.

    Raises ValueError naming the field that does not fit.
    """
    atom = np.zeros((1, 8), dtype=np.uint32)
    atom[0, 0] = CommandOp.COPY | int(to_memory) << 4 | _field("count - 1", count - 1, 16) << 16
    atom[0, 1] = _field("memory_address", memory_address, 32)
    atom[0, 2] = _field("scratchpad_address", scratchpad_address, 16)
    return atom


def fence() -> Atoms:
    """One FENCE: everything earlier is over before anything later starts."""
    atom = np.zeros((1, 8), dtype=np.uint32)
    atom[0, 0] = CommandOp.FENCE
    return atom


def place_of(atom: NDArray[np.uint32]) -> int:
    """The place of a WALK command atom: 0 near, 1 far."""
    return int(atom[0]) >> _PLACE_BIT & 1


def with_place(atoms: Atoms, walks: Sequence[int], place: int) -> Atoms:
    """A copy of `atoms` with the WALK commands at the indices `walks` in `place`; nothing else differs."""
    changed = atoms.copy()
    rows = np.asarray(walks, dtype=np.intp)
    bit = np.uint32(1 << _PLACE_BIT)
    if place:
        changed[rows, 0] |= bit
    else:
        changed[rows, 0] &= ~bit
    return changed
