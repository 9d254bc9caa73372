"""The near loop over its physical bound, and where each cycle of it goes; refresh is off.

A synthetic chain visits every bank twice, once for a closed row and once for a row hit, in random order; the
measure is the worst loop that found that. Each cycle of it is told from the logs of the run: request to first
command, first command to last data beat, last data beat to next request. They must be what `loop_parts` says
of the configuration, part by part; a run where they are not is an error.

The depth-first traces among the files are replayed near (`trace_loops`). There `loop_over_bound` is the worst
loop of a climb over the bound of its own read (`dependent_bound`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, RowClass, RowOp
from hdl.memory.address import AddressMap, Place
from sim.compiled import CompiledModel
from sim.model.bounds import isolated_bound
from sim.model.command_checker import ROW_BUS
from sim.trace.schema import Trace

from ...errors import InternalError
from ...ledger import Loops, loops
from ...loop_parts import LOOP_PARTS, LoopPart, RowState, loop_parts
from ..measures import Measure, Target
from .machine import ClimbRun, climb_chains, walker_design
from .parts_table import PART_MEASURE
from .trace_loops import depth_first, trace_loops

__all__ = ["bank_chains", "chain_measures", "latency_measures", "measured_parts", "over_bound_target"]

_SEED = 2026
_CHAINS = 16
_ROWS = (RowClass.HIT, RowClass.CLOSED)
#: Execute stages and clock ratios; `loop_parts` tells the others.
_STAGES_AND_RATIOS = ((1, 1), (2, 1), (3, 1), (1, 2), (1, 4))
#: Clock ratios whose loops on traces are measured too.
_HEADLINE_RATIOS = (1, 4)
#: Cycles over the bound that one execute stage may take; ECC adds one.
_OVER, _ECC_OVER = 4, 1


def over_bound_target(config: DesignConfig) -> Target | None:
    """The target of `loop_over_bound`; None for what is only reported."""
    if config.walker.execute_stages != 1 or config.clock_ratio != 1:
        return None
    return Target(at_most=_OVER + (_ECC_OVER if config.controller.ecc else 0))


def latency_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of the loop, measured now. Raises InternalError for a loop unlike `loop_parts`."""
    designs = [
        walker_design(ecc=ecc, stages=stages, clock_ratio=ratio)
        for ecc in (False, True)
        for stages, ratio in _STAGES_AND_RATIOS
    ]
    traces = depth_first(files)
    measures = list[Measure]()
    for done, config in enumerate(designs):
        progress("loop over bound", done, len(designs))
        with CompiledModel(config, announce=announce) as model:
            measures += chain_measures(model)
            if config.walker.execute_stages == 1 and config.clock_ratio in _HEADLINE_RATIOS:
                for name, searches in traces.items():
                    measures += _trace_measures(model, name, searches)
    progress("loop over bound", len(designs), len(designs))
    return measures


def _where(config: DesignConfig, row: RowClass) -> dict[str, str | int]:
    return {
        "row": row.name.lower(),
        "ecc": "on" if config.controller.ecc else "off",
        "stages": config.walker.execute_stages,
        "clock_ratio": config.clock_ratio,
    }


def chain_measures(model: CompiledModel) -> Iterator[Measure]:
    """The loop of the synthetic chain and its parts on one design. Raises InternalError."""
    config, timing = model.config, model.config.memory.timing
    found = [
        (row, parts)
        for chain in bank_chains(config)
        for row, parts in _measured(model, chain)
        if row in _ROWS
    ]
    for row in _ROWS:
        rows = [parts for seen, parts in found if seen is row]
        expected = loop_parts(config, cast(RowState, row.name.lower()))
        if not rows or any(parts != expected for parts in rows):
            raise InternalError(f"{row.name.lower()}: the loop's parts are {rows[:1]}: expected {expected}")
        bound = isolated_bound(row, timing)
        where = _where(config, row)
        for part in LOOP_PARTS:
            yield Measure(
                name=PART_MEASURE, where={"part": part, **where}, value=expected[part], unit="cycles"
            )
        yield Measure(
            name="loop_over_bound",
            where=where,
            value=max(sum(parts.values()) for parts in rows) - bound,
            unit="cycles",
            target=over_bound_target(config),
        )


def _trace_measures(model: CompiledModel, name: str, traces: Sequence[Trace]) -> Iterator[Measure]:
    for row, over in trace_loops(model, traces).items():
        if row in _ROWS and over:
            yield Measure(
                name="loop_over_bound",
                where={**_where(model.config, row), "trace": name},
                value=max(over),
                unit="cycles",
                target=over_bound_target(model.config),
            )


def bank_chains(config: DesignConfig) -> Iterator[NDArray[np.int64]]:
    """Addresses of chains through all banks in random order, two nodes of one row in each."""
    shape, rng = config.memory.organisation, np.random.default_rng(_SEED)
    banks = shape.pseudo_channels * shape.banks
    for chain in range(_CHAINS):
        unit = np.repeat(rng.permutation(banks), 2)
        column = rng.integers(shape.columns // 2, size=banks).repeat(2) * 2 + np.tile([0, 1], banks)
        place = Place(unit // shape.banks, unit % shape.banks, np.full_like(unit, 1 + chain), column)
        yield np.asarray(AddressMap(config.memory).encode(place), dtype=np.int64)


def _measured(
    model: CompiledModel, chain: NDArray[np.int64]
) -> Iterator[tuple[RowClass, dict[LoopPart, int]]]:
    run = climb_chains(model, [chain], RefreshMode.NONE)
    return measured_parts(model.config, run)


def measured_parts(config: DesignConfig, run: ClimbRun) -> Iterator[tuple[RowClass, dict[LoopPart, int]]]:
    """What every read of one lone climb found, and the parts of its loop.

    The logs tell issue (request to first command), device and answer (data to next request); issue and answer
    are split as `loop_parts` does, and what is over or missing shows in `command` and `walker`.
    """
    found = _loops(run)
    reads = run.accesses
    if len(reads) != len(found.cycles):
        raise InternalError(f"{len(reads)} accesses of a climb: expected its {len(found.cycles)} reads")
    activates = run.commands[(run.commands["bus"] == ROW_BUS) & (run.commands["op"] == RowOp.ACTIVATE.value)][
        "cycle"
    ].astype(np.int64)
    timing = config.memory.timing
    for requested, cycles, column, row_class in zip(
        found.requested.tolist(),
        found.cycles.tolist(),
        reads["cycle"].tolist(),
        reads["row_class"].tolist(),
        strict=True,
    ):
        row = RowClass(row_class)
        if row not in _ROWS:
            continue
        first = column if row is RowClass.HIT else int(activates[activates <= column][-1])
        data = column + timing.row_hit
        parts = loop_parts(config, cast(RowState, row.name.lower()))
        parts["command"] = first - requested - parts["arbiter"] - parts["intake"]
        parts["device"] = data - first
        parts["walker"] = requested + cycles - data - parts["ecc"] - parts["capture"]
        yield row, parts


def _loops(run: ClimbRun) -> Loops:
    return loops(
        batch=np.zeros(len(run.hops), dtype=np.int64),
        **{name: run.hops[name] for name in ("cycle", "context", "event", "address")},
    )
