"""The assembler: what each one-liner becomes, and that every mistake names its line and its reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_py.assembler import (
    AssemblyError,
    Image,
    Program,
    done,
    goto,
    link,
    load,
    store,
    yield_value,
)
from firmware_py.disassembly import disassemble
from firmware_py.flow import HopCost, endless, hop_cost, unreachable
from firmware_py.operands import Test as OperandTest
from firmware_py.operands import address, field, r0, r1, r2, r3, register
from firmware_py.records import DEPTH, LIVE, PARENT, SCORE, SKIP, UNTRIED, BitField
from hdl.layouts import WalkStatus
from hdl.walker.isa import (
    AKind,
    BKind,
    Exit,
    ExitKind,
    Instruction,
    Op,
    PointerKind,
    Update,
    UpdateKind,
)
from sim.model.interpreter import run_walk

WHOLE = BitField(2)
SIGNED_WORD = BitField(6, signed=True)
NARROW = BitField(4, 3, 5)


def assembled(build: Callable[[Program], None]) -> Image:
    program = Program("p")
    program.entry("p")
    build(program)
    return link([program])


def one(build: Callable[[Program], None]) -> Instruction:
    return assembled(build).instructions[0]


def test_climb_is_the_instruction_that_it_reads_like() -> None:
    instruction = one(
        lambda p: p.when(
            field(LIVE) >= 1, r0.mov(address), then=done(3), otherwise=load(field(PARENT), "p", offset=-7)
        )
    )
    assert instruction == Instruction(
        immediate=1,
        op=Op.GE_S,
        a_kind=AKind.WORD,
        a_index=4,
        a_low=0,
        a_width_minus_1=12,
        a_signed=True,
        update=Update(kind=UpdateKind.MOV, register=0, source_kind=PointerKind.ADDRESS),
        taken=Exit(kind=ExitKind.DONE, offset=3),
        not_taken=Exit(kind=ExitKind.LOAD, target=0, pointer_index=0, offset=-7),
    )


def test_stores_yields_and_falling_through() -> None:
    def build(p: Program) -> None:
        p.always(r1.sub(field(SKIP)), store(field(SKIP), r1, conditional=True), then=yield_value(r1))
        p.always(then=load(address, offset=1))
        p.always(then=done())

    image = assembled(build)
    first, second, _ = image.instructions
    assert (first.store, first.store_conditional, first.store_word, first.store_register) == (
        True,
        True,
        5,
        1,
    )
    assert first.update == Update(kind=UpdateKind.SUB, register=1, source_index=5)
    assert first.taken == Exit(
        kind=ExitKind.YIELD, target=1, pointer_kind=PointerKind.REGISTER, pointer_index=1
    )
    assert second.taken.pointer_kind is PointerKind.ADDRESS
    assert (second.taken.target, second.taken.offset) == (2, 1)


def test_programs_are_linked_one_after_another() -> None:
    programs = []
    for name in ("a", "b"):
        program = Program(name)
        program.entry(name)
        program.when(r0 == 0, then=done(), otherwise=goto("last"))
        program.label("last")
        program.always(then=load(r0, name))
        programs.append(program)
    image = link(programs)
    assert image.entries == {"a": 0, "b": 2}
    assert [word.not_taken.target for word in image.instructions] == [1, 0, 3, 2]
    assert image.instructions[3].taken.target == 2
    assert image.words == [instruction.encode() for instruction in image.instructions]


VALUES = st.sampled_from([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF)


def taken(test: OperandTest, word: int, register_0: int, at: int = 77) -> bool:
    """Whether the assembled test holds on a record full of `word`, with r0 = `register_0`."""
    image = assembled(lambda p: p.when(test, then=done(1), otherwise=done(0)))
    result = run_walk(
        image.instructions,
        {at: (word,) * 8},
        address=at,
        entry=0,
        registers=(register_0,),
        window=(1, 100),
        writable=False,
        budget=9,
    )
    assert result.status is WalkStatus.DONE
    return result.code == 1


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


@given(VALUES, VALUES)
def test_every_comparison_of_words_and_registers_means_what_it_says(word: int, other: int) -> None:
    unsigned_word, signed_word = field(WHOLE), field(SIGNED_WORD)
    assert taken(unsigned_word == r0, word, other) == (word == other)
    assert taken(r0 != unsigned_word, word, other) == (word != other)
    assert taken(unsigned_word & r0, word, other) == (word & other != 0)
    assert taken(unsigned_word < r0, word, other) == (word < other)
    assert taken(unsigned_word >= r0, word, other) == (word >= other)
    assert taken(unsigned_word > r0, word, other) == (word > other)
    assert taken(unsigned_word <= r0, word, other) == (word <= other)
    assert taken(r0 < signed_word, word, other) == (signed(other) < signed(word))
    assert taken(r0 <= signed_word, word, other) == (signed(other) <= signed(word))
    assert taken(r0 > signed_word, word, other) == (signed(other) > signed(word))
    assert taken(r0.signed >= 0, word, other) == (signed(other) >= 0)
    assert taken(unsigned_word == unsigned_word, word, other)


@given(VALUES, st.integers(0, 31))
def test_every_comparison_with_a_number_means_what_it_says(word: int, number: int) -> None:
    narrow = word >> 3 & 31
    assert taken(field(NARROW) == number, word, 0) == (narrow == number)
    assert taken(field(NARROW) < number, word, 0) == (narrow < number)
    assert taken(field(NARROW) >= number, word, 0) == (narrow >= number)
    assert taken(number & field(NARROW), word, 0) == (narrow & number != 0)
    assert taken(number <= field(NARROW), word, 0) == (narrow >= number)
    assert taken(field(SIGNED_WORD) > -number, word, 0) == (signed(word) > -number)
    assert taken(field(SIGNED_WORD) <= -number, word, 0) == (signed(word) <= -number)
    if number < 31:
        assert taken(field(NARROW) > number, word, 0) == (narrow > number)
        assert taken(field(NARROW) <= number, word, 0) == (narrow <= number)
    assert taken(field(NARROW) == r0, word, number) == (narrow == number)
    assert taken(r0 == field(NARROW), word, number) == (narrow == number)


def test_the_address_is_compared_from_either_side() -> None:
    assert taken(address == r0, 0, 77) and not taken(r0 == address, 0, 76)
    assert taken(field(WHOLE) == address, 77, 0)
    assert taken(address >= r0, 0, 77) and not taken(address < r0, 0, 77)


def _duplicate_label(p: Program) -> None:
    p.always(then=goto("x"))
    p.label("x")
    p.always(then=done())
    p.label("x")


def _longer_than_memory(p: Program) -> None:
    for _ in range(64):
        p.always()
    p.always(then=done())  # here


def _unused_label(p: Program) -> None:
    p.always(then=load(r0))
    p.label("spare")  # here
    p.always(then=done())


def _unreachable(p: Program) -> None:
    p.always(then=done())
    p.always(then=done())  # here


def _endless(p: Program) -> None:
    p.when(r0 == 0, then=done())
    p.label("loop")
    p.always(then=load(r0, "loop"))  # here


def _missing_exit(p: Program) -> None:
    p.when(r0 == 0, then=done())
    p.when(r0 == 1, then=done())  # here


@pytest.mark.parametrize(
    ("mistake", "reason"),
    [
        (lambda p: p.always(then=goto("nowhere")), "unknown label 'nowhere': expected one of p"),
        (_duplicate_label, "label 'x' is defined twice: first at "),
        (_unused_label, "label 'spare' is never used"),
        (_missing_exit, "missing exit"),
        (_unreachable, "program 'p', label 'p' \\+ 1: no path from an entry reaches this instruction"),
        (_endless, "program 'p', label 'loop': no path from this instruction reaches a done"),
        (_longer_than_memory, "longer than the 64 instructions"),
        (lambda p: p.when(r0 == 1, r0.add(2)), "two different immediates, 1 and 2"),
        (lambda p: p.always(r0.add(1), r1.add(1)), "two updates"),
        (lambda p: p.always(store(field(SKIP), r0), store(field(SKIP), r0)), "two stores"),
        (lambda p: p.always(store(field(SKIP), r0), r0.add(1)), "the update comes before the store"),
        (lambda p: p.always(done()), "expected an update of a register or a store"),
        (lambda p: p.when(True), "True is no test"),
        (lambda p: load(field(PARENT), offset=2048), "offset 2048: expected 12 bits, -2048 to 2047"),
        (lambda p: yield_value(r0, offset=-2049), "offset -2049: expected 12 bits"),
        (lambda p: load(field(UNTRIED)), r"load takes a whole word: w4\[11:0\] is 12 bits wide"),
        (lambda p: load(7), "load of 7: expected a record word, a register or `address`"),
        (lambda p: done(256), "done code 256: expected 0 to 255"),
        (lambda p: field(BitField(8)), "leaves the record: expected word 0 to 7"),
        (lambda p: field(BitField(0, 30, 3)), "leaves the word"),
        (lambda p: field(BitField(0, 3, 0)), "leaves the word"),
        (lambda p: register(8), "register r8: expected r0 to r7"),
        (lambda p: store(field(DEPTH), r0), "expected a whole record word"),
        (lambda p: store(r0, r0), "store to r0: expected a whole record word"),
        (lambda p: store(field(SKIP), address), "store of address: expected a register"),
        (lambda p: r0.mov(field(DEPTH)), "mov to r0 takes a whole word"),
        (lambda p: r0.mov(1 << 32), "4294967296 is too wide: expected 32 bits"),
        (lambda p: field(UNTRIED) == 4096, r"4096 is too wide for w4\[11:0\]: expected 0 to 4095"),
        (lambda p: field(LIVE) < -4097, r"-4097 is too wide for w4\[12:0\]s: expected -4096 to 4095"),
        (lambda p: field(SCORE) >= 1 << 31, "is too wide for w3s"),
        (lambda p: r0 >= -1, "-1 is too wide for r0: expected 0 to 4294967295"),
        (lambda p: field(UNTRIED) > 4095, "decided beforehand"),
        (lambda p: r0 < field(UNTRIED), "12 bits wide, cannot be the right operand"),
        (lambda p: r0 < address, "the address cannot be the right operand"),
        (lambda p: field(NARROW) == field(UNTRIED), "cannot be the right operand"),
        (lambda p: field(SCORE) < field(WHOLE), "w3s is signed and w2 is not"),
        (lambda p: field(SCORE) == "x", "operand 'x': expected a field"),
        (lambda p: 0 <= r0 < 3, "a test has no value in Python"),
    ],
)
def test_every_mistake_names_line_and_reason(mistake: Callable[[Program], object], reason: str) -> None:
    with pytest.raises(AssemblyError, match=reason) as raised:
        assembled(mistake)  # type: ignore[arg-type]
    file, line, _ = str(raised.value).split(":", 2)
    assert file.endswith("firmware_py/test_assembler.py")
    lines, first = inspect.getsourcelines(mistake)
    assert first <= int(line) < first + len(lines)
    if here := [index for index, text in enumerate(lines) if text.rstrip().endswith("# here")]:
        assert int(line) == first + here[0]


def test_a_program_without_instructions_or_entries_is_refused() -> None:
    with pytest.raises(AssemblyError, match=r"test_assembler.py:\d+: program 'empty' has no instruction"):
        link([Program("empty")])
    program = Program("closed")
    program.always(then=done())
    with pytest.raises(AssemblyError, match="program 'closed' has no entry"):
        link([program])


def _chain(name: str, length: int, entry: str | None = None) -> Program:
    program = Program(name)
    program.entry(entry or name)
    for _ in range(length - 1):
        program.always(r0.add(1))
    program.always(then=done())
    return program


def test_programs_that_do_not_fit_together_are_named() -> None:
    assert len(link([_chain("a", 40), _chain("b", 24)]).words) == 64
    with pytest.raises(AssemblyError, match="program 'b' does not fit: instructions 40 to 64 of 64"):
        link([_chain("a", 40), _chain("b", 25)])
    with pytest.raises(AssemblyError, match="entry 'a' belongs to an earlier program"):
        link([_chain("a", 1), _chain("b", 1, entry="a")])


def test_flow_of_hand_made_programs() -> None:
    loop = [Instruction(taken=Exit(target=1)), Instruction(taken=Exit(target=0))]
    assert endless(loop) == [0, 1]
    assert hop_cost(loop, [0]) == HopCost(least=3, most=None)
    assert unreachable(loop, [1]) == [] and unreachable([*loop, Instruction()], [0]) == [2]
    fork = [
        Instruction(op=Op.EQ, taken=Exit(target=2), not_taken=Exit(target=1)),
        Instruction(taken=Exit(kind=ExitKind.YIELD, target=2)),
        Instruction(taken=Exit(kind=ExitKind.LOAD, target=3)),
        Instruction(taken=Exit(kind=ExitKind.DONE)),
    ]
    assert hop_cost(fork, [0]) == HopCost(least=1, most=3)
    assert str(hop_cost(fork, [0])) == "1 to 3 instructions a hop"


def test_the_listing_shows_number_label_text_word_and_source() -> None:
    def build(p: Program) -> None:
        p.when(field(SCORE) >= -5, r2.min(r3), then=yield_value(r2, "p", offset=2))
        p.when(r0 == 0x12345, then=load(address, "p", offset=-1), otherwise=done(9))

    text = assembled(build).listing().splitlines()
    assert text[0] == "p: 2 or more instructions a hop"
    assert "0 p " in text[1] and "w3 >=s -5 ? r2 = min(r2, r3); yield r2 + 2 -> p : goto 1" in text[1]
    assert "1 " in text[2] and "r0 == 0x12345 ? load address - 1 -> p : done 9" in text[2]
    assert all("test_assembler.py:" in line for line in text[1:])
    assert f"{assembled(build).words[1]:032x}" in text[2]


def test_disassembly_without_labels_uses_numbers() -> None:
    instruction = Instruction(
        op=Op.ANY,
        a_index=4,
        a_low=12,
        a_width_minus_1=0,
        b_kind=BKind.REGISTER,
        b_index=1,
        store=True,
        store_word=5,
        store_conditional=True,
        taken=Exit(target=7),
        not_taken=Exit(kind=ExitKind.LOAD, target=8),
    )
    assert disassemble(instruction) == "w4[12:12] & r1 ? store w5 = r0 if unchanged; goto 7 : load w0 -> 8"
