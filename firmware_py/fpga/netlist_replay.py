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

__all__ = [
    "NETLIST_BAUD",
    "NetlistReplay",
    "RtlReplay",
    "replay_on_netlist",
    "replay_on_rtl",
    "require_same",
]

#: What the driver takes as the rate of a netlist's line, for its time-outs: far below the 7,000 bits a second
#: at 28,000 cycles a second, for on a busy machine each frame that is sent again makes it slower still.
NETLIST_BAUD = 1_200
#: A netlist is given up after so many times the cycles that the board of the RTL took in all: a broken one
#: hangs rather than fails.
_PATIENCE = 2


@dataclass(frozen=True, kw_only=True)
class RtlReplay:
    """What a netlist must give."""

    name: str
    """The configuration."""
    files: Sequence[TraceFile]
    comparison: ReplayComparison[ReplayFigures]
    """On the simulated board."""
    cycles: int
    """Of that board, from its power-on to the end."""


@dataclass(frozen=True, kw_only=True)
class NetlistReplay:
    """What came of a comparison on a netlist that gave what the RTL gives."""

    walks: int
    """Near and far."""
    batch_cycles: int
    """Cycles inside batches, near and far."""
    cycles_per_second: float
    """Of the netlist: cycles for each processor second."""


def replay_on_rtl(
    files: Sequence[TraceFile],
    name: str,
    *,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> RtlReplay:
    """Compares traces near and far on the configuration called `name`, as `clew compare` does in process, and
    as `clew drive` does on the simulated board.

    Raises InternalError: a verdict is wrong, or the two are not the same (`require_same`).
    """
    config = CONFIGS[name]
    in_process = ReplaySettings().compare(
        files,
        config=config,
        open_machine=compiled_machine,
        announce=announce,
        progress=_step("in process", progress),
    )
    if in_process.failures:
        raise InternalError(in_process.failures[0])
    with BoardModel(board_library(config, announce=announce)) as model:
        comparison = _driven(model, files, name, announce=announce, progress=_step("RTL", progress))
        cycles = model.cycle
    require_same(in_process, comparison, "the board is not the design in process")
    return RtlReplay(name=name, files=files, comparison=comparison, cycles=cycles)


def replay_on_netlist(
    rtl: RtlReplay,
    library: Path,
    *,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> NetlistReplay:
    """Makes the comparison of `clew drive` on the netlist of the board, compiled as `library`.

    Raises InternalError: the netlist hangs, or its comparison or document is not that of the RTL.
    """
    with BoardModel(library) as model:
        try:
            netlist = _driven(
                model,
                rtl.files,
                rtl.name,
                cycles=_PATIENCE * rtl.cycles,
                announce=announce,
                progress=_step("netlist", progress),
            )
        except (BatchError, InputError, InternalError, NotAnAccelerator, TransportError) as error:
            raise InternalError(f"the netlist is not the RTL: {error}") from None
        speed = model.cycles_per_second
    require_same(rtl.comparison, netlist, "the netlist is not the RTL")
    if board_document(rtl.comparison) != board_document(netlist):
        raise InternalError("the netlist is not the RTL: the documents differ")
    places = netlist.places.values()
    return NetlistReplay(
        walks=sum(len(figures.run.answers) for figures in places),
        batch_cycles=sum(figures.replay_cycles for figures in places),
        cycles_per_second=speed,
    )


def _step(where: str, progress: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    return lambda place, done, total: progress(f"{where}, {place}", done, total)


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
