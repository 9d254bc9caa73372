"""Where the time goes: every loop and every walk in parts whose sum is the whole, cycle by cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .loops import Loops
from .place_ledger import Ledger
from .service import Service

__all__ = ["PARTS", "Crossings", "Part", "TimeParts", "loop_time", "walk_time"]

Cycles = NDArray[np.int64]

#: link: crossings, without waiting. queue: of a walk, all that is in no loop and no crossing: its launch
#: waits for its turn on the link, for its context and its turn there, its verdict for its turn and for the
#: answers to stores.
#: arbitration: from where the request reaches the memory side to the controller taking it (other requesters'
#: turns, a full queue, a slower clock). controller: in the controller before the first command and after the
#: last data beat, refresh included; behind an AXI port all of the memory. device: first command to last data
#: beat. cache: its lookups, and the whole of a read that it answers. walker: from the response to the next
#: request, other contexts' turns included. help: what path stack and stream took instead of a walk.
Part = Literal["link", "queue", "arbitration", "controller", "device", "cache", "walker", "help"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, kw_only=True)
class Crossings:
    """The cycles that the link and the compute side take at least, on a place's way to the memory."""

    up: int
    """A request's crossing; 0: the walker is beside the memory."""
    down: int
    """A response's."""
    walk: int
    """Launch and verdict together."""
    lookup: int = 0
    """A cache looks a read up before it crosses."""
    execute: int = 1
    """A walker's execute stages: what follows a read that a cache answered."""


@dataclass(frozen=True, kw_only=True)
class TimeParts:
    """Cycles by part, for each of a sample of loops or walks."""

    parts: dict[Part, Cycles]

    @property
    def total(self) -> Cycles:
        """The sum of all parts."""
        return np.asarray(np.sum(list(self.parts.values()), axis=0), dtype=np.int64)

    def means(self) -> dict[Part, float | None]:
        """The mean cycles of every part; None for an empty sample."""
        return {name: float(cycles.mean()) if len(cycles) else None for name, cycles in self.parts.items()}


def loop_time(ledger: Ledger, served: Service, crossings: Crossings) -> TimeParts:
    """The parts of every loop of `ledger`, whose reads were `served`; queue and help are 0.

    Raises ValueError for a part below 0: the logs or the crossings are not those of the run.
    """
    loops, read = ledger.loops, ledger.read
    count = len(loops.cycles)
    parts: dict[Part, Cycles] = {name: np.zeros(count, dtype=np.int64) for name in PARTS}
    asked = loops.requested[read]
    parts["link"][read] = crossings.up + crossings.down
    parts["arbitration"][read] = served.accepted - asked - crossings.up - crossings.lookup
    parts["controller"][read] = served.port - served.device
    parts["device"][read] = served.device
    parts["walker"][read] = asked + loops.cycles[read] - served.answered - crossings.down
    cached = np.ones(count, dtype=np.bool_)
    cached[read] = False
    parts["cache"] = np.where(cached, loops.cycles - crossings.execute, crossings.lookup)
    parts["walker"][cached] = crossings.execute
    return _added_up(parts, "loop")


def walk_time(
    walk_cycles: Cycles,
    *,
    loops: Loops,
    time: TimeParts,
    numbers: Cycles,
    helped: Sequence[bool],
    crossings: Crossings,
) -> TimeParts:
    """The parts of every walk, those of its loops included.

    `walk_cycles` are by number of the walk, `numbers` gives that of every walk of `loops` (-1: none of the
    plan's, a mark of time), and `helped` says which walks the far place answered by its help. Raises
    ValueError for a part below 0.
    """
    count = len(walk_cycles)
    number = numbers[loops.walk] if len(loops.walk) else np.zeros(0, dtype=np.int64)
    of_plan = number >= 0
    parts: dict[Part, Cycles] = {
        name: np.bincount(number[of_plan], weights=cycles[of_plan], minlength=count).astype(np.int64)
        for name, cycles in time.parts.items()
    }
    by_help = np.asarray(helped, dtype=np.bool_)
    inside = np.sum(list(parts.values()), axis=0, dtype=np.int64) if count else walk_cycles
    parts["link"] = parts["link"] + np.where(by_help, 0, crossings.walk)
    parts["queue"] = np.where(by_help, 0, walk_cycles - inside - crossings.walk)
    parts["help"] = np.where(by_help, walk_cycles, 0)
    return _added_up(parts, "walk")


def _added_up(parts: dict[Part, Cycles], what: str) -> TimeParts:
    for name, cycles in parts.items():
        if cycles.min(initial=0) < 0:
            lost = int(np.argmin(cycles))
            raise ValueError(
                f"ledger: {what} {lost}: part {name} has {cycles[lost]} cycles: expected 0 or more"
            )
    return TimeParts(parts=parts)
