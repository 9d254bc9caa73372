"""What a climb costs with each program and layout, and a whole decision in one walk or in parts.

* reads_per_backtrack, stores_per_backtrack: of one climb, by program, layout, trace and searches at a time.
* ns_per_backtrack: layer `loop` is from the walk's first request to its end, at the walker; `walk` has both
  crossings of the link as well; `elapsed` is the time in which any walk was under way over the walks, so that
  what searches do at the same time counts once. The bound of the near loop is the timing table's for the same
  reads.
* best_backtrack: the least ns of all programs and layouts over those of `climb` on creation order: of one
  search at a time in each layer, and of several in `elapsed`. A near walk alone misses its target, and so do
  16 at a time: most of their time are the two crossings, which no program saves. Of 256 at a time, measured
  where climbs are deep, the walks of all cross while others run, and their reads are what counts.
* best_decision: the least ns_per_decision of one walk, by any program, over that of `climb` in parts.
* ns_per_decision: `decisions`. ns_per_walk, link_bytes_per_walk: `launches`. instructions_per_hop:
  `moment_instructions`.

A trace here is all files of one format, its climbs only, or `synthetic`: trees at least 8 deep. With more
searches at a time than traces, these are repeated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hdl.config import DesignConfig
from sim.compiled import CompiledModel
from sim.trace.events import Backtrack, Backup, Jump, Select
from sim.trace.schema import Trace

from ...compare import TraceFile, compare, read_files
from ...driver import Accelerator
from ...errors import InternalError
from ...layout import LAYOUTS, layout_named
from ...machine import Machine
from ...place import PlaceFigures
from ...programs import CLIMBS, replay_image
from ...transport.inprocess import InProcessTransport
from ..measures import Measure, Target
from .decisions import decision_measures
from .launches import launch_measures
from .machine import walker_design
from .moment_instructions import moment_instructions
from .synthetic import deep_searches

__all__ = [
    "FAR",
    "backtrack_measures",
    "best_decisions",
    "best_measures",
    "climbing_traces",
    "programs_measures",
]

#: The far path of the walks.
FAR = "v100_hbm2"
_SEED = 2026
_SYNTHETIC = 16
#: Synthetic searches whose instructions are counted.
_COUNTED = 2
_CONCURRENT = (1, 16)
#: So many more than contexts that a round of walks takes longer than its crossings; where climbs are deep.
_CROWD = 256
#: Where the best combination must take at most half of what plain `climb` on creation order takes.
_DEEP = ("synthetic", "toolbench_dfsdt")
_DEEP_TARGET = Target(at_most=0.5)


def programs_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of the programs, measured now. Raises InternalError when a replay is not clean."""
    config = walker_design()
    traces = climbing_traces(files)
    runs = [
        (trace, program, layout, concurrent)
        for trace in traces
        for concurrent in (*_CONCURRENT, *((_CROWD,) if trace in _DEEP else ()))
        for program in CLIMBS
        for layout in LAYOUTS
    ]
    measures: list[Measure] = []
    with CompiledModel(config, announce=announce) as model:
        for done, (trace, program, layout, concurrent) in enumerate(runs):
            progress("backtracks", done, len(runs))
            measures += backtrack_measures(
                model, trace, traces[trace], program=program, layout=layout, concurrent=concurrent
            )
        progress("backtracks", len(runs), len(runs))
        measures += best_measures(measures)
        for name, searches in traces.items():
            measures += decision_measures(model, name, searches, far=FAR, progress=progress)
        measures += best_decisions(measures)
        measures += launch_measures(model, far=FAR, progress=progress)
    measures += moment_instructions(deep_searches(_COUNTED, seed=_SEED))
    return measures


def climbing_traces(files: Sequence[Path]) -> dict[str, list[Trace]]:
    """The synthetic traces, and by format of their file those that have a backtrack; climbs only."""
    found = {"synthetic": deep_searches(_SYNTHETIC, seed=_SEED)}
    for file in read_files(files) if files else []:
        for trace in file.traces:
            if any(isinstance(event, Backtrack) for event in trace.events):
                events = [event for event in trace.events if not isinstance(event, Select | Jump | Backup)]
                found.setdefault(file.format, []).append(dataclasses.replace(trace, events=events))
    return found


def backtrack_measures(
    model: CompiledModel, name: str, traces: Sequence[Trace], *, program: str, layout: str, concurrent: int
) -> Iterator[Measure]:
    """The figures of the climbs of `traces`, called `name`. Raises InternalError if a replay is not clean."""
    repeated = list(traces) * -(-concurrent // len(traces))
    comparison = compare(
        [TraceFile(file=name, format=name, traces=repeated)],
        config=model.config,
        far=FAR,
        concurrent=concurrent,
        program=replay_image(program),
        layout=layout_named(layout, model.config.memory),
        climbing=program,
        open_machine=_opened(model),
        announce=lambda text: None,
        progress=lambda place, done, of: None,
    )
    if comparison.failures:
        raise InternalError(f"{name}, {program}, layout {layout}: {comparison.failures[0]}")
    where: Mapping[str, str | int] = {
        "program": program,
        "layout": layout,
        "trace": name,
        "concurrent": concurrent,
    }
    near, clock = comparison.near, comparison.clock_ns
    walks = len(near.run.answers)
    yield Measure(name="reads_per_backtrack", where=where, value=_mean_reads(near), unit="reads")
    yield Measure(name="stores_per_backtrack", where=where, value=near.stores / walks, unit="stores")
    for place, figures in (("near", near), ("far", comparison.far)):
        bound = float(figures.ledger.bound_cycles.sum()) * clock / walks if place == "near" else None
        yield Measure(
            name="ns_per_backtrack",
            where={**where, "place": place, "layer": "loop"},
            value=float(figures.ledger.loops.cycles.sum()) * clock / walks,
            unit="ns",
            bound=bound,
        )
        yield Measure(
            name="ns_per_backtrack",
            where={**where, "place": place, "layer": "walk"},
            value=float(figures.run.walk_cycles.mean()) * clock,
            unit="ns",
        )
        assert figures.walks_per_second is not None, "a trace without a climb is left out"
        yield Measure(
            name="ns_per_backtrack",
            where={**where, "place": place, "layer": "elapsed"},
            value=1e9 / figures.walks_per_second,
            unit="ns",
        )


def _mean_reads(figures: PlaceFigures) -> float:
    mean = figures.reads_per_walk.mean
    assert mean is not None, "a trace without a climb is left out"
    return mean


def best_measures(measures: Sequence[Measure]) -> Iterator[Measure]:
    """For each trace, place, layer and number of searches: the best combination over the plain one."""
    groups: dict[tuple[str, str, str, int], dict[tuple[str, str], float]] = {}
    for measure in measures:
        if measure.name != "ns_per_backtrack":
            continue
        trace, place, layer, program, layout = (
            str(measure.where[key]) for key in ("trace", "place", "layer", "program", "layout")
        )
        concurrent = int(measure.where["concurrent"])
        if (concurrent > 1) == (layer == "elapsed"):
            groups.setdefault((trace, place, layer, concurrent), {})[program, layout] = measure.value
    for (trace, place, layer, concurrent), values in groups.items():
        best = min(values, key=lambda pair: values[pair])
        yield Measure(
            name="best_backtrack",
            where={
                "trace": trace,
                "concurrent": concurrent,
                "place": place,
                "layer": layer,
                "program": best[0],
                "layout": best[1],
            },
            value=values[best] / values["climb", "creation"],
            unit="of climb, creation",
            target=_DEEP_TARGET if trace in _DEEP else None,
        )


def best_decisions(measures: Sequence[Measure]) -> Iterator[Measure]:
    """For each trace and place: the whole decision in one walk by its best program over `climb` in parts."""
    groups: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for measure in measures:
        if measure.name == "ns_per_decision":
            trace, place, fused, program = (
                str(measure.where[key]) for key in ("trace", "place", "fused", "program")
            )
            groups.setdefault((trace, place), {})[fused, program] = measure.value
    for (trace, place), values in groups.items():
        best = min((pair for pair in values if pair[0] == "yes"), key=lambda pair: values[pair])
        yield Measure(
            name="best_decision",
            where={"trace": trace, "place": place, "program": best[1]},
            value=values[best] / values["no", "climb"],
            unit="of climb, in parts",
        )


def _opened(model: CompiledModel):
    @contextmanager
    def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Machine]:
        yield Machine(driver=Accelerator(InProcessTransport(model)), monitor=model)

    return open_machine
