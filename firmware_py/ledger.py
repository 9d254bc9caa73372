"""The ledger: what each layer took, from the hop log, the access log and the completions of a run.

Every array function here is vectorised: a run has millions of hops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdl.layouts import CONTEXT_WIDTH, HopEvent, RowClass, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.stack import StackMap
from hdl.memory.timing import TimingPreset
from sim.model.bounds import dependent_bound
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

__all__ = [
    "Ledger",
    "Loops",
    "RowShares",
    "Statistics",
    "access_addresses",
    "loops",
    "make_ledger",
    "row_shares",
    "statistics",
]

#: A log of `sim.compiled`: one structured row an event.
Log: TypeAlias = NDArray[np.void]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Summary of a sample; every field but `count` is None when the sample is empty.

    Percentiles are nearest-rank: p% is the smallest value that at least p% of the sample does not exceed,
    so each is a value that really occurred.
    """

    count: int
    min: float | None
    mean: float | None
    p50: float | None
    p99: float | None
    p999: float | None
    max: float | None

    def scaled(self, factor: float) -> Statistics:
        """The same summary in another unit: every value times `factor`."""
        return Statistics(
            count=self.count,
            **{
                name: None if (value := getattr(self, name)) is None else value * factor
                for name in ("min", "mean", "p50", "p99", "p999", "max")
            },
        )

    def as_dict(self) -> dict[str, float | int | None]:
        """Plain JSON types under the field names."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def statistics(values: ArrayLike) -> Statistics:
    """The summary of a sample of numbers, in the unit of the sample."""
    sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
    count = len(sample)
    if not count:
        return Statistics(count=0, min=None, mean=None, p50=None, p99=None, p999=None, max=None)

    def rank(thousandths: int) -> float:
        return float(sample[-(-thousandths * count // 1000) - 1])

    return Statistics(
        count=count,
        min=float(sample[0]),
        mean=float(sample.mean()),
        p50=rank(500),
        p99=rank(990),
        p999=rank(999),
        max=float(sample[-1]),
    )


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


@dataclass(frozen=True, kw_only=True)
class RowShares:
    """What the reads of a walker found: the row open, the bank closed, or another row open."""

    hit: int
    closed: int
    conflict: int

    @property
    def reads(self) -> int:
        """All of them."""
        return self.hit + self.closed + self.conflict

    def as_dict(self) -> dict[str, float | None]:
        """The shares, 0 to 1; None when there was no read."""
        total = self.reads
        return {
            name: getattr(self, name) / total if total else None for name in ("hit", "closed", "conflict")
        }


def row_shares(row_class: ArrayLike) -> RowShares:
    """Counts of the `RowClass` of reads."""
    classes = np.asarray(row_class)
    return RowShares(
        hit=int(np.count_nonzero(classes == RowClass.HIT.value)),
        closed=int(np.count_nonzero(classes == RowClass.CLOSED.value)),
        conflict=int(np.count_nonzero(classes == RowClass.CONFLICT.value)),
    )


def access_addresses(accesses: Log, commands: Log, address_map: AddressMap) -> NDArray[np.int64]:
    """The atom address of every row of a channel's access log, from the bus commands of the same run.

    Both logs are in order of cycles (`sim.compiled`). An access has the cycle of its column command; its row
    is the one that its bank's last ACT opened. Raises ValueError when one has no such command.
    """
    columns = commands[commands["bus"] == COLUMN_BUS]
    at = np.searchsorted(columns["cycle"], accesses["cycle"])
    found = at < len(columns)
    found[found] = columns["cycle"][at[found]] == accesses["cycle"][found]
    columns = columns[np.where(found, at, 0)] if len(columns) else np.zeros(len(accesses), commands.dtype)

    activates = commands[(commands["bus"] == ROW_BUS) & (commands["op"] == RowOp.ACTIVATE.value)]
    # One key for bank and time: the bank on top, so that a bank's last ACT is found by bisection.
    shift = np.int64(48)
    keys = _unit(activates) << shift | activates["cycle"].astype(np.int64)
    order = np.argsort(keys, kind="stable")
    wanted = _unit(columns) << shift | columns["cycle"].astype(np.int64)
    opened = np.searchsorted(keys[order], wanted) - 1
    opened_by = order[opened] if len(order) else np.zeros(len(opened), dtype=np.intp)
    found &= opened >= 0
    if len(order):
        found &= _unit(activates)[opened_by] == _unit(columns)
    if not found.all():
        lost = int(np.flatnonzero(~found)[0])
        raise ValueError(
            f"access log: row {lost}, cycle {accesses['cycle'][lost]}: "
            "expected a column command in that cycle and an ACT of its bank before it"
        )
    rows = activates["row_or_column"][opened_by].astype(np.int64)
    return np.asarray(
        address_map.encode(
            Place(
                pseudo_channel=columns["pseudo_channel"].astype(np.int64),
                bank=columns["bank"].astype(np.int64),
                row=rows,
                column=columns["row_or_column"].astype(np.int64),
            )
        ),
        dtype=np.int64,
    )


def _unit(commands: Log) -> NDArray[np.int64]:
    return commands["pseudo_channel"].astype(np.int64) << 8 | commands["bank"]


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """What one place took in a run: loops with their physical bounds, and what its reads found."""

    loops: Loops
    read: NDArray[np.intp]
    """The loops that read memory: all of them, but for those that a cache answered."""
    bound_cycles: NDArray[np.int64]
    """Of every loop that read memory: the least cycles that the timing table allows for its read."""
    rows: RowShares
    channel_rows: Sequence[RowShares]
    """The same by channel."""

    @property
    def ratio_to_bound(self) -> float | None:
        """Mean loop over mean bound, of those that read memory; None without one."""
        return (
            float(self.loops.cycles[self.read].mean() / self.bound_cycles.mean()) if len(self.read) else None
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
        context=_context(hops[mine], place),
        **{name: hops[name][mine] for name in ("cycle", "event", "address")},
    )
    walker = (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[place]
    read = np.flatnonzero((accesses["source"] == walker) & (accesses["write"] == 0))
    # In one context reads are served in the order in which they were asked for, so the two logs pair up.
    context = _context(accesses[read], place)
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
            refreshed=_refreshed(stack.channel_map.decode(local), cycle, log),
        )
    return Ledger(
        loops=found,
        read=served,
        bound_cycles=bound[read],
        rows=row_shares(accesses["row_class"][read]),
        channel_rows=[
            row_shares(accesses["row_class"][read[channel[read] == number]])
            for number in range(len(commands))
        ],
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


def _context(log: Log, place: int) -> NDArray[np.int64]:
    """A number for each context of the walkers in `place`: near ones are told apart by their channel."""
    context = log["context"].astype(np.int64)
    return context if place else log["channel"].astype(np.int64) << CONTEXT_WIDTH | context


def _refreshed(place: Place, cycle: NDArray[np.int64], commands: Log) -> NDArray[np.int64]:
    """How often the bank of each access had been refreshed before its cycle."""
    rows = commands[commands["bus"] == ROW_BUS]
    counts = np.zeros(len(cycle), dtype=np.int64)
    shift = np.int64(48)
    bank = place.pseudo_channel << 8 | place.bank
    for op, covered in ((RowOp.REFRESH_ALL, ~0xFF), (RowOp.REFRESH_BANK, ~0)):
        refreshes = rows[rows["op"] == op.value]
        keys = np.sort((_unit(refreshes) & covered) << shift | refreshes["cycle"].astype(np.int64))
        first = (bank & covered) << shift
        counts += np.searchsorted(keys, first | cycle) - np.searchsorted(keys, first)
    return counts
