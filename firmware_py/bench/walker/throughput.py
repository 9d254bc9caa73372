"""Hops a nanosecond of independent random climbs on one channel, by contexts and refresh.

One design with 64 contexts runs climbs through nodes at random places in 1 to 64 of them at once. Hops count
from the warm-up's end to when the first walk ends, so that all contexts are at work. The share of a context
is its hops over the mean of all; `slowest_context_share` is the least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import HopEvent, RefreshMode
from sim.compiled import CompiledModel
from sim.model.memory_bounds import Workload, bandwidth_bound

from ...ledger import Log
from ..measures import Measure, Target
from .machine import climb_chains, walker_design

__all__ = ["CONTEXTS", "context_measures", "counted_hops", "hops_target", "throughput_measures"]

#: Contexts at work, and those that the design has.
CONTEXTS = (1, 2, 4, 8, 16, 32, 64)
_SEED = 2026
#: Hops of a walk and of all together, and the cycles until the queues are full.
_HOPS, _ALL_HOPS = 20_000, 160_000
_WARM_UP = 2_000
#: Nodes are drawn from so many atoms: 1,024 rows of every bank.
_NODE_ATOMS = 1 << 20
_MODES = (RefreshMode.NONE, RefreshMode.ALL_BANK, RefreshMode.PER_BANK)
_ATOM_BYTES = 32

#: No context starves: what the slowest must have of the mean.
_LEAST_SHARE = 0.9
_HOPS_TARGETS = {
    (16, RefreshMode.NONE): 0.28,
    (16, RefreshMode.ALL_BANK): 0.26,
    (16, RefreshMode.PER_BANK): 0.26,
    (64, RefreshMode.NONE): 0.45,
    (64, RefreshMode.ALL_BANK): 0.43,
    (64, RefreshMode.PER_BANK): 0.45,
}


def hops_target(contexts: int, refresh: RefreshMode) -> Target | None:
    """The target of `hops_per_ns`; None for what is only reported."""
    hops = _HOPS_TARGETS.get((contexts, refresh))
    return None if hops is None else Target(at_least=hops)


def throughput_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of throughput, measured now. The files play no part in it."""
    measures = list[Measure]()
    runs = [(contexts, refresh) for contexts in CONTEXTS for refresh in _MODES]
    with CompiledModel(walker_design(contexts=max(CONTEXTS)), announce=announce) as model:
        for done, (contexts, refresh) in enumerate(runs):
            progress("hops a nanosecond", done, len(runs))
            measures += context_measures(model, contexts, refresh)
        progress("hops a nanosecond", len(runs), len(runs))
    return measures


def context_measures(model: CompiledModel, contexts: int, refresh: RefreshMode) -> list[Measure]:
    """The figures of climbs in so many contexts of one design. Raises InternalError when a rule is broken."""
    config, timing = model.config, model.config.memory.timing
    rng = np.random.default_rng(_SEED)
    # Address 0 is null.
    hops_each = min(_HOPS, _ALL_HOPS // contexts)
    nodes = 1 + rng.permutation(_NODE_ATOMS - 1)[: contexts * hops_each]
    chains = nodes.reshape(contexts, hops_each)
    hops = climb_chains(model, list(chains), refresh).hops
    counts, cycles = counted_hops(hops, contexts=contexts)
    bound = bandwidth_bound(
        Workload(new_rows=True),
        timing,
        refresh,
        postpone=config.controller.refresh_postpone,
        write_buffer=config.controller.write_buffer,
    )
    where: dict[str, str | int] = {"contexts": contexts, "refresh": refresh.name.lower()}
    return [
        Measure(
            name="hops_per_ns",
            where=where,
            value=float(counts.sum() / cycles / timing.clock_ns),
            unit="hops/ns",
            bound=min(bound / _ATOM_BYTES, contexts / (timing.row_closed * timing.clock_ns)),
            target=hops_target(contexts, refresh),
        ),
        Measure(
            name="slowest_context_share",
            where=where,
            value=float(counts.min() / counts.mean()),
            unit="of the mean",
            target=Target(at_least=_LEAST_SHARE),
        ),
    ]


def counted_hops(hops: Log, *, contexts: int) -> tuple[NDArray[np.int64], int]:
    """Requests of each context from the end of the warm-up to the first verdict, and the cycles of that."""
    cycles, events = hops["cycle"].astype(np.int64), hops["event"]
    begin = cycles[0] + _WARM_UP
    end = cycles[events == HopEvent.VERDICT.value].min()
    inside = (events == HopEvent.REQUEST.value) & (cycles >= begin) & (cycles < end)
    return np.bincount(hops["context"][inside], minlength=contexts), int(end - begin)
