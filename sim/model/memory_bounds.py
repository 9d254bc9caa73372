"""The physical bound of a channel's bandwidth: atoms a cycle that the timing table allows, refresh included.

Whatever a controller does, a workload can go no faster than the scarcest of these:

* column bus: one column command a cycle in the channel;
* data: one column command in tCCDS in each pseudo channel;
* row bus: an access to a row of its own needs one ACT, which takes `activate_slots` cycles of the channel's
  row bus; PRE needs none where reads and writes close their row themselves (auto-precharge);
* tRRD: one ACT in tRRDS in each pseudo channel;  tFAW: four ACTs in tFAW;
* banks: one ACT in tRC in each bank;
* turns: reads and writes of a pseudo channel take turns, and of a turn round, with as many writes as the
  write buffer holds, read to write takes tRTW and write to read tCWL + burst + tWTRS instead of tCCDS.

Refresh takes its share:

* all-bank: once in tREFI a pseudo channel does nothing for tRFC. What lies around that can be shared by as
  many refreshes as may be owed and the one due (`postpone` + 1): for column commands tRTP + tRP from the last
  one to REFab and tRCDRD from ACT to the first one, for ACTs tRC from the last ACT to REFab. REFab takes one
  slot of the row bus, and PREA one before the first of them.
* per-bank: in each tREFI every bank does nothing for tRFCpb, while all others go on; REFpb takes one slot of
  the row bus, and the next ACT of its pseudo channel keeps tRREFD behind it. So where tRRD binds, each bank
  costs tRREFD in tREFI; where tFAW binds, REFpb fits in its slack.

These are upper bounds, not predictions: no queue is long enough to reach all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from hdl.layouts import ATOM_BYTES, RefreshMode
from hdl.memory.timing import TimingPreset

__all__ = ["Workload", "bandwidth_bound", "refreshes_due"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a stream of requests asks of the channel."""

    new_rows: bool
    """Every access opens a row of its own; else rows are used whole, and activates cost nothing."""
    writes: float = 0.0
    """The share of writes, 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.writes <= 1:
            raise ValueError(f"share of writes is {self.writes!r}: expected 0 to 1")


def bandwidth_bound(
    workload: Workload, timing: TimingPreset, refresh: RefreshMode, *, postpone: int, write_buffer: int
) -> float:
    """GB/s that no controller of a channel can exceed on `workload`.

    `postpone` refreshes may be owed, and `write_buffer` writes may wait for their turn.
    """
    mode = effective_mode(timing, refresh)
    pseudo_channels = timing.organisation.pseudo_channels
    atoms = min(1.0, pseudo_channels * _columns(workload, timing, mode, postpone, write_buffer))
    if workload.new_rows:
        atoms = min(
            atoms,
            _row_bus(timing, mode, postpone),
            pseudo_channels * _activates(timing, mode, postpone),
        )
    return atoms * ATOM_BYTES / timing.clock_ns


def effective_mode(timing: TimingPreset, refresh: RefreshMode) -> RefreshMode:
    """What the controller does for `refresh`: all-bank where the preset has no REFpb."""
    if refresh is RefreshMode.PER_BANK and "tRFCpb" not in timing.values:
        return RefreshMode.ALL_BANK
    return refresh


def refreshes_due(cycles: int, timing: TimingPreset, refresh: RefreshMode) -> float:
    """Refreshes of every bank that are due in `cycles`: one in tREFI, however it is done."""
    return 0.0 if refresh is RefreshMode.NONE else cycles / timing["tREFI"]


def _in_use(timing: TimingPreset, mode: RefreshMode, around: int, postpone: int) -> float:
    """The share of time in which a pseudo channel is of use: `around` is lost once for all that are owed."""
    if mode is not RefreshMode.ALL_BANK:
        return 1.0
    return 1 - (timing["tRFC"] + around / (postpone + 1)) / timing["tREFI"]


def _columns(
    workload: Workload, timing: TimingPreset, mode: RefreshMode, postpone: int, write_buffer: int
) -> float:
    """Column commands a cycle of one pseudo channel."""
    spacing = timing["tCCDS"]
    rate = 1 / spacing
    if 0 < workload.writes < 1:
        accesses = write_buffer / workload.writes
        turns = timing["tRTW"] + timing["tCWL"] + timing.burst_cycles + timing["tWTRS"] - 2 * spacing
        rate = accesses / (accesses * spacing + turns)
    around = timing["tRTP"] + timing["tRP"] + timing["tRCDRD"] - spacing
    return rate * _in_use(timing, mode, around, postpone)


def _activates(timing: TimingPreset, mode: RefreshMode, postpone: int) -> float:
    """ACTs a cycle of one pseudo channel."""
    banks, interval = timing.organisation.banks, timing["tREFI"]
    spaced, windowed, cycled = 1 / timing["tRRDS"], 4 / timing["tFAW"], banks / timing["tRC"]
    if mode is RefreshMode.PER_BANK:
        spaced *= 1 - banks * timing["tRREFD"] / interval
        cycled *= 1 - timing["tRFCpb"] / interval
    around = timing["tRC"] - timing["tRRDS"]
    return min(spaced, windowed, cycled) * _in_use(timing, mode, around, postpone)


def _row_bus(timing: TimingPreset, mode: RefreshMode, postpone: int) -> float:
    """ACTs a cycle that the channel's row bus carries beside the commands of refresh."""
    organisation = timing.organisation
    slots = 0.0
    if mode is RefreshMode.ALL_BANK:
        slots = organisation.pseudo_channels * (1 + 1 / (postpone + 1))
    elif mode is RefreshMode.PER_BANK:
        slots = organisation.pseudo_channels * organisation.banks
    return (1 - slots / timing["tREFI"]) / timing.activate_slots
