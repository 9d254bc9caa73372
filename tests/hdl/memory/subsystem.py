"""The configuration of the memory subsystem that the cocotb tests run on: one Verilator build for all."""

from __future__ import annotations

from hdl.config import DesignConfig, MemoryConfig

__all__ = ["CONFIG"]

CONFIG = DesignConfig(memory=MemoryConfig(storage="dpi"))
