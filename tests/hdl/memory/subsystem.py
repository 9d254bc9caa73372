"""The configurations of the memory subsystem that tests run on: one Verilator build each for all of them."""

from __future__ import annotations

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig

__all__ = ["CONFIG", "ECC_CONFIG"]

CONFIG = DesignConfig(memory=MemoryConfig(storage="dpi"))
ECC_CONFIG = DesignConfig(memory=MemoryConfig(storage="dpi"), controller=ControllerConfig(ecc=True))
