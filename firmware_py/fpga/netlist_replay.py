"""The comparison of `clew drive` on a board simulated as a netlist; it must be that of the RTL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdl.config import CONFIGS
from sim.board import BoardModel, board_library, served

from ..board import compare_on_board
from ..compare import ReplayComparison, TraceFile
from ..driver import BatchError, NotAnAccelerator
from ..errors import InputError, InternalError
from ..machine import compiled_machine
from ..place import ReplayFigures
from ..replay import Run
from ..report.board_document import board_document
from ..settings import ReplaySettings
from ..transport.base import TransportError
from ..transport.serial import SerialTransport

__all__ = ["NETLIST_BAUD", "NetlistReplay", "replay_on_netlist", "require_same"]

#: What the driver takes as the rate of a netlist's line, for its time-outs: below the 7,000 bits a second of
#: a netlist of the board's design, at 28,000 cycles a second.
NETLIST_BAUD = 4_800
#: A netlist is given up after so many times the cycles that the board of the RTL took in all: a broken one
#: hangs rather than fails.
_PATIENCE = 2


@dataclass(frozen=True, kw_only=True)
class NetlistReplay:
    """What came of a comparison on a netlist that gave what the RTL gives."""

    walks: int
    """Near and far."""
    batch_cycles: int
    """Cycles inside batches, near and far."""
    cycles_per_second: float
    """Of the netlist: cycles for each processor second."""


def replay_on_netlist(
    files: Sequence[TraceFile],
    name: str,
    *,
    library: Path,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> NetlistReplay:
    """Compares traces near and far on the configuration called `name` three times: in process as `clew
    compare` does, then as `clew drive` does on the simulated board and on its netlist, compiled as `library`.

    Raises InternalError: a verdict is wrong, the netlist hangs, or one differs from the others in an answer,
    in the cycles of a walk or a batch, in the memory that is left, or in the boards' documents.
    """
    config = CONFIGS[name]

    def step(where: str) -> Callable[[str, int, int], None]:
        return lambda place, done, total: progress(f"{where}, {place}", done, total)

    in_process = ReplaySettings().compare(
        files,
        config=config,
        open_machine=compiled_machine,
        announce=announce,
        progress=step("in process"),
    )
    if in_process.failures:
        raise InternalError(in_process.failures[0])
    with BoardModel(board_library(config, announce=announce)) as model:
        rtl = _driven(model, files, name, announce=announce, progress=step("RTL"))
        patience = _PATIENCE * model.cycle
    require_same(in_process, rtl, "the board is not the design in process")
    with BoardModel(library) as model:
        try:
            netlist = _driven(
                model,
                files,
                name,
                cycles=patience,
                announce=announce,
                progress=step("netlist"),
            )
        except (BatchError, InputError, InternalError, NotAnAccelerator, TransportError) as error:
            raise InternalError(f"the netlist is not the RTL: {error}") from None
        speed = model.cycles_per_second
    require_same(rtl, netlist, "the netlist is not the RTL")
    if board_document(rtl) != board_document(netlist):
        raise InternalError("the netlist is not the RTL: the documents differ")
    places = netlist.places.values()
    return NetlistReplay(
        walks=sum(len(figures.run.answers) for figures in places),
        batch_cycles=sum(figures.replay_cycles for figures in places),
        cycles_per_second=speed,
    )


def _difference(one: Run, other: Run) -> str | None:
    """What differs between two runs of a plan; None: nothing."""
    for what, first, second in (
        ("answers", one.answers, other.answers),
        ("cycles of walks", one.walk_cycles.tolist(), other.walk_cycles.tolist()),
        ("cycles of batches", one.batch_cycles.tolist(), other.batch_cycles.tolist()),
        ("memory afterwards", one.memory_differs, other.memory_differs),
    ):
        if first != second:
            return what
    return None


def require_same(one: ReplayComparison[Any], other: ReplayComparison[Any], what: str) -> None:
    """Check that two comparisons gave the same, walk by walk and batch by batch.

    Raises InternalError: `what`, and what differs.
    """
    for name, figures in one.places.items():
        if difference := _difference(figures.run, other.places[name].run):
            raise InternalError(f"{what}: {name}, {difference}")
    if (one.files, one.controls, one.failures) != (other.files, other.controls, other.failures):
        raise InternalError(f"{what}: verdicts")


def _driven(
    model: BoardModel,
    files: Sequence[TraceFile],
    name: str,
    *,
    cycles: int | None = None,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> ReplayComparison[ReplayFigures]:
    """The comparison of `clew drive` on a simulated board, whose line is cut after so many cycles."""
    with served(model, cycles=cycles) as port, SerialTransport(port, baud=NETLIST_BAUD) as transport:
        return compare_on_board(
            files,
            transport,
            where=port,
            config=name,
            settings=ReplaySettings(),
            announce=announce,
            progress=progress,
        )
