"""The error-correcting code, for all data and all errors: one wrong bit is put right, two are reported.

A solver that is asked about 64 free bits at once, and sums of them, does not end: such sums are the hardest
there is for it. So each word is reached from the word of zeros by changing one bit a cycle, and the syndrome
is related to the error by induction over these changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.layouts import ATOM_CHECK_WIDTH, ATOM_WIDTH
from hdl.memory.ecc import (
    ATOM_WORDS,
    CHECK_WIDTH,
    WORD_WIDTH,
    AtomDecoder,
    AtomEncoder,
    Decoder,
    Encoder,
)
from tests.formal.harness import Proof, Property, quick

CODE_WIDTH = WORD_WIDTH + CHECK_WIDTH


class WordProperty(Property):
    """A word in memory: in every cycle it is written with one bit changed, or one of its 72 bits flips.

    Every content with every error is reached so.
    """

    def __init__(self, *, false: bool) -> None:
        super().__init__({"flip": In(1), "bit": In(range(CODE_WIDTH))}, false=false)

    def contents(self, m: Module) -> None:
        m.submodules.decoder = decoder = Decoder()
        written, error = Signal(WORD_WIDTH), Signal(CODE_WIDTH)
        data, check = Signal(WORD_WIDTH), Signal(CHECK_WIDTH)

        def encoded(name: str, word: Value) -> Signal:
            m.submodules[name] = encoder = Encoder()
            m.d.comb += encoder.data.eq(word)
            return encoder.check

        change = Signal(CODE_WIDTH)
        m.d.comb += change.eq(Cat(self.bit == bit for bit in range(CODE_WIDTH)))
        changed = Signal(WORD_WIDTH)
        m.d.comb += changed.eq(written ^ change[:WORD_WIDTH])
        old, new = encoded("old", written), encoded("new", changed)
        with m.If(self.flip):
            m.d.sync += [error.eq(error ^ change), Cat(data, check).eq(Cat(data, check) ^ change)]
        with m.Else():
            # The bits that a write changes; those that are wrong stay wrong.
            m.d.sync += [
                written.eq(changed),
                data.eq(data ^ change[:WORD_WIDTH]),
                check.eq(check ^ old ^ new),
            ]
        m.d.comb += [decoder.data.eq(data), decoder.check.eq(check)]

        # What the induction hangs on: the word is what was written with its error, check bits included.
        m.d.comb += [
            Assert(data == written ^ error[:WORD_WIDTH]),
            Assert(check == old ^ error[WORD_WIDTH:]),
            Assert(
                encoded("received", data) ^ check == encoded("alone", error[:WORD_WIDTH]) ^ error[WORD_WIDTH:]
            ),
        ]
        fewer = Signal(CODE_WIDTH)
        m.d.comb += fewer.eq(error & (error - 1))
        one = (error != 0) & (fewer == 0)
        two = (fewer != 0) & ((fewer & (fewer - 1)) == 0)
        right = decoder.corrected_data == written
        m.d.comb += [
            Assert((error != 0) | (right & ~decoder.corrected & ~decoder.uncorrectable)),
            Assert(~one | (right & decoder.corrected & ~decoder.uncorrectable)),
            Assert(~two | (decoder.uncorrectable & ~decoder.corrected)),
            Cover(one & error[0] & (written != 0)),
            Cover(one & error[CODE_WIDTH - 1] & (written != 0)),
            Cover(two & (written != 0)),
        ]
        if self.false:
            # Three wrong bits can look like one.
            m.d.comb += Assert(~decoder.corrected | right)


class AtomProperty(Property):
    """The atom-wide forms are four of the others, and an atom with one bad word is passed on as zeros."""

    def __init__(self, *, false: bool) -> None:
        super().__init__({"data": In(ATOM_WIDTH), "check": In(ATOM_CHECK_WIDTH)}, false=false)

    def contents(self, m: Module) -> None:
        m.submodules.encoder = encoder = AtomEncoder()
        m.submodules.decoder = decoder = AtomDecoder()
        m.d.comb += [encoder.data.eq(self.data), decoder.data.eq(self.data), decoder.check.eq(self.check)]
        words = []
        for n in range(ATOM_WORDS):
            m.submodules[f"encoder{n}"] = own = Encoder()
            m.submodules[f"decoder{n}"] = word = Decoder()
            m.d.comb += [
                own.data.eq(self.data.word_select(n, WORD_WIDTH)),
                word.data.eq(self.data.word_select(n, WORD_WIDTH)),
                word.check.eq(self.check.word_select(n, CHECK_WIDTH)),
                Assert(encoder.check.word_select(n, CHECK_WIDTH) == own.check),
            ]
            words.append(word)
        bad = Cat(word.uncorrectable for word in words)
        data = Value.cast(Cat(word.corrected_data for word in words))
        put_right = Cat(word.corrected for word in words)
        m.d.comb += [
            Assert(decoder.uncorrectable == bad.any()),
            Assert(decoder.corrected == (put_right.any() & ~bad.any())),
            Assert(decoder.corrected_data == Mux(bad.any(), Const(0, ATOM_WIDTH), data)),
            Cover(bad.any() & ~bad.all()),
            Cover(decoder.corrected),
            Cover(~bad.any() & ~put_right.any() & (self.data != 0)),
        ]
        if self.false:
            m.d.comb += Assert(~(bad.any() & put_right.any()))


PROOFS = [
    Proof(
        name="ecc word",
        build=lambda false: WordProperty(false=false),
        depth=1,
        cover_depth=5,
        # Were the encoders shared, the induction would take minutes instead of seconds.
        flatten=False,
    ),
    Proof(name="ecc atom", build=lambda false: AtomProperty(false=false), depth=1, cover_depth=1),
]


@pytest.mark.parametrize("proof", quick(PROOFS), ids=lambda proof: proof.name)
def test_the_code_corrects_and_detects(proof: Proof, tmp_path: Path) -> None:
    proof.check(tmp_path)
