"""What a replay observes of a compiled model whose memory is block RAM of the design."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.compiled import CompiledModel

    from .driver import Accelerator

__all__ = ["FrontDoorMonitor"]


class FrontDoorMonitor:
    """The logs of a compiled model, and its memory as the host reads it: such a design has no backdoor."""

    def __init__(self, model: CompiledModel, driver: Accelerator) -> None:
        self.hops = model.hops
        self.accesses = model.accesses
        self.ports = model.ports
        self.commands = model.commands
        self.batch_windows = model.batch_windows
        self.clear_logs = model.clear_logs
        self.fetch = driver.read_memory
