"""The disassembly of walk programs: an instruction as one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hdl.walker.isa import AKind, BKind, Exit, ExitKind, Instruction, Op, PointerKind, UpdateKind

from .flow import HopCost

__all__ = ["Listed", "disassemble", "listing"]

_COMPARISONS = {
    Op.EQ: "==",
    Op.NE: "!=",
    Op.LT_S: "<s",
    Op.GE_S: ">=s",
    Op.LT_U: "<u",
    Op.GE_U: ">=u",
    Op.ANY: "&",
}
_UPDATES = {
    UpdateKind.ADD: "{r} + {s}",
    UpdateKind.SUB: "{r} - {s}",
    UpdateKind.MIN: "min({r}, {s})",
    UpdateKind.MAX: "max({r}, {s})",
    UpdateKind.AND: "{r} & {s}",
    UpdateKind.OR: "{r} | {s}",
    UpdateKind.MOV: "{s}",
}
_SIGNED = (Op.LT_S, Op.GE_S)


@dataclass(frozen=True)
class Listed:
    """One instruction of an image with what a listing says of it."""

    program: str
    index: int
    instruction: Instruction
    labels: Mapping[int, str]
    """Label by instruction, of the whole program."""
    source: str


def listing(listed: Sequence[Listed], costs: Mapping[str, HopCost]) -> str:
    """The text of a linked image: each program under its name and instructions a hop."""
    lines: list[str] = []
    program = None
    for item in listed:
        if item.program != program:
            program = item.program
            lines.append(f"{program}: {costs[program]}")
        label = item.labels.get(item.index, "")
        text = disassemble(item.instruction, item.labels)
        lines.append(
            f"  {item.index:2d} {label:<20s} {text:<76s} {item.instruction.encode():032x}  {item.source}"
        )
    return "\n".join(lines) + "\n"


def disassemble(instruction: Instruction, labels: Mapping[int, str] | None = None) -> str:
    """One instruction as text; targets by label where `labels` has one, else by number."""
    names = labels or {}
    taken = "; ".join([*_effects(instruction), _exit(instruction.taken, names)])
    if instruction.op == Op.ALWAYS:
        return taken
    return f"{_test(instruction)} ? {taken} : {_exit(instruction.not_taken, names)}"


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
    return f"{a} {_COMPARISONS[instruction.op]} {b}"


def _effects(instruction: Instruction) -> list[str]:
    effects = []
    update = instruction.update
    if update.kind != UpdateKind.NONE:
        destination = f"r{update.register}"
        source = _pointer(update.source_kind, update.source_index, instruction.immediate)
        effects.append(f"{destination} = " + _UPDATES[update.kind].format(r=destination, s=source))
    if instruction.store:
        condition = " if unchanged" if instruction.store_conditional else ""
        effects.append(f"store w{instruction.store_word} = r{instruction.store_register}{condition}")
    return effects


def _exit(leave: Exit, labels: Mapping[int, str]) -> str:
    if leave.kind == ExitKind.DONE:
        return f"done {leave.offset & 0xFF}"
    target = labels.get(leave.target, str(leave.target))
    if leave.kind == ExitKind.GOTO:
        return f"goto {target}"
    value = _pointer(leave.pointer_kind, leave.pointer_index, 0)
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
