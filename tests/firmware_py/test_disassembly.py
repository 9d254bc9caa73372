"""Text and words of instructions: each makes the other again, and every mistake says what was expected."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from firmware_py.assembler import Image
from firmware_py.assembly_text import AssemblyTextError, assemble_line, read_text, read_words
from firmware_py.disassembly import disassemble, write_text
from firmware_py.programs import decision_image, default_image, pool_image
from hdl.walker.isa import Exit, ExitKind, Instruction, InstructionLayout, Op, PointerKind, Update, UpdateKind
from sim.model.random_programs import random_instruction

from .test_cli import clew

_SEED = 20261130


def _legal_word(chance: random.Random) -> int:
    """Any 128 bits that are an instruction: every field drawn alone, operand kinds that exist."""
    while True:
        word = chance.getrandbits(125)
        try:
            Instruction.decode(word)
        except ValueError:
            continue
        return word


@pytest.mark.parametrize(
    "image", [default_image(), decision_image(), pool_image()], ids=["trees", "decisions", "pools"]
)
def test_every_program_is_made_again_from_its_text(image: Image) -> None:
    for name in image.hop_costs:
        instructions, labels = image.program(name)
        assert read_text(write_text(instructions, labels), name=name) == instructions
    assert read_text(write_text(image.instructions), name="image") == list(image.instructions)
    # What the assembler writes says nothing of fields without effect.
    assert " with " not in write_text(image.instructions)


@pytest.mark.parametrize("kind", ["any legal word", "weighted"])
def test_random_words_are_made_again_from_their_text(kind: str) -> None:
    chance = random.Random(_SEED)
    for _ in range(4000):
        word = _legal_word(chance) if kind != "weighted" else random_instruction(chance).encode()
        text = disassemble(Instruction.decode(word))
        assert assemble_line(text).encode() == word, f"{word:032x}: {text}"


def test_every_single_field_shows_in_the_text() -> None:
    """No two words have one text: a change of any bit of a field changes it."""
    base = Instruction(op=Op.EQ, taken=Exit(kind=ExitKind.LOAD), not_taken=Exit(kind=ExitKind.YIELD)).encode()
    for name, place in InstructionLayout:
        for bit in range(place.offset, place.offset + place.width):
            word = base ^ 1 << bit
            try:
                other = Instruction.decode(word)
            except ValueError:
                assert name in ("a_kind", "b_kind", "reserved")
                continue
            assert disassemble(other) != disassemble(Instruction.decode(base)), name
            assert assemble_line(disassemble(other)).encode() == word, name


def test_the_text_says_what_happens() -> None:
    instruction = Instruction(
        immediate=0xFFFFFFFE,
        op=Op.GE_S,
        a_index=4,
        a_width_minus_1=12,
        a_signed=True,
        update=Update(kind=UpdateKind.ADD, register=2, source_kind=PointerKind.IMMEDIATE),
        store=True,
        store_word=5,
        store_register=2,
        taken=Exit(kind=ExitKind.DONE, offset=7, target=9),
        not_taken=Exit(kind=ExitKind.LOAD, pointer_kind=PointerKind.ADDRESS, target=1, offset=-3),
    )
    text = (
        "w4[12:0]s >=s -2 ? r2 = r2 + 0xfffffffe; store w5 = r2; done 7 : load address - 3 -> 1 "
        "with taken_target=9"
    )
    assert disassemble(instruction) == text
    assert assemble_line(text) == instruction


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("goto 64", "target '64': expected a label, or an instruction from 0 to 63"),
        ("goto nowhere", "target 'nowhere': expected a label"),
        ("r0 == 1 ? done 0", "expected `test ? effects; exit : exit`"),
        ("done 0 : done 1", "expected `test"),
        ("r0 = 1 ? done 0 : done 1", "expected a test `a OP b`"),
        ("w0[32:32] == 1 ? done 0 : done 1", "expected a field of 1 to 32 bits"),
        ("w0[40:8] == 1 ? done 0 : done 1", "expected a field of 1 to 32 bits"),
        ("x == 1 ? done 0 : done 1", "expected a record word, a field of it"),
        ("r0 == address ? done 0 : done 1", "'address': expected a word, a register or a number"),
        ("r0 == 1 ? r1 = 2; done 0 : done 1", "two different immediates, 1 and 2"),
        ("r0 = 0x100000000; done 0", "immediate 0x100000000: expected 32 bits"),
        ("r0 = r1 + r2; done 0", "expected `rN = value`"),
        ("store w0 = r0; store w1 = r0; done 0", "expected at most one store"),
        ("store w0 = r0; r1 = r0; done 0", "expected at most one update, before the store"),
        ("r1 = r0; r2 = r0; done 0", "expected at most one update"),
        ("stop", "expected `goto L`, `load value -> L`"),
        ("done 256", "expected a code from 0 to 255"),
        ("load r0 + 2048 -> 1", "expected an offset of 12 bits"),
        ("goto 1 with colour=1", "'colour=1': expected a field"),
        ("goto 1 with store_word=8", "expected a value of 3 bits"),
        ("goto 1 with reserved=1", "reserved bits"),
        ("goto 1 with a_kind=3", "3 is not a valid AKind"),
    ],
)
def test_every_mistake_in_a_text_is_named_with_its_line(line: str, reason: str) -> None:
    with pytest.raises(AssemblyTextError) as raised:
        read_text(f"# a comment\nstart:\n    goto start\n\n  {line}\n", name="walk.s")
    assert str(raised.value).startswith("walk.s:5: ") and reason in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a:\ngoto a\na:\n", "walk.s:3: label 'a' is defined twice"),
        ("# nothing\n", "walk.s: 0 instructions: expected 1 to the 64"),
        ("goto 0\n" * 65, "walk.s: 65 instructions: expected 1 to the 64"),
    ],
)
def test_a_text_that_is_no_program_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AssemblyTextError, match=reason):
        read_text(text, name="walk.s")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\nxyz\n", "f.hex:2: 'xyz': expected up to 32 hexadecimal digits"),
        ("0" * 33, "f.hex:1: .*expected up to 32"),
        ("f" * 32, "f.hex:1: "),
        ("", "f.hex: 0 instructions"),
    ],
)
def test_a_file_that_holds_no_words_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AssemblyTextError, match=reason):
        read_words(text, name="f.hex")


def test_the_commands_make_the_same_words_again(monkeypatch, capsys, tmp_path: Path) -> None:
    text, words = tmp_path / "climb.s", tmp_path / "climb.hex"
    for arguments in (
        ["disassemble", "--program", "select_k", "-o", str(text)],
        ["assemble", str(text), "-o", str(words)],
    ):
        status, _, errors = clew(monkeypatch, capsys, *arguments)
        assert (status, errors) == (0, "")
    again = clew(monkeypatch, capsys, "disassemble", words)
    assert (again[0], again[2]) == (0, "")
    expected = [instruction.encode() for instruction in default_image().program("select_k")[0]]
    assert [int(line, 16) for line in words.read_text().splitlines()] == expected
    assert [each.encode() for each in read_text(again[1], name="again")] == expected


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["disassemble"], "expected either a file of words or --program"),
        (["disassemble", "--program", "nothing"], "unknown program 'nothing': expected one of backup, "),
        (["assemble", "/nowhere"], "/nowhere: No such file"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(monkeypatch, capsys, arguments, reason) -> None:
    status, output, errors = clew(monkeypatch, capsys, *arguments)
    assert (status, output) == (2, "") and reason in errors and errors.count("\n") == 1
