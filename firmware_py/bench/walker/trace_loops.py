"""The near loops of depth-first traces over the bound of their own reads: one search at a time, no refresh.

The link is that of the usual far path, which a launch and the verdict before it cross: its time is what the
host's writes have to leave the controller's write buffer. Right behind a write of its own node a walk would
wait for that write, which no bound of reads knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hdl.layouts import RefreshMode, RowClass, Source
from hdl.memory.stack import StackMap
from sim.compiled import CompiledModel
from sim.trace.schema import Trace

from ...batches import ring_size
from ...compare import read_files
from ...driver import Accelerator
from ...errors import InternalError
from ...image import CreationOrder
from ...ledger import make_ledger
from ...paths import far_path
from ...plan import make_plan
from ...programs import default_image
from ...replay import run_plan
from ...transport.inprocess import InProcessTransport

__all__ = ["depth_first", "trace_loops"]

_FAR = "v100_hbm2"


def depth_first(files: Sequence[Path]) -> dict[str, list[Trace]]:
    """The depth-first traces of the files that have any, by folder and name of the file.

    Raises what `read_files` raises; nothing is read where there is no file.
    """
    found: dict[str, list[Trace]] = {}
    for file, read in zip(files, read_files(files) if files else (), strict=True):
        traces = [trace for trace in read.traces if trace.begin.algorithm in ("dfs", "dfsdt")]
        if traces:
            found[f"{file.parent.name}/{file.name}"] = traces
    return found


def trace_loops(model: CompiledModel, traces: Sequence[Trace]) -> dict[RowClass, list[int]]:
    """Cycles over its bound of every loop of the traces' climbs, replayed near, by what its read found.

    Raises InternalError for a verdict or an answer that is wrong.
    """
    config = model.config
    driver, far = Accelerator(InProcessTransport(model)), far_path(_FAR, config)
    driver.set_link(latency_up=far.latency_up, latency_down=far.latency_down)
    driver.set_refresh(RefreshMode.NONE)
    plan = make_plan(
        traces,
        program=default_image(),
        layout=CreationOrder(),
        ring=ring_size(config),
        memory_atoms=config.memory.atoms,
        contexts=config.walker.contexts,
    )
    run = run_plan(plan, program=default_image(), place=0, driver=driver, monitor=model)
    driver.set_refresh(RefreshMode.ALL_BANK)
    if run.wrong or run.not_golden:
        raise InternalError(f"{traces[0].file}: {len(run.wrong)} verdicts are wrong: expected none")
    logs = run.logs
    ledger = make_ledger(
        place=0,
        hops=logs.hops,
        hop_batch=logs.hop_batch,
        accesses=logs.accesses,
        access_batch=logs.access_batch,
        commands=logs.commands,
        timing=config.memory.timing,
        stack=StackMap(config.memory),
    )
    # One walk at a time: loops and reads are in the same order, and walks in that of their numbers.
    order = np.argsort(ledger.loops.requested, kind="stable")
    accesses = logs.accesses
    reads = accesses[(accesses["source"] == Source.NEAR_WALKER.value) & (accesses["write"] == 0)]
    over = (ledger.loops.cycles - ledger.bound_cycles)[order]
    climbs = np.array([walk.question.program == "climb" for walk in plan.walks], dtype=np.bool_)
    climb = np.repeat(climbs, np.array([answer.hops for answer in run.answers], dtype=np.int64))
    return {
        row: over[climb & (reads["row_class"] == row.value)].tolist()
        for row in (RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT)
    }
