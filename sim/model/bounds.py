"""The physical bound of an address sequence: the least cycles of each access, from the timing table alone.

A walk has one access outstanding, and each address comes out of the data of the access before. So the
least distance of two accesses' last data beats, with a controller and a walker that take no time at all on
an open-page memory, depends only on what the access finds. Cycles from the first command on the bus to the
last data beat, and the property of `TimingPreset` that holds them:

* the row open: RD; tCL + burst (`row_hit`);
* the bank closed: ACT, RD; activate_lag + tRCDRD + tCL + burst (`row_closed`);
* another row open: PRE, ACT, RD; tRP + tRCDRD + tCL + burst (`row_conflict`);
* another row open, which the access just before in the same walk opened: the larger of that and tRC
  (`same_bank`), for PRE waits for tRAS and so ACT comes tRC after ACT.

ACT's slots before the one that counts overlap tRP. No other rule binds a single outstanding read: its PRE
comes after the data of the read before, hence later than tRTP. Where tRAS <= tRCDRD + 2 x row hit (every
preset here) the bound is attained; otherwise it is still one. Refresh is left out: it only adds cycles,
except that it closes rows, which the caller tells with `refreshed`. Accesses of other walks count only
for the rows that they open.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hdl.layouts import RowClass
from hdl.memory.address import AddressMap
from hdl.memory.timing import TimingPreset

__all__ = ["dependent_bound", "isolated_bound", "row_classes"]

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


def row_classes(
    addresses: npt.ArrayLike,
    batch_ids: npt.ArrayLike,
    address_map: AddressMap,
    *,
    refreshed: npt.ArrayLike | None = None,
) -> npt.NDArray[np.uint8]:
    """What each access finds on an open-page memory, as `RowClass` values.

    `addresses` are atom addresses in the order of the accesses, writes and other requesters included.
    Wherever `batch_ids` changes, every row is closed. `refreshed` says how often the bank of each access had
    been refreshed before it; a refresh closes the row. Raises ValueError for an address out of range or for
    arrays of different length.
    """
    sequence, segment = _sequence(addresses, batch_ids)
    found, _ = _row_state(sequence, segment, _refreshes(refreshed, sequence), address_map)
    return found


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

    Arguments as for `row_classes`. `walk_ids` numbers the walk of each access, one number a walk; without
    it each batch is one chain. Raises ValueError as `row_classes` does.
    """
    sequence, segment = _sequence(addresses, batch_ids)
    found, before_in_bank = _row_state(sequence, segment, _refreshes(refreshed, sequence), address_map)
    if walk_ids is None:
        walks = np.zeros(len(sequence), dtype=np.int64)
    else:
        walks = np.asarray(walk_ids, dtype=np.int64)
        _same_length("walk_ids", walks, sequence)
    before_in_walk = _before(segment, walks)

    cycles = np.zeros(len(RowClass), dtype=np.int64)
    for row_class in (RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT):
        cycles[row_class.value] = isolated_bound(row_class, timing)
    bound = cycles[found]
    opened = np.concatenate((found != RowClass.HIT.value, [False]))  # The last entry answers index -1.
    just_opened = (before_in_bank == before_in_walk) & opened[before_in_walk]
    bound[(found == RowClass.CONFLICT.value) & just_opened] = timing.same_bank
    return bound


def _same_length(name: str, array: Ints, addresses: Ints) -> None:
    if array.shape != addresses.shape:
        raise ValueError(f"{name} has shape {array.shape}: expected that of addresses, {addresses.shape}")


def _sequence(addresses: npt.ArrayLike, batch_ids: npt.ArrayLike) -> tuple[Ints, Ints]:
    """Addresses, and the number of id changes before each."""
    sequence, ids = np.asarray(addresses, dtype=np.int64), np.asarray(batch_ids, dtype=np.int64)
    _same_length("batch_ids", ids, sequence)
    return sequence, np.concatenate(([0], np.cumsum(ids[1:] != ids[:-1])))[: len(sequence)]


def _before(segment: Ints, key: Ints) -> Ints:
    """For each element the index of the last earlier one with the same segment and key, or -1."""
    order = np.lexsort((key, segment))
    same = (key[order][1:] == key[order][:-1]) & (segment[order][1:] == segment[order][:-1])
    before = np.full(len(key), -1, dtype=np.int64)
    before[order[1:][same]] = order[:-1][same]
    return before


def _refreshes(refreshed: npt.ArrayLike | None, sequence: Ints) -> Ints:
    """`refreshed`, or zeros."""
    if refreshed is None:
        return np.zeros(len(sequence), dtype=np.int64)
    counts = np.asarray(refreshed, dtype=np.int64)
    _same_length("refreshed", counts, sequence)
    return counts


def _row_state(
    sequence: Ints, segment: Ints, refreshed: Ints, address_map: AddressMap
) -> tuple[npt.NDArray[np.uint8], Ints]:
    """What each access finds, and the access that left its bank so (-1: none)."""
    place, organisation = address_map.decode(sequence), address_map.organisation
    unit = place.pseudo_channel * organisation.banks + place.bank
    before = _before(segment, refreshed * (organisation.pseudo_channels * organisation.banks) + unit)
    row = np.concatenate((place.row, [-1]))  # The last entry answers index -1.
    found = np.where(
        before < 0,
        RowClass.CLOSED.value,
        np.where(row[before] == place.row, RowClass.HIT.value, RowClass.CONFLICT.value),
    )
    return found.astype(np.uint8), before
