"""CRC-32 as Ethernet and zlib compute it, any number of bits a step."""

from __future__ import annotations

from amaranth.hdl import Cat, Value

__all__ = ["CRC32_INIT", "crc32_final", "crc32_next"]

#: The state before the first bit. The CRC of what was taken in is the state's complement.
CRC32_INIT = 0xFFFFFFFF
#: The polynomial 0x04C11DB7, lowest power in the highest bit, as bytes are sent: lowest bit first.
_POLYNOMIAL = 0xEDB88320


def _after(state: int, data: int, width: int) -> int:
    for position in range(width):
        feedback = (state ^ data >> position) & 1
        state = state >> 1 ^ (_POLYNOMIAL if feedback else 0)
    return state


def crc32_next(state: Value, data: Value) -> Value:
    """The 32-bit state after `data`, whose low byte comes first; `len(data)` is a multiple of 8."""
    width = len(data)
    inputs = Cat(state, data)
    # The step is linear: an output bit is the parity of the inputs that set it when they are set alone.
    columns = [_after(1 << bit, 0, width) for bit in range(32)]
    columns += [_after(0, 1 << bit, width) for bit in range(width)]
    return Cat(
        Cat(inputs[index] for index, column in enumerate(columns) if column >> bit & 1).xor()
        for bit in range(32)
    )


def crc32_final(state: Value) -> Value:
    """The CRC-32 of what was taken in."""
    return ~state
