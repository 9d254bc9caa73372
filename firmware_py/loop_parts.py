"""Where the cycles of an isolated loop go: what each part of the memory side adds to the device's time.

One iteration of the near loop goes from the cycle in which a walker's request for a record becomes visible to
the one in which its next request does. Every part but the device is a register stage of the design, so each
takes a number of cycles that the configuration alone decides. With a `clock_ratio` of N a slow cycle is N:

* arbiter: none, a request passes it in the cycle of the controller's intake; with boundary registers one;
* intake: the request's own slow cycle, at the end of which it is in its bank's queue; with boundary registers
  one cycle more;
* command: the `decision_stages` cycles of the decision, at the end of which the command is on the bus; with
  four stages or more one cycle for each command that waits for the one before it;
* device: first command on the bus to the end of the last data beat, the physical bound;
* ecc: the cycle of the correction, with ECC;
* capture: from the data to the end of a slow cycle, 1 to N; none where the walker's clock is the memory's,
  but one with boundary registers;
* walker: `execute_stages` slow cycles, at the end of which the next request is visible.
"""

from __future__ import annotations

from typing import Literal

from hdl.config import DesignConfig
from hdl.memory.timing import TimingPreset

__all__ = ["LOOP_PARTS", "LoopPart", "RowState", "device_cycles", "loop_parts", "memory_side_cycles"]

RowState = Literal["hit", "closed", "conflict"]
LoopPart = Literal["arbiter", "intake", "command", "device", "ecc", "capture", "walker"]

#: The parts in the order in which a request passes them.
LOOP_PARTS: tuple[LoopPart, ...] = ("arbiter", "intake", "command", "device", "ecc", "capture", "walker")


def device_cycles(timing: TimingPreset, row_state: RowState) -> int:
    """Cycles of one isolated read, first command on the bus to the end of the last data beat."""
    return {"hit": timing.row_hit, "closed": timing.row_closed, "conflict": timing.row_conflict}[row_state]


def loop_parts(config: DesignConfig, row_state: RowState) -> dict[LoopPart, int]:
    """Cycles of every part of one isolated near loop whose read finds `row_state`; their sum is the loop."""
    ratio = config.clock_ratio
    follow = {"hit": 0, "closed": 1, "conflict": 2}[row_state]
    waits = follow if config.controller.decision_stages >= 4 else 0
    parts: dict[LoopPart, int] = {
        "arbiter": int(config.boundary_registers),
        "intake": ratio + config.boundary_registers,
        "command": config.controller.decision_stages + waits,
        "device": device_cycles(config.memory.timing, row_state),
        "ecc": int(config.controller.ecc),
    }
    # The request became visible as a slow cycle began, and the data comes in some cycle of a later one.
    in_step = int(config.boundary_registers)
    parts["capture"] = in_step if ratio == 1 else ratio - sum(parts.values()) % ratio
    parts["walker"] = config.walker.execute_stages * ratio
    return parts


def memory_side_cycles(config: DesignConfig, row_state: RowState) -> int:
    """Cycles of an isolated read at the port of the memory side, from its arrival to its response.

    With a `clock_ratio` above 1 of one that arrives in the last cycle of a slow cycle: it is captured in
    that, and its response passes the arbiter in a slow cycle of its own.
    """
    ratio, parts = config.clock_ratio, loop_parts(config, row_state)
    there = sum(parts.values()) - parts["walker"]
    return there if ratio == 1 else there + ratio
