"""The board's configuration simulated as a netlist: how fast, and that it is the same machine as its RTL."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path

from hdl.boards import named_board
from hdl.config import named_config
from sim.fpga.netlist_model import board_netlist, netlist_library
from sim.trace.searches import demonstration_traces

from ...compare import read_files
from ...fpga.netlist_replay import replay_on_netlist, replay_on_rtl
from ..measures import Measure

__all__ = ["netlist_measures"]

_BOARD = "ulx3s_85f"
#: The smallest demonstration: beam searches of game 24. The first of them has 12 walks.
_TRACE = "game24_beam.jsonl"


def netlist_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """`netlist_cycles_per_second`, and how many walks and cycles were those of the RTL.

    Raises InternalError when the netlist does not give what the RTL gives.

    Building takes minutes: Yosys, Verilator, and the compiler of a file of a hundred thousand statements.
    """
    name = named_board(_BOARD).configuration
    config = named_config(name)
    library = netlist_library(board_netlist(config, announce=announce).verilog, announce=announce)
    with tempfile.TemporaryDirectory(prefix="clew-netlist-") as folder:
        demonstration_traces(folder)
        (file,) = read_files([Path(folder) / _TRACE])
    first = dataclasses.replace(file, traces=file.traces[:1])
    rtl = replay_on_rtl([first], name, announce=announce, progress=progress)
    replay = replay_on_netlist(rtl, library, announce=announce, progress=progress)
    where: dict[str, str | int] = {"board": _BOARD, "memory": config.memory.timing.name}
    return [
        Measure(name=figure, where=where, value=value, unit=unit)
        for figure, value, unit in (
            ("netlist_equal_walks", replay.walks, "walks"),
            ("netlist_equal_cycles", replay.batch_cycles, "cycles in batches"),
            ("netlist_cycles_per_second", replay.cycles_per_second, "cycles/s"),
        )
    ]
