"""The transport over PCIe: the user BAR that AMD's XDMA driver offers as a character device."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from .base import PortError
from .polling import poll_interrupt

__all__ = ["XdmaTransport"]


class XdmaTransport:
    """A `Transport` over `/dev/xdma0_user`: the AXI4-Lite port is the BAR, from its first byte on.

    The driver reads and writes one word at a time. PCIe has no way to say that an access was refused: such a
    read gives all ones. A `CheckedTransport` over this one finds it out.
    """

    backdoor = None
    """There is none."""

    def __init__(self, device: str) -> None:
        """Opens the user BAR of `device`, for example /dev/xdma0. Raises PortError when it cannot be."""
        self._name = f"{device}_user"
        try:
            self._file = os.open(self._name, os.O_RDWR)
        except OSError as error:
            raise PortError(f"{self._name}: {error.strerror}") from None

    def close(self) -> None:
        """Closes the device."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> XdmaTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read32(self, address: int) -> int:
        """The word at byte `address`."""
        try:
            data = os.pread(self._file, 4, address)
        except OSError as error:
            raise PortError(f"{self._name}: read at {address:#07x}: {error.strerror}") from None
        if len(data) != 4:
            raise PortError(f"{self._name}: read at {address:#07x}: {len(data)} bytes: expected 4")
        return int.from_bytes(data, "little")

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        try:
            written = os.pwrite(self._file, value.to_bytes(4, "little"), address)
        except OSError as error:
            raise PortError(f"{self._name}: write at {address:#07x}: {error.strerror}") from None
        if written != 4:
            raise PortError(f"{self._name}: write at {address:#07x}: {written} bytes: expected 4")

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        words = [self.read32(address + 4 * index) for index in range(count)]
        return np.array(words, dtype=np.uint32)

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        for index, word in enumerate(words.tolist()):
            self.write32(address + 4 * index, word)

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Waits until a batch is done; see `poll_interrupt`."""
        return poll_interrupt(self, timeout_cycles)
