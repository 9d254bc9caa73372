"""The figures that the design must reach, each measured and shown beside its target."""

from __future__ import annotations

import io
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hdl.config import DesignConfig, named_config
from hdl.layouts import RefreshMode, RowClass
from hdl.memory.address import AddressMap, Place
from sim.compiled import CompiledModel, design_verilog
from sim.model.bounds import isolated_bound
from sim.trace.recorder import Recorder
from sim.trace.schema import read_traces
from sim.verilator import STORAGE_SOURCES, run_cocotb

from .. import commands
from ..batches import ring_size
from ..compare import compare, read_files
from ..driver import Accelerator
from ..image import CreationOrder
from ..ledger import Loops, loops
from ..machine import compiled_machine
from ..paths import FarPath, far_path
from ..programs import default_image
from ..records import DEPTH, PARENT
from ..replay import Plan, make_plan, run_plan
from ..transport.inprocess import InProcessTransport

__all__ = [
    "REPLAY_VARIABLE",
    "Figure",
    "figures",
    "figures_document",
    "figures_table",
    "isolated_loops",
    "print_figures",
    "replay_plan",
    "write_replay",
]

#: Environment variable with the cocotb replay's order: the trace file and where its figure goes.
REPLAY_VARIABLE = "CLEW_BENCH_REPLAY"

#: Far preset whose published time the isolated far loop must take.
_FAR = "v100_hbm2"
#: What issue and design ask for on hbm2_2000, ECC off, one execute stage.
_CYCLES_OVER_BOUND = 6
_NS_FROM_PUBLISHED = 2.0
_COMPILED_CYCLES_PER_SECOND = 700_000
#: Shape of the tree of the speed measurement: a complete one, searched depth first.
_BRANCHING, _DEPTH = 4, 5
_COCOTB_DEPTH = 4


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure with its target."""

    name: str
    value: float
    unit: str
    target: str
    reached: bool


def figures(files: Sequence[Path], *, announce: Callable[[str], None], with_cocotb: bool) -> list[Figure]:
    """Every figure, measured now. `announce` is told what is being built or measured.

    `files` are trace files that must replay near and far without a fault; none: that figure is left out.
    Raises what `compare.read_files` and `compare.compare` raise.
    """
    config = named_config("simulation")
    with CompiledModel(config, announce=announce) as model:
        measured = [*_loops(model, config), _compiled_speed(model, config, announce)]
    if with_cocotb:
        measured.append(_cocotb_speed(announce))
    if files:
        measured += _replays(files, config, announce)
    return measured


# -- Isolated loops -------------------------------------------------------------------------------------


def _loops(model: CompiledModel, config: DesignConfig) -> Iterator[Figure]:
    timing = config.memory.timing
    accelerator = Accelerator(InProcessTransport(model))
    far = far_path(_FAR, config)
    near_loops = isolated_loops(model, accelerator, config, place=0, far=far)
    far_loops = isolated_loops(model, accelerator, config, place=1, far=far)
    for row_class in (RowClass.HIT, RowClass.CLOSED):
        bound = isolated_bound(row_class, timing)
        over = near_loops[row_class] - bound
        yield Figure(
            name=f"near loop, isolated, row {row_class.name.lower()}: over the bound of {bound}",
            value=over,
            unit="cycles",
            target=f"at most {_CYCLES_OVER_BOUND}",
            reached=0 <= over <= _CYCLES_OVER_BOUND,
        )
    away = far_loops[RowClass.CLOSED] * timing.clock_ns - far.path.published_ns
    yield Figure(
        name=f"far loop, isolated, row closed: from the {far.path.published_ns:g} ns of {far.path.name}",
        value=round(away, 3),
        unit="ns",
        target=f"within {_NS_FROM_PUBLISHED:g}",
        reached=abs(away) <= _NS_FROM_PUBLISHED,
    )


def isolated_loops(
    model: CompiledModel, accelerator: Accelerator, config: DesignConfig, *, place: int, far: FarPath
) -> dict[RowClass, int]:
    """Cycles of one loop iteration alone on the machine, by what its read finds; refresh is off.

    A `climb` from a leaf in one row, through nodes of that row and of another row of the bank.
    """
    address_map = AddressMap(config.memory)
    # Closed, hit, then another row of the bank, and a last record that the walk ends on.
    chain = [
        int(address_map.encode(Place(0, 1, row, column))) for row, column in ((1, 0), (1, 1), (2, 0), (2, 1))
    ]
    finds = (RowClass.CLOSED, RowClass.HIT, RowClass.CONFLICT)
    for depth, (address, parent) in enumerate(zip(chain, [*chain[1:], 0], strict=True)):
        atom = np.zeros((1, 8), dtype=np.uint32)
        atom[0, PARENT.word] = parent
        atom[0, DEPTH.word] = len(chain) - 1 - depth << DEPTH.low
        accelerator.load_image(address, atom)
    program = default_image()
    accelerator.load_program(program.words)
    accelerator.configure_context(0, base=1, limit=accelerator.memory_atoms, writable=False)
    accelerator.set_link(latency_up=far.latency_up, latency_down=far.latency_down)
    accelerator.set_refresh(RefreshMode.NONE)
    model.clear_logs()
    accelerator.run_batch(
        commands.walk(place=place, entry=program.entries["climb"], context=0, address=chain[0])
    )
    accelerator.set_refresh(RefreshMode.ALL_BANK)
    found = _loops_of(model, place)
    assert found.address.tolist() == chain, found
    return dict(zip(finds, found.cycles.tolist()[: len(finds)], strict=True))


def _loops_of(model: CompiledModel, place: int) -> Loops:
    hops = model.hops()
    hops = hops[hops["place"] == place]
    return loops(
        batch=np.zeros(len(hops), dtype=np.int64),
        **{name: hops[name] for name in ("cycle", "context", "event", "address")},
    )


# -- Replays of real files ------------------------------------------------------------------------------


def _replays(
    files: Sequence[Path], config: DesignConfig, announce: Callable[[str], None]
) -> Iterator[Figure]:
    """Verdicts and violations of `files`, replayed near and far."""
    announce("replaying the trace files near and far")
    found = compare(
        read_files(files),
        config=config,
        far=_FAR,
        concurrent=1,
        program=default_image(),
        layout=CreationOrder(),
        open_machine=compiled_machine,
        announce=announce,
        progress=lambda place, done, of: None,
    )
    checked = sum(file.verdicts.checked for file in found.files)
    for name, value in (
        (f"wrong verdicts of {checked:,}, near and far", sum(f.verdicts.wrong for f in found.files)),
        ("protocol violations, near and far", found.violations),
        ("other faults (golden interpreter, memory, negative control)", len(found.failures)),
    ):
        yield Figure(
            name=f"{len(found.files)} trace files: {name}",
            value=value,
            unit="",
            target="none",
            reached=value == 0,
        )


# -- Speed of the simulators ----------------------------------------------------------------------------


def write_replay(path: Path, *, depth: int) -> None:
    """Write a depth-first search of a complete tree of `depth` levels, every leaf of it dead."""
    with Recorder(path) as trace:
        trace.begin("complete tree", algorithm="dfs")
        levels = [(trace.node(), _BRANCHING)]
        trace.expand(levels[0][0], _BRANCHING)
        while levels:
            node, left = levels[-1]
            trace.expand(node, left - 1)
            levels[-1] = (node, left - 1)
            child = trace.node(node)
            if len(levels) < depth:
                trace.expand(child, _BRANCHING)
                levels.append((child, _BRANCHING))
                continue
            trace.prune(child, "dead_end")
            while levels and levels[-1][1] == 0:
                levels.pop()
            trace.backtrack(child, levels[-1][0] if levels else None)
        trace.end("exhausted")


def replay_plan(path: Path, config: DesignConfig) -> Plan:
    """The plan of a trace file on a design."""
    return make_plan(
        read_traces(path),
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.organisation.atoms,
        contexts=config.walker.contexts,
    )


class _TimedTransport(InProcessTransport):
    """Adds up the processor time and the cycles of waiting for batches."""

    def __init__(self, model: CompiledModel) -> None:
        super().__init__(model)
        self.seconds = 0.0
        self.cycles = 0

    def wait_interrupt(self, timeout_cycles: int) -> bool:
        began, then = time.process_time(), self.model.cycle
        raised = super().wait_interrupt(timeout_cycles)
        self.seconds += time.process_time() - began
        self.cycles += self.model.cycle - then
        return raised


def _compiled_speed(model: CompiledModel, config: DesignConfig, announce: Callable[[str], None]) -> Figure:
    announce("replaying a depth-first search on the compiled model")
    transport = _TimedTransport(model)
    accelerator = Accelerator(transport)
    far = far_path(_FAR, config)
    accelerator.set_link(latency_up=far.latency_up, latency_down=far.latency_down)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.jsonl"
        write_replay(path, depth=_DEPTH)
        plan = replay_plan(path, config)
    for place in (0, 1):
        run_plan(plan, program=default_image(), place=place, driver=accelerator, monitor=model)
    speed = transport.cycles / transport.seconds
    return Figure(
        name="compiled model, depth-first replay",
        value=round(speed),
        unit="cycles/CPU s",
        target=f"at least {_COMPILED_CYCLES_PER_SECOND:,}",
        reached=speed >= _COMPILED_CYCLES_PER_SECOND,
    )


def _cocotb_speed(announce: Callable[[str], None]) -> Figure:
    announce("replaying a depth-first search under cocotb")
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder) / "replay.jsonl", Path(folder) / "speed.json"
        write_replay(path, depth=_COCOTB_DEPTH)
        with _quiet():
            run_cocotb(
                design_verilog(named_config("testbench")).read_text(encoding="utf-8"),
                toplevel="clew",
                module="firmware_py.bench.design_cocotb",
                env={REPLAY_VARIABLE: json.dumps({"trace": str(path), "result": str(result)})},
                extra_sources=STORAGE_SOURCES,
            )
        speed = json.loads(result.read_text(encoding="utf-8"))["cycles_per_second"]
    return Figure(
        name="cocotb with sparse wake-ups, the same search, smaller",
        value=round(speed),
        unit="cycles/CPU s",
        target="reported",
        reached=True,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the log of build and testbench off the terminal; a failure still says what it was."""
    logging.disable(logging.INFO)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


# -- Output ---------------------------------------------------------------------------------------------


def figures_document(measured: Sequence[Figure]) -> dict[str, Any]:
    """The figures as plain JSON types."""
    return {"schema": "clew.bench/1", "figures": [asdict(figure) for figure in measured]}


def figures_table(measured: Sequence[Figure]) -> list[tuple[str, ...]]:
    """The rows for people: figure, measured, target, verdict; the first is the heading."""
    rows = [("figure", "measured", "target", "")]
    for figure in measured:
        value = f"{figure.value:,.0f}" if figure.value == int(figure.value) else f"{figure.value:,.2f}"
        verdict = "reached" if figure.reached else "MISSED"
        rows.append((figure.name, f"{value} {figure.unit}", figure.target, verdict))
    return rows


def print_figures(measured: Sequence[Figure], target: Console) -> None:
    """The figures as a table."""
    heading, *rows = figures_table(measured)
    table = Table()
    for column in heading:
        table.add_column(column, justify="right" if column in ("measured", "target") else "left")
    for row in rows:
        table.add_row(*row)
    target.print(table)
