"""The golden model of the error-correcting code: check bits of many atoms at once, for images and tests."""

from __future__ import annotations

from functools import cache, reduce
from typing import TYPE_CHECKING

import numpy as np

from hdl.memory.ecc import ATOM_WORDS, CHECK_WIDTH, WORD_BYTES, check_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["atom_checks"]


@cache
def _byte_tables() -> NDArray[np.uint8]:
    """[byte of a word, value of the byte] -> its part of the check bits: the code is linear."""
    table = [[check_bits(value << 8 * byte) for value in range(256)] for byte in range(WORD_BYTES)]
    return np.array(table, dtype=np.uint8)


def atom_checks(atoms: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The check bits (uint32, [n]) of atoms (uint32, [n, 8]): those of 64-bit word w from bit 8w."""
    data = np.ascontiguousarray(atoms, dtype="<u4").view(np.uint8).reshape(-1, ATOM_WORDS, WORD_BYTES)
    parts = (table[data[:, :, byte]] for byte, table in enumerate(_byte_tables()))
    words = reduce(np.bitwise_xor, parts)
    assert CHECK_WIDTH == 8, "a byte holds the check bits of a word"
    return np.ascontiguousarray(words).view("<u4").ravel().astype(np.uint32)
