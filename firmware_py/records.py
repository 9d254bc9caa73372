"""The 32-byte records that walk programs read: fields of a tree node and of the list records.

A record is eight 32-bit words w0..w7, little endian, one atom of memory. Bit fields are (word, low bit,
width). Address 0 is null, so atom 0 never holds a record.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = [
    "CANDIDATE",
    "CHILD",
    "DEAD_BIT",
    "DEPTH",
    "FLAGS",
    "HASH_ENTRY",
    "LIVE",
    "NO_SCORE",
    "PARENT",
    "SCORE",
    "SIBLING",
    "SKIP",
    "SKIP_ADDRESS",
    "SKIP_STAMP",
    "STATE",
    "STATE_BLOCK",
    "STATE_LENGTH",
    "STATUS",
    "UNTRIED",
    "UNTRIED_MAX",
    "VISITS",
    "BitField",
    "order_preserving",
    "score_of",
]


@dataclass(frozen=True)
class BitField:
    """Bits [low, low + width) of record word `word`."""

    word: int
    low: int = 0
    width: int = 32
    signed: bool = False


# Tree node
PARENT = BitField(0)
"""Address of the first parent, 0 = none."""
CHILD = BitField(1)
"""Address of the first child."""
SIBLING = BitField(2)
"""Address of the next sibling."""
SCORE = BitField(3, signed=True)
"""`order_preserving` of the float32 score; NO_SCORE = none."""
STATUS = BitField(4)
"""The whole word: depth, flags, dead, untried."""
UNTRIED = BitField(4, 0, 12)
"""Children not yet tried, saturating."""
DEAD_BIT = BitField(4, 12, 1)
LIVE = BitField(4, 0, 13, signed=True)
"""Dead and untried as one signed field: >= 1 is "alive with something left to try"."""
FLAGS = BitField(4, 13, 7)
DEPTH = BitField(4, 20, 12)
SKIP = BitField(5)
"""Skip ancestor (`climb_compressed`); in a tree that takes `backup`, the value sum (signed, Q16.16)."""
SKIP_ADDRESS = BitField(5, 0, 28)
SKIP_STAMP = BitField(5, 28, 4)
"""The tree's stamp when the skip was written; a skip with another one does not count."""
STATE = BitField(6)
"""First state block record."""
STATE_LENGTH = BitField(7, 0, 16)
"""State length in blocks."""
VISITS = BitField(7, 16, 16)

UNTRIED_MAX = (1 << 12) - 1
#: The score word of a node without a score: the most negative integer.
NO_SCORE = -(1 << 31)

# Candidate record of a select list: w0 node, w1 score (as SCORE), w2 sequence, w3 next, w4 copy of the
# node's dead bit in DEAD_BIT's place (refreshed by the host when it writes the list).
CANDIDATE = {"node": 0, "score": 1, "sequence": 2, "next": 3, "status": 4}
# State block of a pool: w0 next block of the same state, w1 size in bytes, w2 its place in the bulk store,
# w3 the lessee (0 = free), w4 the next record of the pool, which is a ring.
STATE_BLOCK = {"next": 0, "size": 1, "place": 2, "owner": 3, "ring": 4}
# Hash entry: w0..w3 the full 128-bit key, w4 node, w5 next entry of the chain.
HASH_ENTRY = {"key": 0, "node": 4, "next": 5}


def order_preserving(score: float | None) -> int:
    """`score` as float32 mapped to a signed 32-bit integer with the same order; None -> NO_SCORE.

    Raises ValueError for NaN and for a value beyond float32. -0.0 maps to the same integer as 0.0.
    """
    if score is None:
        return NO_SCORE
    if score != score:
        raise ValueError("score is NaN: expected a number or null")
    try:
        packed = struct.pack("<f", score + 0.0)
    except OverflowError:
        raise ValueError(f"score is {score!r}: expected a float32") from None
    bits = int.from_bytes(packed, "little")
    if bits >> 31:
        return -(bits & 0x7FFFFFFF)
    return bits


def score_of(word: int) -> float | None:
    """The inverse of `order_preserving` for a signed word."""
    if word == NO_SCORE:
        return None
    bits = word if word >= 0 else 0x80000000 | -word
    value: float = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    return value
