"""The Verilog under Icarus Verilog, a four-state simulator: from reset on no unknown reaches an output."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.driver import Accelerator
from firmware_py.programs import default_image
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.port_table import ports
from hdl.top import Clew
from sim.compiled import CompiledModel, design_verilog

pytestmark = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="iverilog (Icarus Verilog) is not on PATH"
)

_TESTBENCH = Path(__file__).with_name("four_state.v")
_CONFIG = named_config("small")
#: Initial values of registers, but for the triggers that let combinational processes run once.
_INITIAL = re.compile(r"^(  reg (?:\[\d+:0\] )?(?:\\\S+ |\w+)) = [^;]+;$", re.MULTILINE)


class _Recording(InProcessTransport):
    """The transport to a compiled model, which remembers every access as a line of the testbench's script."""

    backdoor = None

    def __init__(self, model: CompiledModel) -> None:
        super().__init__(model)
        self.script: list[str] = []

    def read_block(self, address: int, count: int) -> np.ndarray:
        words = super().read_block(address, count)
        self.script += [f"1 {address + 4 * index:x} {word:x}" for index, word in enumerate(words.tolist())]
        return words

    def write_block(self, address: int, words: np.ndarray) -> None:
        super().write_block(address, words)
        self.script += [f"0 {address + 4 * index:x} {word:x}" for index, word in enumerate(words.tolist())]

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        before = self.model.cycle
        arrived = super().wait_interrupt(timeout_cycles)
        self.script.append(f"2 {2 * (self.model.cycle - before) + 100:x} 0")
        return arrived


def _script() -> str:
    """What a host does and reads, under Verilator: walks near and far, with stores, writes and copies."""
    program = default_image()
    with CompiledModel(_CONFIG) as model:
        transport = _Recording(model)
        clew = Accelerator(transport)
        clew.load_program(program.words)
        for context in range(clew.contexts):
            clew.configure_context(context, base=1, limit=64, writable=True, budget=1000)
        nodes = np.zeros((8, 8), dtype=np.uint32)
        nodes[:, 0] = np.arange(8)  # the parent
        nodes[0, 4] = 2  # two children left to try, at the root only
        clew.write_memory(1, nodes)
        clew.set_link(latency_up=10, latency_down=10)
        walks = [
            commands.walk(place=place, entry=program.entries[name], context=context, address=8, registers=[1])
            for name in ("climb", "backup")
            for context, place in enumerate((0, 1, 0))
        ]
        revived = nodes[6:7].copy()
        revived[0, 4] = 1
        write = commands.write(address=7, data=revived)
        copies = [
            commands.copy(to_memory=to_memory, memory_address=address, scratchpad_address=80, count=4)
            for to_memory, address in ((False, 1), (True, 20))
        ]
        fence = commands.fence()
        batch = np.concatenate([*walks, write, fence, *walks, fence, copies[0], fence, copies[1], fence])
        done = clew.run_batch(batch)
        assert done.records["hops"].max() == 8 and done.cycles > 100
        assert (clew.read_memory(1, 4) == clew.read_memory(20, 4)).all()
        assert clew.counters()["writes"] > 1
    return "\n".join(transport.script) + "\n"


@dataclass(frozen=True, kw_only=True)
class _Simulation:
    """The testbench with the small design, compiled."""

    folder: Path
    design: str

    def compile(self, name: str, design: str, *, language: str) -> Path:
        """The compiled testbench for another Verilog text of the design."""
        source = self.folder / f"{name}.v"
        source.write_text(design)
        monitors = [port for port in ports(Clew(_CONFIG)) if port.optional]
        bits, connections = 0, []
        for port in monitors:
            connections.append(f".{port.name}(monitors[{bits + port.width - 1}:{bits}])")
            bits += port.width
        defines = self.folder / "defines.v"
        defines.write_text(f"`define MONITOR_BITS {bits}\n`define MONITORS {', '.join(connections)}\n")
        out = self.folder / f"{name}.vvp"
        subprocess.run(
            ["iverilog", f"-g{language}", "-s", "four_state", "-o", out, defines, _TESTBENCH, source],
            check=True,
        )
        return out

    def run(self, compiled: Path, *arguments: str) -> str:
        """What the testbench says."""
        done = subprocess.run(
            ["vvp", "-n", compiled, f"+script={self.folder / 'script'}", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.stdout


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> _Simulation:
    folder = tmp_path_factory.mktemp("four_state")
    (folder / "script").write_text(_script())
    return _Simulation(folder=folder, design=design_verilog(_CONFIG).read_text())


def _unknown(dump: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The variables with unknown bits after reset and at the end, each with its width."""
    head, _, body = dump.read_text().partition("$enddefinitions $end")
    variables: dict[str, list[tuple[str, int]]] = {}
    scope: list[str] = []
    for line in head.splitlines():
        match line.split():
            case ["$scope", _, name, _]:
                scope.append(name)
            case ["$upscope", _]:
                scope.pop()
            case ["$var", _, width, code, *name, "$end"]:
                variables.setdefault(code, []).append((".".join((*scope, *name)), int(width)))
    found: list[dict[str, int]] = []
    for section in ("dumpvars", "dumpon"):
        values = dict(
            reversed(line.split()) if line[0] == "b" else (line[1:], line[0])
            for block in re.findall(rf"\${section}\n(.*?)\$end", body, re.DOTALL)
            for line in block.splitlines()
        )
        assert len(values) > 1000
        found.append(
            {
                name: width
                for code, value in values.items()
                if set(value) & set("xz")
                for name, width in variables[code]
            }
        )
    after_reset, at_end = found
    return after_reset, at_end


@pytest.mark.parametrize("initial_values", [True, False])
def test_no_unknown_reaches_an_output(simulation: _Simulation, initial_values: bool) -> None:
    """Every access gives what it does under Verilator, counts of cycles too, and every variable gets known.

    Without initial values, with the reset alone, the same: no register relies on one. What is unknown after
    reset are the outputs of memories that nothing has read yet: an atom, or the word of one.
    """
    design = simulation.design
    if not initial_values:
        design, count = _INITIAL.subn(r"\1;", design)
        assert count > 300
    name = f"initial_{initial_values}"
    # By the rules of Verilog, and of SystemVerilog, where initial values come before all else.
    compiled = simulation.compile(name, design, language="2012" if initial_values else "2005")
    dump = simulation.folder / f"{name}.vcd"
    said = simulation.run(compiled, f"+dump={dump}")
    assert re.search(r"^PASSED after \d{4,} cycles$", said, re.MULTILINE), said
    after_reset, at_end = _unknown(dump)
    assert set(after_reset.values()) == {256, 32}
    assert at_end == {}


def test_unknowns_and_other_answers_are_seen(simulation: _Simulation) -> None:
    compiled = simulation.compile("bare", _INITIAL.sub(r"\1;", simulation.design), language="2012")
    assert "an output is unknown" in simulation.run(compiled, "+no_reset")
    script = simulation.folder / "script"
    whole = script.read_text()
    try:
        script.write_text(whole.replace("1 0 434c4557", "1 0 434c4558"))
        assert "another word was read" in simulation.run(compiled)
    finally:
        script.write_text(whole)
