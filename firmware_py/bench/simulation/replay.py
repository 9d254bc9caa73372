"""The replay whose simulation is timed: a depth-first search of a complete tree."""

from __future__ import annotations

from pathlib import Path

from hdl.config import DesignConfig
from sim.trace.recorder import Recorder
from sim.trace.schema import read_traces

from ...batches import ring_size
from ...image import CreationOrder
from ...programs import default_image
from ...replay import Plan, make_plan

__all__ = ["replay_plan", "write_replay"]

#: Children of every node that is not a leaf.
_BRANCHING = 4


def write_replay(path: Path, *, depth: int) -> None:
    """Write a depth-first search of a complete tree of `depth` levels, every leaf of it dead."""
    with Recorder(path) as trace:
        trace.begin("complete tree", algorithm="dfs")
        levels = [(trace.node(), _BRANCHING)]
        trace.expand(levels[0][0], _BRANCHING)
        while levels:
            node, left = levels[-1]
            trace.expand(node, left - 1)
            levels[-1] = (node, left - 1)
            child = trace.node(node)
            if len(levels) < depth:
                trace.expand(child, _BRANCHING)
                levels.append((child, _BRANCHING))
                continue
            trace.prune(child, "dead_end")
            while levels and levels[-1][1] == 0:
                levels.pop()
            trace.backtrack(child, levels[-1][0] if levels else None)
        trace.end("exhausted")


def replay_plan(path: Path, config: DesignConfig) -> Plan:
    """The plan of a trace file on a design."""
    return make_plan(
        read_traces(path),
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.organisation.atoms,
        contexts=config.walker.contexts,
    )
