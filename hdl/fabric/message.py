"""The sizes of the link's messages, and how many cycles each occupies a channel.

The rule: every message has an 8-byte header (kind, tag or context, status, and the address or code), and
after it only the fields that its kind uses, each in whole 4-byte words.
"""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ATOM_BYTES

__all__ = [
    "CONDITIONAL_WRITE_BYTES",
    "HEADER_BYTES",
    "LAUNCH_BYTES",
    "LONGEST_BYTES",
    "READ_REQUEST_BYTES",
    "READ_RESPONSE_BYTES",
    "SIZES",
    "VERDICT_BYTES",
    "WRITE_REQUEST_BYTES",
    "WRITE_RESPONSE_BYTES",
    "MessageCycles",
]

HEADER_BYTES = 8
READ_REQUEST_BYTES = HEADER_BYTES
#: An atom and its byte mask, one bit a byte.
WRITE_REQUEST_BYTES = HEADER_BYTES + ATOM_BYTES + ATOM_BYTES // 8
#: A write with the word that is expected.
CONDITIONAL_WRITE_BYTES = WRITE_REQUEST_BYTES + 4
READ_RESPONSE_BYTES = HEADER_BYTES + ATOM_BYTES
WRITE_RESPONSE_BYTES = HEADER_BYTES
#: Six registers of one walk, or six more start addresses; the header is context, entry, tag, count, address.
LAUNCH_BYTES = HEADER_BYTES + 6 * 4
#: Hops, cycles, value and three registers; context, tag, kind, status and code are the header.
VERDICT_BYTES = HEADER_BYTES + 6 * 4

#: Every size that occurs, in bytes.
SIZES = sorted(
    {
        READ_REQUEST_BYTES,
        WRITE_REQUEST_BYTES,
        CONDITIONAL_WRITE_BYTES,
        READ_RESPONSE_BYTES,
        WRITE_RESPONSE_BYTES,
        LAUNCH_BYTES,
        VERDICT_BYTES,
    }
)
LONGEST_BYTES = max(SIZES)


class MessageCycles(wiring.Component):
    """The cycles that a message of each size occupies a channel: ceil(size / bytes_per_cycle), from 1.

    Found by repeated addition when `bytes_per_cycle` changes, which takes at most `LONGEST_BYTES` cycles:
    the width of a channel is a setting, and a divider would be evaluated for nothing in every cycle.

    Members
    -------
    bytes_per_cycle : In(16)
        Width of a channel; 0: any message in one cycle.
    settled : Out(1)
        The cycles belong to the present `bytes_per_cycle`.
    bytes_<size> : Out
        Cycles of a message of `size` bytes, for every size of `SIZES`.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bytes_per_cycle": In(16),
                "settled": Out(1),
                **{f"bytes_{size}": Out(range(LONGEST_BYTES + 1), init=1) for size in SIZES},
            }
        )

    def of(self, size: int) -> Signal:
        """The cycles of a message of `size` bytes."""
        return getattr(self, f"bytes_{size}")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = Signal.like(self.bytes_per_cycle)
        # Bytes that the cycles counted so far carry.
        carried = Signal(range(2**16 + LONGEST_BYTES))
        counted = (width == 0) | (carried >= LONGEST_BYTES)
        m.d.comb += self.settled.eq((width == self.bytes_per_cycle) & counted)

        with m.If(width != self.bytes_per_cycle):
            m.d.sync += [width.eq(self.bytes_per_cycle), carried.eq(self.bytes_per_cycle)]
            m.d.sync += [self.of(size).eq(1) for size in SIZES]
        with m.Elif(~counted):
            m.d.sync += carried.eq(carried + width)
            for size in SIZES:
                with m.If(carried < size):
                    m.d.sync += self.of(size).eq(self.of(size) + 1)
        return m
