"""The figures that the design must reach, each measured and shown beside its target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hdl.config import DesignConfig, named_config
from hdl.layouts import RefreshMode, RowClass
from hdl.memory.address import AddressMap, Place
from sim.compiled import CompiledModel
from sim.model.bounds import isolated_bound

from .. import commands
from ..compare import compare, read_files
from ..driver import Accelerator
from ..image import CreationOrder
from ..ledger import Loops, loops
from ..machine import compiled_machine
from ..paths import FarPath, far_path
from ..programs import default_image
from ..records import DEPTH, PARENT
from ..transport.inprocess import InProcessTransport

__all__ = [
    "Figure",
    "figures",
    "figures_document",
    "figures_table",
    "isolated_loops",
    "print_figures",
]

#: Far preset whose published time the isolated far loop must take.
_FAR = "v100_hbm2"
#: What issue and design ask for on hbm2_2000, ECC off, one execute stage.
_CYCLES_OVER_BOUND = 6
_NS_FROM_PUBLISHED = 2.0


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured figure with its target."""

    name: str
    value: float
    unit: str
    target: str
    reached: bool


def figures(files: Sequence[Path], *, announce: Callable[[str], None]) -> list[Figure]:
    """Every figure, measured now. `announce` is told what is being built or measured.

    `files` are trace files that must replay near and far without a fault; none: that figure is left out.
    Raises what `compare.read_files` and `compare.compare` raise.
    """
    config = named_config("simulation")
    with CompiledModel(config, announce=announce) as model:
        measured = list(_loops(model, config))
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
        ("protocol violations, near and far", sum(p.violations.total() for p in found.places.values())),
        ("other faults (golden interpreter, memory, negative control)", len(found.failures)),
    ):
        yield Figure(
            name=f"{len(found.files)} trace files: {name}",
            value=value,
            unit="",
            target="none",
            reached=value == 0,
        )


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
