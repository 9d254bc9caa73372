"""What leases, returns and reclaim of state blocks cost, and what memory they waste, against today's way.

* pool_ns_per_lease, pool_bytes_per_lease: one lease of `blocks` blocks from a pool of which `occupancy`
  percent are leased, at random; the walk looks first at a random block, or (`start` free) at a free one, as
  one that was just given back. place host is an allocator on the other side of the link: a request and its
  answer, and no time of its own.
* pool_leases_per_us: every context takes one block after another, all at once; `start` same: all look at the
  same block first.
* reclaim_ns_per_block, reclaim_bytes_per_block: `reclaims`.
* fragmentation: the share of the arena without a state when the states were at their most (`lifetimes`), 16
  searches at a time; what the allocators note down is not counted (`allocators`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from hdl.fabric.message import (
    CONDITIONAL_WRITE_BYTES,
    HEADER_BYTES,
    LAUNCH_BYTES,
    READ_REQUEST_BYTES,
    READ_RESPONSE_BYTES,
    VERDICT_BYTES,
    WRITE_REQUEST_BYTES,
    WRITE_RESPONSE_BYTES,
)
from hdl.layouts import VerdictKind, WalkStatus
from sim.compiled import CompiledModel
from sim.trace.events import Node
from sim.trace.schema import Trace

from ... import commands
from ...commands import Atoms
from ...compare import read_files
from ...driver import Accelerator
from ...errors import InternalError
from ...paths import FarPath, far_path
from ...pool import pool_records
from ...programs import pool_image, pool_take
from ...records import STATE_BLOCK
from ...transport.inprocess import InProcessTransport
from ..measures import Measure
from .allocators import Allocator, BlockPool, Buddy, FirstFit
from .lifetimes import waste
from .machine import walker_design
from .moments import BLOCK_BYTES
from .programs import FAR, climbing_traces
from .reclaims import reclaim_measures
from .synthetic import deep_searches

__all__ = ["contended_measures", "fragmentation_measures", "lease_measures", "pools_measures"]

_SEED = 2026
_BASE = 4096
_BLOCKS = 1024
_OCCUPANCIES = (50, 90, 98)
_LEASED_AT_ONCE = (1, 4)
_LEASES = 64
#: Takes of each context when all run at once, so that half of the pool's blocks are left.
_TAKES = 16
_CONCURRENT = 16
_SYNTHETIC = 16
_PLACES = ("near", "far")
#: Who holds the blocks that are leased beforehand.
_OTHERS = 1 << 16
_ALLOCATORS: dict[str, Callable[[], Allocator]] = {
    "first_fit": FirstFit,
    "buddy": Buddy,
    "pool_32": lambda: BlockPool(block=32),
    "pool_256": lambda: BlockPool(block=256),
    "pool_1024": lambda: BlockPool(block=1024),
}


def pools_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of the pools, measured now. Raises InternalError when a lease or a reclaim goes wrong."""
    config = walker_design()
    path = far_path(FAR, config)
    measures: list[Measure] = []
    with CompiledModel(config, announce=announce) as model:
        accelerator = Accelerator(InProcessTransport(model))
        accelerator.set_link(latency_up=path.latency_up, latency_down=path.latency_down)
        measures += lease_measures(accelerator, path, progress)
        measures += contended_measures(accelerator)
        for name, traces in climbing_traces(files).items():
            measures += reclaim_measures(model, accelerator, name, traces, progress=progress)
    measures += fragmentation_measures(files)
    return measures


def _pool(occupancy: int, chance: np.random.Generator) -> Atoms:
    records = pool_records(base=_BASE, count=_BLOCKS, block_bytes=BLOCK_BYTES)
    leased = chance.permutation(_BLOCKS)[: _BLOCKS * occupancy // 100]
    records[leased, STATE_BLOCK["owner"]] = _OTHERS
    return records


def _take(place: int, context: int, *, start: int, count: int, owner: int) -> Atoms:
    return commands.walk(
        place=place,
        entry=pool_image().entries["pool_take"],
        context=context,
        address=start,
        registers=pool_take.launch_registers(start=start, owner=owner, count=count),
    )


@dataclass
class _Leases:
    """What every lease of one case took."""

    cycles: list[int] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    """Bytes of the link's messages."""


def lease_measures(
    accelerator: Accelerator,
    path: FarPath,
    progress: Callable[[str, int, int], None],
    *,
    occupancies: Sequence[int] = _OCCUPANCIES,
) -> Iterator[Measure]:
    """Leases one at a time. Raises InternalError when one fails."""
    accelerator.load_program(pool_image().words)
    accelerator.configure_context(0, base=_BASE, limit=_BASE + _BLOCKS, writable=True)
    chance = np.random.default_rng(_SEED)
    crossings = path.latency_up + path.latency_down
    cases = list(product(occupancies, _LEASED_AT_ONCE, ("random", "free")))
    for done, (occupancy, count, kind) in enumerate(cases):
        progress("leases", done, len(cases))
        taken = {name: _Leases() for name in _PLACES}
        for _ in range(_LEASES):
            pool = _pool(occupancy, chance)
            free = np.flatnonzero(pool[:, STATE_BLOCK["owner"]] == 0)
            start = _BASE + int(chance.choice(free if kind == "free" else _BLOCKS))
            for place, name in enumerate(_PLACES):
                accelerator.load_image(_BASE, pool)
                records = accelerator.run_batch(_take(place, 0, start=start, count=count, owner=1)).records
                end = records[-1]
                if (end["status"], end["code"]) != (WalkStatus.DONE.value, 0):
                    raise InternalError(f"lease of {count} blocks: status {end['status']}: expected DONE")
                taken[name].cycles.append(int(end["walk_cycles"]))
                taken[name].moved.append(_lease_bytes(place, int(end["hops"]), count))
        taken["host"] = _Leases(cycles=[crossings], moved=[2 * HEADER_BYTES + 4 * count])
        for name, leases in taken.items():
            where: dict[str, str | int] = {
                "place": name,
                "occupancy": occupancy,
                "blocks": count,
                "start": kind,
            }
            took = float(np.mean(leases.cycles)) * accelerator.clock_ns
            yield Measure(name="pool_ns_per_lease", where=where, value=took, unit="ns")
            moved = float(np.mean(leases.moved))
            yield Measure(name="pool_bytes_per_lease", where=where, value=moved, unit="bytes")


def _lease_bytes(place: int, hops: int, count: int) -> int:
    """Bytes of the link's messages: a claim and a chaining store for each block of a walk without rivals."""
    if place == 0:
        return LAUNCH_BYTES + (count + 1) * VERDICT_BYTES
    stores = CONDITIONAL_WRITE_BYTES + WRITE_REQUEST_BYTES + 2 * WRITE_RESPONSE_BYTES
    return hops * (READ_REQUEST_BYTES + READ_RESPONSE_BYTES) + count * stores


def contended_measures(accelerator: Accelerator) -> Iterator[Measure]:
    """Leases of every context at once. Raises InternalError when two get the same block."""
    chance = np.random.default_rng(_SEED)
    for context in range(accelerator.contexts):
        accelerator.configure_context(context, base=_BASE, limit=_BASE + _BLOCKS, writable=True)
    for place, name in enumerate(_PLACES):
        for kind in ("random", "same"):
            accelerator.load_image(_BASE, _pool(0, chance))
            takes = [
                (context, _BASE + (int(chance.integers(_BLOCKS)) if kind == "random" else 0))
                for _ in range(_TAKES)
                for context in range(accelerator.contexts)
            ]
            done = accelerator.run_batch(
                np.concatenate(
                    [
                        _take(place, context, start=start, count=1, owner=1 + context)
                        for context, start in takes
                    ]
                )
            )
            yields = done.records[done.records["kind"] == VerdictKind.YIELD.value]["value"]
            if len(np.unique(yields)) != len(takes):
                raise InternalError(f"{len(takes)} leases gave {len(np.unique(yields))} different blocks")
            yield Measure(
                name="pool_leases_per_us",
                where={"place": name, "contexts": accelerator.contexts, "start": kind},
                value=len(takes) * 1000 / (done.cycles * accelerator.clock_ns),
                unit="leases/us",
            )


def fragmentation_measures(files: Sequence[Path]) -> Iterator[Measure]:
    """What every allocator wastes on the states of the files' traces and the synthetic ones."""
    found: dict[str, list[Trace]] = {"synthetic": deep_searches(_SYNTHETIC, seed=_SEED)}
    for file in read_files(files) if files else []:
        found.setdefault(file.format, []).extend(file.traces)
    for name, traces in found.items():
        sizes = [event.state_bytes for trace in traces for event in trace.events if isinstance(event, Node)]
        where: dict[str, str | int] = {"trace": name, "mean_bytes": round(float(np.mean(sizes or [0])))}
        for allocator, make in _ALLOCATORS.items():
            share = waste(traces, make(), concurrent=_CONCURRENT)
            if share is not None:
                yield Measure(
                    name="fragmentation",
                    where={"allocator": allocator, **where},
                    value=100 * share,
                    unit="% of the arena",
                )
