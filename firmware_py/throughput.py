"""Walks per second of a replay: all of its walks over the time in which any was in progress.

The time is taken round by round from the hop log: from the first event of the round's walks to its last
verdict, and once a round what a walk takes outside its walker, its launch and verdict on their way: that of
the round's walk for which it is least, which waited for no context. The writes of the host between the rounds
are not counted. A search that waits for a context waits inside its round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import HopEvent

from .ledger import Loops
from .replay import LoggedRun, Plan

__all__ = ["busy_cycles"]


def busy_cycles(plan: Plan, run: LoggedRun, loops: Loops, *, numbers: NDArray[np.int64]) -> int:
    """Cycles in which walks of the run were in progress.

    `numbers` are those of `walk_numbers`, by walk of `loops`. What a path stack answers takes no time of the
    memory; a round lasts at least as long as its longest.
    """
    longest: Counter[int] = Counter()
    for walk in plan.walks:
        if walk.local is not None and walk.local.help == "stack":
            longest[walk.round] = max(longest[walk.round], walk.local.cycles)
    mine = run.logs.hops["place"] == run.place
    hops = run.logs.hops[mine]
    seen = hops[hops["event"] != HopEvent.STORE.value]
    cycles = seen["cycle"].astype(np.int64)
    verdicts = np.flatnonzero(seen["event"] == HopEvent.VERDICT.value)
    rounds, counts, members = _segments(plan)
    last = np.cumsum(counts) - 1
    if len(verdicts) != (last[-1] + 1 if len(last) else 0):
        raise ValueError(f"hop log: {len(verdicts)} verdicts: expected {int(counts.sum())} by the plan")
    ends = verdicts[last]
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    spans = cycles[ends] - cycles[begins] + _outside(members, run, loops, numbers)
    total = 0
    for number, span in zip(rounds.tolist(), spans.tolist(), strict=True):
        # A round that lies in two batches is counted as two; what needs no memory once.
        total += max(span, longest.pop(number, 0))
    return total + sum(longest.values())


def _outside(
    members: Sequence[Sequence[int]], run: LoggedRun, loops: Loops, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By stretch, whose walks are `members`: the least cycles that one of them took outside its walker."""
    number = numbers[loops.walk]
    known = number >= 0
    inside = np.zeros(len(run.walk_cycles), dtype=np.int64)
    np.add.at(inside, number[known], loops.cycles[known])
    outside = run.walk_cycles - inside
    return np.array([outside[list(walks)].min() if walks else 0 for walks in members], dtype=np.int64)


def _segments(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64], list[list[int]]]:
    """Round, number of verdicts and walks of every stretch of one batch and one round, in order of time."""
    counts: Counter[tuple[int, int]] = Counter()
    members: dict[tuple[int, int], list[int]] = {}
    for index, batch in enumerate(plan.batches):
        for number in batch.walk_numbers:
            key = index, plan.walks[number].round
            counts[key] += 1
            members.setdefault(key, []).append(number)
        for stream in batch.streams:
            counts[index, plan.walks[stream.number].round] += 2
    ordered = sorted(counts)
    return (
        np.array([number for _, number in ordered], dtype=np.int64),
        np.array([counts[key] for key in ordered], dtype=np.int64),
        [members.get(key, []) for key in ordered],
    )
