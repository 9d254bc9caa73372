"""The ledger of one place: its loops, each beside its physical bound, and what its reads found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import Source
from hdl.memory.stack import StackMap
from hdl.memory.timing import TimingPreset
from sim.model.bounds import dependent_bound

from .accesses import RowShares, access_addresses, refreshes_before, row_shares
from .loops import Log, Loops, context_numbers, loops

__all__ = ["Ledger", "make_ledger", "make_port_ledger"]


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What one place took in a run: loops with their physical bounds, and what its reads found."""

    loops: Loops
    read: NDArray[np.intp]
    """The loops that read memory: all of them, but for those that a cache answered."""
    access: NDArray[np.intp]
    """The row of the access log of each of those; empty where there is no log of accesses."""
    bound_cycles: NDArray[np.int64]
    """Of every loop that read memory: the least cycles that the timing table allows for its read. Empty where
    the memory has no controller of this design."""
    rows: RowShares

    @property
    def ratio_to_bound(self) -> float | None:
        """Mean loop over mean bound, of those that read memory; None without one or without a bound."""
        return (
            float(self.loops.cycles[self.read].mean() / self.bound_cycles.mean())
            if len(self.bound_cycles)
            else None
        )


def make_port_ledger(*, place: int, hops: Log, hop_batch: NDArray[np.int64]) -> Ledger:
    """The ledger of walkers whose memory has no controller of this design: their loops, all of them reads.

    Raises ValueError as `loops` does.
    """
    mine = hops["place"] == place
    found = loops(
        batch=hop_batch[mine],
        context=context_numbers(hops[mine], place),
        **{name: hops[name][mine] for name in ("cycle", "event", "address")},
    )
    nothing = np.zeros(0, dtype=np.int64)
    return Ledger(
        loops=found,
        read=np.arange(len(found.cycles), dtype=np.intp),
        access=nothing,
        bound_cycles=nothing,
        rows=row_shares(nothing),
    )


def make_ledger(
    *,
    place: int,
    hops: Log,
    hop_batch: NDArray[np.int64],
    accesses: Log,
    access_batch: NDArray[np.int64],
    commands: Sequence[Log],
    timing: TimingPreset,
    stack: StackMap,
    cached: bool = False,
) -> Ledger:
    """The ledger of the walkers in `place` (0 near, 1 far) from the logs of a run (`sim.compiled`).

    `hop_batch` and `access_batch` number the batch of every row; `commands` are by channel. The bound of a
    read follows from the rows that the accesses before it opened, all requesters' included, whatever the page
    policy (`dependent_bound`); rows are closed at the start of a batch, and that of a bank when it is
    refreshed. With `cached` a loop need not have read memory. Raises ValueError when the logs do not belong
    together.
    """
    mine = hops["place"] == place
    found = loops(
        batch=hop_batch[mine],
        context=context_numbers(hops[mine], place),
        **{name: hops[name][mine] for name in ("cycle", "event", "address")},
    )
    walker = (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[place]
    read = np.flatnonzero((accesses["source"] == walker) & (accesses["write"] == 0))
    # In one context reads are served in the order in which they were asked for, so the two logs pair up.
    context = context_numbers(accesses[read], place)
    order = np.lexsort((accesses["cycle"][read], context, access_batch[read]))
    read = read[order]
    channel = accesses["channel"].astype(np.int64)
    addresses = np.zeros(len(accesses), dtype=np.int64)
    for number, log in enumerate(commands):
        here = channel == number
        addresses[here] = stack.first(number) + access_addresses(accesses[here], log, stack.channel_map)
    served = _served(found, context[order], accesses["cycle"][read].astype(np.int64))
    strangers = len(served) != len(read) or np.any(addresses[read] != found.address[served])
    if strangers or (not cached and len(read) != len(found.address)):
        expected = "only reads" if cached else f"the {len(found.address)}"
        raise ValueError(
            f"access log: {len(read)} reads of the walker: expected {expected} of its hop log, "
            "address by address"
        )
    chains = -1 - np.arange(len(accesses), dtype=np.int64)  # every other access is a chain of its own
    # A walk is one chain while it stays in a channel: elsewhere no bank of the read before holds it up.
    moved = (np.diff(found.walk[served], prepend=-1) != 0) | (np.diff(channel[read], prepend=-1) != 0)
    chains[read] = np.cumsum(moved)
    bound = np.zeros(len(accesses), dtype=np.int64)
    for number, log in enumerate(commands):
        here = np.flatnonzero(channel == number)
        local = stack.local(addresses[here])
        cycle = accesses["cycle"][here].astype(np.int64)
        bound[here] = dependent_bound(
            local,
            access_batch[here],
            timing,
            stack.channel_map,
            walk_ids=chains[here],
            refreshed=refreshes_before(stack.channel_map.decode(local), cycle, log),
        )
    return Ledger(
        loops=found,
        read=served,
        access=read,
        bound_cycles=bound[read],
        rows=row_shares(accesses["row_class"][read]),
    )


def _served(found: Loops, context: NDArray[np.int64], cycle: NDArray[np.int64]) -> NDArray[np.intp]:
    """The loop that each read of the access log belongs to: the context's last one that began before it.

    Both are by batch, context and time; cycles rise from batch to batch. Empty when two reads share a loop or
    one has none.
    """
    shift = np.int64(48)
    keys = found.context << shift | found.requested
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], context << shift | cycle, side="right") - 1
    if len(at) and (at.min() < 0 or len(np.unique(at)) != len(at)):
        return np.zeros(0, dtype=np.intp)
    served = order[at]
    return served if np.array_equal(found.context[served], context) else np.zeros(0, dtype=np.intp)
