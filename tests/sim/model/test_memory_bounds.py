"""The bounds of bandwidth: figures worked out by hand, and each limit made the scarcest in its turn."""

from __future__ import annotations

import dataclasses

import pytest

from hdl.layouts import RefreshMode
from hdl.memory.timing import PRESETS, TimingPreset, Value
from sim.model.memory_bounds import Workload, bandwidth_bound, effective_mode, refreshes_due

HBM2, HBM3 = PRESETS["hbm2_2000"], PRESETS["hbm3_6400"]
RANDOM, STREAM = Workload(new_rows=True), Workload(new_rows=False)
NONE, ALL_BANK, PER_BANK = RefreshMode.NONE, RefreshMode.ALL_BANK, RefreshMode.PER_BANK


def bound(
    workload: Workload,
    timing: TimingPreset = HBM2,
    refresh: RefreshMode = NONE,
    *,
    postpone: int = 0,
    write_buffer: int = 32,
) -> float:
    return bandwidth_bound(workload, timing, refresh, postpone=postpone, write_buffer=write_buffer)


def changed(timing: TimingPreset = HBM2, **cycles: int) -> TimingPreset:
    """The preset with other parameters."""
    values = {name: Value(cycles=value, source="test") for name, value in cycles.items()}
    return dataclasses.replace(timing, values={**timing.values, **values})


def test_without_refresh_hbm2_is_bound_by_row_bus_and_peak() -> None:
    assert bound(STREAM) == HBM2.peak_bandwidth == 32
    # ACT takes two slots of the row bus; tRRD of two pseudo channels is the same: 2 x 32 B / 4.
    assert bound(RANDOM) == 16


def test_hbm3_random_is_bound_by_four_activates_in_a_window() -> None:
    assert bound(RANDOM, HBM3) == pytest.approx(2 * 32 * 4 / (24 * 0.625))


def test_all_bank_refresh_takes_its_time_and_what_is_around_it() -> None:
    # From the last RD before to the first after: tRTP + tRP + tRFC + tRCDRD, where tCCDS would have been.
    lost = 5 + 14 + 260 + 14 - 2
    assert bound(STREAM, refresh=ALL_BANK) == pytest.approx(32 * (1 - lost / 3900))
    assert bound(RANDOM, refresh=ALL_BANK) == pytest.approx(16 * (1 - (260 + 48 - 4) / 3900))
    # Nine in a row share what is around them.
    lost = 260 + (5 + 14 + 14 - 2) / 9
    assert bound(STREAM, refresh=ALL_BANK, postpone=8) == pytest.approx(32 * (1 - lost / 3900))


def test_per_bank_refresh_costs_streams_nothing_and_activates_their_distance() -> None:
    assert bound(STREAM, refresh=PER_BANK) == 32
    # Sixteen REFpb in tREFI, each with tRREFD behind it.
    assert bound(RANDOM, refresh=PER_BANK) == pytest.approx(16 * (1 - 16 * 8 / 3900))
    assert bound(RANDOM, HBM3, PER_BANK) == bound(RANDOM, HBM3)


def test_each_limit_can_be_the_scarcest() -> None:
    assert bound(STREAM, changed(tCCDS=8)) == pytest.approx(2 * 32 / 8)
    assert bound(STREAM, changed(tCCDS=1)) == 32  # the column bus carries one a cycle
    assert bound(RANDOM, changed(tRRDS=10)) == pytest.approx(2 * 32 / 10)
    assert bound(RANDOM, changed(tFAW=64)) == pytest.approx(2 * 32 * 4 / 64)
    assert bound(RANDOM, changed(tRC=160)) == pytest.approx(2 * 32 * 16 / 160)
    assert bound(RANDOM, dataclasses.replace(HBM2, activate_slots=4)) == pytest.approx(32 / 4)
    slots = 2 * 16 / 3900
    assert bound(RANDOM, changed(tRRDS=1, tFAW=4), PER_BANK) == pytest.approx((1 - slots) * 16)
    assert bound(RANDOM, changed(tRC=160), PER_BANK) == pytest.approx((1 - 160 / 3900) * 2 * 32 * 16 / 160)


def test_reads_and_writes_take_turns() -> None:
    mixed = Workload(new_rows=False, writes=0.5)
    # A turn round of 32 writes and 32 reads: 64 x tCCDS, and the two changes instead of two tCCDS.
    assert bound(mixed) == pytest.approx(2 * 32 * 64 / (64 * 2 + 13 + 5 + 2 + 6 - 4))
    assert bound(mixed, write_buffer=4) < bound(mixed) < bound(STREAM)
    assert bound(Workload(new_rows=False, writes=1)) == 32


def test_a_preset_without_bank_refresh_is_refreshed_as_a_whole() -> None:
    values = {name: value for name, value in HBM2.values.items() if name not in ("tRFCpb", "tRREFD")}
    without = dataclasses.replace(HBM2, values=values)
    assert effective_mode(without, PER_BANK) is ALL_BANK
    assert effective_mode(HBM2, PER_BANK) is PER_BANK
    assert bound(RANDOM, without, PER_BANK) == bound(RANDOM, without, ALL_BANK) < 16


def test_refreshes_due() -> None:
    assert refreshes_due(39_000, HBM2, PER_BANK) == refreshes_due(39_000, HBM2, ALL_BANK) == 10
    assert refreshes_due(39_000, HBM2, NONE) == 0


def test_a_share_of_writes_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"share of writes is 1\.5: expected 0 to 1"):
        Workload(new_rows=True, writes=1.5)
