"""A replay that is run on more than one simulator, and what of its runs must be the same on all of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from firmware_py.batches import ring_size
from firmware_py.driver import Accelerator
from firmware_py.image import CreationOrder
from firmware_py.programs import default_image
from firmware_py.replay import Monitor, Plan, make_plan, run_plan
from hdl.config import DesignConfig
from sim.trace.importers import import_file
from sim.trace.recorder import Recorder
from sim.trace.searches.depth_first import depth_first
from sim.trace.searches.random_tree import RandomTree

__all__ = ["Outcome", "plan_of", "run", "write_traces"]

#: Cycles each way of the off-chip path in these replays.
_LATENCY_UP, _LATENCY_DOWN = 97, 89


def write_traces(path: Path, *, seed: int, nodes: int) -> None:
    """Writes the traces of three searches: two depth-first ones of at most `nodes` nodes and a selection."""
    with Recorder(path) as trace:
        for number in (seed, seed + 1):
            trace.begin(f"tree {number}", algorithm="dfs")
            trace.end(depth_first(trace, RandomTree(seed=number), budget=nodes).status)
        chance = random.Random(seed)
        trace.begin("beam", algorithm="beam")
        root = trace.node()
        scores = {trace.node(root): float(chance.randrange(5)) for _ in range(12)}
        for node, score in scores.items():
            trace.eval(node, score)
        trace.select(scores, sorted(scores, key=lambda node: -scores[node])[:5])
        trace.end("unknown")


def plan_of(path: Path, *, config: DesignConfig, concurrent: int) -> Plan:
    """The plan of a file's traces on a design."""
    return make_plan(
        import_file(path),
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.organisation.atoms,
        contexts=config.walker.contexts,
        concurrent=concurrent,
    )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run in one place gave, as plain JSON types."""

    batch_cycles: list[int]
    walk_cycles: list[int]
    wrong: list[int]
    not_golden: list[int]
    memory_differs: list[int]


def run(plan: Plan, *, place: int, accelerator: Accelerator, monitor: Monitor) -> Outcome:
    """The outcome of a plan in `place` (0 near, 1 far)."""
    accelerator.set_link(latency_up=_LATENCY_UP, latency_down=_LATENCY_DOWN)
    done = run_plan(plan, program=default_image(), place=place, driver=accelerator, monitor=monitor)
    return Outcome(
        batch_cycles=done.batch_cycles.tolist(),
        walk_cycles=done.walk_cycles.tolist(),
        wrong=done.wrong,
        not_golden=done.not_golden,
        memory_differs=done.memory_differs,
    )
