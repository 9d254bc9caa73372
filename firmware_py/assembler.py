"""The assembler of walk programs: instructions written as Python one-liners become 128-bit words.

A program names its entries and labels and adds instructions, each a test, at most one update and one
store, and an exit for taken and for not taken; an exit left out goes on with the next instruction::

    program = Program("climb")
    program.entry("climb")
    program.when(field(LIVE) >= 1, r0.mov(address), then=done(), otherwise=load(field(PARENT), "climb"))
    image = link([program])

Every mistake is an `AssemblyError` that names the Python source line and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hdl.walker.isa import BKind, Exit, ExitKind, Instruction, Update

from .clauses import ExitClause, StoreClause, done, goto, load, store, yield_value
from .flow import HopCost, endless, hop_cost, unreachable
from .listing import Listed, listing
from .operands import (
    ALWAYS,
    AssemblyError,
    Operand,
    SourceLine,
    Test,
    UpdateClause,
    source_line,
)

__all__ = [
    "PROGRAM_WORDS",
    "AssemblyError",
    "ExitClause",
    "Image",
    "Program",
    "StoreClause",
    "done",
    "goto",
    "link",
    "load",
    "store",
    "yield_value",
]

#: Instructions that program memory holds.
PROGRAM_WORDS = 64


@dataclass(frozen=True)
class _Line:
    """One instruction before its labels are resolved."""

    instruction: Instruction
    taken: ExitClause
    not_taken: ExitClause
    source: SourceLine


class Program:
    """A walk program under construction. Its labels are its own; its entries are what a walk can start at."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[str, int] = {}
        self._source = source_line()
        self._lines: list[_Line] = []
        self._labels: dict[str, tuple[int, SourceLine]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def entry(self, name: str) -> None:
        """The next instruction starts the walk called `name`; also a label."""
        self.label(name)
        self.entries[name] = len(self._lines)

    def label(self, name: str) -> None:
        """The next instruction is called `name`. Raises AssemblyError if another one is."""
        if name in self._labels:
            raise source_line().error(f"label {name!r} is defined twice: first at {self._labels[name][1]}")
        self._labels[name] = (len(self._lines), source_line())

    def always(self, *effects: UpdateClause | StoreClause, then: ExitClause | None = None) -> None:
        """Add an instruction that is always taken."""
        self._add(ALWAYS, effects, then, then)

    def when(
        self,
        test: Test,
        *effects: UpdateClause | StoreClause,
        then: ExitClause | None = None,
        otherwise: ExitClause | None = None,
    ) -> None:
        """Add an instruction: if `test` holds do `effects` and leave by `then`, else leave by `otherwise`.

        Raises AssemblyError for a second update or store, a store written before the update that precedes
        it, two different immediates, or the 65th instruction.
        """
        if not isinstance(test, Test):
            raise source_line().error(f"{test!r} is no test: expected a comparison of operands")
        self._add(test, effects, then, otherwise)

    def _add(
        self,
        test: Test,
        effects: Sequence[UpdateClause | StoreClause],
        then: ExitClause | None,
        otherwise: ExitClause | None,
    ) -> None:
        source = source_line()
        update, stored = _split(effects, source)
        immediates = {
            value & 0xFFFFFFFF
            for value in (test.b if isinstance(test.b, int) else None, update and update.immediate)
            if value is not None
        }
        if len(immediates) > 1:
            raise source.error(
                f"two different immediates, {' and '.join(map(str, sorted(immediates)))}: "
                "an instruction has room for one; put the other in a register"
            )
        if len(self._lines) == PROGRAM_WORDS:
            raise source.error(
                f"program {self.name!r} is longer than the {PROGRAM_WORDS} instructions of program memory"
            )
        instruction = Instruction(
            immediate=immediates.pop() if immediates else 0,
            op=test.op,
            update=update.update if update else Update(),
            store=stored is not None,
            store_conditional=bool(stored and stored.conditional),
            store_word=stored.word if stored else 0,
            store_register=stored.register if stored else 0,
        )
        following = ExitClause(Exit(kind=ExitKind.GOTO), None)
        self._lines.append(
            _Line(_with_operands(instruction, test), then or following, otherwise or following, source)
        )

    def assemble(self) -> tuple[list[Instruction], list[SourceLine]]:
        """The instructions, targets counted from the program's first, and the source line of each.

        Raises AssemblyError for an unknown or unused label, an exit beyond the last instruction, an
        instruction that nothing reaches or that no `done` follows, or a program without an entry.
        """
        if not self._lines:
            raise self._source.error(f"program {self.name!r} has no instruction")
        if not self.entries:
            raise self._source.error(f"program {self.name!r} has no entry")
        used = set(self.entries)
        instructions = []
        for index, line in enumerate(self._lines):
            taken = self._resolve(line, line.taken, index, used)
            not_taken = self._resolve(line, line.not_taken, index, used)
            instructions.append(replace(line.instruction, taken=taken, not_taken=not_taken))
        for name, (_, source) in self._labels.items():
            if name not in used:
                raise source.error(f"label {name!r} is never used")
        sources = [line.source for line in self._lines]
        for index in unreachable(instructions, self.entries.values()):
            raise sources[index].error(
                f"{self._place(index)}: no path from an entry reaches this instruction"
            )
        for index in endless(instructions):
            raise sources[index].error(f"{self._place(index)}: no path from this instruction reaches a done")
        return instructions, sources

    def _place(self, index: int) -> str:
        """An instruction for people: its program and how far it is behind which label."""
        before = [(at, name) for name, (at, _) in self._labels.items() if at <= index]
        at, name = max(before, default=(0, ""))
        label = (
            f"label {name!r}" + (f" + {index - at}" if index > at else "") if name else f"instruction {index}"
        )
        return f"program {self.name!r}, {label}"

    def _resolve(self, line: _Line, clause: ExitClause, index: int, used: set[str]) -> Exit:
        if clause.exit.kind == ExitKind.DONE:
            return clause.exit
        if clause.label is None:
            target = index + 1
        elif clause.label in self._labels:
            used.add(clause.label)
            target = self._labels[clause.label][0]
        else:
            known = ", ".join(sorted(self._labels))
            raise line.source.error(f"unknown label {clause.label!r}: expected one of {known}")
        if target == len(self._lines):
            raise line.source.error("missing exit: there is no next instruction to go on with")
        return replace(clause.exit, target=target)


@dataclass(frozen=True, kw_only=True)
class Image:
    """Linked walk programs: what program memory holds from instruction 0, and where each walk starts."""

    instructions: tuple[Instruction, ...]
    entries: Mapping[str, int]
    """First instruction by walk name."""
    hop_costs: Mapping[str, HopCost]
    """Instructions a hop by program name."""
    listed: tuple[Listed, ...]

    @property
    def words(self) -> list[int]:
        """The instructions as 128-bit words."""
        return [instruction.encode() for instruction in self.instructions]

    def program(self, name: str) -> tuple[list[Instruction], dict[int, str]]:
        """The instructions of one of the programs, counted from its first, and their labels by number.

        Raises KeyError for a program that is not in the image.
        """
        own = [item for item in self.listed if item.program == name]
        if not own:
            raise KeyError(name)
        base = own[0].index
        labels = {index - base: label for index, label in own[0].labels.items()}
        return [_moved(item.instruction, -base) for item in own], labels

    def listing(self) -> str:
        """The programs as text: one line an instruction, with its number, source line and 128-bit word."""
        return listing(self.listed, self.hop_costs)


def link(programs: Sequence[Program]) -> Image:
    """The image of `programs`, one after another from instruction 0.

    Raises AssemblyError for a program that does not assemble, an entry named twice, or more instructions
    than program memory holds.
    """
    instructions: list[Instruction] = []
    entries: dict[str, int] = {}
    costs: dict[str, HopCost] = {}
    listed: list[Listed] = []
    for program in programs:
        base = len(instructions)
        assembled, sources = program.assemble()
        if base + len(assembled) > PROGRAM_WORDS:
            raise sources[PROGRAM_WORDS - base].error(
                f"program {program.name!r} does not fit: instructions {base} to {base + len(assembled) - 1} "
                f"of {PROGRAM_WORDS}"
            )
        costs[program.name] = hop_cost(assembled, program.entries.values())
        for name, index in program.entries.items():
            if name in entries:
                raise sources[index].error(f"entry {name!r} belongs to an earlier program already")
            entries[name] = base + index
        labels = {base + index: name for name, (index, _) in program._labels.items()}
        for index, (instruction, source) in enumerate(zip(assembled, sources, strict=True), base):
            moved = _moved(instruction, base)
            instructions.append(moved)
            listed.append(Listed(program.name, index, moved, labels, str(source)))
    return Image(instructions=tuple(instructions), entries=entries, hop_costs=costs, listed=tuple(listed))


def _moved(instruction: Instruction, by: int) -> Instruction:
    """The instruction for a program that begins `by` words later."""
    taken, not_taken = (
        leave if leave.kind == ExitKind.DONE else replace(leave, target=leave.target + by)
        for leave in (instruction.taken, instruction.not_taken)
    )
    return replace(instruction, taken=taken, not_taken=not_taken)


def _split(
    effects: Sequence[UpdateClause | StoreClause], source: SourceLine
) -> tuple[UpdateClause | None, StoreClause | None]:
    update: UpdateClause | None = None
    stored: StoreClause | None = None
    for effect in effects:
        if isinstance(effect, UpdateClause):
            if stored is not None:
                raise source.error("the update comes before the store: write it first")
            if update is not None:
                raise source.error("two updates in one instruction: expected at most one")
            update = effect
        elif isinstance(effect, StoreClause):
            if stored is not None:
                raise source.error("two stores in one instruction: expected at most one")
            stored = effect
        else:
            raise source.error(f"effect {effect!r}: expected an update of a register or a store")
    return update, stored


def _with_operands(instruction: Instruction, test: Test) -> Instruction:
    if test.a is None or test.b is None:
        return instruction
    instruction = replace(instruction, a_kind=test.a.kind, a_index=test.a.index)
    if test.a.bits is not None:
        instruction = replace(
            instruction,
            a_low=test.a.bits.low,
            a_width_minus_1=test.a.bits.width - 1,
            # A whole word needs no extension; leaving the bit clear gives equal tests equal words.
            a_signed=test.a.bits.signed and test.a.bits.width < 32,
        )
    if isinstance(test.b, Operand):
        kind = test.b.b_kind
        assert kind is not None, test.b
        return replace(instruction, b_kind=kind, b_index=test.b.index)
    return replace(instruction, b_kind=BKind.IMMEDIATE)
