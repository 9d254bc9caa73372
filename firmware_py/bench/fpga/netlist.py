"""The board's configuration simulated as a netlist: how fast, and that it is the same machine as its RTL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hdl.boards import named_board
from hdl.config import named_config
from sim.fpga.netlist_model import design_netlist, netlist_library
from sim.trace.searches import demonstration_traces

from ...fpga.netlist_replay import replay_on_netlist
from ..measures import Measure

__all__ = ["netlist_measures"]

_BOARD = "ulx3s_85f"
#: The smallest demonstration: a beam search of game 24, 24 walks.
_TRACE = "game24_beam.jsonl"


def netlist_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """`netlist_cycles_per_second`. Raises InternalError when the netlist does not give what the RTL gives.

    Building takes minutes: Yosys, Verilator, and the compiler of a file of a hundred thousand statements.
    """
    config = named_config(named_board(_BOARD).configuration)
    progress("netlist", 0, 2)
    netlist = design_netlist(config, announce=announce)
    library = netlist_library(config, netlist.verilog, announce=announce)
    progress("netlist", 1, 2)
    with tempfile.TemporaryDirectory(prefix="clew-netlist-") as folder:
        demonstration_traces(folder)
        replay = replay_on_netlist(Path(folder) / _TRACE, config, library=library, announce=announce)
    progress("netlist", 2, 2)
    return [
        Measure(
            name="netlist_cycles_per_second",
            where={"board": _BOARD, "memory": config.memory.timing.name},
            value=replay.cycles_per_second,
            unit="cycles/s",
        )
    ]
