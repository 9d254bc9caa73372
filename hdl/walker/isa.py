"""The walker's instruction: 128 bits, its fields, encoder and decoder. The one declaration of it.

One instruction does, in this order, in one step:

1. **test** ``a OP b``;
2. if taken, **update** one register;
3. if taken, **store** one word of the current record from a register (the updated value),
   optionally only if memory still holds the value that was read;
4. the **exit** for taken or not taken: `goto`, `load` then goto, `yield` then goto, or `done`.

Arithmetic is 32-bit and wraps; `min` and `max` are signed. Every executed instruction is one step of the
context's budget. A load of address 0 ends the walk with NULL_POINTER, one outside [base, limit) with
OUT_OF_WINDOW; a store without permission ends it with WRITE_DENIED before any memory is touched; an
instruction fetched with no budget left ends it with BUDGET_SPENT before it has any effect.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields, replace

from amaranth.lib import data

__all__ = [
    "INSTRUCTION_WIDTH",
    "AKind",
    "BKind",
    "Exit",
    "ExitKind",
    "Instruction",
    "InstructionLayout",
    "Op",
    "PointerKind",
    "Update",
    "UpdateKind",
]

INSTRUCTION_WIDTH = 128


class AKind(enum.IntEnum):
    """Where the left operand of the test comes from."""

    WORD = 0
    """Record word `a_index`, bits [low, low + width_minus_1], sign extended if `a_signed`."""
    REGISTER = 1
    ADDRESS = 2
    """Address of the current record."""


class BKind(enum.IntEnum):
    """Where the right operand of the test comes from."""

    IMMEDIATE = 0
    REGISTER = 1
    WORD = 2


class Op(enum.IntEnum):
    """The comparison."""

    ALWAYS = 0
    EQ = 1
    NE = 2
    LT_S = 3
    GE_S = 4
    LT_U = 5
    GE_U = 6
    ANY = 7
    """a AND b has a bit set."""


class UpdateKind(enum.IntEnum):
    """What is done to the destination register: ``register = register OP source``."""

    NONE = 0
    MOV = 1
    ADD = 2
    SUB = 3
    MIN = 4
    MAX = 5
    AND = 6
    OR = 7


class PointerKind(enum.IntEnum):
    """A 32-bit value that an update, a load or a yield takes."""

    WORD = 0
    REGISTER = 1
    ADDRESS = 2
    IMMEDIATE = 3
    """The instruction's immediate; for updates only."""


class ExitKind(enum.IntEnum):
    """What comes next."""

    GOTO = 0
    LOAD = 1
    YIELD = 2
    DONE = 3


@dataclass(frozen=True, kw_only=True)
class Update:
    """The register update of a taken instruction."""

    kind: UpdateKind = UpdateKind.NONE
    register: int = 0
    source_kind: PointerKind = PointerKind.WORD
    source_index: int = 0


@dataclass(frozen=True, kw_only=True)
class Exit:
    """An exit: `target` is an instruction; `offset` is 12-bit signed (for DONE: the 8-bit code)."""

    kind: ExitKind = ExitKind.GOTO
    target: int = 0
    pointer_kind: PointerKind = PointerKind.WORD
    pointer_index: int = 0
    offset: int = 0


# (path in Instruction, width, signed), from bit 0 up. The three bits on top are reserved and must be 0.
_FIELDS: tuple[tuple[str, int, bool], ...] = (
    ("immediate", 32, False),
    ("op", 3, False),
    ("a_kind", 2, False),
    ("a_index", 3, False),
    ("a_low", 5, False),
    ("a_width_minus_1", 5, False),
    ("a_signed", 1, False),
    ("b_kind", 2, False),
    ("b_index", 3, False),
    ("update.kind", 3, False),
    ("update.register", 3, False),
    ("update.source_kind", 2, False),
    ("update.source_index", 3, False),
    ("store", 1, False),
    ("store_conditional", 1, False),
    ("store_word", 3, False),
    ("store_register", 3, False),
    ("taken.kind", 2, False),
    ("taken.target", 6, False),
    ("taken.pointer_kind", 2, False),
    ("taken.pointer_index", 3, False),
    ("taken.offset", 12, True),
    ("not_taken.kind", 2, False),
    ("not_taken.target", 6, False),
    ("not_taken.pointer_kind", 2, False),
    ("not_taken.pointer_index", 3, False),
    ("not_taken.offset", 12, True),
)
_RESERVED = INSTRUCTION_WIDTH - sum(width for _, width, _ in _FIELDS)
assert _RESERVED == 3, _RESERVED

_ENUMS: dict[str, type[enum.IntEnum]] = {
    "op": Op,
    "a_kind": AKind,
    "b_kind": BKind,
    "update.kind": UpdateKind,
    "update.source_kind": PointerKind,
    "taken.kind": ExitKind,
    "taken.pointer_kind": PointerKind,
    "not_taken.kind": ExitKind,
    "not_taken.pointer_kind": PointerKind,
}

#: The Amaranth layout of an instruction word: the fields above with `.` written as `_`.
InstructionLayout = data.StructLayout(
    {name.replace(".", "_"): width for name, width, _ in _FIELDS} | {"reserved": _RESERVED}
)


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One decoded instruction. Defaults are `always`, nothing updated or stored, `goto 0`."""

    immediate: int = 0
    op: Op = Op.ALWAYS
    a_kind: AKind = AKind.WORD
    a_index: int = 0
    a_low: int = 0
    a_width_minus_1: int = 31
    a_signed: bool = False
    b_kind: BKind = BKind.IMMEDIATE
    b_index: int = 0
    update: Update = field(default_factory=Update)
    store: bool = False
    store_conditional: bool = False
    store_word: int = 0
    store_register: int = 0
    taken: Exit = field(default_factory=Exit)
    not_taken: Exit = field(default_factory=Exit)

    def encode(self) -> int:
        """The 128-bit word. Raises ValueError naming the field that does not fit."""
        word = shift = 0
        for path, width, signed in _FIELDS:
            value = int(_get(self, path))
            low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
            if not low <= value <= high:
                raise ValueError(f"instruction field {path} is {value}: expected {low} to {high}")
            word |= (value & (1 << width) - 1) << shift
            shift += width
        return word

    @classmethod
    def decode(cls, word: int) -> Instruction:
        """The instruction in a 128-bit word.

        Raises ValueError for an operand kind that is not defined, a set reserved bit, or a word over
        128 bits. (The hardware treats undefined kinds of `a`, `b` and pointers as documented in
        `hdl/walker/datapath.py`; the host never loads such a word.)
        """
        if not 0 <= word < 1 << INSTRUCTION_WIDTH:
            raise ValueError(f"instruction word {word:#x}: expected 128 bits")
        values: dict[str, int | enum.IntEnum] = {}
        for path, width, signed in _FIELDS:
            value = word & (1 << width) - 1
            word >>= width
            if signed and value >> width - 1:
                value -= 1 << width
            values[path] = _ENUMS[path](value) if path in _ENUMS else value
        if word:
            raise ValueError(f"reserved bits of an instruction are {word:#b}: expected 0")

        def group(kind: type[Update] | type[Exit], prefix: str) -> Update | Exit:
            return kind(**{f.name: values[f"{prefix}.{f.name}"] for f in fields(kind)})  # type: ignore[arg-type]

        plain = {path: value for path, value in values.items() if "." not in path}
        for name in ("a_signed", "store", "store_conditional"):
            plain[name] = bool(plain[name])
        decoded = cls(**plain)  # type: ignore[arg-type]
        return replace(
            decoded,
            update=group(Update, "update"),
            taken=group(Exit, "taken"),
            not_taken=group(Exit, "not_taken"),
        )


def _get(instruction: Instruction, path: str) -> int:
    value: object = instruction
    for name in path.split("."):
        value = getattr(value, name)
    assert isinstance(value, int)
    return value
