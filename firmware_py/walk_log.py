"""Every walk of a run in time: the requests and the verdict that the hop log has of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.config import MemoryConfig
from hdl.layouts import CONTEXT_WIDTH, HopEvent
from hdl.memory.stack import StackMap

from .replay import Plan, Run
from .walk_numbers import walk_numbers

__all__ = ["LoggedWalk", "replay_span", "walk_log"]


@dataclass(frozen=True, kw_only=True)
class LoggedWalk:
    """What one walk did, in cycles of the run."""

    number: int
    """Its number in the plan."""
    context: int
    channel: int
    """The channel of its near walker; 0 for the far one."""
    requested: NDArray[np.int64]
    """The cycle of every request for a record, in order."""
    address: NDArray[np.int64]
    """The record of every request."""
    verdict: int
    """The cycle in which its walker finished it."""
    outside: int
    """Cycles before the first request and after the verdict, up to its arrival at the compute side."""


def walk_log(plan: Plan, run: Run, memory: MemoryConfig) -> list[LoggedWalk]:
    """The walks of a run in order of their numbers; what a far place answers by its help is not among them.

    Raises ValueError when the hop log holds another number of verdicts than the plan.
    """
    logs = run.logs
    kept = (logs.hops["place"] == run.place) & (
        (logs.hops["event"] == HopEvent.REQUEST.value) | (logs.hops["event"] == HopEvent.VERDICT.value)
    )
    hops, batches = logs.hops[kept], logs.hop_batch[kept]
    contexts = hops["channel"].astype(np.int64) << CONTEXT_WIDTH | hops["context"]
    # A context finishes its walks in the order in which they were launched.
    order = np.lexsort((hops["cycle"], contexts, batches))
    hops, contexts = hops[order], contexts[order]
    verdicts = np.flatnonzero(hops["event"] == HopEvent.VERDICT.value)
    launched = walk_numbers(plan, place=run.place, stack=StackMap(memory)).tolist()
    if len(verdicts) != len(launched):
        raise ValueError(f"hop log: {len(verdicts)} verdicts: expected {len(launched)} by the plan")
    cycles, addresses = hops["cycle"].astype(np.int64), hops["address"].astype(np.int64)
    walks: list[LoggedWalk] = []
    first = 0
    for number, end in zip(launched, verdicts.tolist(), strict=True):
        if number >= 0:
            inside = int(cycles[end] - cycles[first])
            walks.append(
                LoggedWalk(
                    number=number,
                    context=int(contexts[end]) & (1 << CONTEXT_WIDTH) - 1,
                    channel=int(contexts[end]) >> CONTEXT_WIDTH,
                    requested=cycles[first:end],
                    address=addresses[first:end],
                    verdict=int(cycles[end]),
                    outside=int(run.walk_cycles[number]) - inside,
                )
            )
        first = end + 1
    return sorted(walks, key=lambda walk: walk.number)


def replay_span(plan: Plan, run: Run) -> tuple[int, int]:
    """The cycles [begin, end) from the first batch of the replay to its last, the control left out."""
    windows = run.logs.windows[: len(plan.batches)]
    if len(windows):
        return int(windows["begin"][0]), int(windows["end"][-1])
    ends = [int(log["cycle"][-1]) + 1 for log in run.logs.commands if len(log)]
    return 0, max(ends, default=0)
