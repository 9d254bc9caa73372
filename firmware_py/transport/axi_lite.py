"""The transport through a cocotb testbench: an AXI4-Lite manager that is not ours drives the host port."""

from __future__ import annotations

from typing import Any

import numpy as np
from cocotb.task import resume
from cocotb.triggers import First, RisingEdge, Timer
from cocotbext.axi import AxiLiteMaster
from numpy.typing import NDArray

from .base import Backdoor, TransportError

__all__ = ["AxiLiteTransport"]


class AxiLiteTransport:
    """A `Transport` over cocotbext-axi's manager, called from a function that `cocotb.task.bridge` runs.

    `interrupt` is the handle of the interrupt pin, `clock_ns` the period of the clock, and `backdoor` what
    reaches the simulated memory, if anything does.
    """

    def __init__(
        self,
        manager: AxiLiteMaster,
        *,
        interrupt: Any,
        clock_ns: float,
        backdoor: Backdoor | None = None,
    ) -> None:
        self.backdoor = backdoor
        self._manager = manager
        self._interrupt = interrupt
        self._clock_ns = clock_ns

    @staticmethod
    def _check(response: int, what: str, address: int) -> None:
        if response:
            raise TransportError(f"{what} at {address:#07x}: response {int(response)}")

    async def _read(self, address: int, count: int) -> NDArray[np.uint32]:
        answer = await self._manager.read(address, 4 * count)
        self._check(answer.resp, "read", address)
        return np.frombuffer(answer.data, dtype="<u4").astype(np.uint32)

    async def _write(self, address: int, words: NDArray[np.uint32]) -> None:
        answer = await self._manager.write(address, np.ascontiguousarray(words, dtype="<u4").tobytes())
        self._check(answer.resp, "write", address)

    async def _wait(self, timeout_cycles: int) -> bool:
        if not self._interrupt.value:
            await First(RisingEdge(self._interrupt), Timer(timeout_cycles * self._clock_ns, "ns"))
        return bool(self._interrupt.value)

    def read32(self, address: int) -> int:
        """The word at byte `address`."""
        return int(self.read_block(address, 1)[0])

    def write32(self, address: int, value: int) -> None:
        """Writes a word."""
        self.write_block(address, np.array([value], dtype=np.uint32))

    def read_block(self, address: int, count: int) -> NDArray[np.uint32]:
        """`count` words from consecutive addresses."""
        if not count:
            return np.zeros(0, dtype=np.uint32)
        return resume(self._read)(address, count)

    def write_block(self, address: int, words: NDArray[np.uint32]) -> None:
        """Writes words to consecutive addresses."""
        if len(words):
            resume(self._write)(address, words)

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Lets simulation go on until the interrupt is raised, at most `timeout_cycles`."""
        return resume(self._wait)(timeout_cycles)
