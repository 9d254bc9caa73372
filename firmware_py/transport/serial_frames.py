"""The checked frames of the serial bridge (`hdl/fabric/serial_protocol.py`), as the host makes them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.fabric.serial_protocol import LENGTH_MAX, Command, Status

__all__ = ["BAUD", "Answer", "Request", "lock_sequence"]

#: Bits a second of the line, unless another rate is asked for: that of the project's boards.
BAUD = 1_000_000


_HEAD, _CRC = 3, 4
#: First bytes of plain commands: a lock's frame holds none, so that one that lost bytes is not one either.
_PLAIN = frozenset({Command.WRITE, Command.READ, Command.WRITE_FIXED, Command.READ_FIXED})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer: its status, and the words that were read."""

    status: int
    words: NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A checked frame of the host: `words` are those to write, `count` the number to read, at most 256."""

    command: Command
    sequence: int
    address: int = 0
    """In bytes, of a word."""
    words: NDArray[np.uint32] | None = None
    count: int = 0

    def encoded(self) -> bytes:
        """The bytes of the frame."""
        frame = bytes([self.command, self.sequence])
        if self.command in (Command.CHECKED_READ, Command.CHECKED_WRITE):
            length = self.count if self.words is None else len(self.words)
            frame += bytes([length % LENGTH_MAX]) + (self.address // 4).to_bytes(4, "big")
        if self.words is not None:
            frame += self.words.astype(">u4").tobytes()
        return frame + zlib.crc32(frame).to_bytes(_CRC, "big")

    @property
    def answer_bytes(self) -> int:
        """The length of the answer when nothing goes wrong."""
        return _HEAD + 4 * self.count + _CRC

    def find_answer(self, received: bytes) -> Answer | None:
        """The answer among the bytes received, wherever it begins; None: it is not there, or not whole."""
        start = bytes([self.command, self.sequence])
        at = received.find(start)
        while at >= 0:
            found = self._answer_at(received[at:])
            if found is not None:
                return found
            at = received.find(start, at + 1)
        return None

    def _answer_at(self, received: bytes) -> Answer | None:
        if len(received) < _HEAD + _CRC:
            return None
        status = received[2]
        size = _HEAD + (4 * self.count if status == Status.DONE else 0)
        frame, crc = received[:size], received[size : size + _CRC]
        if len(crc) < _CRC or zlib.crc32(frame).to_bytes(_CRC, "big") != crc:
            return None
        return Answer(status=status, words=np.frombuffer(frame[_HEAD:], dtype=">u4").astype(np.uint32))


def lock_sequence(command: Command) -> int:
    """A sequence number for a lock or a release, with which no byte of the frame begins a plain command."""
    return next(
        sequence
        for sequence in range(LENGTH_MAX)
        if _PLAIN.isdisjoint(Request(command=command, sequence=sequence).encoded())
    )
