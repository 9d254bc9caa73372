"""Which walk of a plan each walk of a hop log is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import CONTEXT_WIDTH
from hdl.memory.stack import StackMap

from .plan import Plan

__all__ = ["walk_numbers"]


def walk_numbers(plan: Plan, *, place: int, stack: StackMap) -> NDArray[np.int64]:
    """By walk of `Loops.walk`, in `place` (0 near, 1 far): its number in the plan; -1 for a mark of time.

    The walks of a context end in the order of their commands, for it has one at a time.
    """
    batches: list[NDArray[np.int64]] = []
    contexts: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.int64]] = []
    for index, batch in enumerate(plan.batches):
        rows = np.array([*batch.walk_rows, *batch.mark_rows], dtype=np.int64)
        known = np.array([*batch.walk_numbers, *(-1 for _ in batch.mark_rows)], dtype=np.int64)
        order = np.argsort(rows)
        atoms = batch.atoms[rows[order]]
        context = (atoms[:, 0] >> 12 & 63).astype(np.int64) if len(rows) else rows
        if not place and len(rows):
            # What lies beyond the stack goes to the channel that the address has within it.
            address = atoms[:, 1].astype(np.int64) % stack.atoms
            context |= np.asarray(stack.channel(address), dtype=np.int64) << CONTEXT_WIDTH
        batches.append(np.full(len(rows), index, dtype=np.int64))
        contexts.append(context)
        numbers.append(known[order])
    if not numbers:
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((np.concatenate(contexts), np.concatenate(batches)))
    return np.concatenate(numbers)[order]
