"""Where the cycles of an isolated near loop go: what each part of the memory side adds to the device's time.

One iteration of the loop goes from the cycle in which a walker's request for a record becomes visible to the
one in which its next request does. Every part but the device is a register stage of the design, so each takes
a number of cycles that the configuration alone decides:

* arbiter: none, a request passes it in the cycle of the controller's intake;
* intake: the request's own cycle, at the end of which it is in its bank's queue;
* command: the cycle of the decision, at the end of which the command is on the bus;
* device: first command on the bus to the end of the last data beat, the physical bound;
* ecc: the cycle of the correction, with ECC;
* walker: `execute_stages`, at the end of which the next request is visible.
"""

from __future__ import annotations

from typing import Literal

from hdl.config import DesignConfig
from hdl.memory.timing import TimingPreset

__all__ = ["LOOP_PARTS", "LoopPart", "RowState", "device_cycles", "loop_parts"]

RowState = Literal["hit", "closed", "conflict"]
LoopPart = Literal["arbiter", "intake", "command", "device", "ecc", "walker"]

#: The parts in the order in which a request passes them.
LOOP_PARTS: tuple[LoopPart, ...] = ("arbiter", "intake", "command", "device", "ecc", "walker")


def device_cycles(timing: TimingPreset, row_state: RowState) -> int:
    """Cycles of one isolated read, first command on the bus to the end of the last data beat."""
    return {"hit": timing.row_hit, "closed": timing.row_closed, "conflict": timing.row_conflict}[row_state]


def loop_parts(config: DesignConfig, row_state: RowState) -> dict[LoopPart, int]:
    """Cycles of every part of one isolated near loop whose read finds `row_state`; their sum is the loop."""
    return {
        "arbiter": 0,
        "intake": 1,
        "command": 1,
        "device": device_cycles(config.memory.timing, row_state),
        "ecc": int(config.controller.ecc),
        "walker": config.walker.execute_stages,
    }
