"""The accesses of a channel: their addresses, read off the command buses, and what rows they found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdl.layouts import RowClass, RowOp
from hdl.memory.address import AddressMap, Place
from sim.model.command_checker import COLUMN_BUS, ROW_BUS

from .loops import Log

__all__ = [
    "RowShares",
    "access_addresses",
    "access_commands",
    "bank_number",
    "last_before",
    "refreshes_before",
    "row_shares",
]


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


def access_commands(accesses: Log, commands: Log) -> tuple[Log, Log]:
    """The column command of every row of a channel's access log, and the ACT that opened its row.

    Both logs are of the same run and in order of cycles (`sim.compiled`). An access has the cycle of its
    column command; its row is the one that its bank's last ACT opened. Raises ValueError when one has no such
    command.
    """
    columns = commands[commands["bus"] == COLUMN_BUS]
    at = np.searchsorted(columns["cycle"], accesses["cycle"])
    found = at < len(columns)
    found[found] = columns["cycle"][at[found]] == accesses["cycle"][found]
    columns = columns[np.where(found, at, 0)] if len(columns) else np.zeros(len(accesses), commands.dtype)

    activates = commands[(commands["bus"] == ROW_BUS) & (commands["op"] == RowOp.ACTIVATE.value)]
    opened_by = last_before(
        bank_number(activates), activates["cycle"], bank_number(columns), columns["cycle"]
    )
    found &= opened_by >= 0
    if not found.all():
        lost = int(np.flatnonzero(~found)[0])
        raise ValueError(
            f"access log: row {lost}, cycle {accesses['cycle'][lost]}: "
            "expected a column command in that cycle and an ACT of its bank before it"
        )
    return columns, activates[opened_by]


def access_addresses(accesses: Log, commands: Log, address_map: AddressMap) -> NDArray[np.int64]:
    """The atom address of every row of a channel's access log, from the bus commands of the same run.

    Raises ValueError as `access_commands` does.
    """
    columns, activates = access_commands(accesses, commands)
    return np.asarray(
        address_map.encode(
            Place(
                pseudo_channel=columns["pseudo_channel"].astype(np.int64),
                bank=columns["bank"].astype(np.int64),
                row=activates["row_or_column"].astype(np.int64),
                column=columns["row_or_column"].astype(np.int64),
            )
        ),
        dtype=np.int64,
    )


def bank_number(commands: Log) -> NDArray[np.int64]:
    """A number for the bank of each command within its channel: the pseudo channel from bit 8 on."""
    return commands["pseudo_channel"].astype(np.int64) << 8 | commands["bank"]


def last_before(
    keys: NDArray[np.int64], cycles: ArrayLike, wanted_keys: NDArray[np.int64], wanted_cycles: ArrayLike
) -> NDArray[np.int64]:
    """For each wanted (key, cycle) the index of the last event of that key in an earlier cycle; -1: none.

    Keys are below 2**15, cycles below 2**48.
    """
    # One number for key and time: the key on top, so that the last event of a key is found by bisection.
    shift = np.int64(48)
    events = keys << shift | np.asarray(cycles, dtype=np.int64)
    order = np.argsort(events, kind="stable")
    at = np.searchsorted(events[order], wanted_keys << shift | np.asarray(wanted_cycles, dtype=np.int64)) - 1
    if not len(order):
        return np.full(len(wanted_keys), -1, dtype=np.int64)
    index = order[at]
    return np.where((at >= 0) & (keys[index] == wanted_keys), index, -1)


def refreshes_before(place: Place, cycle: NDArray[np.int64], commands: Log) -> NDArray[np.int64]:
    """How often the bank of each access had been refreshed before its cycle."""
    rows = commands[commands["bus"] == ROW_BUS]
    counts = np.zeros(len(cycle), dtype=np.int64)
    shift = np.int64(48)
    bank = place.pseudo_channel << 8 | place.bank
    for op, covered in ((RowOp.REFRESH_ALL, ~0xFF), (RowOp.REFRESH_BANK, ~0)):
        refreshes = rows[rows["op"] == op.value]
        keys = np.sort((bank_number(refreshes) & covered) << shift | refreshes["cycle"].astype(np.int64))
        first = (bank & covered) << shift
        counts += np.searchsorted(keys, first | cycle) - np.searchsorted(keys, first)
    return counts
