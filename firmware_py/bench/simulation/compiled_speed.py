"""How fast the compiled models simulate: a depth-first replay, random reads, and climbs in every context."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdl.config import named_config
from hdl.layouts import RefreshMode, Source
from sim.compiled_memory import CompiledMemory, requests

from ...driver import Accelerator
from ...errors import InternalError
from ...paths import far_path
from ...programs import default_image
from ...replay import run_plan
from ...training import trained_model
from ...transport.inprocess import InProcessTransport
from ..walker.machine import climb_chains, walker_design
from .replay import replay_plan, write_replay

__all__ = ["ReplaySpeed", "random_speed", "replay_speed", "walks_speed"]

_FAR = "v100_hbm2"
_SEED = 2026
#: Levels of the tree that is searched.
_DEPTH = 5
#: Cycles of random reads, and how many are outstanding.
_RANDOM_CYCLES, _OUTSTANDING = 1_000_000, 64
#: Contexts that climb, hops of each, and the atoms that their nodes are drawn from.
_CONTEXTS, _HOPS, _NODE_ATOMS = 64, 4_000, 1 << 20


@dataclass(frozen=True, kw_only=True)
class ReplaySpeed:
    """A depth-first replay, near and far, in simulated time and processor time."""

    cycles_per_second: float
    """Of the time that the host waits for batches."""
    walks_per_second: float
    """Of all time, the host's part included."""


def replay_speed(announce: Callable[[str], None]) -> ReplaySpeed:
    """The speed of a depth-first replay on the whole design. Raises InternalError for a wrong verdict."""
    config = named_config("simulation")
    with trained_model(config, announce=announce) as model, tempfile.TemporaryDirectory() as folder:
        announce("replaying a depth-first search on the compiled model")
        accelerator = Accelerator(InProcessTransport(model))
        far = far_path(_FAR, config)
        accelerator.set_link(latency_up=far.latency_up, latency_down=far.latency_down)
        path = Path(folder) / "replay.jsonl"
        write_replay(path, depth=_DEPTH)
        plan = replay_plan(path, config)
        began = time.process_time()
        for place in (0, 1):
            run = run_plan(plan, program=default_image(), place=place, driver=accelerator, monitor=model)
            if run.wrong or run.not_golden:
                raise InternalError(f"{len(run.wrong)} verdicts of the replay are wrong: expected none")
        taken = time.process_time() - began
        return ReplaySpeed(
            cycles_per_second=model.cycles_per_second, walks_per_second=2 * len(plan.walks) / taken
        )


def random_speed(announce: Callable[[str], None]) -> float:
    """Cycles a processor second of one channel's memory that is full of random reads, refresh on."""
    with CompiledMemory(named_config("simulation"), announce=announce) as memory:
        announce("reading random atoms on the compiled memory subsystem")
        places = np.random.default_rng(_SEED).integers(memory.map.atoms, size=_RANDOM_CYCLES)
        # By two sources in turn: one alone has too few tags.
        sources = np.resize([Source.HOST.value, Source.MOVER.value], _RANDOM_CYCLES)
        asked = requests(places, source=sources)
        began = time.process_time()
        run = memory.run(asked, outstanding=_OUTSTANDING, refresh=RefreshMode.ALL_BANK, cycles=_RANDOM_CYCLES)
        taken = time.process_time() - began
        if run.faults or run.violations:
            raise InternalError(f"the memory is at fault: {[*run.faults, *run.violations][0]}")
        return (run.end - run.begin) / taken


def walks_speed(announce: Callable[[str], None]) -> float:
    """Cycles a processor second of the whole design while every one of 64 contexts climbs."""
    with trained_model(walker_design(contexts=_CONTEXTS), announce=announce) as model:
        announce("climbing in every context on the compiled model")
        nodes = 1 + np.random.default_rng(_SEED).permutation(_NODE_ATOMS - 1)[: _CONTEXTS * _HOPS]
        climb_chains(model, list(nodes.reshape(_CONTEXTS, _HOPS)), RefreshMode.ALL_BANK)
        return model.cycles_per_second
