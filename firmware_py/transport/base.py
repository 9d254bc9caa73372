"""What the driver needs of whatever carries its register accesses to the design."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Backdoor", "PortError", "Transport", "TransportError"]


class TransportError(RuntimeError):
    """An access that was refused, never answered, or did not arrive."""


class PortError(TransportError):
    """The way to a board that is not there, may not be used, went away, or leads to something else."""


class Backdoor(Protocol):
    """The memory's content, past the design and without a cycle: for initial images only."""

    def load(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Puts atoms (uint32, [n, 8]) at consecutive atom addresses."""
        ...

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) at consecutive atom addresses."""
        ...


class Transport(Protocol):
    """The host's blocking access to the design's AXI4-Lite port. Addresses are bytes, words are 32 bits.

    Every method raises TransportError when an access is refused or not answered.
    """

    @property
    def backdoor(self) -> Backdoor | None:
        """Access to the memory's content past the design; None on a board."""
        ...

    def read32(self, address: int) -> int:
        """The word at `address`."""
        ...

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        ...

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        ...

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        ...

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Waits until the interrupt is raised, at most `timeout_cycles`. False: it was not."""
        ...
