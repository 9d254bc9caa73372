"""`clew fpga` and `clew bench fpga` on results of tools that are made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Fragment

from firmware_py.bench.fpga import axi4_area
from firmware_py.fpga import flow
from hdl.config import CONFIGS
from hdl.serial_top import SerialClew
from sim.fpga.netlist import BlockArea, Netlist
from sim.fpga.placement import CriticalPath, PartTooSmall, Placement
from sim.fpga.xilinx import XilinxArea

from .test_cli import clew


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """What the tools find; a test changes it."""
    bitstream = tmp_path / "cached.bit"
    bitstream.write_bytes(b"bits")
    found: dict[str, object] = {"fmax": 51.25, "too_small": None}

    def placed(netlist: Netlist, board: object, *, seed: int, announce: object) -> Placement:
        if found["too_small"]:
            raise PartTooSmall(str(found["too_small"]))
        assert isinstance(found["fmax"], float)
        return Placement(
            bitstream=bitstream,
            fmax_mhz=found["fmax"],
            required_mhz=50.0,
            seed=seed,
            used={},
            critical_path=CriticalPath(start="a.q", end="b.d", logic_ns=8, routing_ns=11.5, levels=14),
        )

    areas = {
        "near walker": BlockArea(luts=1200, flip_flops=300, block_rams=0),
        "device": BlockArea(luts=30, flip_flops=20, block_rams=64),
    }
    netlist = Netlist(top="top", json=tmp_path / "n.json", verilog=tmp_path / "n.v")
    monkeypatch.setattr(flow, "board_netlist", lambda *_, **__: netlist)
    monkeypatch.setattr(flow, "placed", placed)
    monkeypatch.setattr(flow, "area_by_block", lambda *_: areas)
    return found


def test_the_table_has_every_block_and_the_critical_path(monkeypatch, capsys, tools, tmp_path) -> None:
    status, text, errors = clew(monkeypatch, capsys, "fpga", "-o", tmp_path / "out", "--seed", 7)
    assert (status, errors) == (0, "")
    for expected in (
        "ulx3s on ulx3s_85f (ECP5 85k, CABGA381)",
        "near walker │ 1,200 │",
        "all         │ 1,230 │        320 │         64",
        "fmax 51.2 MHz (seed 7); 50 MHz: met",
        "critical path: a.q -> b.d",
        "19.5 ns: 14 cells 8.0 ns, wires 11.5 ns",
    ):
        assert expected in text
    assert (tmp_path / "out" / "clew.bit").read_bytes() == b"bits"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["clew.bit"]


def test_a_clock_that_is_missed_is_status_1_and_no_bitstream(monkeypatch, capsys, tools, tmp_path) -> None:
    tools["fmax"] = 49.9
    status, text, _ = clew(monkeypatch, capsys, "fpga", "-o", tmp_path / "out")
    assert status == 1 and "50 MHz: NOT met" in text
    assert not (tmp_path / "out").exists()


def test_bad_input_is_one_line(monkeypatch, capsys, tools, tmp_path) -> None:
    def error(*arguments: object) -> str:
        status, text, errors = clew(monkeypatch, capsys, "fpga", "-o", tmp_path / "out", *arguments)
        assert (status, text) == (2, "") and errors.count("\n") == 1
        assert not (tmp_path / "out").exists()
        return errors

    assert "unknown board 'de10': expected one of ulx3s_85f" in error("--board", "de10")
    assert "unknown configuration 'huge': expected one of" in error("--config", "huge")
    assert "configuration simulation: storage is 'dpi': expected 'array'" in error("--config", "simulation")
    status, text, errors = clew(monkeypatch, capsys, "fpga", "-o", tmp_path / "cached.bit")
    assert (status, text) == (2, "") and "cached.bit: expected a folder" in errors
    tools["too_small"] = "ulx3s_12f: the part is too small: DP16KD: 80 needed, 56 available, 24 too few"
    assert "24 too few" in error("--board", "ulx3s_12f")


def test_a_simulated_board_that_cannot_be(monkeypatch, capsys) -> None:
    def error(*arguments: object) -> str:
        status, text, errors = clew(monkeypatch, capsys, "board", *arguments)
        assert (status, text) == (2, "") and errors.count("\n") == 1
        return errors

    assert "expected --simulate" in error("--netlist")
    assert "unknown configuration 'huge': expected one of" in error("--simulate", "--config", "huge")
    asked = ("--simulate", "--netlist", "--config", "simulation")
    assert "configuration simulation: storage is 'dpi': expected 'array'" in error(*asked)


def test_the_bench_has_the_clock_and_the_area_by_block(monkeypatch, capsys, tools, tmp_path) -> None:
    out = tmp_path / "fpga.json"
    status, text, errors = clew(monkeypatch, capsys, "bench", "fpga", "--topic", "board", "--json", out)
    assert (status, errors) == (0, "") and "fmax_mhz" in text
    document = json.loads(out.read_text())
    assert document["schema"] == "clew.bench.fpga/1"
    where = {"board": "ulx3s_85f", "memory": "hbm2_2000"}
    values = {(each["name"], each["where"]["block"]): each["value"] for each in document["measures"]}
    assert all(each["where"].items() >= where.items() for each in document["measures"])
    assert values[("fmax_mhz", "all")] == 51.25
    assert values[("luts", "near walker")] == 1200 and values[("luts", "all")] == 1230
    assert values[("ffs", "device")] == 20 and values[("block_rams", "all")] == 64
    tools["fmax"] = 49.9
    assert clew(monkeypatch, capsys, "bench", "fpga", "--topic", "board")[0] == 1
    status, _, errors = clew(monkeypatch, capsys, "bench", "fpga", "--topic", "boards")
    assert status == 2 and "unknown topic 'boards': expected one of board" in errors


def test_the_axi4_end_is_measured_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def area(text: str, *, top: str, announce: object) -> XilinxArea:
        assert f"module {top}(" in text and "m_axi" in text
        return XilinxArea(luts=700, flip_flops=500, block_rams=0)

    monkeypatch.setattr(axi4_area, "ultrascale_area", area)
    measured = axi4_area.axi4_area_measures(announce=lambda _: None, progress=lambda *_: None)
    assert [(each.name, each.value) for each in measured] == [("luts", 700), ("ffs", 500), ("block_rams", 0)]
    assert {each.where["memory"] for each in measured} == {"axi4"}


def test_every_instance_of_a_block_is_in_the_design() -> None:
    """The names of blocks are those of the components, of one channel and of two."""
    for name in ("ulx3s", "stack"):
        design = Fragment.get(SerialClew(CONFIGS[name], divisor=8), None)
        instances = {f"design{path}" for path in _instances(design)}
        missing = {
            block for block, found in flow.blocks(CONFIGS[name]).items() if not instances.issuperset(found)
        }
        assert not missing


def _instances(fragment: Fragment) -> Iterator[str]:
    for part, name, _ in fragment.subfragments:
        if name is not None:
            yield f".{name}"
            yield from (f".{name}{below}" for below in _instances(part))
