"""The transport over a serial line: a board's UART, or the pseudo-terminal of a simulated one."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import termios
import time

import numpy as np
import serial
from numpy.typing import NDArray

from hdl.fabric.serial_protocol import LENGTH_MAX, Command, Status

from .base import PortError, TransportError
from .polling import poll_interrupt
from .serial_frames import BAUD, Answer, Request, lock_sequence

__all__ = ["SerialTransport"]

#: Seconds without an answer after which a frame is sent again, the bytes' own time not counted; doubled each
#: time. Longer than the bridge's time-out (the time of 1,024 bytes), after which it listens anew.
_PATIENCE = 0.25
_TIMEOUT_BYTES = 1024
#: Seconds of silence after which an answer that has begun is no longer waited for, the time of as many bytes
#: as that time-out not counted: a slow simulation hands them over some at a time. Doubled each time, too.
_GAP = 0.1
#: Bytes that mean nothing are kept up to so many: an answer has at most 1,031.
_KEPT = 4096
#: How often a frame is sent before the line is given up, at first contact and later.
_FIRST_TRIES, _TRIES = 4, 7


class SerialTransport:
    """A `Transport` by checked frames over a serial port; plain UARTBone commands are locked out meanwhile.

    What the line drops, doubles, inserts or changes is found by the frames' CRC and sequence numbers, and
    sent again; `retries` counts how often. Close it, so that other tools can use the board afterwards.
    """

    backdoor = None
    """There is none."""

    def __init__(self, port: str, *, baud: int = BAUD) -> None:
        """Opens the port called `port` and locks the bridge.

        Raises PortError for a port that is not there, not a serial port or in use, may not be opened, has no
        such rate, or where no bridge answers.
        """
        self._name = port
        self._baud = baud
        self.retries = 0
        """Frames that were sent again."""
        try:
            self._port = serial.Serial(port, baud, timeout=0, write_timeout=5, exclusive=True)
        except (OSError, ValueError, termios.error) as error:
            raise PortError(f"{port}: {_reason(error)}") from None
        try:
            self._sequence = lock_sequence(Command.LOCK)
            self._ask(Request(command=Command.LOCK, sequence=self._sequence), tries=_FIRST_TRIES)
        except BaseException:
            self._port.close()
            raise

    def close(self) -> None:
        """Releases the bridge, as far as it answers, and closes the port."""
        if self._port.is_open:
            with contextlib.suppress(TransportError):
                self._ask(Request(command=Command.RELEASE, sequence=lock_sequence(Command.RELEASE)), tries=2)
            self._port.close()

    def __enter__(self) -> SerialTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read32(self, address: int) -> int:
        """The word at byte `address`."""
        return int(self.read_block(address, 1)[0])

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        self.write_block(address, np.array([value], dtype=np.uint32))

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        words = np.zeros(count, dtype=np.uint32)
        for first in range(0, count, LENGTH_MAX):
            part = words[first : first + LENGTH_MAX]
            part[:] = self._execute(Command.CHECKED_READ, address + 4 * first, count=len(part)).words
        return words

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        for first in range(0, len(words), LENGTH_MAX):
            part = words[first : first + LENGTH_MAX]
            self._execute(Command.CHECKED_WRITE, address + 4 * first, words=part)

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Waits until a batch is done; see `poll_interrupt`."""
        return poll_interrupt(self, timeout_cycles)

    def _execute(
        self, command: Command, address: int, *, words: NDArray[np.uint32] | None = None, count: int = 0
    ) -> Answer:
        self._sequence = (self._sequence + 1) % 256
        answer = self._ask(
            Request(command=command, sequence=self._sequence, address=address, words=words, count=count),
            tries=_TRIES,
        )
        if answer.status == Status.OUT_OF_SEQUENCE:
            raise PortError(f"{self._name}: frames come from somebody else too: expected to be alone")
        if answer.status not in (Status.DONE, Status.REFUSED):
            raise PortError(
                f"{self._name}: a frame was answered with status {answer.status}: expected "
                f"{', '.join(f'{status.value} ({status.name})' for status in Status)}"
            )
        if answer.status == Status.REFUSED:
            what = f"read of {count}" if words is None else f"write of {len(words)}"
            raise TransportError(f"{what} words from {address:#07x}: SLVERR")
        return answer

    def _ask(self, request: Request, *, tries: int) -> Answer:
        """The answer to a frame, which is sent until there is one."""
        frame = request.encoded()
        on_the_line = 10 * (len(frame) + request.answer_bytes) / self._baud
        received = b""
        for attempt in range(tries):
            self.retries += attempt > 0
            timeout = 10 * _TIMEOUT_BYTES / self._baud
            patience = (_PATIENCE + 1.5 * timeout) * 2**attempt + 2 * on_the_line
            gap = (_GAP + timeout) * 2**attempt
            try:
                self._port.reset_input_buffer()
                self._port.write(frame)
                answer, received = self._await(request, patience, gap)
            except (OSError, termios.error) as error:
                raise PortError(f"{self._name}: the line is gone: {_reason(error)}") from None
            if answer is not None:
                return answer
        seen = f"{len(received)} bytes that mean nothing" if received else "nothing"
        raise PortError(
            f"{self._name}: asked {tries} times, received {seen}: expected the serial bridge of a Clew at "
            f"{self._baud} baud"
        )

    def _await(self, request: Request, patience: float, gap: float) -> tuple[Answer | None, bytes]:
        """The answer, if one begins within `patience` and is never silent for `gap`, and the last bytes
        received. A line that never falls silent is given up after twice the patience."""
        received = b""
        began = time.monotonic()
        until = began + patience
        while (left := until - time.monotonic()) > 0:
            self._port.timeout = left
            came = self._port.read(1)
            came += self._port.read(self._port.in_waiting) if came else b""
            if not came:
                continue
            received = (received + came)[-_KEPT:]
            answer = request.find_answer(received)
            if answer is not None:
                return answer, received
            until = min(time.monotonic() + gap, began + 2 * patience)
        return None, received


def _reason(error: Exception) -> str:
    """Why the system refused a port, without the words of the library."""
    found = re.search(r"(?:\[Errno |\()(\d+)(?:\]|, )", str(error))
    number = error.errno if isinstance(error, OSError) else None
    number = int(found[1]) if number is None and found else number
    if number == errno.EAGAIN:
        return "another program uses it"
    if number == errno.ENOTTY or "(25," in str(error):
        return "expected a serial port"
    if number is not None:
        return os.strerror(number)
    if "disconnected" in str(error):
        return "disconnected"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
