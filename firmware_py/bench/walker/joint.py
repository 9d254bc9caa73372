"""Hops a nanosecond of two tenants together: what keeping them apart costs both."""

from __future__ import annotations

import numpy as np

from hdl.layouts import RefreshMode
from sim.compiled import CompiledModel

from .machine import climb_chains
from .throughput import counted_hops

__all__ = ["JOINT_CONTEXTS", "joint_hops"]

#: Contexts of both tenants together.
JOINT_CONTEXTS = (16, 64)
_SEED = 2026
#: Hops of all walks, and the atoms that nodes are drawn from: 1,024 rows of every bank.
_HOPS = 64_000
_NODE_ATOMS = 1 << 20


def joint_hops(model: CompiledModel, contexts: int, refresh: RefreshMode, *, tenants: int) -> float:
    """Hops a nanosecond of climbs in so many contexts, every other one of the second tenant if there are two.

    Raises InternalError when a walk does not end as it must, or a rule of the timing table is broken.
    """
    rng = np.random.default_rng(_SEED)
    # Address 0 is null.
    chains = (1 + rng.permutation(_NODE_ATOMS - 1)[:_HOPS]).reshape(contexts, -1)
    run = climb_chains(model, list(chains), refresh, tenants=tenants)
    counts, cycles = counted_hops(run.hops, contexts=contexts)
    return float(counts.sum() / cycles / model.config.memory.timing.clock_ns)
