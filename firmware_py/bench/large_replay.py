"""What a large replay takes on the host: CPU time and peak memory of a comparison of 100,000 nodes.

The trace is a depth-first search of random trees, with declared counts. A process of its own imports it,
replays it near and far, checks every verdict and makes the report; it says what that took. The model was
compiled before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sim.trace.recorder import Recorder
from sim.trace.searches.depth_first import depth_first
from sim.trace.searches.random_tree import RandomTree

from ..design import design_for
from ..errors import InternalError
from ..machine import compiled_machine

__all__ = ["LargeReplay", "Shape", "large_replay", "write_large_trace"]

#: Many problems of some hundred nodes, or one that has all of them.
Shape = Literal["many", "one"]

_MEMORY, _FAR = "hbm2_2000", "v100_hbm2"
#: Nodes of a problem at most, and the depth of its tree, by shape; None: all nodes.
_PROBLEM_NODES: dict[Shape, int | None] = {"many": 400, "one": None}
_DEPTH: dict[Shape, int] = {"many": 8, "one": 60}
#: The first tree; of this seed the one of depth 60 has more than a million nodes.
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class LargeReplay:
    """What came of it and what it took."""

    problems: int
    nodes: int
    walks: int
    """In each place."""
    failures: list[str]
    """Why the comparison is not good; empty when it is."""
    seconds: float
    """CPU time of the process, all threads, user and system."""
    peak_bytes: int
    """The most memory that it had resident (VmHWM of proc(5))."""


def write_large_trace(path: Path, *, nodes: int, shape: Shape) -> None:
    """Write the trace of a search of exactly `nodes` nodes. Raises OSError."""
    made = 0
    with Recorder(path) as recorder:
        for seed in range(_SEED, _SEED + nodes):
            tree = RandomTree(seed=seed, depth=_DEPTH[shape])
            recorder.begin(f"tree {seed}", algorithm="dfs", source="random_tree", meta={"seed": seed})
            budget = min(_PROBLEM_NODES[shape] or nodes, nodes - made)
            recorder.end(depth_first(recorder, tree, budget=budget).status)
            made += recorder.nodes
            if made == nodes:
                return


def large_replay(
    nodes: int = 100_000, *, shape: Shape = "many", announce: Callable[[str], None] = lambda what: None
) -> LargeReplay:
    """Make such a trace and replay it in a process of its own. `announce` is told what is being done.

    Raises InternalError with what the process said when it fails.
    """
    with compiled_machine(design_for(_MEMORY), announce):
        pass  # compiled by now
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        announce(f"searching {nodes:,} nodes")
        write_large_trace(trace, nodes=nodes, shape=shape)
        announce(f"replaying {nodes:,} nodes near and far")
        run = subprocess.run(
            [sys.executable, "-m", __name__, str(trace)], capture_output=True, text=True, check=False
        )
    if run.returncode:
        raise InternalError(
            f"the replay of {nodes:,} nodes ended with {run.returncode}: {run.stderr[-2000:]}"
        )
    return LargeReplay(**json.loads(run.stdout))


def _measure(trace: Path) -> LargeReplay:
    """The comparison of a trace in this process, and what this process took."""
    from ..compare import compare, read_files
    from ..image import CreationOrder
    from ..programs import default_image
    from ..report.document import document

    files = read_files([trace])
    comparison = compare(
        files,
        config=design_for(_MEMORY),
        far=_FAR,
        concurrent=1,
        program=default_image(),
        layout=CreationOrder(),
        open_machine=compiled_machine,
        announce=lambda what: None,
        progress=lambda name, done, total: None,
    )
    document(comparison)
    (verdicts,) = comparison.files
    return LargeReplay(
        problems=verdicts.problems,
        nodes=verdicts.nodes,
        walks=verdicts.walks,
        failures=list(comparison.failures),
        seconds=time.process_time(),
        peak_bytes=_peak_bytes(),
    )


def _peak_bytes() -> int:
    """The peak of this process alone: `ru_maxrss` would count that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(Path(sys.argv[1])))))
