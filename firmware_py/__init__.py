"""Clew's host side. What is public is listed in `__all__` and loaded when it is first used.

So a board's host, which has no simulator, can import the driver: `from firmware_py import Accelerator`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .driver import Accelerator, BatchError, MemoryErrors, NoErrorCorrection, NotAnAccelerator
    from .errors import InputError, InternalError
    from .result import ComparisonResult
    from .simulated import SimulatedAccelerator

__all__ = [
    "Accelerator",
    "BatchError",
    "ComparisonResult",
    "InputError",
    "InternalError",
    "MemoryErrors",
    "NoErrorCorrection",
    "NotAnAccelerator",
    "SimulatedAccelerator",
]

_MODULES = {
    "Accelerator": "driver",
    "BatchError": "driver",
    "ComparisonResult": "result",
    "InputError": "errors",
    "InternalError": "errors",
    "MemoryErrors": "driver",
    "NoErrorCorrection": "driver",
    "NotAnAccelerator": "driver",
    "SimulatedAccelerator": "simulated",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
