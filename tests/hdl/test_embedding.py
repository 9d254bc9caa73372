"""Clew in a design of somebody's own, in Verilog and in Amaranth: the examples of the documentation work."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hdl.config import named_config
from hdl.package import VERILATOR_WAIVERS
from sim.compiled import design_verilog
from sim.verilator import run_tool
from tests.hdl.streams import run

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "docs" / "examples"
_PROBE = _EXAMPLES / "probe.v"


def test_the_verilog_example_is_short_and_in_the_readme() -> None:
    text = _PROBE.read_text(encoding="utf-8")
    module = text[text.index("module") :]
    assert len(module.splitlines()) <= 15
    assert module in (_ROOT / "README.md").read_text(encoding="utf-8")


def test_the_verilog_example_is_clean(tmp_path: Path) -> None:
    """But for the outputs that it leaves open, in its own words or not."""
    design = design_verilog(named_config("small"))
    lint = ["verilator", "--lint-only", "-Wall", "-Wno-PINMISSING", "-Wno-PINCONNECTEMPTY"]
    run_tool(
        [*lint, "--top-module", "probe", str(VERILATOR_WAIVERS), str(_PROBE), str(design)], folder=tmp_path
    )


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="iverilog (Icarus Verilog) is not on PATH")
def test_the_verilog_example_finds_a_clew(tmp_path: Path) -> None:
    bench = tmp_path / "bench.v"
    bench.write_text(
        """
        module bench;
            reg clk = 0, rst = 1;
            wire found;
            always #5 clk = ~clk;
            probe probe (.clk(clk), .rst(rst), .found(found));
            initial begin
                #42 rst = 0;
                #1000 $display("nothing found");
                $finish;
            end
            always @(posedge clk) if (found) begin
                $display("found");
                $finish;
            end
        endmodule
        """
    )
    design = design_verilog(named_config("small"))
    for ids, expected in (("434c4557", "found"), ("434c4558", "nothing found")):
        probe = tmp_path / "probe.v"
        probe.write_text(re.sub("434c4557", ids, _PROBE.read_text(encoding="utf-8")))
        command = ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", bench, probe, design]
        subprocess.run(command, cwd=tmp_path, check=True)
        done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.strip() == expected


def test_the_amaranth_example_finds_a_clew() -> None:
    spec = importlib.util.spec_from_file_location("embedded", _EXAMPLES / "embedded.py")
    assert spec is not None and spec.loader is not None
    embedded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(embedded)
    dut = embedded.Embedded()

    async def bench(ctx):
        assert not ctx.get(dut.found)
        for _ in range(40):
            await ctx.tick()
        assert ctx.get(dut.found)

    run(dut, bench)
