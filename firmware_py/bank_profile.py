"""What every bank of the stack did in a replay, whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import RowClass, RowOp
from hdl.memory.timing import Organisation
from sim.model.command_checker import ROW_BUS

from .ledger import Log
from .ledger.accesses import access_commands

__all__ = ["BankProfile", "bank_profile"]

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BankProfile:
    """Counts of a replay by bank, all requesters together; arrays [channels, pseudo_channels, banks].

    Reads and writes are column accesses; hits, closed and conflicts say what both found. Refreshes are those
    inside batches: an all-bank refresh counts in every bank of its pseudo channel.
    """

    reads: Counts
    writes: Counts
    hits: Counts
    closed: Counts
    conflicts: Counts
    refreshes: Counts

    @property
    def activates(self) -> Counts:
        """Rows opened for an access."""
        return self.closed + self.conflicts


def bank_profile(
    *, accesses: Log, commands: Sequence[Log], windows: Log, organisation: Organisation
) -> BankProfile:
    """The profile of a replay from its logs: `commands` are by channel, `windows` its batches' cycles.

    Raises ValueError for an access that has no command.
    """
    shape = (len(commands), organisation.pseudo_channels, organisation.banks)
    counts = {
        name: np.zeros(shape, dtype=np.int64)
        for name in ("reads", "writes", "hits", "closed", "conflicts", "refreshes")
    }
    for channel, log in enumerate(commands):
        here = accesses[accesses["channel"] == channel]
        columns, _ = access_commands(here, log)
        place = (columns["pseudo_channel"], columns["bank"])
        for name, kept in (
            ("reads", here["write"] == 0),
            ("writes", here["write"] != 0),
            ("hits", here["row_class"] == RowClass.HIT.value),
            ("closed", here["row_class"] == RowClass.CLOSED.value),
            ("conflicts", here["row_class"] == RowClass.CONFLICT.value),
        ):
            np.add.at(counts[name][channel], tuple(part[kept] for part in place), 1)
        rows = log[(log["bus"] == ROW_BUS) & _inside(log["cycle"], windows)]
        every, one = (rows[rows["op"] == op.value] for op in (RowOp.REFRESH_ALL, RowOp.REFRESH_BANK))
        np.add.at(counts["refreshes"][channel], every["pseudo_channel"], 1)
        np.add.at(counts["refreshes"][channel], (one["pseudo_channel"], one["bank"]), 1)
    return BankProfile(**counts)


def _inside(cycle: NDArray[np.uint64], windows: Log) -> NDArray[np.bool_]:
    """The cycles that lie in one of the windows, which are in order of time."""
    if not len(windows):
        return np.zeros(len(cycle), dtype=np.bool_)
    at = np.searchsorted(windows["begin"], cycle, side="right") - 1
    return (at >= 0) & (cycle < windows["end"][at])
