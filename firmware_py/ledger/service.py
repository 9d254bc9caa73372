"""The service of every read of a walker: its acceptance by the controller, its commands, data and response.

**What refresh caused** is of two kinds, and both are read off the command bus:

* held: the read was there while its bank was refreshed. Counted from its acceptance, or from the last ACT, RD
  or WR that its bank had before the refresh if that is later, to the end of tRFC (tRFCpb), or to the read's
  first command, for the first slot of an ACT may lie before that;
* reopened: its row was open, and only a refresh closed it. Counted is the time from ACT to RD.

A later refresh is charged in full where several follow one another. What refresh does to other requests ahead
in the queue is not charged to this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import ColumnOp, RowClass, RowOp, Source
from hdl.memory.timing import TimingPreset
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

from .accesses import access_commands, bank_number, bank_place, last_before, refreshes_before
from .loops import Log, context_numbers
from .place_ledger import Ledger

__all__ = ["Service", "port_service", "service"]

Cycles = NDArray[np.int64]

#: Later than any cycle: counted down from it, the first event after another is the last before it.
_TURN = np.int64(1 << 47)
_AUTO = (ColumnOp.READ_AUTO.value, ColumnOp.WRITE_AUTO.value)


@dataclass(frozen=True, kw_only=True)
class Service:
    """The cycles of every read that a walker's loops had in memory, in the order of `Ledger.read`."""

    accepted: Cycles
    """The controller took the request."""
    first_command: Cycles
    """Its first command was on a bus: PRE after another row, ACT after none, RD when its row was open."""
    column: Cycles
    """Its RD was on the bus."""
    last_beat: Cycles
    """The cycle after its last data beat."""
    answered: Cycles
    """The response left the controller."""
    held_from: Cycles
    """Refresh held it from here..."""
    held: Cycles
    """...for so many cycles; 0: not at all."""
    reopened: Cycles
    """Cycles from ACT to RD where refresh had closed its row; else 0."""

    @property
    def device(self) -> Cycles:
        """From the first command to the last data beat."""
        return self.last_beat - self.first_command

    @property
    def port(self) -> Cycles:
        """From the request's acceptance to the response."""
        return self.answered - self.accepted

    @property
    def refresh(self) -> Cycles:
        """What refresh caused of `port`."""
        return self.held + self.reopened


def service(
    ledger: Ledger,
    *,
    place: int,
    accesses: Log,
    access_batch: Cycles,
    ports: Log,
    commands: Sequence[Log],
    timing: TimingPreset,
) -> Service:
    """The service of the reads of `ledger`, that of the walkers in `place`, from the logs of its run.

    Raises ValueError when a read has no request, response or first command in the logs.
    """
    reads = accesses[ledger.access]
    walker = (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[place]
    mine = ports[(ports["source"] == walker) & (ports["write"] == 0)]
    key, column = context_numbers(reads, place), reads["cycle"].astype(np.int64)
    asked, left = mine[mine["response"] == 0], mine[mine["response"] == 1]
    asked_at, left_at = (rows["cycle"].astype(np.int64) for rows in (asked, left))
    request = last_before(context_numbers(asked, place), asked_at, key, column)
    # The first response after the command: the last one before, with time turned round.
    response = last_before(context_numbers(left, place), _TURN - left_at, key, _TURN - column)
    if np.any(request < 0) or np.any(response < 0):
        lost = int(np.flatnonzero((request < 0) | (response < 0))[0])
        raise ValueError(f"port log: the read in cycle {column[lost]}: expected its request and its response")

    channel = reads["channel"].astype(np.int64)
    first, held_from, held, reopened = (np.zeros(len(reads), dtype=np.int64) for _ in range(4))
    accepted = asked_at[request]
    opened = _opened_by_refresh(accesses, access_batch, commands)[ledger.access]
    for number, log in enumerate(commands):
        here = channel == number
        if not here.any():
            continue
        columns, activates = access_commands(reads[here], log)
        first[here] = _first_commands(reads[here], accepted[here], columns, activates, log)
        held_from[here], held[here] = _held(accepted[here], first[here], bank_number(columns), log, timing)
        since = column[here] - activates["cycle"].astype(np.int64)
        reopened[here] = np.where(opened[here], since, 0)
    return Service(
        accepted=accepted,
        first_command=first,
        column=column,
        last_beat=column + timing.row_hit,
        answered=left_at[response],
        held_from=held_from,
        held=held,
        reopened=reopened,
    )


def port_service(ledger: Ledger, *, place: int, ports: Log) -> Service:
    """The service of the reads of `ledger` where only the memory port is seen: none of it is in a device.

    Raises ValueError when a read has no request or response in the log.
    """
    walker = (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[place]
    mine = ports[(ports["source"] == walker) & (ports["write"] == 0)]
    key, requested = ledger.loops.context[ledger.read], ledger.loops.requested[ledger.read]
    found: list[Cycles] = []
    since = requested
    for response in (0, 1):
        rows = mine[mine["response"] == response]
        at = rows["cycle"].astype(np.int64)
        # The first one since then: the last before, with time turned round.
        index = last_before(context_numbers(rows, place), _TURN - at, key, _TURN - since + 1)
        if np.any(index < 0):
            lost = int(np.flatnonzero(index < 0)[0])
            raise ValueError(
                f"port log: the read of cycle {requested[lost]}: expected its request and its response"
            )
        since = at[index]
        found.append(since)
    accepted, answered = found
    nothing = np.zeros(len(accepted), dtype=np.int64)
    return Service(
        accepted=accepted,
        first_command=answered,
        column=answered,
        last_beat=answered,
        answered=answered,
        held_from=accepted,
        held=nothing,
        reopened=nothing,
    )


def _first_commands(reads: Log, accepted: Cycles, columns: Log, activates: Log, commands: Log) -> Cycles:
    """The cycle of the first command of each read: of those that it needed, the first since its acceptance.

    What came before was for another request, which the read then passed. A PRE before a refresh of the bank
    is none of the read's either: it was the refresh that needed it.
    """
    row_class = reads["row_class"]
    opened = activates["cycle"].astype(np.int64)
    closing = commands[(commands["bus"] == ROW_BUS) & (commands["op"] == RowOp.PRECHARGE.value)]
    closed = last_before(bank_number(closing), closing["cycle"], bank_number(columns), opened)
    conflict = row_class == RowClass.CONFLICT.value
    if np.any(conflict & (closed < 0)):
        lost = int(np.flatnonzero(conflict & (closed < 0))[0])
        raise ValueError(
            f"access log: the read in cycle {reads['cycle'][lost]} found another row: expected a PRE"
        )
    first = np.where(row_class == RowClass.HIT.value, reads["cycle"].astype(np.int64), opened)
    before = closing["cycle"].astype(np.int64)[closed[conflict]]
    place = bank_place(columns[conflict])
    since = refreshes_before(place, opened[conflict], commands) > refreshes_before(place, before, commands)
    first[conflict] = np.where(since, opened[conflict], before)
    first = np.where(first < accepted, opened, first)
    return np.where(first < accepted, reads["cycle"].astype(np.int64), first)


def _held(
    accepted: Cycles, first: Cycles, bank: Cycles, commands: Log, timing: TimingPreset
) -> tuple[Cycles, Cycles]:
    """From which cycle, and for how many, refresh held each read."""
    used = commands[(commands["bus"] == COLUMN_BUS) | (commands["op"] == RowOp.ACTIVATE.value)]
    held_from, held = accepted.copy(), np.zeros(len(accepted), dtype=np.int64)
    for op, covered, name in ((RowOp.REFRESH_ALL, ~0xFF, "tRFC"), (RowOp.REFRESH_BANK, ~0, "tRFCpb")):
        refreshes = commands[(commands["bus"] == ROW_BUS) & (commands["op"] == op.value)]
        if not len(refreshes):
            continue
        key, at = bank_number(refreshes) & covered, refreshes["cycle"].astype(np.int64)
        last = last_before(key, at, bank & covered, first)
        # The first one that was not over when the read came: the last before, with time turned round.
        over = accepted - timing[name]
        earliest = last_before(key, _TURN - at, bank & covered, _TURN - over)
        touched = (last >= 0) & (earliest >= 0) & (at[earliest] <= at[last])
        before = last_before(bank_number(used), used["cycle"], bank, at[earliest])
        busy = np.where(before >= 0, used["cycle"].astype(np.int64)[before] if len(used) else 0, 0)
        begins = np.maximum(accepted, busy)
        ends = np.minimum(first, at[last] + timing[name])
        held_from = np.where(touched, begins, held_from)
        held = np.where(touched, np.maximum(ends - begins, 0), held)
    return held_from, held


def _opened_by_refresh(accesses: Log, batch: Cycles, commands: Sequence[Log]) -> NDArray[np.bool_]:
    """The accesses whose row the one before in their bank had left open, had it not been refreshed."""
    found = np.zeros(len(accesses), dtype=np.bool_)
    for number, log in enumerate(commands):
        here = np.flatnonzero(accesses["channel"] == number)
        columns, activates = access_commands(accesses[here], log)
        bank = bank_number(columns)
        order = np.lexsort((accesses["cycle"][here], bank, batch[here]))
        bank, row = bank[order], activates["row_or_column"][order]
        refreshed = refreshes_before(
            bank_place(columns[order]),
            accesses["cycle"][here][order].astype(np.int64),
            log,
        )
        same = (bank[1:] == bank[:-1]) & (batch[here][order][1:] == batch[here][order][:-1])
        same &= (row[1:] == row[:-1]) & (refreshed[1:] > refreshed[:-1])
        same &= ~np.isin(columns["op"][order][:-1], _AUTO)
        found[here[order[1:][same]]] = True
    return found & (accesses["row_class"] != RowClass.HIT.value)
