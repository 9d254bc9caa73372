"""The operands of the walk language: record fields, registers, the address; what is said of them.

Operators build the parts of an instruction, they compute nothing: ``field(LIVE) >= 1`` is a `Test`,
``r0.mov(address)`` an `UpdateClause`. Whether ``<`` and ``>=`` compare signed numbers follows from the
operands: they do when one is a signed field or ``rN.signed``; registers alone compare unsigned.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from hdl.walker.isa import AKind, BKind, Op, PointerKind, Update, UpdateKind

from .records import BitField

__all__ = [
    "ALWAYS",
    "AssemblyError",
    "Operand",
    "RegisterOperand",
    "SourceLine",
    "Test",
    "UpdateClause",
    "address",
    "field",
    "r0",
    "r1",
    "r2",
    "r3",
    "r4",
    "r5",
    "r6",
    "r7",
    "register",
    "source_line",
]

#: The files of the language itself: the line of a mistake is the first that is outside of them.
_OWN_FILES = {str(Path(__file__).with_name(name)) for name in ("operands.py", "clauses.py", "assembler.py")}


class AssemblyError(ValueError):
    """A mistake in a walk program; the text is ``file:line: reason``."""


@dataclass(frozen=True)
class SourceLine:
    """A line of Python source, where a part of a walk program is written."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, reason: str) -> AssemblyError:
        """The error that `reason` is at this line."""
        return AssemblyError(f"{self}: {reason}")


def source_line() -> SourceLine:
    """The line that is calling into the assembler."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in _OWN_FILES and frame.f_back is not None:
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return SourceLine("/".join(path.parts[-3:]), frame.f_lineno)


def _fail(reason: str) -> NoReturn:
    raise source_line().error(reason)


@dataclass(frozen=True, eq=False)
class Test:
    """The test of an instruction: ``a OP b`` as instruction fields, and how the listing writes it."""

    op: Op
    a: Operand | None = None
    b: Operand | int | None = None

    def __bool__(self) -> NoReturn:
        _fail("a test has no value in Python: expected it as the first argument of `when`, not in and/or/if")


#: The test that is always taken.
ALWAYS = Test(Op.ALWAYS)


@dataclass(frozen=True)
class UpdateClause:
    """The register update of an instruction and its immediate, if it takes one."""

    update: Update
    immediate: int | None


@dataclass(frozen=True, eq=False)
class Operand:
    """A 32-bit value of the walker: a record field, a register or the address of the record."""

    name: str
    kind: AKind
    index: int = 0
    bits: BitField | None = None
    """The field of a record word; None for a register and the address."""
    is_signed: bool = False

    def __str__(self) -> str:
        return self.name

    __hash__ = object.__hash__

    def __eq__(self, other: Operand | int) -> Test:  # type: ignore[override]
        return _symmetric(Op.EQ, self, other)

    def __ne__(self, other: Operand | int) -> Test:  # type: ignore[override]
        return _symmetric(Op.NE, self, other)

    def __and__(self, other: Operand | int) -> Test:
        return _symmetric(Op.ANY, self, other)

    __rand__ = __and__

    def __lt__(self, other: Operand | int) -> Test:
        return _ordered("<", self, other)

    def __ge__(self, other: Operand | int) -> Test:
        return _ordered(">=", self, other)

    def __gt__(self, other: Operand | int) -> Test:
        if isinstance(other, int):
            return _ordered(">=", self, other, above=True)
        return _ordered("<", other, self)

    def __le__(self, other: Operand | int) -> Test:
        if isinstance(other, int):
            return _ordered("<", self, other, above=True)
        return _ordered(">=", other, self)

    @property
    def is_whole(self) -> bool:
        """Whether it is 32 bits wide, as every value but the left operand of a test must be."""
        return self.bits is None or self.bits.width == 32

    @property
    def b_kind(self) -> BKind | None:
        """Its kind as the right operand of a test; None if it cannot be one."""
        if self.kind == AKind.REGISTER:
            return BKind.REGISTER
        return BKind.WORD if self.kind == AKind.WORD and self.is_whole else None

    def pointer(self, use: str) -> tuple[PointerKind, int]:
        """Its kind and index as a 32-bit value; `use` names what takes it, for the error."""
        if not self.is_whole:
            _fail(f"{use} takes a whole word: {self} is {_width(self)} bits wide")
        return PointerKind(self.kind), self.index


@dataclass(frozen=True, eq=False)
class RegisterOperand(Operand):
    """One of the registers r0..r7."""

    @property
    def signed(self) -> RegisterOperand:
        """The register as a signed number in a comparison."""
        return replace(self, is_signed=True)

    def mov(self, source: Operand | int) -> UpdateClause:
        """register = source"""
        return self._update(UpdateKind.MOV, source)

    def add(self, source: Operand | int) -> UpdateClause:
        """register = register + source, modulo 2**32"""
        return self._update(UpdateKind.ADD, source)

    def sub(self, source: Operand | int) -> UpdateClause:
        """register = register - source, modulo 2**32"""
        return self._update(UpdateKind.SUB, source)

    def min(self, source: Operand | int) -> UpdateClause:
        """register = the smaller of both as signed numbers"""
        return self._update(UpdateKind.MIN, source)

    def max(self, source: Operand | int) -> UpdateClause:
        """register = the greater of both as signed numbers"""
        return self._update(UpdateKind.MAX, source)

    def and_(self, source: Operand | int) -> UpdateClause:
        """register = register AND source, bit by bit"""
        return self._update(UpdateKind.AND, source)

    def or_(self, source: Operand | int) -> UpdateClause:
        """register = register OR source, bit by bit"""
        return self._update(UpdateKind.OR, source)

    def _update(self, kind: UpdateKind, source: Operand | int) -> UpdateClause:
        if isinstance(source, int):
            if not -(1 << 31) <= source < 1 << 32:
                _fail(f"immediate {source} is too wide: expected 32 bits")
            pointer, immediate = (PointerKind.IMMEDIATE, 0), source & 0xFFFFFFFF
        else:
            pointer, immediate = source.pointer(f"{kind.name.lower()} to {self}"), None
        update = Update(kind=kind, register=self.index, source_kind=pointer[0], source_index=pointer[1])
        return UpdateClause(update, immediate)


def field(bits: BitField) -> Operand:
    """The bits of a record word as an operand. Raises AssemblyError if they leave the record or the word."""
    if not 0 <= bits.word <= 7:
        _fail(f"{bits} leaves the record: expected word 0 to 7")
    if bits.width < 1 or bits.low < 0 or bits.low + bits.width > 32:
        _fail(f"{bits} leaves the word: expected low >= 0, width >= 1 and low + width <= 32")
    name = f"w{bits.word}"
    if bits.width < 32:
        name += f"[{bits.low + bits.width - 1}:{bits.low}]"
    if bits.signed:
        name += "s"
    return Operand(name, AKind.WORD, bits.word, bits, bits.signed)


def register(index: int) -> RegisterOperand:
    """Register `index`. Raises AssemblyError outside 0 to 7."""
    if not 0 <= index <= 7:
        _fail(f"register r{index}: expected r0 to r7")
    return RegisterOperand(f"r{index}", AKind.REGISTER, index)


r0, r1, r2, r3, r4, r5, r6, r7 = (register(index) for index in range(8))
#: The address of the current record.
address = Operand("address", AKind.ADDRESS)


def _width(operand: Operand) -> int:
    return 32 if operand.bits is None else operand.bits.width


def _operand(value: object) -> Operand | int:
    if isinstance(value, bool) or not isinstance(value, (Operand, int)):
        _fail(f"operand {value!r}: expected a field, a register, `address` or a number")
    return value


def _range(operand: Operand, signed: bool) -> tuple[int, int]:
    width = _width(operand)
    signed = signed if width == 32 else operand.is_signed
    return (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)


def _symmetric(op: Op, a: Operand, other: object) -> Test:
    b = _operand(other)
    if isinstance(b, int):
        low, high = _range(a, a.is_signed)
        # A whole word is a bit pattern here: either sign will do.
        low, high = (-(1 << 31), (1 << 32) - 1) if _width(a) == 32 else (low, high)
        if not low <= b <= high:
            _fail(f"{b} is too wide for {a}: expected {low} to {high}")
        return Test(op, a, b)
    if b.b_kind is None:
        a, b = b, a
    return Test(op, a, _right(b))


def _ordered(symbol: str, a: Operand, other: object, *, above: bool = False) -> Test:
    """``a < other`` or ``a >= other``; with `above`, other + 1 instead (so <= and > of a number)."""
    b = _operand(other)
    signed = _signedness(a, b)
    op = {("<", True): Op.LT_S, ("<", False): Op.LT_U, (">=", True): Op.GE_S, (">=", False): Op.GE_U}[
        symbol, signed
    ]
    if isinstance(b, Operand):
        return Test(op, a, _right(b))
    low, high = _range(a, signed)
    if not low <= b <= high:
        _fail(f"{b} is too wide for {a}: expected {low} to {high}")
    if above and b == high:
        _fail(f"{a} cannot be greater than {b}: the comparison is decided beforehand")
    return Test(op, a, b + int(above))


def _right(operand: Operand) -> Operand:
    if operand.b_kind is None:
        what = "the address" if operand.kind == AKind.ADDRESS else f"{operand}, {_width(operand)} bits wide,"
        _fail(f"{what} cannot be the right operand: expected a whole word, a register or a number")
    return operand


def _signedness(a: Operand, b: Operand | int) -> bool:
    """Whether an order is one of signed numbers. A narrow unsigned field is right under either order."""
    operands = [operand for operand in (a, b) if isinstance(operand, Operand)]
    signed = [operand for operand in operands if operand.is_signed]
    unsigned = [
        operand
        for operand in operands
        if operand.kind != AKind.REGISTER and operand.is_whole and not operand.is_signed
    ]
    if signed and unsigned:
        _fail(f"{signed[0]} is signed and {unsigned[0]} is not: their order is not defined")
    return bool(signed)
