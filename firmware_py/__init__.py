"""Clew's host side. What is public is listed in `__all__` and loaded when it is first used.

So a board's host, which has no simulator, can import the driver: `from firmware_py import Accelerator`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.trace.errors import TraceError
    from sim.verilator import BuildError

    from .driver import Accelerator, BatchError, MemoryErrors, NoErrorCorrection, NotAnAccelerator
    from .errors import InputError, InternalError
    from .result import ComparisonResult
    from .simulated import SimulatedAccelerator

__all__ = [
    "Accelerator",
    "BatchError",
    "BuildError",
    "ComparisonResult",
    "InputError",
    "InternalError",
    "MemoryErrors",
    "NoErrorCorrection",
    "NotAnAccelerator",
    "SimulatedAccelerator",
    "TraceError",
]

#: The module of each public name.
_MODULES = {
    "Accelerator": "firmware_py.driver",
    "BatchError": "firmware_py.driver",
    "BuildError": "sim.verilator",
    "ComparisonResult": "firmware_py.result",
    "InputError": "firmware_py.errors",
    "InternalError": "firmware_py.errors",
    "MemoryErrors": "firmware_py.driver",
    "NoErrorCorrection": "firmware_py.driver",
    "NotAnAccelerator": "firmware_py.driver",
    "SimulatedAccelerator": "firmware_py.simulated",
    "TraceError": "sim.trace.errors",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
