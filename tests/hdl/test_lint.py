"""The Verilog of the design under two strict readers: Verilator's -Wall and slang's -Weverything."""

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from hdl.config import CONFIGS, DesignConfig, MemoryConfig
from hdl.generate import verilog
from hdl.package import SLANG_WAIVERS, VERILATOR_WAIVERS
from hdl.top import Clew
from sim.compiled import design_verilog
from sim.verilator import BuildError, run_tool

_ROOT = Path(__file__).parents[2]
_VERILATOR = ["verilator", "--lint-only", "-Wall", "--top-module", "clew", str(VERILATOR_WAIVERS)]


def _slang(design: Path) -> str:
    """What slang says against the elaborated top `clew` of a file, but for the named waivers; "": nothing."""
    program = (
        "import sys; from pyslang.driver import CommandLineOptions, Driver; driver = Driver(); "
        "driver.addStandardArgs(); options = CommandLineOptions(); "
        "sys.exit(not (driver.parseCommandLine(sys.argv[1], options) and driver.processOptions() "
        "and driver.parseAllSources() and driver.runFullCompilation(True)))"
    )
    arguments = f'slang -f "{SLANG_WAIVERS}" --top clew "{design}"'
    # In a process of its own, for slang writes past Python's standard error.
    done = subprocess.run([sys.executable, "-c", program, arguments], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


_AXI = dataclasses.replace(CONFIGS["small"], memory=MemoryConfig(end="axi4"))


@pytest.mark.parametrize(
    "config",
    [*(CONFIGS[name] for name in ("small", "stack", "default")), _AXI],
    ids=["small", "stack", "default", "axi4"],
)
def test_lint_is_clean_with_the_named_waivers(config: DesignConfig) -> None:
    """All designs that synthesize; the others are linted whenever they are built."""
    design = design_verilog(config)
    run_tool([*_VERILATOR, design.name], folder=design.parent)
    assert _slang(design) == ""


@pytest.mark.long
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
    run_tool([*_VERILATOR, "clew.v"], folder=tmp_path)


def test_lint_can_fail(tmp_path: Path) -> None:
    """The waivers hide neither undeclared, undriven and twice driven wires nor latches."""
    text = design_verilog(CONFIGS["small"]).read_text()
    broken = tmp_path / "clew.v"

    def plant(line: str) -> None:
        """At the end of the top, which comes first."""
        broken.write_text(text.replace("endmodule", f"{line}\nendmodule", 1))

    undriven = "wire nothing; wire copy; assign copy = nothing;"
    for expected, line in (
        ("undeclared", "assign planted = undeclared;"),
        ("UNDRIVEN", undriven),
        ("LATCH", "reg kept; always @* if (clk) kept = rst;"),
    ):
        plant(line)
        with pytest.raises(BuildError, match=expected):
            run_tool([*_VERILATOR, "clew.v"], folder=tmp_path)
    for expected, line in (
        ("undeclared identifier", "assign planted = undeclared;"),
        ("-Wundriven-net", undriven),
        ("multiple continuous", "reg twice; assign twice = clk; assign twice = rst;"),
        ("-Winferred-latch", "logic kept; always_comb if (clk) kept = rst;"),
    ):
        plant(line)
        assert expected in _slang(broken)


def test_every_waiver_says_why() -> None:
    for path, waiver in ((VERILATOR_WAIVERS, "lint_off"), (SLANG_WAIVERS, "-Wno")):
        lines = path.read_text().splitlines()
        assert sum(line.startswith(waiver) for line in lines) > 5
        for before, line in itertools.pairwise(lines):
            if line.startswith(waiver):
                assert before.startswith(("//", waiver)), line
