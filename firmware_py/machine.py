"""The machine that a comparison runs on: the compiled design with its driver, opened and closed as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode

from .assembler import Image
from .measure import measure
from .place import Place, PlaceFigures, ReplayFigures
from .plan import Plan
from .replay import LinkedDriver, Monitor

__all__ = ["Machine", "Measuring", "OpenMachine", "OpenMeasuring", "compiled_machine"]


F_co = TypeVar("F_co", bound=ReplayFigures, covariant=True)


class Measuring(Protocol[F_co]):
    """A machine that measures plans."""

    def measure(
        self,
        plan: Plan,
        place: Place,
        *,
        name: str,
        program: Image,
        refresh: RefreshMode,
        progress: Callable[[str, int, int], None],
    ) -> F_co:
        """The figures of a plan in one place, called `name` in messages.

        `progress` is told that name, the batches done and their number. Raises InternalError.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A simulated design that runs: how the host reaches it, and what is observed of it."""

    driver: LinkedDriver
    monitor: Monitor
    recording: Callable[[str], AbstractContextManager[None]] = lambda place: nullcontext()
    """Records, while it is open, what the design does for the place of that name; by default nothing."""

    def measure(
        self,
        plan: Plan,
        place: Place,
        *,
        name: str,
        program: Image,
        refresh: RefreshMode,
        progress: Callable[[str, int, int], None],
    ) -> PlaceFigures:
        """The figures of a plan in one place, from the machine's logs."""
        with self.recording(name):
            return measure(
                plan,
                place,
                name=name,
                driver=self.driver,
                monitor=self.monitor,
                program=program,
                refresh=refresh,
                progress=progress,
            )


#: Opens the machine of a design; is told what it may announce.
OpenMeasuring: TypeAlias = Callable[
    [DesignConfig, Callable[[str], None]], AbstractContextManager[Measuring[F_co]]
]
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
