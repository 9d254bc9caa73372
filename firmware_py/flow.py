"""Control flow of a walk program: what can be reached, what can end, instructions from read to read.

Instructions are numbered as in the sequence given; every exit's target must lie in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hdl.walker.isa import Exit, ExitKind, Instruction, Op

__all__ = ["HopCost", "endless", "exits", "hop_cost", "unreachable"]

_LEAVES_RECORD = (ExitKind.LOAD, ExitKind.DONE)


@dataclass(frozen=True, kw_only=True)
class HopCost:
    """Instructions executed on one record: from its arrival to the next load or the end."""

    least: int
    most: int | None
    """None: a loop without a load; only the step budget bounds it."""

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more instructions a hop"
        if self.least == self.most:
            return f"{self.least} instruction{'s' if self.least > 1 else ''} a hop"
        return f"{self.least} to {self.most} instructions a hop"


def exits(instruction: Instruction) -> tuple[Exit, ...]:
    """The exits that an instruction can take: one when it is always taken, else two."""
    if instruction.op == Op.ALWAYS:
        return (instruction.taken,)
    return (instruction.taken, instruction.not_taken)


def unreachable(program: Sequence[Instruction], entries: Iterable[int]) -> list[int]:
    """Instructions that no path from an entry reaches, in order."""
    reached: set[int] = set()
    waiting = list(entries)
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            waiting += _successors(program[index])
    return [index for index in range(len(program)) if index not in reached]


def endless(program: Sequence[Instruction]) -> list[int]:
    """Instructions from which no path leads to a `done`, in order."""
    ending: set[int] = set()
    while True:
        grown = {
            index
            for index, instruction in enumerate(program)
            if any(leave.kind == ExitKind.DONE for leave in exits(instruction))
            or any(target in ending for target in _successors(instruction))
        }
        if grown == ending:
            return [index for index in range(len(program)) if index not in ending]
        ending = grown


def hop_cost(program: Sequence[Instruction], entries: Iterable[int]) -> HopCost:
    """The least and the most instructions on one record, over every record that a walk can be at."""
    starts = set(entries)
    for instruction in program:
        starts |= {leave.target for leave in exits(instruction) if leave.kind == ExitKind.LOAD}
    costs = [_cost(program, start) for start in sorted(starts)]
    most = [cost.most for cost in costs]
    return HopCost(
        least=min(cost.least for cost in costs),
        most=None if None in most else max(cost for cost in most if cost is not None),
    )


def _cost(program: Sequence[Instruction], start: int) -> HopCost:
    return HopCost(least=_shortest(program, start), most=_longest(program, start, {}, set()))


def _shortest(program: Sequence[Instruction], start: int) -> int:
    """Instructions on the shortest path to a load or an end; more than the program has if there is none."""
    reached = {start}
    for length in range(1, len(program) + 1):
        leaves = [leave for index in reached for leave in exits(program[index])]
        if any(leave.kind in _LEAVES_RECORD for leave in leaves):
            return length
        reached |= {leave.target for leave in leaves}
    return len(program) + 1


def _longest(
    program: Sequence[Instruction], index: int, known: dict[int, int | None], path: set[int]
) -> int | None:
    """By depth first search; an instruction met again on its own path is a loop without a load."""
    if index in path:
        return None
    if index not in known:
        path.add(index)
        rest = [
            0 if leave.kind in _LEAVES_RECORD else _longest(program, leave.target, known, path)
            for leave in exits(program[index])
        ]
        path.discard(index)
        known[index] = None if None in rest else 1 + max(length for length in rest if length is not None)
    return known[index]


def _successors(instruction: Instruction) -> Iterator[int]:
    return (leave.target for leave in exits(instruction) if leave.kind != ExitKind.DONE)
