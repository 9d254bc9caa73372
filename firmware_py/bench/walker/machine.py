"""What every topic needs: the designs it measures, chains of nodes to climb, and runs that broke no rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdl.config import DesignConfig, named_config
from hdl.layouts import RefreshMode
from sim.compiled import CompiledModel
from sim.model.command_checker import check

from ... import commands
from ...completion import Records
from ...driver import Accelerator
from ...errors import InternalError
from ...ledger import Log
from ...programs import default_image
from ...records import PARENT
from ...transport.inprocess import InProcessTransport

__all__ = ["ClimbRun", "climb_chains", "walker_design"]


def walker_design(
    *, ecc: bool = False, stages: int = 1, clock_ratio: int = 1, contexts: int | None = None
) -> DesignConfig:
    """The design on `hbm2_2000` with these options; None: the usual contexts."""
    base = named_config("simulation")
    return dataclasses.replace(
        base,
        walker=dataclasses.replace(
            base.walker,
            execute_stages=stages,
            contexts=base.walker.contexts if contexts is None else contexts,
        ),
        controller=dataclasses.replace(base.controller, ecc=ecc),
        clock_ratio=clock_ratio,
    )


@dataclass(frozen=True, kw_only=True)
class ClimbRun:
    """The completion records of climbs that ran at once in one walker, and the logs of their batch."""

    records: Records
    hops: Log
    accesses: Log
    commands: Log


def climb_chains(
    model: CompiledModel,
    chains: Sequence[NDArray[np.int64]],
    refresh: RefreshMode,
    *,
    place: int = 0,
    tenants: int = 1,
) -> ClimbRun:
    """The walker in `place` climbs chains of nodes with nothing untried, all at once, one a context.

    The contexts belong to so many `tenants` (1 or 2) in turn. An address is in one chain only. Raises
    InternalError when a walk does not run off the end of its chain, or a rule of the timing table is
    broken.
    """
    accelerator = Accelerator(InProcessTransport(model))
    program = default_image()
    accelerator.load_program(program.words)
    atoms = np.zeros((1 + max(int(chain.max()) for chain in chains), 8), dtype=np.uint32)
    for context, chain in enumerate(chains):
        atoms[chain[:-1], PARENT.word] = chain[1:]
        accelerator.configure_context(
            context,
            base=1,
            limit=accelerator.memory_atoms,
            writable=False,
            tenant=context % tenants,
        )
    accelerator.load_image(0, atoms)
    accelerator.set_refresh(refresh)
    model.clear_logs()
    entry = program.entries["climb"]
    done = accelerator.run_batch(
        np.concatenate(
            [
                commands.walk(place=place, entry=entry, context=context, address=int(chain[0]))
                for context, chain in enumerate(chains)
            ]
        )
    )
    accelerator.set_refresh(RefreshMode.ALL_BANK)
    if sorted(done.records["hops"].tolist()) != sorted(len(chain) for chain in chains):
        raise InternalError(f"climbs of {[len(c) for c in chains]} nodes took {done.records['hops']} hops")
    run = ClimbRun(
        records=done.records, hops=model.hops(), accesses=model.accesses(), commands=model.commands()
    )
    memory = model.config.memory
    windows = [] if refresh is RefreshMode.NONE else model.batch_windows().tolist()
    broken = check(run.commands, memory.timing, memory.organisation, refresh_windows=windows)
    if len(broken):
        raise InternalError(f"climbs broke {len(broken)} rules of the timing table: {broken.by_rule()}")
    return run
