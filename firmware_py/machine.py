"""The machine that a comparison runs on: the compiled design with its driver, opened and closed as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode

from .driver import MemoryErrors
from .replay import Driver, Monitor

__all__ = ["LinkedDriver", "Machine", "OpenMachine", "compiled_machine"]


class LinkedDriver(Driver, Protocol):
    """A driver that also sets the off-chip link and refresh, and knows what ECC found."""

    def set_link(self, *, latency_up: int, latency_down: int, bytes_per_cycle: int = 0) -> None:
        """Sets the cycles added each way, and the width (0: a message a cycle)."""
        ...

    def set_refresh(self, mode: RefreshMode) -> None:
        """Sets how the memory is refreshed from the next batch on."""
        ...

    def reset_counters(self) -> None:
        """Zeroes every counter."""
        ...

    def memory_errors(self) -> MemoryErrors:
        """What ECC has found since then."""
        ...

    def set_cache(self, *, sets_log2: int, ways: int, hit_latency: int) -> None:
        """Sets the geometry and the hit latency of the compute side's cache, and empties it."""
        ...

    def cache_counts(self) -> tuple[int, int]:
        """Hits and misses of that cache since the counters were zeroed."""
        ...


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A design that runs: how the host reaches it, and what is observed of it."""

    driver: LinkedDriver
    monitor: Monitor
    recording: Callable[[str], AbstractContextManager[None]] = lambda place: nullcontext()
    """Records, while it is open, what the design does for the place of that name; by default nothing."""


OpenMachine: TypeAlias = Callable[[DesignConfig, Callable[[str], None]], AbstractContextManager[Machine]]


@contextmanager
def compiled_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
    """The compiled model of `config` in this process; `announce` is told what is being built."""
    from .driver import Accelerator
    from .front_door import FrontDoorMonitor
    from .training import trained_model
    from .transport.inprocess import InProcessTransport

    with trained_model(config, announce=announce) as model:
        driver = Accelerator(InProcessTransport(model))
        yield Machine(driver=driver, monitor=model if model.has_backdoor else FrontDoorMonitor(model, driver))
