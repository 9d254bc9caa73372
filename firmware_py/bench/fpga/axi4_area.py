"""What the memory end `axi4` takes of an UltraScale+ part, such as an Alveo's: a channel's AXI4 manager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hdl.config import CONFIGS
from hdl.generate import verilog
from hdl.memory.axi.axi_memory import AxiMemory
from sim.fpga.xilinx import ultrascale_area

from ..measures import Measure

__all__ = ["axi4_area_measures"]

_CONFIG = "default"


def axi4_area_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """The area of one channel's end, with the options of the configuration `default`."""
    progress("axi4 area", 0, 1)
    base = CONFIGS[_CONFIG]
    config = replace(base, memory=replace(base.memory, end="axi4"))
    text = verilog(AxiMemory(config, channel=0), name="axi_memory")
    area = ultrascale_area(text, top="axi_memory", announce=announce)
    progress("axi4 area", 1, 1)
    where: dict[str, str | int] = {"board": "UltraScale+", "memory": "axi4", "block": "memory end"}
    return [
        Measure(name="luts", where=where, value=area.luts, unit="LUT6"),
        Measure(name="ffs", where=where, value=area.flip_flops, unit="flip-flops"),
        Measure(name="block_rams", where=where, value=area.block_rams, unit="RAMB36E2"),
    ]
