"""The memory's content in a cocotb simulation, past the design: the storage behind DPI."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from hdl.memory.stack import StackMap
from sim.model.ecc import atom_checks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hdl.config import DesignConfig

__all__ = ["StorageBackdoor"]


class StorageBackdoor:
    """Reads and writes atoms of the simulated memory without a cycle.

    Make it in the simulator's own thread (in a coroutine): every thread has a store of its own, and the
    design uses that one's. Afterwards any thread may use it while the simulation waits.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._map = StackMap(config.memory)
        self._ecc = config.controller.ecc
        self._library = ctypes.CDLL(None)
        self._library.clew_store_current.restype = ctypes.c_void_p
        arguments = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
        self._library.clew_store_load.argtypes = arguments
        self._library.clew_store_fetch.argtypes = arguments
        self._library.clew_store_load_checks.argtypes = arguments
        self._store = self._library.clew_store_current()

    def load(self, address: int, atoms: NDArray[np.uint32]) -> None:
        """Puts atoms (uint32, [n, 8]) at consecutive atom addresses. ValueError: beyond the memory."""
        block = np.ascontiguousarray(atoms, dtype=np.uint32)
        checks = atom_checks(block)
        for offset in range(len(block)):
            index = self._map.storage_index(address + offset)
            self._library.clew_store_load(self._store, index, 1, block[offset].ctypes.data)
            if self._ecc:
                self._library.clew_store_load_checks(self._store, index, 1, checks[offset:].ctypes.data)

    def fetch(self, address: int, count: int) -> NDArray[np.uint32]:
        """The atoms (uint32, [count, 8]) at consecutive atom addresses. ValueError: beyond the memory."""
        block = np.zeros((count, 8), dtype=np.uint32)
        for offset in range(count):
            index = self._map.storage_index(address + offset)
            self._library.clew_store_fetch(self._store, index, 1, block[offset].ctypes.data)
        return block
