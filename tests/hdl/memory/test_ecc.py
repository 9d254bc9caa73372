"""The code: its matrix, and every single and every double error of several words, through the RTL."""

from __future__ import annotations

import itertools
import random
from typing import Any

from amaranth.hdl import Module
from amaranth.sim import Simulator

from hdl.memory.ecc import (
    ATOM_WORDS,
    CHECK_WIDTH,
    COLUMNS,
    WORD_WIDTH,
    AtomDecoder,
    AtomEncoder,
    Decoder,
    Encoder,
    check_bits,
)

BITS = WORD_WIDTH + CHECK_WIDTH
_RANDOM = random.Random(20261130)
WORDS = (
    0,
    (1 << WORD_WIDTH) - 1,
    0xAAAA_AAAA_AAAA_AAAA,
    *(_RANDOM.getrandbits(WORD_WIDTH) for _ in range(3)),
)


def _evaluate(design: Any, bench: Any) -> None:
    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()


def test_the_matrix_is_hsiaos() -> None:
    """Columns different and of odd weight make the code SECDED; light and balanced rows make it Hsiao's."""
    columns = [*COLUMNS, *(1 << row for row in range(CHECK_WIDTH))]
    assert len(columns) == len(set(columns)) == BITS
    assert all(column.bit_count() % 2 for column in columns)
    assert sum(column.bit_count() for column in COLUMNS) == 56 * 3 + 8 * 5, "not the least total weight"
    assert {sum(column >> row & 1 for column in COLUMNS) for row in range(CHECK_WIDTH)} == {26}


def test_untouched_storage_is_valid() -> None:
    assert check_bits(0) == 0


def test_the_encoder_agrees_with_the_columns() -> None:
    dut = Encoder()

    async def bench(ctx: Any) -> None:
        for word in (*WORDS, *(1 << bit for bit in range(WORD_WIDTH))):
            ctx.set(dut.data, word)
            await ctx.delay(1e-9)
            assert ctx.get(dut.check) == check_bits(word), f"{word:#018x}"

    _evaluate(dut, bench)


def test_every_single_error_is_corrected_and_every_double_one_reported() -> None:
    dut = Decoder()
    seen = {0: 0, 1: 0, 2: 0}

    async def bench(ctx: Any) -> None:
        for word in WORDS:
            good = word | check_bits(word) << WORD_WIDTH
            errors = itertools.chain.from_iterable(itertools.combinations(range(BITS), n) for n in range(3))
            for positions in errors:
                read = good ^ sum(1 << position for position in positions)
                ctx.set(dut.data, read & (1 << WORD_WIDTH) - 1)
                ctx.set(dut.check, read >> WORD_WIDTH)
                await ctx.delay(1e-9)
                found = (ctx.get(dut.corrected), ctx.get(dut.uncorrectable))
                assert found == (len(positions) == 1, len(positions) == 2), (f"{word:#018x}", positions)
                if len(positions) < 2:
                    assert ctx.get(dut.corrected_data) == word, (f"{word:#018x}", positions)
                seen[len(positions)] += 1

    _evaluate(dut, bench)
    assert seen == {0: len(WORDS), 1: 72 * len(WORDS), 2: 2556 * len(WORDS)}


def test_the_words_of_an_atom_are_decoded_by_themselves() -> None:
    """One wrong bit in each word is four corrections; two in one word spoil the atom, which reads as zero."""
    rng = random.Random(7)
    words = [rng.getrandbits(WORD_WIDTH) for _ in range(ATOM_WORDS)]
    m = Module()
    m.submodules.encoder = encoder = AtomEncoder()
    m.submodules.decoder = decoder = AtomDecoder()
    atom = sum(word << WORD_WIDTH * n for n, word in enumerate(words))

    async def bench(ctx: Any) -> None:
        ctx.set(encoder.data, atom)
        await ctx.delay(1e-9)
        check = ctx.get(encoder.check)
        assert check == sum(check_bits(word) << CHECK_WIDTH * n for n, word in enumerate(words))

        async def read(errors: dict[int, int]) -> tuple[int, int, int]:
            """(data, corrected, uncorrectable) with that many wrong bits in those words."""
            data, wrong = atom, check
            for word, count in errors.items():
                for position in rng.sample(range(BITS), count):
                    if position < WORD_WIDTH:
                        data ^= 1 << WORD_WIDTH * word + position
                    else:
                        wrong ^= 1 << CHECK_WIDTH * word + position - WORD_WIDTH
            ctx.set(decoder.data, data)
            ctx.set(decoder.check, wrong)
            await ctx.delay(1e-9)
            outputs = (decoder.corrected_data, decoder.corrected, decoder.uncorrectable)
            return tuple(ctx.get(output) for output in outputs)

        assert await read({}) == (atom, 0, 0)
        for _ in range(20):
            assert await read({word: 1 for word in range(ATOM_WORDS)}) == (atom, 1, 0)
            bad, wrong_once = rng.sample(range(ATOM_WORDS), 2)
            assert await read({bad: 2}) == (0, 0, 1)
            assert await read({bad: 2, wrong_once: 1}) == (0, 0, 1)

    _evaluate(m, bench)
