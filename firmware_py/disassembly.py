"""The disassembly of walk programs: an instruction as one line of text, which `assemble_line` reads back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hdl.walker.isa import (
    AKind,
    BKind,
    Exit,
    ExitKind,
    Instruction,
    InstructionLayout,
    Op,
    PointerKind,
    UpdateKind,
)

from .assembly_text import COMPARISONS, UPDATES, WITH, assemble_line

__all__ = ["disassemble", "write_text"]

_SIGNED = (Op.LT_S, Op.GE_S)


def disassemble(instruction: Instruction, labels: Mapping[int, str] | None = None) -> str:
    """One instruction as text; targets by label where `labels` has one, else by number."""
    text = _plain(instruction, labels or {})
    actual = _fields(instruction.encode())
    usual = _fields(assemble_line(text, {name: index for index, name in (labels or {}).items()}).encode())
    extra = [f"{name}={_number(actual[name])}" for name in actual if actual[name] != usual[name]]
    return text + (WITH + ", ".join(extra) if extra else "")


def _fields(word: int) -> dict[str, int]:
    """The fields of a word by name, as they are stored."""
    return {name: word >> place.offset & (1 << place.width) - 1 for name, place in InstructionLayout}


def _plain(instruction: Instruction, labels: Mapping[int, str]) -> str:
    """What the instruction does."""
    taken = "; ".join(
        [*_effects(instruction), _exit(instruction.taken, instruction.immediate, labels)],
    )
    if instruction.op == Op.ALWAYS:
        return taken
    other = _exit(instruction.not_taken, instruction.immediate, labels)
    return f"{_test(instruction)} ? {taken} : {other}"


def _test(instruction: Instruction) -> str:
    a = {
        AKind.WORD: f"w{instruction.a_index}",
        AKind.REGISTER: f"r{instruction.a_index}",
        AKind.ADDRESS: "address",
    }[instruction.a_kind]
    if instruction.a_kind == AKind.WORD and (instruction.a_low or instruction.a_width_minus_1 < 31):
        a += f"[{instruction.a_low + instruction.a_width_minus_1}:{instruction.a_low}]"
        a += "s" if instruction.a_signed else ""
    immediate = instruction.immediate
    if instruction.op in _SIGNED and immediate >> 31:
        immediate -= 1 << 32
    b = {
        BKind.IMMEDIATE: _number(immediate),
        BKind.REGISTER: f"r{instruction.b_index}",
        BKind.WORD: f"w{instruction.b_index}",
    }[instruction.b_kind]
    return f"{a} {COMPARISONS[instruction.op]} {b}"


def _effects(instruction: Instruction) -> list[str]:
    effects = []
    update = instruction.update
    if update.kind != UpdateKind.NONE:
        destination = f"r{update.register}"
        source = _pointer(update.source_kind, update.source_index, instruction.immediate)
        effects.append(f"{destination} = " + UPDATES[update.kind].format(r=destination, s=source))
    if instruction.store:
        condition = " if unchanged" if instruction.store_conditional else ""
        effects.append(f"store w{instruction.store_word} = r{instruction.store_register}{condition}")
    return effects


def _exit(leave: Exit, immediate: int, labels: Mapping[int, str]) -> str:
    if leave.kind == ExitKind.DONE:
        return f"done {leave.offset & 0xFF}"
    target = labels.get(leave.target, str(leave.target))
    if leave.kind == ExitKind.GOTO:
        return f"goto {target}"
    value = _pointer(leave.pointer_kind, leave.pointer_index, immediate)
    value += f" {'-' if leave.offset < 0 else '+'} {abs(leave.offset)}" if leave.offset else ""
    return f"{leave.kind.name.lower()} {value} -> {target}"


def _pointer(kind: PointerKind, index: int, immediate: int) -> str:
    return {
        PointerKind.WORD: f"w{index}",
        PointerKind.REGISTER: f"r{index}",
        PointerKind.ADDRESS: "address",
        PointerKind.IMMEDIATE: _number(immediate),
    }[kind]


def _number(value: int) -> str:
    return str(value) if abs(value) < 4096 else f"{value:#x}"


def write_text(instructions: Sequence[Instruction], labels: Mapping[int, str] | None = None) -> str:
    """A program as text: a label on a line of its own, an instruction on each other."""
    lines = []
    for index, instruction in enumerate(instructions):
        if labels and index in labels:
            lines.append(f"{labels[index]}:")
        lines.append(f"    {disassemble(instruction, labels)}")
    return "\n".join(lines) + "\n"
