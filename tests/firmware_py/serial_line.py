"""Serial lines for tests: a relay that drops, doubles, changes and inserts bytes, and a board without RTL."""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hdl.config import named_config
from hdl.registers import INTEGRITY_OFFSET, REGISTER_BY_NAME, REGISTERS
from sim.board import pseudo_terminal
from tests.hdl.fabric.bridge_model import BridgeModel, Silence

__all__ = ["FakeBus", "Noise", "board_of_the_model", "nobody", "noisy", "slow_board_of_the_model"]

#: Changes bytes on their way.
Noise = Callable[[bytes], bytes]
#: Seconds without a byte after which the model's bridge forgets what has begun.
_SILENCE = 0.01


def nobody(data: bytes) -> bytes:
    """The noise of a good line."""
    return data


def noisy(seed: int, share: float) -> Noise:
    """Noise on that share of the bytes: each is lost, doubled, changed, or has one put before it."""
    rng = random.Random(seed)

    def disturb(data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            kind = rng.randrange(4) if rng.random() < share else None
            if kind == 0:
                continue
            if kind == 1:
                out.append(byte)
            elif kind == 2:
                out.append(rng.randrange(256))
            out.append(byte ^ 1 << rng.randrange(8) if kind == 3 else byte)
        return bytes(out)

    return disturb


class FakeBus:
    """Words to read and write, with the registers that every design has; keeps what was written."""

    def __init__(self, **values: int) -> None:
        self.words: dict[int, int] = {}
        for register in REGISTERS:
            self.words[register.offset] = register.reset
        for name, value in ({"CONFIG_HASH": named_config("small").hash} | values).items():
            self.words[REGISTER_BY_NAME[name].offset] = value
        self.written: list[tuple[int, int]] = []
        self.after: Callable[[], None] = lambda: None
        """Called after every write."""

    def read(self, address: int) -> tuple[int, bool]:
        refused = address >= 0x1000 and address < 0x40000
        value = self.words.get(address, 0)
        if not refused and not INTEGRITY_OFFSET <= address < 4 * len(REGISTERS):
            self._count("READ", address, value)
        return value, refused

    def write(self, address: int, word: int) -> bool:
        if 0x1000 <= address < 0x40000:
            return True
        self.words[address] = word
        self.written.append((address, word))
        self._count("WRITE", address, word)
        self.after()
        return False

    def _count(self, kind: str, address: int, word: int) -> None:
        count, crc = (REGISTER_BY_NAME[f"HOST_{kind}{end}"].offset for end in ("S", "_CRC"))
        carried = address.to_bytes(4, "little") + word.to_bytes(4, "little")
        self.words[count] += 1
        self.words[crc] = zlib.crc32(carried, self.words[crc])


class _Model:
    """The bridge's model on a line: silence is time."""

    def __init__(self, bus: FakeBus) -> None:
        self.bridge = BridgeModel(bus)
        self._last = time.monotonic()

    def answer(self, data: bytes) -> bytes:
        now = time.monotonic()
        if now - self._last > _SILENCE:
            self.bridge.take(Silence())
        if data:
            self._last = now
        for byte in data:
            self.bridge.take(byte)
        sent = bytes(self.bridge.sent)
        self.bridge.sent.clear()
        return sent


@contextmanager
def _served(line: int, answer: Callable[[bytes], bytes], up: Noise, down: Noise) -> Iterator[threading.Event]:
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            readable, _, _ = select.select([line], [], [], 0.002)
            came = answer(up(os.read(line, 4096)) if readable else b"")
            if came:
                with contextlib.suppress(BlockingIOError):
                    os.write(line, down(came))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join()


@contextmanager
def board_of_the_model(bus: FakeBus, *, up: Noise = nobody, down: Noise = nobody) -> Iterator[str]:
    """The path of a port where the bridge's golden model answers for `bus`, over a line with that noise."""
    with pseudo_terminal() as (line, path), _served(line, _Model(bus).answer, up, down):
        yield path


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """The path of a port at which anything answers."""
    with pseudo_terminal() as (line, path), _served(line, answer, nobody, nobody):
        yield path


@contextmanager
def slow_board_of_the_model(bus: FakeBus, *, pause: float) -> Iterator[str]:
    """The path of a port where the model answers for `bus`, four bytes at a time, so many seconds apart."""
    model = _Model(bus)
    waiting = bytearray()
    sent = time.monotonic()

    def answer(data: bytes) -> bytes:
        nonlocal sent
        waiting.extend(model.answer(data))
        if time.monotonic() - sent < pause:
            return b""
        piece = bytes(waiting[:4])
        del waiting[:4]
        if piece:
            sent = time.monotonic()
        return piece

    with answering(answer) as path:
        yield path
