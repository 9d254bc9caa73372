"""The iterations of a walker's loop, from its hop log; vectorised, for a run has millions of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdl.layouts import CONTEXT_WIDTH, HopEvent

__all__ = ["Log", "Loops", "context_numbers", "loops"]

#: A log of `sim.compiled`: one structured row an event.
Log: TypeAlias = NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Every iteration of the loop of one walker, by batch, then context, then time; equal-length arrays."""

    cycles: NDArray[np.int64]
    """From the request for a record to the same context's next request or the walk's verdict."""
    requested: NDArray[np.int64]
    """The cycle of that request."""
    address: NDArray[np.int64]
    """The record."""
    context: NDArray[np.int64]
    """The context; of a near walker with the channel above it, from bit 6 on."""
    batch: NDArray[np.int64]
    walk: NDArray[np.int64]
    """A number for each walk, from 0."""


def loops(
    *, batch: ArrayLike, cycle: ArrayLike, context: ArrayLike, event: ArrayLike, address: ArrayLike
) -> Loops:
    """The loop iterations of one walker's hop log (one row an event, `HopEvent`; STORE rows are passed over).

    `cycle` rises within a batch. Raises ValueError when a request has no successor in its batch: the log is
    incomplete.
    """
    events = np.asarray(event, dtype=np.int64)
    kept = np.flatnonzero((events == HopEvent.REQUEST.value) | (events == HopEvent.VERDICT.value))
    batches, cycles, contexts, addresses = (
        np.asarray(column, dtype=np.int64)[kept] for column in (batch, cycle, context, address)
    )
    order = np.lexsort((cycles, contexts, batches))
    batches, cycles, contexts, addresses = (
        column[order] for column in (batches, cycles, contexts, addresses)
    )
    request = events[kept][order] == HopEvent.REQUEST.value
    followed = np.zeros(len(order), dtype=bool)
    followed[:-1] = (batches[1:] == batches[:-1]) & (contexts[1:] == contexts[:-1])
    lost = np.flatnonzero(request & ~followed)
    if len(lost):
        raise ValueError(
            f"hop log: the request for {addresses[lost[0]]:#x} in batch {batches[lost[0]]} has no successor: "
            "expected the context's next request or its verdict"
        )
    elapsed = np.zeros(len(order), dtype=np.int64)
    elapsed[:-1] = np.diff(cycles)
    walk = np.cumsum(~request) - ~request
    return Loops(
        cycles=elapsed[request],
        requested=cycles[request],
        address=addresses[request],
        context=contexts[request],
        batch=batches[request],
        walk=walk[request],
    )


def context_numbers(log: Log, place: int) -> NDArray[np.int64]:
    """A number for each context of the walkers in `place`: near ones are told apart by their channel."""
    context = log["context"].astype(np.int64)
    return context if place else log["channel"].astype(np.int64) << CONTEXT_WIDTH | context
