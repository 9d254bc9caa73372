"""Walk programs from text: the lines that `disassemble` writes, read as the same 128 bits.

A line is ``test ? effects; exit : exit``, or ``effects; exit`` where there is nothing to test::

    w4[12:0]s >=s 1 ? r0 = address; done 0 : load w0 -> climb
    r1 = r1 + 1; store w5 = r1 if unchanged; yield r2 - 3 -> 7

Fields of the word that have no effect and are not what the assembler leaves in them come behind, by their
name in the instruction's layout and as they are stored: ``goto 3 with store_word=5, taken_offset=0xfff``.
A label stands on a line of its own, with a colon; `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hdl.walker.isa import (
    AKind,
    BKind,
    Exit,
    ExitKind,
    Instruction,
    InstructionLayout,
    Op,
    PointerKind,
    Update,
    UpdateKind,
)

__all__ = ["COMPARISONS", "UPDATES", "WITH", "AssemblyTextError", "assemble_line", "read_text", "read_words"]

#: How a test is written; ALWAYS is written as no test.
COMPARISONS = {
    Op.EQ: "==",
    Op.NE: "!=",
    Op.LT_S: "<s",
    Op.GE_S: ">=s",
    Op.LT_U: "<u",
    Op.GE_U: ">=u",
    Op.ANY: "&",
}
#: How an update is written: r is the register, s the source.
UPDATES = {
    UpdateKind.ADD: "{r} + {s}",
    UpdateKind.SUB: "{r} - {s}",
    UpdateKind.MIN: "min({r}, {s})",
    UpdateKind.MAX: "max({r}, {s})",
    UpdateKind.AND: "{r} & {s}",
    UpdateKind.OR: "{r} | {s}",
    UpdateKind.MOV: "{s}",
}
#: Begins the fields that have no effect.
WITH = " with "
_MASK = 0xFFFFFFFF

_VALUE = r"w[0-7]|r[0-7]|address|-?0x[0-9a-f]+|-?\d+"
_A = re.compile(r"w(?P<word>[0-7])(?:\[(?P<high>\d+):(?P<low>\d+)\](?P<signed>s?))?")
_TEST = re.compile(rf"(?P<a>\S+) (?P<op>==|!=|<s|>=s|<u|>=u|&) (?P<b>{_VALUE})")
_ASSIGNMENT = re.compile(r"r(?P<register>[0-7]) = (?P<expression>.+)")
_STORE = re.compile(r"store w(?P<word>[0-7]) = r(?P<register>[0-7])(?P<conditional> if unchanged)?")
_DONE = re.compile(r"done (?P<code>\d+)")
_GOTO = re.compile(r"goto (?P<target>\S+)")
_POINTED = re.compile(
    rf"(?P<kind>load|yield) (?P<value>{_VALUE})(?: (?P<sign>[+-]) (?P<offset>\d+))? -> (?P<target>\S+)"
)
_FORMS = {
    kind: re.compile(
        re.escape(form).replace(r"\{r\}", r"r(?P<old>[0-7])").replace(r"\{s\}", f"(?P<s>{_VALUE})")
    )
    for kind, form in UPDATES.items()
}
_LABEL = re.compile(r"(?P<name>[A-Za-z_]\w*):")


class AssemblyTextError(ValueError):
    """A text that is no instruction or no word of one; the message says what was expected."""


def assemble_line(text: str, labels: Mapping[str, int] | None = None) -> Instruction:
    """The instruction that a line says; `labels` are instructions by name.

    Raises AssemblyTextError for a part that is not understood, a field that does not exist or does not fit,
    two different immediates, or a target that is neither a label nor 0 to 63.
    """
    plain, behind, extra = text.strip().partition(WITH)
    instruction = _parse(plain, labels or {})
    return _with_fields(instruction, extra) if behind else instruction


def _with_fields(instruction: Instruction, extra: str) -> Instruction:
    word = instruction.encode()
    places = dict(InstructionLayout)
    for item in extra.split(", "):
        name, equals, digits = item.partition("=")
        if name not in places or not equals or not re.fullmatch(r"0x[0-9a-f]+|\d+", digits):
            raise AssemblyTextError(f"{item!r}: expected a field of the instruction and its value")
        place, value = places[name], int(digits, 0)
        if value >> place.width:
            raise AssemblyTextError(f"{item!r}: expected a value of {place.width} bits")
        word = word & ~((1 << place.width) - 1 << place.offset) | value << place.offset
    return _decoded(word)


def _decoded(word: int) -> Instruction:
    try:
        return Instruction.decode(word)
    except ValueError as error:
        raise AssemblyTextError(str(error)) from None


class _Immediates:
    """The one immediate that an instruction has room for, from the places that name it."""

    def __init__(self) -> None:
        self.value: int | None = None

    def take(self, digits: str) -> None:
        number = int(digits, 0)
        if not -(1 << 31) <= number < 1 << 32:
            raise AssemblyTextError(f"immediate {digits}: expected 32 bits")
        if self.value is not None and self.value != number & _MASK:
            raise AssemblyTextError(f"two different immediates, {self.value} and {digits}: expected one")
        self.value = number & _MASK

    def pointer(self, text: str) -> tuple[PointerKind, int]:
        """The kind and index of a value."""
        if text == "address":
            return PointerKind.ADDRESS, 0
        if text[0] in "wr":
            return (PointerKind.WORD if text[0] == "w" else PointerKind.REGISTER), int(text[1])
        self.take(text)
        return PointerKind.IMMEDIATE, 0


def _parse(text: str, labels: Mapping[str, int]) -> Instruction:
    immediates = _Immediates()
    test, asked, rest = text.rpartition(" ? ")
    instruction = _parse_test(test, immediates) if asked else Instruction()
    taken, parted, other = rest.partition(" : ")
    if bool(asked) != bool(parted):
        raise AssemblyTextError(f"{text!r}: expected `test ? effects; exit : exit` or `effects; exit`")
    *effects, leave = taken.split("; ")
    for number, effect in enumerate(effects):
        store = _STORE.fullmatch(effect)
        if store:
            if instruction.store:
                raise AssemblyTextError(f"{effect!r}: expected at most one store")
            instruction = replace(
                instruction,
                store=True,
                store_word=int(store["word"]),
                store_register=int(store["register"]),
                store_conditional=bool(store["conditional"]),
            )
        elif number:
            raise AssemblyTextError(f"{effect!r}: expected at most one update, before the store")
        else:
            instruction = replace(instruction, update=_parse_update(effect, immediates))
    exits = [_parse_exit(part, immediates, labels) for part in (leave, other if parted else leave)]
    return replace(instruction, taken=exits[0], not_taken=exits[1], immediate=immediates.value or 0)


def _parse_test(text: str, immediates: _Immediates) -> Instruction:
    test = _TEST.fullmatch(text)
    if test is None:
        raise AssemblyTextError(
            f"{text!r}: expected a test `a OP b`, OP one of {' '.join(COMPARISONS.values())}"
        )
    ops = {symbol: op for op, symbol in COMPARISONS.items()}
    instruction = Instruction(op=ops[test["op"]])
    word = _A.fullmatch(test["a"])
    if word:
        low, high = int(word["low"] or 0), int(word["high"] or 31)
        if not low <= 31 or not low <= high <= low + 31:
            raise AssemblyTextError(f"{test['a']!r}: expected a field of 1 to 32 bits from bit 0 to 31 up")
        instruction = replace(
            instruction,
            a_kind=AKind.WORD,
            a_index=int(word["word"]),
            a_low=low,
            a_width_minus_1=high - low,
            a_signed=bool(word["signed"]),
        )
    elif re.fullmatch(r"r[0-7]", test["a"]):
        instruction = replace(instruction, a_kind=AKind.REGISTER, a_index=int(test["a"][1]))
    elif test["a"] == "address":
        instruction = replace(instruction, a_kind=AKind.ADDRESS)
    else:
        raise AssemblyTextError(
            f"{test['a']!r}: expected a record word, a field of it, a register or `address`"
        )
    kind, index = immediates.pointer(test["b"])
    kinds = {
        PointerKind.IMMEDIATE: BKind.IMMEDIATE,
        PointerKind.REGISTER: BKind.REGISTER,
        PointerKind.WORD: BKind.WORD,
    }
    if kind not in kinds:
        raise AssemblyTextError(f"{test['b']!r}: expected a word, a register or a number on the right")
    return replace(instruction, b_kind=kinds[kind], b_index=index)


def _parse_update(text: str, immediates: _Immediates) -> Update:
    assignment = _ASSIGNMENT.fullmatch(text)
    if assignment is not None:
        register = assignment["register"]
        for kind, form in _FORMS.items():
            found = form.fullmatch(assignment["expression"])
            if found and found.groupdict().get("old", register) == register:
                source, index = immediates.pointer(found["s"])
                return Update(kind=kind, register=int(register), source_kind=source, source_index=index)
    raise AssemblyTextError(
        f"{text!r}: expected `rN = value`, or rN combined with a value by + - & | min() or max(), or a store"
    )


def _parse_exit(text: str, immediates: _Immediates, labels: Mapping[str, int]) -> Exit:
    if done := _DONE.fullmatch(text):
        if int(done["code"]) > 255:
            raise AssemblyTextError(f"{text!r}: expected a code from 0 to 255")
        return Exit(kind=ExitKind.DONE, offset=int(done["code"]))
    if goto := _GOTO.fullmatch(text):
        return Exit(kind=ExitKind.GOTO, target=_target(goto["target"], labels))
    if pointed := _POINTED.fullmatch(text):
        kind, index = immediates.pointer(pointed["value"])
        offset = int(f"{pointed['sign'] or ''}{pointed['offset'] or 0}")
        if not -(1 << 11) <= offset < 1 << 11:
            raise AssemblyTextError(f"{text!r}: expected an offset of 12 bits, -2048 to 2047")
        return Exit(
            kind=ExitKind[pointed["kind"].upper()],
            target=_target(pointed["target"], labels),
            pointer_kind=kind,
            pointer_index=index,
            offset=offset,
        )
    raise AssemblyTextError(
        f"{text!r}: expected `goto L`, `load value -> L`, `yield value -> L` or `done code`"
    )


def _target(text: str, labels: Mapping[str, int]) -> int:
    if text in labels:
        return labels[text]
    if text.isdecimal() and int(text) < 64:
        return int(text)
    raise AssemblyTextError(f"target {text!r}: expected a label, or an instruction from 0 to 63")


def read_text(text: str, *, name: str) -> list[Instruction]:
    """The instructions of a program in the form that `write_text` gives; `#` begins a comment.

    Raises AssemblyTextError naming `name`, the line and what was expected there.
    """
    labels: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    for number, line in _lines(text):
        if label := _LABEL.fullmatch(line):
            if label["name"] in labels:
                raise AssemblyTextError(f"{name}:{number}: label {label['name']!r} is defined twice")
            labels[label["name"]] = len(found)
        else:
            found.append((number, line))
    _require_room(len(found), name)
    instructions = []
    for number, line in found:
        try:
            instructions.append(assemble_line(line, labels))
        except AssemblyTextError as error:
            raise AssemblyTextError(f"{name}:{number}: {error}") from None
    return instructions


def read_words(text: str, *, name: str) -> list[Instruction]:
    """The instructions of a file of 128-bit words, one a line of up to 32 hexadecimal digits.

    Raises AssemblyTextError naming `name`, the line and what was expected there.
    """
    instructions = []
    for number, line in _lines(text):
        if not re.fullmatch(r"[0-9a-fA-F]{1,32}", line):
            raise AssemblyTextError(f"{name}:{number}: {line!r}: expected up to 32 hexadecimal digits")
        try:
            instructions.append(_decoded(int(line, 16)))
        except AssemblyTextError as error:
            raise AssemblyTextError(f"{name}:{number}: {error}") from None
    _require_room(len(instructions), name)
    return instructions


def _lines(text: str) -> list[tuple[int, str]]:
    """The lines that say something, with their numbers, without comments."""
    stripped = [(number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [(number, line) for number, line in stripped if line]


def _require_room(count: int, name: str) -> None:
    if not 1 <= count <= 64:
        raise AssemblyTextError(f"{name}: {count} instructions: expected 1 to the 64 of program memory")
