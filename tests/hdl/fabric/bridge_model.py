"""The golden model of the serial bridge: bytes in, bytes out; written from the protocol."""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import Protocol

from hdl.fabric.serial_protocol import LENGTH_MAX, Command, Status

__all__ = ["BridgeModel", "Broken", "Bus", "Event", "Silence", "checked", "plain"]


class Silence(Exception):
    """The line has been silent for the time-out."""


class Broken(Exception):
    """A byte came without its stop bit."""


#: What happens at the receiver: a byte, or one of the two.
Event = int | Silence | Broken
_Session = Generator[None, int, None]


class Bus(Protocol):
    """What the bridge reads and writes."""

    def read(self, address: int) -> tuple[int, bool]:
        """The word at byte `address`, and whether the access was refused."""
        ...

    def write(self, address: int, word: int) -> bool:
        """Writes a word; whether that was refused."""
        ...


def _crc(frame: bytes) -> bytes:
    return zlib.crc32(frame).to_bytes(4, "big")


def plain(command: int, address: int, words: list[int] | int) -> bytes:
    """A plain command; `words` are those that it writes, or the number that it reads."""
    length = words if isinstance(words, int) else len(words)
    frame = bytes([command, length % LENGTH_MAX]) + (address // 4).to_bytes(4, "big")
    return frame + b"".join(word.to_bytes(4, "big") for word in ([] if isinstance(words, int) else words))


def checked(command: int, sequence: int, address: int = 0, words: list[int] | int = 0) -> bytes:
    """A checked frame; lock and release have neither address nor words."""
    frame = bytes([command, sequence])
    if command in (Command.CHECKED_READ, Command.CHECKED_WRITE):
        frame = bytes([command, sequence]) + plain(command, address, words)[1:]
    return frame + _crc(frame)


class BridgeModel:
    """Takes what the receiver saw, event by event, and keeps in `sent` what the bridge answers."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.sent = bytearray()
        self.locked = False
        self._last: bytes | None = None
        self._last_sequence = 0
        self._answer = b""
        self._session = self._forever()
        next(self._session)

    def take(self, event: Event) -> None:
        """What the bridge does when that happens."""
        if isinstance(event, int):
            self._session.send(event)
        else:
            self._session.throw(event)

    def _forever(self) -> _Session:
        while True:
            try:
                yield from self._command()
            except Silence:
                pass
            except Broken:
                yield from self._drop()

    def _drop(self) -> _Session:
        while True:
            try:
                yield
            except Broken:
                pass
            except Silence:
                return

    def _bytes(self, count: int) -> Generator[None, int, bytes]:
        taken = bytearray()
        for _ in range(count):
            taken.append((yield))
        return bytes(taken)

    def _command(self) -> _Session:
        (command,) = yield from self._bytes(1)
        if command in (Command.CHECKED_READ, Command.CHECKED_WRITE, Command.LOCK, Command.RELEASE):
            yield from self._checked(command)
        elif self.locked:
            yield from self._drop()
        else:
            yield from self._plain(command)

    def _plain(self, command: int) -> _Session:
        length, *address = yield from self._bytes(5)
        index = int.from_bytes(address, "big")
        step = command in (Command.WRITE, Command.READ)
        for _ in range(length or LENGTH_MAX):
            where = 4 * index & 0xFFFFF
            if command in (Command.WRITE, Command.WRITE_FIXED):
                word = yield from self._bytes(4)
                self.bus.write(where, int.from_bytes(word, "big"))
            elif command in (Command.READ, Command.READ_FIXED):
                self.sent += self.bus.read(where)[0].to_bytes(4, "big")
            index += step

    def _checked(self, command: int) -> _Session:
        frame = bytes([command]) + (yield from self._bytes(1))
        sequence = frame[1]
        access = command in (Command.CHECKED_READ, Command.CHECKED_WRITE)
        words: list[int] | int = 0
        index = 0
        if access:
            head = yield from self._bytes(5)
            frame += head
            words = head[0] or LENGTH_MAX
            index = int.from_bytes(head[1:], "big")
        if command == Command.CHECKED_WRITE:
            payload = yield from self._bytes(4 * int(words))
            frame += payload
            words = [int.from_bytes(payload[at : at + 4], "big") for at in range(0, len(payload), 4)]
        if (yield from self._bytes(4)) != _crc(frame):
            yield from self._drop()
        elif frame == self._last:
            self.sent += self._answer
        elif access and sequence != (self._last_sequence + 1) % 256:
            self.sent += self._answered(command, sequence, Status.OUT_OF_SEQUENCE)
        else:
            self._last, self._last_sequence = frame, sequence
            self._answer = self._execute(command, sequence, 4 * index, words)
            self.sent += self._answer

    def _execute(self, command: int, sequence: int, address: int, words: list[int] | int) -> bytes:
        found = b""
        if command in (Command.LOCK, Command.RELEASE):
            self.locked = command == Command.LOCK
        for offset, word in enumerate(range(words) if isinstance(words, int) else words):
            where = address + 4 * offset & 0xFFFFF
            if command == Command.CHECKED_READ:
                value, refused = self.bus.read(where)
                found += value.to_bytes(4, "big")
            else:
                refused = self.bus.write(where, word)
            if refused:
                return self._answered(command, sequence, Status.REFUSED)
        return self._answered(command, sequence, Status.DONE, found)

    @staticmethod
    def _answered(command: int, sequence: int, status: Status, found: bytes = b"") -> bytes:
        frame = bytes([command, sequence, status]) + found
        return frame + _crc(frame)
