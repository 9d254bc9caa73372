"""Waiting for a batch where no interrupt reaches the host: its registers are asked again and again."""

from __future__ import annotations

import time

from hdl.registers import REGISTER_BY_NAME

from .base import Transport

__all__ = ["STALLED_SECONDS", "poll_interrupt"]

#: Seconds after which a batch that is not done and whose cycles do not go on is given up.
STALLED_SECONDS = 10.0

_FIRST = REGISTER_BY_NAME["STATUS"].offset
_PENDING, _LOW, _HIGH = (
    (REGISTER_BY_NAME[name].offset - _FIRST) // 4
    for name in ("INTERRUPT_PENDING", "CYCLES_LOW", "CYCLES_HIGH")
)


def poll_interrupt(transport: Transport, timeout_cycles: int) -> bool:
    """Asks until a batch is done, at most `timeout_cycles` of the design's own cycles inside batches.

    The design counts them (CYCLES), so that the limit is the same whatever its clock and however fast a
    simulation is. A design whose count stands still for `STALLED_SECONDS` is given up too. False: not done.
    """
    began: int | None = None
    seen, moved = -1, time.monotonic()
    while True:
        # One access for all, for on a line each takes a round trip.
        words = transport.read_block(_FIRST, _HIGH + 1)
        if words[_PENDING] & 1:
            return True
        cycles = int(words[_LOW]) | int(words[_HIGH]) << 32
        began = cycles if began is None else began
        now = time.monotonic()
        if cycles != seen:
            seen, moved = cycles, now
        if cycles - began >= timeout_cycles or now - moved > STALLED_SECONDS:
            return False
