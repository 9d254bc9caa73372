"""The effects and exits of an instruction besides the update of a register: stores, loads, yields, ends."""

from __future__ import annotations

from dataclasses import dataclass

from hdl.walker.isa import Exit, ExitKind

from .operands import Operand, RegisterOperand, source_line

__all__ = ["ExitClause", "StoreClause", "done", "goto", "load", "store", "yield_value"]

_OFFSETS = (-(1 << 11), (1 << 11) - 1)


@dataclass(frozen=True)
class StoreClause:
    """The store of an instruction: register `register` to word `word` of the current record."""

    word: int
    register: int
    conditional: bool


@dataclass(frozen=True)
class ExitClause:
    """An exit whose target is still a label; None: the next instruction."""

    exit: Exit
    label: str | None


def store(to: Operand, source: RegisterOperand, *, conditional: bool = False) -> StoreClause:
    """Store register `source` to the record word `to`; conditional: only if memory has what was read."""
    if to.bits is None or not to.is_whole:
        raise source_line().error(f"store to {to}: expected a whole record word")
    if not isinstance(source, RegisterOperand):
        raise source_line().error(f"store of {source}: expected a register")
    return StoreClause(to.index, source.index, conditional)


def goto(label: str) -> ExitClause:
    """Go on at `label` with the same record."""
    return ExitClause(Exit(kind=ExitKind.GOTO), label)


def load(pointer: Operand, label: str | None = None, *, offset: int = 0) -> ExitClause:
    """Read the record at `pointer` + `offset`, then go on at `label` (None: the next instruction)."""
    return _pointed(ExitKind.LOAD, pointer, label, offset)


def yield_value(value: Operand, label: str | None = None, *, offset: int = 0) -> ExitClause:
    """Report `value` + `offset` as one result, then go on at `label` (None: the next instruction)."""
    return _pointed(ExitKind.YIELD, value, label, offset)


def done(code: int = 0) -> ExitClause:
    """End the walk with an 8-bit code."""
    if not 0 <= code <= 255:
        raise source_line().error(f"done code {code}: expected 0 to 255")
    return ExitClause(Exit(kind=ExitKind.DONE, offset=code), None)


def _pointed(kind: ExitKind, pointer: Operand, label: str | None, offset: int) -> ExitClause:
    if not isinstance(pointer, Operand):
        raise source_line().error(
            f"{kind.name.lower()} of {pointer!r}: expected a record word, a register or `address`"
        )
    if not _OFFSETS[0] <= offset <= _OFFSETS[1]:
        raise source_line().error(f"offset {offset}: expected 12 bits, {_OFFSETS[0]} to {_OFFSETS[1]}")
    pointer_kind, index = pointer.pointer(kind.name.lower())
    return ExitClause(Exit(kind=kind, pointer_kind=pointer_kind, pointer_index=index, offset=offset), label)
