"""The declaration of an address map: a list of bits with optional XOR, and what it means.

Entries come from the lowest bit of the atom address up. Each is an operand, or several joined by `^`:

    operand = FIELD          every bit of the field, lowest first
            | FIELD[N]       one bit
            | FIELD[H:L]     bits L to H, lowest first; without H up to the field's highest

FIELD is one of `FIELDS`. The first operand of an entry says which bits of the place lie there, and every bit
of every field is the first operand's exactly once. The operands behind it, of `row` and `column` only and as
wide as the first, are XORed into the address: `bank^row[1:0]` puts bank XOR row[1:0] there, so that rows
that follow each other in the address space lie in different banks. The whole must be invertible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from .timing import Organisation

__all__ = ["FIELDS", "BitMatrix", "address_of_place", "field_widths"]

#: The fields of a place, from the lowest bit of the storage index up.
FIELDS = ("column", "row", "bank_group", "bank", "pseudo_channel")

_XOR_FIELDS = ("row", "column")
_OPERAND = re.compile(r"\s*([a-z_]+)\s*(?:\[\s*(\d*)\s*(:)?\s*(\d*)\s*\])?\s*")


def field_widths(organisation: Organisation) -> dict[str, int]:
    """The bits of every field in the order of `FIELDS`."""
    counts = (
        organisation.columns,
        organisation.rows,
        organisation.bank_groups,
        organisation.banks_per_group,
        organisation.pseudo_channels,
    )
    return {name: count.bit_length() - 1 for name, count in zip(FIELDS, counts, strict=True)}


class BitMatrix:
    """A linear map of bit vectors: bit i of the result is the XOR of the bits in the mask `rows[i]`."""

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = tuple(rows)
        # The same map as a XOR of shifted and masked copies: a few operations on a whole array of numbers.
        diagonals: dict[int, int] = {}
        for to, row in enumerate(self.rows):
            for source in range(row.bit_length()):
                if row >> source & 1:
                    diagonals[source - to] = diagonals.get(source - to, 0) | 1 << to
        self._diagonals = sorted(diagonals.items())

    def apply(self, vector: Any) -> Any:
        """The result for an integer, or for every element of a numpy array of integers."""
        result = vector & 0
        for shift, mask in self._diagonals:
            result = result ^ ((vector >> shift if shift >= 0 else vector << -shift) & mask)
        return result

    def inverse(self) -> BitMatrix | None:
        """The map back, or None where there is none."""
        size = len(self.rows)
        # Gauss and Jordan on (row, unit row) pairs.
        work = [(row, 1 << index) for index, row in enumerate(self.rows)]
        for column in range(size):
            pivot = next((n for n in range(column, size) if work[n][0] >> column & 1), None)
            if pivot is None:
                return None
            work[column], work[pivot] = work[pivot], work[column]
            row, unit = work[column]
            work = [
                (other ^ row, back ^ unit) if n != column and other >> column & 1 else (other, back)
                for n, (other, back) in enumerate(work)
            ]
        return BitMatrix([unit for _, unit in work])


def address_of_place(entries: Sequence[str], organisation: Organisation) -> BitMatrix:
    """The map that `entries` declare: from a storage index (the fields in the order of `FIELDS`) to the
    atom address. It has an inverse.

    Raises ValueError that names the entry: unknown field, bit that the field does not have, operands of
    different width, XOR with another field than row and column, bit declared never or more than once, and a
    map that cannot be inverted.
    """
    widths = field_widths(organisation)
    lows = dict(zip(widths, accumulate(widths.values(), initial=0), strict=False))
    declared: Counter[int] = Counter()
    rows: list[int] = []
    for entry in entries:
        operands = [_bits(operand, entry, widths) for operand in entry.split("^")]
        (_, first), *others = operands
        for name, bits in others:
            if name not in _XOR_FIELDS:
                raise ValueError(f"{entry!r} XORs {name}: expected bits of row or column behind ^")
            if len(bits) != len(first):
                raise ValueError(
                    f"{entry!r} XORs {len(bits)} bits into {len(first)}: expected as many behind ^ as before"
                )
        for place in range(len(first)):
            row = 0
            for name, bits in operands:
                row ^= 1 << lows[name] + bits[place]
            rows.append(row)
        name = operands[0][0]
        declared.update(lows[name] + bit for bit in first)
    for name, width in widths.items():
        for bit in range(width):
            count = declared[lows[name] + bit]
            if count != 1:
                raise ValueError(f"{name}[{bit}] is declared {count} times: expected every bit once")
    matrix = BitMatrix(rows)
    if matrix.inverse() is None:
        joined = ", ".join(entry for entry in entries if "^" in entry)
        raise ValueError(f"the XORs of {joined} cannot be undone: expected that addresses and places pair up")
    return matrix


def _bits(operand: str, entry: str, widths: dict[str, int]) -> tuple[str, range]:
    """The field of an operand and its bits, lowest first."""
    found = _OPERAND.fullmatch(operand)
    if found is None:
        raise ValueError(f"{entry!r} holds {operand!r}: expected FIELD, FIELD[N] or FIELD[H:L]")
    name, high, colon, low = found.groups()
    if name not in widths:
        raise ValueError(f"{entry!r} names {name!r}: expected one of {', '.join(sorted(widths))}")
    width = widths[name]
    if high is None:
        return name, range(width)
    if (not low) if colon else (not high):
        raise ValueError(f"{entry!r} holds {operand!r}: expected FIELD, FIELD[N] or FIELD[H:L]")
    last = int(high) if high else width - 1
    first = int(low) if colon else last
    if not first <= last < width:
        held = f"bits 0 to {width - 1}" if width else "no bits"
        raise ValueError(
            f"{entry!r} holds {operand.strip()!r}: {name} has {held}, expected [H:L] with H >= L"
        )
    return name, range(first, last + 1)
