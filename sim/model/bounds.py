"""The physical bound of an address sequence: the least cycles of each access, from the timing table alone.

A walk has one access outstanding, and each address comes out of the data of the access before. So no
controller opens a row before it is asked for. Everything else is granted: the controller and the walker take
no time at all, and a row is kept open if the next access of its bank is to it, or else closed as early as
the table allows, as if the controller knew. Then an access waits for nothing but this, in cycles from the
last data beat of the access before to its own:

* its bank's last access was to the same row: RD; tCL + burst (`row_hit`);
* any other: ACT, RD; activate_lag + tRCDRD + tCL + burst (`row_closed`), and not before the table lets ACT
  come: tRTP + tRP after the last RD of the bank, tRC after its last ACT. Both are known where the walk itself
  was there, and had no other row to open since. Right after the RD it is tRTP + tRP + tRCDRD, and right after
  an access that opened a row tRC (`same_bank`); each row hit in between takes its cycles off these.

So the bound holds for every page policy. A read that finds another row open (`row_conflict`) takes longer,
because its row was left open for nothing. No other rule binds a single outstanding read. Where tRC <= 2 x
`row_closed` (every preset here) the bound is attained; otherwise it is still one. Refresh is left out: it
only adds cycles, except that it closes rows, which the caller tells with `refreshed`. Accesses of other
walks count only for the rows that they open.

The bound is of the time that a walk takes up to each access, not of each access alone: one whose RD is late
after its ACT, for a bus was taken, can shorten the next by as much.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hdl.layouts import RowClass
from hdl.memory.address import AddressMap
from hdl.memory.timing import TimingPreset

__all__ = ["dependent_bound", "isolated_bound"]

Ints = npt.NDArray[np.int64]


def isolated_bound(row_class: RowClass, timing: TimingPreset) -> int:
    """Cycles of a lone read that finds `row_class`. Raises ValueError for NONE."""
    match row_class:
        case RowClass.HIT:
            return timing.row_hit
        case RowClass.CLOSED:
            return timing.row_closed
        case RowClass.CONFLICT:
            return timing.row_conflict
        case _:
            raise ValueError(f"row class is {row_class!r}: expected HIT, CLOSED or CONFLICT")


def dependent_bound(
    addresses: npt.ArrayLike,
    batch_ids: npt.ArrayLike,
    timing: TimingPreset,
    address_map: AddressMap,
    *,
    walk_ids: npt.ArrayLike | None = None,
    refreshed: npt.ArrayLike | None = None,
) -> Ints:
    """The least cycles of each access that waits for the one before it in its walk.

    `addresses` are atom addresses in the order of the accesses, writes and other requesters included.
    Wherever `batch_ids` changes, every row is closed. `walk_ids` numbers the walk of each access, one number
    a walk; without it each batch is one chain. `refreshed` says how often the bank of each access had been
    refreshed before it; a refresh closes the row. Raises ValueError for an address out of range or for arrays
    of different length.
    """
    sequence, ids = np.asarray(addresses, dtype=np.int64), np.asarray(batch_ids, dtype=np.int64)
    _same_length("batch_ids", ids, sequence)
    segment = np.concatenate(([0], np.cumsum(ids[1:] != ids[:-1])))[: len(sequence)]
    walk = _numbers("walk_ids", walk_ids, sequence)
    place, organisation = address_map.decode(sequence), address_map.organisation
    # What was before a refresh of the bank is long past: a bank of its own.
    bank = place.pseudo_channel * organisation.banks + place.bank
    bank += _numbers("refreshed", refreshed, sequence) * (organisation.pseudo_channels * organisation.banks)

    read_before = _before(segment, bank)
    hit = (read_before >= 0) & (place.row[read_before] == place.row)
    position, opened_before = _chains(segment, walk, ~hit)
    bound = np.where(hit, timing.row_hit, timing.row_closed)
    # Where the walk opened no row since, it had nothing but row hits, so that the time since is known.
    opened = (opened_before >= 0) & (bank[opened_before] == bank)
    read = (read_before >= 0) & (walk[read_before] == walk) & (read_before >= opened_before)
    for since, known, cycles in (
        (opened_before, opened, timing["tRC"]),
        (read_before, read, timing["tRTP"] + timing["tRP"] + timing["tRCDRD"]),
    ):
        elapsed = timing.row_hit * (position - 1 - position[since])
        np.maximum(bound, cycles - elapsed, out=bound, where=known & ~hit)
    return bound


def _same_length(name: str, array: Ints, addresses: Ints) -> None:
    if array.shape != addresses.shape:
        raise ValueError(f"{name} has shape {array.shape}: expected that of addresses, {addresses.shape}")


def _numbers(name: str, given: npt.ArrayLike | None, addresses: Ints) -> Ints:
    """What the caller gave for each address, or zeros."""
    if given is None:
        return np.zeros(len(addresses), dtype=np.int64)
    numbers = np.asarray(given, dtype=np.int64)
    _same_length(name, numbers, addresses)
    return numbers


def _before(segment: Ints, key: Ints) -> Ints:
    """For each element the index of the last earlier one with the same segment and key, or -1."""
    order = np.lexsort((key, segment))
    same = (key[order][1:] == key[order][:-1]) & (segment[order][1:] == segment[order][:-1])
    before = np.full(len(key), -1, dtype=np.int64)
    before[order[1:][same]] = order[:-1][same]
    return before


def _chains(segment: Ints, walk: Ints, opens: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """For each element its place in its walk, and the index of the last one before that `opens`, or -1."""
    order = np.lexsort((walk, segment))
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (walk[order][1:] != walk[order][:-1]) | (segment[order][1:] != segment[order][:-1])
    index = np.arange(len(order))
    first = np.maximum.accumulate(np.where(begins, index, 0))
    last = np.maximum.accumulate(np.where(opens[order], index, -1))
    earlier = np.concatenate(([-1], last))[:-1] if len(order) else last
    position, opened = np.empty_like(walk), np.empty_like(walk)
    position[order] = index - first
    opened[order] = np.where(earlier >= first, order[earlier], -1)
    return position, opened
