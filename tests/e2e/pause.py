"""A time in which the host asks for nothing, in a compiled design."""

from __future__ import annotations

from firmware_py.driver import Accelerator
from sim.compiled import CompiledModel

__all__ = ["pause"]


def pause(accelerator: Accelerator, model: CompiledModel, cycles: int) -> None:
    """Lets so many cycles pass. `CompiledModel.run` alone ends at once while an interrupt is pending, as
    after a batch."""
    accelerator.write_register("INTERRUPT_PENDING", 1)
    began = model.cycle
    assert not model.run(cycles) and model.cycle == began + cycles
