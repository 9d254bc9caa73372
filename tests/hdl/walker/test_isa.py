"""The instruction word: encoding and decoding are inverse, errors name the field; the page lists it all."""

from __future__ import annotations

import random

import pytest

from hdl.walker.isa import AKind, Exit, Instruction, InstructionLayout, Update
from hdl.walker.isa_page import markdown
from sim.model.random_programs import random_instruction


def test_decode_is_the_inverse_of_encode() -> None:
    rng = random.Random(1)
    for _ in range(500):
        instruction = random_instruction(rng)
        assert Instruction.decode(instruction.encode()) == instruction


def test_the_layout_and_the_encoder_agree() -> None:
    instruction = Instruction(
        immediate=0x89ABCDEF, a_kind=AKind.ADDRESS, a_low=17, store_word=5, not_taken=Exit(offset=-2)
    )
    view = InstructionLayout.const(None)
    bits = InstructionLayout.from_bits(instruction.encode())
    assert view.shape() == bits.shape()
    assert (bits.immediate, bits.a_kind, bits.a_low) == (0x89ABCDEF, AKind.ADDRESS.value, 17)
    assert (bits.store_word, bits.not_taken_offset) == (5, 0xFFE)


@pytest.mark.parametrize(
    ("instruction", "field"),
    [
        (Instruction(immediate=1 << 32), "immediate"),
        (Instruction(a_index=8), "a_index"),
        (Instruction(update=Update(register=-1)), "update.register"),
        (Instruction(taken=Exit(offset=2048)), "taken.offset"),
        (Instruction(not_taken=Exit(target=64)), "not_taken.target"),
    ],
)
def test_a_value_that_does_not_fit_is_named(instruction: Instruction, field: str) -> None:
    with pytest.raises(ValueError, match=rf"{field} is .*expected"):
        instruction.encode()


def test_undefined_words_are_refused() -> None:
    for word in (1 << 125, 1 << 128, 3 << 35, 3 << 51, -1):
        with pytest.raises(ValueError):
            Instruction.decode(word)


def test_the_page_shows_every_bit_once() -> None:
    page = markdown()
    for name, placed in InstructionLayout:
        high = placed.offset + placed.width - 1
        bits = f"{high}:{placed.offset}" if placed.width > 1 else f"{high}"
        assert page.count(f"| {bits} | `{name}` |") == 1
    assert "| 7 | ANY |" in page and "WRITE_DENIED" in page
