"""The near loop of the whole design while the DataMover streams: what quality of service walks get.

Near walks climb long chains of nodes at random places, while the DataMover copies between memory and
scratchpad as fast as it can. A loop is caused by refresh if its bank was under refresh at any time between
its request and the next; every other loop is outside refresh, even one that waits for what it held up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import ATOM_BYTES, RefreshMode, RowOp, Source
from hdl.memory.address import AddressMap
from hdl.memory.timing import TimingPreset
from sim.compiled import CompiledModel
from sim.model.command_checker import ROW_BUS, check

from .. import commands
from ..driver import Accelerator
from ..errors import InternalError
from ..ledger import Log, Loops, loops
from ..programs import default_image
from ..records import PARENT
from ..transport.inprocess import InProcessTransport

__all__ = ["LoadedLoop", "loaded_loops", "refresh_caused"]

#: Hops of a walk, and how many atoms nodes are drawn from; what is copied lies behind those.
_HOPS = 2_000
_NODE_ATOMS = 1 << 20
#: One copy, and where it goes in the scratchpad: behind the commands, before the completions.
_COPY_ATOMS = 1_024
_SCRATCHPAD = 512
_COPIES = 256
_STREAM_COPIES = 64


@dataclass(frozen=True, kw_only=True)
class LoadedLoop:
    """The near loops of one measurement, and how fast the DataMover was beside them."""

    loops: Loops
    refreshed: NDArray[np.bool_]
    """Of every loop: caused by refresh."""
    mover_bandwidth: float
    """GB/s of the DataMover while walks ran."""


def loaded_loops(
    model: CompiledModel,
    *,
    walks: int,
    writes: bool,
    refresh: RefreshMode,
    seed: int,
) -> LoadedLoop:
    """The near loops of `walks` concurrent climbs while the DataMover reads the memory, or `writes` it.

    Raises InternalError when a rule is broken or the copies end before the walks.
    """
    config, timing = model.config, model.config.memory.timing
    accelerator = Accelerator(InProcessTransport(model))
    program = default_image()
    accelerator.load_program(program.words)
    chains = _load_chains(accelerator, walks, np.random.default_rng(seed))
    accelerator.set_refresh(refresh)
    model.clear_logs()
    accelerator.run_batch(
        np.concatenate(
            [
                commands.walk(place=0, entry=program.entries["climb"], context=context, address=int(chain[0]))
                for context, chain in enumerate(chains)
            ]
            + [
                commands.copy(
                    to_memory=writes,
                    memory_address=_NODE_ATOMS + n % _STREAM_COPIES * _COPY_ATOMS,
                    scratchpad_address=_SCRATCHPAD,
                    count=_COPY_ATOMS,
                )
                for n in range(_COPIES)
            ]
        )
    )
    accelerator.set_refresh(RefreshMode.ALL_BANK)
    hops, bus = model.hops(), model.commands()
    broken = check(bus, timing, config.memory.organisation)
    if len(broken):
        raise InternalError(f"walks beside the DataMover: {len(broken)} broken rules: {broken.by_rule()}")
    found = loops(
        batch=np.zeros(len(hops), dtype=np.int64),
        **{name: hops[name] for name in ("cycle", "context", "event", "address")},
    )
    begin, end = int(hops["cycle"].min()), int(hops["cycle"].max())
    accesses = model.accesses()
    moved = accesses["cycle"][accesses["source"] == Source.MOVER.value]
    if not len(moved) or moved[-1] < end:
        raise InternalError("walks beside the DataMover: the copies ended before the walks")
    atoms = np.count_nonzero((moved >= begin) & (moved < end))
    return LoadedLoop(
        loops=found,
        refreshed=refresh_caused(found, bus, timing, AddressMap(config.memory)),
        mover_bandwidth=atoms * ATOM_BYTES / ((end - begin) * timing.clock_ns),
    )


def _load_chains(accelerator: Accelerator, walks: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The addresses of `walks` chains of nodes with nothing untried, put into memory; a context for each."""
    chains = 1 + rng.permutation(_NODE_ATOMS - 1)[: walks * _HOPS].reshape(walks, _HOPS)
    for context, chain in enumerate(chains):
        for address, parent in zip(chain.tolist(), [*chain[1:].tolist(), 0], strict=True):
            atom = np.zeros((1, 8), dtype=np.uint32)
            atom[0, PARENT.word] = parent
            accelerator.load_image(address, atom)
        accelerator.configure_context(context, base=1, limit=accelerator.memory_atoms, writable=False)
    return chains


def refresh_caused(
    found: Loops, bus: Log, timing: TimingPreset, address_map: AddressMap
) -> NDArray[np.bool_]:
    """Of every loop: its bank was under refresh during it, by the commands of the log `bus`."""
    place = address_map.decode(found.address)
    begin, end = found.requested, found.requested + found.cycles
    caused = np.zeros(len(begin), dtype=np.bool_)
    rows = bus[bus["bus"] == ROW_BUS]
    for op, length in ((RowOp.REFRESH_ALL, "tRFC"), (RowOp.REFRESH_BANK, "tRFCpb")):
        refreshes = rows[rows["op"] == op.value]
        # What one refresh occupies: a pseudo channel, or one bank of it.
        whole = op is RowOp.REFRESH_ALL
        occupied = refreshes["pseudo_channel"].astype(np.int64) * 64 + (0 if whole else refreshes["bank"])
        asked = place.pseudo_channel * 64 + (0 if whole else place.bank)
        for unit in np.unique(occupied):
            starts = refreshes["cycle"][occupied == unit].astype(np.int64)
            mine = asked == unit
            # A refresh overlaps a loop if it begins before the loop's end and less than its length before.
            earlier = np.searchsorted(starts, begin[mine] - timing[length], side="right")
            later = np.searchsorted(starts, end[mine], side="left")
            caused[mine] |= later > earlier
    return caused
