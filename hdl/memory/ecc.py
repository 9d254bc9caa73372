"""The error-correcting code: SECDED over 64 bits with 8 check bits, in the construction of Hsiao.

M. Y. Hsiao, "A Class of Optimal Minimum Odd-weight-column SEC-DED Codes", IBM Journal of Research and
Development 14 (4), 1970. The parity-check matrix has 8 rows and 72 different columns of odd weight: the
syndrome of one flipped bit is that bit's column, and the syndrome of two is of even weight and not zero, so
it is no column. Columns are as light as they can be, and every row has the same number of ones.

The code is linear, so the word of zeros has the check bits zero: memory that nothing has written is valid.
"""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ATOM_CHECK_WIDTH, ATOM_WIDTH

__all__ = [
    "ATOM_WORDS",
    "CHECK_WIDTH",
    "COLUMNS",
    "WORD_BYTES",
    "WORD_WIDTH",
    "AtomDecoder",
    "AtomEncoder",
    "Decoder",
    "Encoder",
    "check_bits",
]

#: Data bits of one code word.
WORD_WIDTH = 64
#: Data bytes of one code word: a write of some of them is a read-modify-write.
WORD_BYTES = WORD_WIDTH // 8
#: Check bits of one code word.
CHECK_WIDTH = 8
#: Code words of an atom.
ATOM_WORDS = ATOM_WIDTH // WORD_WIDTH


def _columns() -> tuple[int, ...]:
    weight_three = [column for column in range(1 << CHECK_WIDTH) if column.bit_count() == 3]
    # Eight more are needed. The rotations of one column of weight five add five ones to every row.
    five = 0b0001_1111
    weight_five = [(five << n | five >> CHECK_WIDTH - n) & 0xFF for n in range(CHECK_WIDTH)]
    return (*weight_three, *weight_five)


#: The columns of the parity-check matrix that belong to data bits 0 to 63, row r in bit r: all 56 of weight
#: three in ascending order, then eight of weight five. Check bit r has the column 1 << r.
COLUMNS: tuple[int, ...] = _columns()


def check_bits(word: int) -> int:
    """The 8 check bits of a 64-bit word: the sum, bit by bit, of the columns of its ones."""
    return reduce(xor, (column for bit, column in enumerate(COLUMNS) if word >> bit & 1), 0)


class Encoder(wiring.Component):
    """The check bits of one word, combinational.

    Members
    -------
    data : In(64)
    check : Out(8)
    """

    data: In(WORD_WIDTH)
    check: Out(CHECK_WIDTH)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for row in range(CHECK_WIDTH):
            covered = [self.data[bit] for bit, column in enumerate(COLUMNS) if column >> row & 1]
            m.d.comb += self.check[row].eq(Cat(covered).xor())
        return m


class Decoder(wiring.Component):
    """One word with its check bits as read, put right if one of the 72 bits is wrong; combinational.

    Any one wrong bit is corrected. Any two are reported as uncorrectable. More may be taken for a single
    one, as with every code of this distance.

    Members
    -------
    data : In(64), check : In(8)
        As they were read.
    corrected_data : Out(64)
        The word; what was read if it is uncorrectable.
    corrected : Out(1)
        One bit was wrong, of the data or of the check bits.
    uncorrectable : Out(1)
        More bits were wrong: the word must not be used.
    """

    data: In(WORD_WIDTH)
    check: In(CHECK_WIDTH)
    corrected_data: Out(WORD_WIDTH)
    corrected: Out(1)
    uncorrectable: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.encoder = encoder = Encoder()
        syndrome = Signal(CHECK_WIDTH)
        wrong_data = Signal(WORD_WIDTH)
        wrong_check = Signal(CHECK_WIDTH)
        m.d.comb += [
            encoder.data.eq(self.data),
            syndrome.eq(encoder.check ^ self.check),
            wrong_data.eq(Cat(syndrome == column for column in COLUMNS)),
            wrong_check.eq(Cat(syndrome == 1 << row for row in range(CHECK_WIDTH))),
            self.corrected_data.eq(self.data ^ wrong_data),
            self.corrected.eq(wrong_data.any() | wrong_check.any()),
            self.uncorrectable.eq(syndrome.any() & ~self.corrected),
        ]
        return m


class AtomEncoder(wiring.Component):
    """The check bits of the four words of an atom, combinational.

    Members
    -------
    data : In(256)
    check : Out(32)
    """

    data: In(ATOM_WIDTH)
    check: Out(ATOM_CHECK_WIDTH)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for word in range(ATOM_WORDS):
            m.submodules[f"word{word}"] = encoder = Encoder()
            m.d.comb += [
                encoder.data.eq(self.data.word_select(word, WORD_WIDTH)),
                self.check.word_select(word, CHECK_WIDTH).eq(encoder.check),
            ]
        return m


class AtomDecoder(wiring.Component):
    """An atom with its check bits as read, each of its four words put right by itself; combinational.

    Members
    -------
    data : In(256), check : In(32)
        As they were read.
    corrected_data : Out(256)
        The atom; zero if a word of it is uncorrectable, so that nothing corrupt is passed on.
    corrected : Out(1)
        A word was corrected, and none is uncorrectable.
    uncorrectable : Out(1)
        A word is uncorrectable: the atom must not be used.
    """

    data: In(ATOM_WIDTH)
    check: In(ATOM_CHECK_WIDTH)
    corrected_data: Out(ATOM_WIDTH)
    corrected: Out(1)
    uncorrectable: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = [Decoder() for _ in range(ATOM_WORDS)]
        for word, decoder in enumerate(words):
            m.submodules[f"word{word}"] = decoder
            m.d.comb += [
                decoder.data.eq(self.data.word_select(word, WORD_WIDTH)),
                decoder.check.eq(self.check.word_select(word, CHECK_WIDTH)),
            ]
        m.d.comb += [
            self.uncorrectable.eq(Cat(decoder.uncorrectable for decoder in words).any()),
            self.corrected.eq(Cat(decoder.corrected for decoder in words).any() & ~self.uncorrectable),
            self.corrected_data.eq(
                Mux(self.uncorrectable, 0, Cat(decoder.corrected_data for decoder in words))
            ),
        ]
        return m
