"""A transport that checks, over another one, that what arrived is what was sent."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.registers import INTEGRITY_OFFSET

from .base import Backdoor, Transport, TransportError
from .polling import poll_interrupt

__all__ = ["CheckedTransport"]


@dataclass
class _Seen:
    """Accesses of one kind: how many, and the CRC-32 of their addresses and data."""

    count: int
    crc: int

    def take(self, address: int, words: NDArray[np.uint32]) -> None:
        carried = np.empty((len(words), 2), dtype="<u4")
        carried[:, 0] = address + 4 * np.arange(len(words))
        carried[:, 1] = words
        self.count = self.count + len(words) & 0xFFFFFFFF
        self.crc = zlib.crc32(carried.tobytes(), self.crc)


class CheckedTransport:
    """A `Transport` over another one, which keeps count of its accesses as the design does (HOST_ registers).

    `check` compares the two; it is also made when a batch is done. Nothing is counted before the first
    write: until then a driver asks what it has found. It polls instead of waiting for an interrupt.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._writes: _Seen | None = None
        self._reads: _Seen | None = None

    @property
    def backdoor(self) -> Backdoor | None:
        """That of the transport below."""
        return self._transport.backdoor

    def read32(self, address: int) -> int:
        """The word at byte `address`."""
        return int(self.read_block(address, 1)[0])

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        self.write_block(address, np.array([value], dtype=np.uint32))

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        try:
            words = self._transport.read_block(address, count)
        except TransportError:
            self._forget()
            raise
        if self._reads is not None:
            self._reads.take(address, words)
        return words

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        if self._writes is None:
            self._writes, self._reads = self._arrived()
        try:
            self._transport.write_block(address, words)
        except TransportError:
            self._forget()
            raise
        self._writes.take(address, words)

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Waits until a batch is done (`poll_interrupt`), and checks what was sent until then."""
        done = poll_interrupt(self, timeout_cycles)
        self.check()
        return done

    def check(self) -> None:
        """Compares with the design's own count. Raises TransportError when they differ."""
        if self._writes is None or self._reads is None:
            return
        for what, sent, arrived in zip(
            ("writes", "reads"), (self._writes, self._reads), self._arrived(), strict=True
        ):
            if sent != arrived:
                self._forget()
                raise TransportError(
                    f"the design has accepted {arrived.count} {what} with the CRC {arrived.crc:#010x}: "
                    f"expected {sent.count} with {sent.crc:#010x}, as they were made"
                )

    def _arrived(self) -> tuple[_Seen, _Seen]:
        words = self._transport.read_block(INTEGRITY_OFFSET, 4).tolist()
        return _Seen(words[0], words[1]), _Seen(words[2], words[3])

    def _forget(self) -> None:
        """Of a block that failed nobody knows how much was done: counting starts anew."""
        self._writes = self._reads = None
