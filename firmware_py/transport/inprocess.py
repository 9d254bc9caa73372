"""The transport to a compiled model in this process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.compiled import BusError, CompiledModel

from .base import TransportError

__all__ = ["InProcessTransport"]


class InProcessTransport:
    """A `Transport` over a `CompiledModel`; the clock runs only while a call lasts."""

    def __init__(self, model: CompiledModel) -> None:
        self.model = model

    @property
    def backdoor(self) -> CompiledModel | None:
        """The model, where it reaches its memory."""
        return self.model if self.model.has_backdoor else None

    def read32(self, address: int) -> int:
        """The word at byte `address`."""
        return int(self.read_block(address, 1)[0])

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        self.write_block(address, np.array([value], dtype=np.uint32))

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        try:
            return self.model.read_block(address, count)
        except BusError as error:
            raise TransportError(str(error)) from None

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        try:
            self.model.write_block(address, words)
        except BusError as error:
            raise TransportError(str(error)) from None

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Runs the model until the interrupt is raised, at most `timeout_cycles`."""
        return self.model.run(timeout_cycles)
