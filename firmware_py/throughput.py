"""Walks per second of a replay: all of its walks over the time in which any was in progress.

The time is taken round by round from the hop log: from the first event of the round's walks to its last
verdict, and what a walk takes outside its walker (launch and verdict on their way) once a round. The writes
of the host between the rounds are not counted. A search that waits for a context waits inside its round.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from hdl.layouts import HopEvent

from .ledger import Loops
from .replay import Plan, Run

__all__ = ["busy_cycles"]


def busy_cycles(plan: Plan, run: Run, loops: Loops) -> float:
    """Cycles in which walks of the run were in progress.

    What a path stack answers takes no time of the memory; a round lasts at least as long as its longest.
    """
    walked = np.array([walk.local is None for walk in plan.walks], dtype=bool)
    longest: Counter[int] = Counter()
    for walk in plan.walks:
        if walk.local is not None and walk.local.help == "stack":
            longest[walk.round] = max(longest[walk.round], walk.local.cycles)
    outside = 0.0
    if walked.any():
        outside = float(run.walk_cycles[walked].sum() - loops.cycles.sum()) / int(walked.sum())

    mine = run.logs.hops["place"] == run.place
    hops = run.logs.hops[mine]
    seen = hops[hops["event"] != HopEvent.STORE.value]
    cycles = seen["cycle"].astype(np.int64)
    verdicts = np.flatnonzero(seen["event"] == HopEvent.VERDICT.value)
    rounds, counts = _segments(plan)
    last = np.cumsum(counts) - 1
    if len(verdicts) != (last[-1] + 1 if len(last) else 0):
        raise ValueError(f"hop log: {len(verdicts)} verdicts: expected {int(counts.sum())} by the plan")
    ends = verdicts[last]
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    spans = cycles[ends] - cycles[begins] + outside
    total = 0.0
    for number, span in zip(rounds.tolist(), spans.tolist(), strict=True):
        # A round that lies in two batches is counted as two; what needs no memory once.
        total += max(span, longest.pop(number, 0))
    return total + sum(longest.values())


def _segments(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Round and number of verdicts of every stretch of one batch and one round, in order of time."""
    keys: list[tuple[int, int]] = []
    for index, batch in enumerate(plan.batches):
        keys += [(index, plan.walks[number].round) for number in batch.walk_numbers]
        keys += [(index, plan.walks[stream.number].round) for stream in batch.streams for _ in range(2)]
    counts = Counter(keys)
    ordered = sorted(counts)
    return (
        np.array([number for _, number in ordered], dtype=np.int64),
        np.array([counts[key] for key in ordered], dtype=np.int64),
    )
