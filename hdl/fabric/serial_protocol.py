"""The bytes that host and bridge exchange over a serial line: what RTL, driver and documentation share.

Plain commands are those of LiteX's UARTBone. **Checked frames** stand beside them, for a line that may lose,
repeat or change bytes. All fields have their highest byte first; addresses count 32-bit words, as there.

| frame | bytes |
| --- | --- |
| plain command | command 1..4, length, address 4, and for a write 4 of each word |
| its answer | of a read 4 bytes of each word; none of a write |
| checked write | 0xB1, sequence number, length, address 4, 4 of each word, CRC 4 |
| checked read | 0xB2, sequence number, length, address 4, CRC 4 |
| lock, release | 0xB5 or 0xB6, sequence number, CRC 4 |
| their answer | the command, sequence number, status, of a read that succeeded 4 of each word, CRC 4 |

A length of 0 means 256 words; words lie at consecutive addresses, but for the plain commands 3 and 4 at one.
The CRC is the CRC-32 of zlib over every byte of the frame before it.

A checked frame is executed only when its CRC is right and its sequence number follows that of the one
executed before; the same frame again is answered again and not executed twice; any other number is answered
with `OUT_OF_SEQUENCE`. Lock and release are executed with any number, from which the count then goes on.
Under the lock the bridge ignores plain commands, so that a frame whose first byte is lost or changed cannot
become one. What it does not understand, it drops until the line has been silent for its time-out; a frame
that stops in the middle is forgotten after the same time.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["LENGTH_MAX", "Command", "Status"]

#: Words of the longest command; written as 0.
LENGTH_MAX = 256


class Command(IntEnum):
    """The first byte of a command."""

    WRITE = 0x01
    READ = 0x02
    WRITE_FIXED = 0x03
    """Every word to the same address."""
    READ_FIXED = 0x04
    CHECKED_WRITE = 0xB1
    CHECKED_READ = 0xB2
    LOCK = 0xB5
    RELEASE = 0xB6


class Status(IntEnum):
    """The outcome of a checked frame."""

    DONE = 0
    REFUSED = 1
    """The bus refused an access; those after it were not made."""
    OUT_OF_SEQUENCE = 2
    """Not executed: expected the number after the last one."""
