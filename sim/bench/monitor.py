"""A replay's monitor in a cocotb simulation: the memory past the design, and no logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..compiled import ACCESS_RECORD, BATCH_RECORD, COMMAND_RECORD, HOP_RECORD, PORT_RECORD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .backdoor import StorageBackdoor

__all__ = ["MemoryMonitor"]


class MemoryMonitor:
    """What `CompiledModel` offers of its memory and logs; the logs stay empty.

    A coroutine that woke in every cycle to write them would take most of the simulation's time.
    """

    def __init__(self, backdoor: StorageBackdoor) -> None:
        self.fetch = backdoor.fetch

    def commands(self, channel: int = 0) -> NDArray[np.void]:
        """No COMMAND_RECORD."""
        return np.zeros(0, dtype=COMMAND_RECORD)

    def hops(self) -> NDArray[np.void]:
        """No HOP_RECORD."""
        return np.zeros(0, dtype=HOP_RECORD)

    def accesses(self) -> NDArray[np.void]:
        """No ACCESS_RECORD."""
        return np.zeros(0, dtype=ACCESS_RECORD)

    def ports(self) -> NDArray[np.void]:
        """No PORT_RECORD."""
        return np.zeros(0, dtype=PORT_RECORD)

    def batch_windows(self) -> NDArray[np.void]:
        """No BATCH_RECORD."""
        return np.zeros(0, dtype=BATCH_RECORD)

    def clear_logs(self) -> None:
        """Does nothing: there are none."""
