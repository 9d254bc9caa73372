"""The listing of linked walk programs: every instruction with its number, label, source line and word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hdl.walker.isa import Instruction

from .disassembly import disassemble
from .flow import HopCost

__all__ = ["Listed", "listing"]


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
