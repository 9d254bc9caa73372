"""A replay on a netlist and on the RTL that it was made of: they must give the same, in the same cycles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdl.config import DesignConfig
from sim.compiled import CompiledModel
from sim.trace.importers import import_file

from ..batches import ring_size
from ..driver import Accelerator, BatchError, NotAnAccelerator
from ..errors import InternalError
from ..front_door import FrontDoorMonitor
from ..image import CreationOrder
from ..programs import default_image
from ..replay import Plan, Run, make_plan, run_plan
from ..transport.base import TransportError
from ..transport.inprocess import InProcessTransport

__all__ = ["NetlistReplay", "replay_on_netlist", "same"]

#: Cycles each way of the off-chip path.
_LATENCY = 20
#: The log of what walkers did is the same but for when each run began.
_HOP_FIELDS = ["address", "event", "context", "place", "channel"]


class _Watched(InProcessTransport):
    """Waits for no batch longer than the whole replay may take: a broken netlist hangs rather than fails."""

    def __init__(self, model: CompiledModel, *, patience: int) -> None:
        super().__init__(model)
        self._patience = patience

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        """Runs the model until the interrupt is raised, at most so long."""
        return super().wait_interrupt(min(timeout_cycles, self._patience))


@dataclass(frozen=True, kw_only=True)
class NetlistReplay:
    """What came of a replay on a netlist that gave what the RTL gives."""

    walks: int
    """Near and far."""
    batch_cycles: int
    """Cycles inside batches, near and far."""
    cycles_per_second: float
    """Of the netlist: cycles for each processor second spent in batches."""


def replay_on_netlist(
    trace: Path, config: DesignConfig, *, library: Path, announce: Callable[[str], None] | None = None
) -> NetlistReplay:
    """Replays a trace near and far on the RTL of `config`, and on its netlist, compiled as `library`.

    Raises InternalError: an answer is wrong, the netlist hangs, or the two differ in an answer, in what the
    walkers did, or in the cycles of a batch or a walk.
    """
    program = default_image()
    plan = make_plan(
        import_file(trace),
        program=program,
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.organisation.atoms,
        contexts=config.walker.contexts,
        concurrent=1,
    )
    with CompiledModel(config, announce=announce) as rtl:
        expected = _runs(plan, InProcessTransport(rtl))
        patience = rtl.cycle
    for run in expected:
        if run.wrong or run.not_golden or run.memory_differs:
            raise InternalError(f"{trace}: wrong answers on the RTL")
    with CompiledModel(config, library=library, announce=announce) as netlist:
        try:
            found = _runs(plan, _Watched(netlist, patience=patience))
        except (BatchError, NotAnAccelerator, TransportError) as error:
            raise InternalError(f"{trace}: the netlist is not the RTL: {error}") from None
        speed = netlist.cycles_per_second
    for name, one, other in zip(("near", "far"), expected, found, strict=True):
        if not same(one, other):
            raise InternalError(f"{trace}, {name}: the netlist is not the RTL")
    return NetlistReplay(
        walks=2 * len(plan.walks),
        batch_cycles=sum(int(run.batch_cycles.sum()) for run in found),
        cycles_per_second=speed,
    )


def same(one: Run, other: Run) -> bool:
    """Two runs of a plan gave the same answers, and took the same steps in the same cycles."""
    return (
        one.answers == other.answers
        and one.memory_differs == other.memory_differs
        and np.array_equal(one.batch_cycles, other.batch_cycles)
        and np.array_equal(one.walk_cycles, other.walk_cycles)
        and np.array_equal(one.logs.hops[_HOP_FIELDS], other.logs.hops[_HOP_FIELDS])
    )


def _runs(plan: Plan, transport: InProcessTransport) -> list[Run]:
    """The plan near and far."""
    accelerator = Accelerator(transport)
    accelerator.set_link(latency_up=_LATENCY, latency_down=_LATENCY)
    monitor = FrontDoorMonitor(transport.model, accelerator)
    return [
        run_plan(plan, program=default_image(), place=place, driver=accelerator, monitor=monitor)
        for place in (0, 1)
    ]
