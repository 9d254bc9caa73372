"""A near place behind an AXI port: a walker beside an FPGA's HBM, with the published latencies of that port.

The memory behind it is `sim/native/axi_memory.cpp`, with a controller of its own: there are no commands to
see, no timing rules to check and no physical bound to compare with.
"""

from __future__ import annotations

import dataclasses

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode
from sim.compiled import AxiTimes

from .errors import InputError
from .loop_parts import RowState
from .paths import OffChipPath, path_presets

__all__ = [
    "AXI_PORT",
    "NOT_SEEN",
    "axi_rows",
    "axi_times",
    "behind_axi_port",
    "isolated_cycles",
]

#: The near place's name.
AXI_PORT = "axi4"
#: The published latencies, by the state of the row.
_ROWS: dict[RowState, str] = {
    "hit": "u280_hbm_axi_hit",
    "closed": "u280_hbm_axi_closed",
    "conflict": "u280_hbm_axi_miss",
}
#: What is not known there, in the words of a report.
NOT_SEEN = "row classes, physical bound, device layer, what refresh caused, banks, energy, commands"
#: The clock of that port in MHz, one beat of 256 bits a cycle (PG276).
_PORT_MHZ = 450


def axi_rows() -> dict[RowState, OffChipPath]:
    """The published latencies, from address to data, by the state of the row."""
    presets = path_presets()
    return {state: presets[name] for state, name in _ROWS.items()}


def behind_axi_port(config: DesignConfig) -> DesignConfig:
    """`config` with AXI managers instead of controllers.

    Raises InputError for what such a design cannot have, and for another memory than the published one.
    """
    measured_on = axi_rows()["closed"].memory
    if config.memory.timing.name != measured_on:
        name = config.memory.timing.name
        raise InputError(f"near {AXI_PORT!r} was measured on {measured_on}: expected that memory, not {name}")
    memory = dataclasses.replace(config.memory, end="axi4")
    try:
        return dataclasses.replace(config, memory=memory)
    except ValueError as error:
        raise InputError(f"near {AXI_PORT!r}: {error}") from None


def axi_times(config: DesignConfig, refresh: RefreshMode) -> AxiTimes:
    """What the memory takes in the design `config`: the published latencies, in whole cycles."""
    timing = config.memory.timing
    cycles = {state: round(row.published_ns / timing.clock_ns) for state, row in axi_rows().items()}
    refreshes = refresh is not RefreshMode.NONE
    return AxiTimes(
        hit=cycles["hit"],
        closed=cycles["closed"],
        miss=cycles["conflict"],
        row_cycle=timing["tRC"],
        refresh_interval=timing["tREFI"] if refreshes else 0,
        refresh_cycles=timing["tRFC"] if refreshes else 0,
        clock_ps=round(1000 * timing.clock_ns),
        beat_ps=round(1e6 / _PORT_MHZ),
    )


def isolated_cycles(config: DesignConfig, row_state: RowState) -> int:
    """Cycles of an isolated near loop whose read finds `row_state`.

    The request is taken at the end of its slow cycle, and its address offered 3 cycles later; when the data
    is there, its queue says so in the next cycle, and the walker's clock has seen it 2 slow cycles later.
    With a `clock_ratio` of 1 the port takes 6 cycles, and the walker its execute stages.
    """
    ratio = config.clock_ratio
    read = round(axi_rows()[row_state].published_ns / config.memory.timing.clock_ns)
    return ((ratio - 1) + 3 + read + 1) // ratio * ratio + (2 + config.walker.execute_stages) * ratio
