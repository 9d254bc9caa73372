"""The design as others take it: what its side-car says, and that its file list and FuseSoC core work."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl import package
from hdl.config import CONFIGS
from hdl.package import DESIGN_SCHEMA, write_design
from hdl.port_table import ports
from hdl.registers import REGISTERS
from hdl.top import Clew
from sim.verilator import tool_environment


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small design and what goes with it."""
    folder = tmp_path_factory.mktemp("small")
    write_design("small", folder)
    return folder


def test_side_car_describes_the_verilog(small: Path) -> None:
    description = json.loads((small / "clew.json").read_text())
    config = CONFIGS["small"]
    assert description["schema"] == DESIGN_SCHEMA
    assert description["configuration"] == "small"
    assert int(description["configuration_hash"], 16) == config.hash
    assert description["parameters"] == json.loads(json.dumps(config.as_dict()))
    assert [register["name"] for register in description["registers"]] == [r.name for r in REGISTERS]
    assert description["external_modules"] == []
    text = (small / "clew.v").read_text()
    top = text[text.index("module clew(") :]
    top = top[: top.index("endmodule")]
    declared = {
        (match[3], match[1], 1 + int(match[2] or 0))
        for match in re.finditer(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", top, re.MULTILINE)
    }
    ports = description["ports"]
    assert {(port["name"], port["direction"], port["width"]) for port in ports} == declared
    # Every output that the host does not need may be left open; no two ports are said to be the same thing.
    needed = {port["name"] for port in ports if not port["optional"]}
    assert needed == {n for n, *_ in declared if n.startswith("s_axil_")} | {"clk", "rst", "interrupt"}
    assert len({port["description"] for port in ports}) == len(ports)


@pytest.mark.parametrize("config", ["stack", "testbench"])
def test_every_port_has_a_sentence(config: str) -> None:
    """Also with channels, and with the protocol checker."""
    found = ports(Clew(CONFIGS[config]))
    assert all(re.fullmatch(r"[A-Z].*[^.]\.", port.description) for port in found)
    names = {port.name for port in found}
    assert names >= {"stack": {"row__0__op", "row__1__op"}, "testbench": {"violation_rule"}}[config]


@pytest.mark.parametrize("end", ["bus", "axi4"])
def test_the_ports_of_a_memory_that_is_outside(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have to be connected; those of AXI have plain AMBA names, and then there are no monitors of a
    controller. The side-car says which end it is."""
    monkeypatch.setattr(package, "verilog", lambda *_, **__: "")
    write_design("small", tmp_path, end=end, channels=2)
    description = json.loads((tmp_path / "clew.json").read_text())
    assert description["memory_end"] == description["parameters"]["memory"]["end"] == end
    widths = {port["name"]: port["width"] for port in description["ports"] if not port["optional"]}
    if end == "axi4":
        named = {name: widths[f"m_axi_1_{name}"] for name in ("araddr", "arid", "arlen", "wdata", "wstrb")}
        assert named == {"araddr": 33, "arid": 6, "arlen": 8, "wdata": 256, "wstrb": 32}
        assert {"m_axi_aclk", "m_axi_aresetn", "m_axi_0_awvalid", "m_axi_0_rlast"} <= widths.keys()
        shown = ("row", "column", "access")
        assert not any(port["name"].startswith(shown) for port in description["ports"])
    else:
        assert {"row__1__op", "column__1__write_mask"} <= widths.keys()
        assert widths["column__0__read_data"] == widths["column__1__write_data"] == 256


def test_a_port_without_a_sentence_is_an_error() -> None:
    class Undocumented(wiring.Component):
        planted: Out(1)

    with pytest.raises(KeyError, match="port planted"):
        ports(Undocumented())


def test_fusesoc_lints_the_core(small: Path, tmp_path: Path) -> None:
    """FuseSoC finds the core by its name, and its lint target is clean; the file list names the Verilog."""
    assert [line for line in (small / "clew.f").read_text().split("\n") if line[:2] != "//"] == ["clew.v", ""]
    fusesoc = [str(Path(sys.executable).with_name("fusesoc")), "--cores-root", str(small)]
    environment = {**tool_environment(), "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    for command in (["core", "show", "clew"], ["run", "--target", "lint", "clew"]):
        done = subprocess.run(
            [*fusesoc, *command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert "warning" not in done.stdout.lower()
    # It was Verilator that ran.
    assert "Verilator: Built from" in done.stdout


def test_a_failure_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown configuration 'huge': expected one of default"):
        write_design("huge", tmp_path)
    assert list(tmp_path.iterdir()) == []
    # The second file cannot be written.
    monkeypatch.setattr(package, "verilog", lambda *_, **__: "")
    written = Path.write_text

    def write_text(path: Path, text: str, encoding: str | None = None) -> int:
        if ".clew.json" in path.name:
            raise OSError("planted: no space left")
        return written(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(OSError, match="planted"):
        write_design("small", tmp_path)
    assert list(tmp_path.iterdir()) == []
