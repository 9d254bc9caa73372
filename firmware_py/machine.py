"""The machine that a comparison runs on: the compiled design with its driver, opened and closed as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode
from sim.compiled import CompiledModel

from .assembler import Image
from .axi_port import axi_times
from .measure import measure
from .place import Place, PlaceFigures, ReplayFigures
from .plan import Plan
from .replay import LinkedDriver, Monitor

__all__ = ["Machine", "Measuring", "OpenMachine", "OpenMeasuring", "compiled_machine", "prepare_memory"]


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
    prepare: Callable[[RefreshMode], None] = lambda refresh: None
    """Makes the memory outside the design ready for a replay with that refresh; by default there is none."""
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
        self.prepare(refresh)
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


def prepare_memory(model: CompiledModel, refresh: RefreshMode) -> None:
    """Gives a memory behind an AXI port, if the model has one, its published latencies."""
    if not model.config.memory.controlled:
        model.set_axi_times(axi_times(model.config, refresh))


@contextmanager
def compiled_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
    """The compiled model of `config` in this process; `announce` is told what is being built."""
    from .driver import Accelerator
    from .front_door import FrontDoorMonitor
    from .training import trained_model
    from .transport.inprocess import InProcessTransport

    with trained_model(config, announce=announce) as model:
        driver = Accelerator(InProcessTransport(model))
        yield Machine(
            driver=driver,
            monitor=model if model.has_backdoor else FrontDoorMonitor(model, driver),
            prepare=partial(prepare_memory, model),
        )
