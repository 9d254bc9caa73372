"""The comparison: the same traces replayed near and far on one design, with every figure of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode
from sim.model.memory_bounds import effective_mode
from sim.trace.importers import import_file
from sim.trace.schema import Trace

from .assembler import Image
from .axi_port import isolated_cycles
from .batches import ring_size
from .control import Control
from .effect import Effect, effect
from .energy import PlaceEnergy, place_energy
from .errors import InputError
from .far_help import CacheSetting, FarHelp
from .image import Layout
from .loop_parts import loop_parts
from .machine import Measuring, OpenMeasuring
from .paths import FarPath
from .place import AT_THE_MEMORY, Place, PlaceFigures, ReplayFigures, faults
from .placement import Placement, RoundRobin
from .replay import Plan, Run, make_plan
from .walks import Check

__all__ = [
    "BARE_FAR",
    "Comparison",
    "FileVerdicts",
    "ReplayComparison",
    "Tally",
    "TraceFile",
    "compare",
    "read_files",
    "repeated",
    "require_help",
]

#: What a far place is called that has help, but is measured without it.
BARE_FAR = "far without help"


@dataclass(frozen=True, kw_only=True)
class TraceFile:
    """The traces of one file and the kind that it was recognised as."""

    file: str
    format: str
    traces: Sequence[Trace]


def read_files(files: Sequence[Path]) -> list[TraceFile]:
    """Every trace of the files. Raises TraceError or OSError naming the file, InputError for no file."""
    if not files:
        raise InputError("no trace file was given: expected at least one")
    read: list[TraceFile] = []
    for file in files:
        imported = import_file(file)
        traces = list(imported)
        read.append(TraceFile(file=str(file), format=imported.summary.format, traces=traces))
    return read


def repeated(traces: Sequence[Trace], concurrent: int, *, beyond: int) -> list[Trace]:
    """The traces, and again from the first until there are `concurrent`; as they are up to `beyond`."""
    if concurrent <= beyond or not traces:
        return list(traces)
    return list(islice(cycle(traces), max(concurrent, len(traces))))


def require_help(far_help: FarHelp, *, climbing: str) -> None:
    """Check that the help fits the program. Raises InputError."""
    if far_help.stack and climbing != "climb":
        raise InputError(f"--far-help stack stands in for climb: expected --program climb, not {climbing}")


@dataclass(kw_only=True)
class Tally:
    """Verdicts: how many were checked, and how many of those were wrong near or far."""

    checked: int = 0
    wrong: int = 0


@dataclass(kw_only=True)
class FileVerdicts:
    """What came of the traces of one file."""

    file: str
    format: str
    problems: int = 0
    nodes: int = 0
    walks: int = 0
    """Walks in each place."""
    verdicts: Tally = field(default_factory=Tally)
    unchecked: Counter[str] = field(default_factory=Counter)
    """Events without a verdict by reason: walks compared with the golden interpreter only, or no walk."""
    by_source: dict[str, Tally] = field(default_factory=dict)
    by_check: dict[Check, Tally] = field(default_factory=dict)


F = TypeVar("F", bound=ReplayFigures)


@dataclass(frozen=True, kw_only=True)
class ReplayComparison(Generic[F]):
    """Everything that a report says, with the figures `F` that the machine gives of a place."""

    config: DesignConfig
    refresh: RefreshMode
    """What the memory did: all-bank where it has no per-bank refresh."""
    concurrent: int
    climbing: str
    """The program that found where a search resumes."""
    layout: str
    """The policy that chose each node's place."""
    placement: str
    """The policy that chose each tree's channel."""
    trees: Sequence[int]
    """Trees placed, by channel."""
    far_path: FarPath
    near_path: FarPath | None
    """The port that the near walker reads through; None: it is beside the memory, or behind AXI ports."""
    near_behind_axi: bool
    """The near walkers read through AXI ports of the design."""
    far_help: FarHelp
    cache: CacheSetting | None
    """The far place's cache; None without one."""
    solved: int
    """Searches replayed that ended with the status solved."""
    repeated: int
    """Searches that were replayed again, because there were fewer than asked at a time."""
    files: Sequence[FileVerdicts]
    near: F
    far: F
    bare_far: F | None
    """The far place without its help, where that was asked for too."""
    controls: Sequence[Control]
    """Negative controls that were run in both places; each turned its verdict wrong."""
    failures: Sequence[str]
    """Why the run is not good, one line each; empty when it is."""

    @property
    def clock_ns(self) -> float:
        """Length of a cycle."""
        return self.config.memory.timing.clock_ns

    @property
    def places(self) -> dict[str, F]:
        """The figures by the name of their place."""
        bare = {} if self.bare_far is None else {BARE_FAR: self.bare_far}
        return {"near": self.near, "far": self.far, **bare}

    @property
    def effect(self) -> Effect:
        """What near memory changes of the far place: of its loop, its walk and its whole replay."""
        return effect("near", self.near, over="far", base=self.far)

    @property
    def energy(self: ReplayComparison[PlaceFigures]) -> dict[Literal["near", "far"], PlaceEnergy | None]:
        """The energy of each place, of a simulation; None where none of its path is published."""
        path, port = self.far_path.path.name, self.near_path and self.near_path.path.name
        # Behind an AXI port nobody sees what the memory does.
        seen = self.near.controlled
        return {
            "near": place_energy(self.near, path=path, port=port, solved=self.solved) if seen else None,
            "far": place_energy(self.far, path=path, solved=self.solved),
        }

    @property
    def violations(self) -> int | None:
        """Broken timing rules, near and far together; None: the design does not look for them."""
        if self.near.violations is None or self.far.violations is None:
            return None
        return self.near.violations.total() + self.far.violations.total()

    @property
    def isolated_speedup(self) -> float:
        """Isolated far loop over isolated near loop: an input, for the preset chose the far one."""
        if self.near_path is not None:
            return self.far_path.isolated_cycles / self.near_path.isolated_cycles
        state = self.far_path.path.row_state
        if self.near_behind_axi:
            return self.far_path.isolated_cycles / isolated_cycles(self.config, state)
        near = sum(loop_parts(self.config, state).values())
        return self.far_path.isolated_cycles / near


#: The comparison of a simulation.
Comparison: TypeAlias = ReplayComparison[PlaceFigures]


def compare(
    files: Sequence[TraceFile],
    *,
    config: DesignConfig,
    far: str,
    near: str = AT_THE_MEMORY,
    far_help: FarHelp | None = None,
    concurrent: int,
    program: Image,
    layout: Layout,
    climbing: str = "climb",
    placement: Placement | None = None,
    refresh: RefreshMode = RefreshMode.ALL_BANK,
    bare_far: bool = False,
    open_machine: OpenMeasuring[F],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> ReplayComparison[F]:
    """The comparison of the traces of `files` on `config`, across the far preset `far`.

    `near` is the memory's own side, `axi4`, where the near walkers are behind AXI ports with the published
    latencies of one, or the preset of a host controller's port, where the near walker's reads take the
    published time and a walk still crosses the far path. The far place has `far_help`, by default
    none; the near one runs on the design without it. With `bare_far` a far place that has help is measured
    without it as well. The default placement is `RoundRobin`. `climbing` is the
    program of `programs.CLIMBS`, in the image `program`, that finds where a search resumes. `announce` is
    told what is being done, `progress` the place, the batches done and their number. Raises InputError for an
    input that cannot be replayed and InternalError when the run cannot be trusted.
    """
    help_ = far_help or FarHelp()
    require_help(help_, climbing=climbing)
    far_config = help_.built_into(config)
    places = {
        "near": Place.near(near, far, config),
        "far": Place.far(far, far_config, far_help=help_),
    }
    if bare_far and help_.names:
        places[BARE_FAR] = Place.far(far, config, far_help=FarHelp())
    placement = placement or RoundRobin()
    traces = repeated(
        [trace for file in files for trace in file.traces], concurrent, beyond=config.walker.contexts
    )

    def planned(for_help: FarHelp) -> Plan:
        announce(f"planning the replay of {len(traces)} searches")
        return make_plan(
            traces,
            program=program,
            layout=layout,
            climbing=climbing,
            ring=ring_size(config),
            memory_atoms=config.memory.atoms,
            contexts=config.walker.contexts,
            concurrent=concurrent,
            channels=config.memory.channels,
            placement=placement,
            far_help=for_help,
        )

    plan = planned(FarHelp())
    plans = {"near": plan, "far": planned(help_) if help_.plans else plan, BARE_FAR: plan}
    figures: dict[str, F] = {}
    with ExitStack() as machines:
        opened: dict[DesignConfig, Measuring[F]] = {}
        for name, place in places.items():
            if place.config not in opened:
                opened[place.config] = machines.enter_context(open_machine(place.config, announce))
            figures[name] = opened[place.config].measure(
                plans[name],
                place,
                name=name,
                program=program,
                refresh=refresh,
                progress=progress,
            )
    near_figures, away = figures["near"], figures["far"]
    return ReplayComparison(
        config=config,
        refresh=effective_mode(config.memory.timing, refresh),
        concurrent=concurrent,
        climbing=climbing,
        layout=layout.name,
        placement=placement.name,
        trees=np.bincount(
            [planned.channel for planned in plan.traces], minlength=config.memory.channels
        ).tolist(),
        far_path=places["far"].path,
        near_path=places["near"].port,
        near_behind_axi=not places["near"].config.memory.controlled,
        far_help=help_,
        cache=places["far"].cache if help_.cache else None,
        solved=sum(trace.end.status == "solved" for trace in traces),
        repeated=len(traces) - sum(len(file.traces) for file in files),
        files=_verdicts(plan, files, near_figures.run, away.run),
        near=near_figures,
        far=away,
        bare_far=figures.get(BARE_FAR),
        controls=list(plan.controls.values()),
        failures=_failures(plans, figures),
    )


def _verdicts(plan: Plan, files: Sequence[TraceFile], near: Run, far: Run) -> list[FileVerdicts]:
    file_of = [index for index, file in enumerate(files) for _ in file.traces]
    result = [FileVerdicts(file=file.file, format=file.format) for file in files]
    for number, planned in enumerate(plan.traces):
        verdicts = result[file_of[number % len(file_of)]]
        verdicts.problems += 1
        verdicts.nodes += planned.nodes
        verdicts.unchecked.update(unasked.reason for unasked in planned.unasked)
    wrong = set(near.wrong) | set(far.wrong)
    for number, walk in enumerate(plan.walks):
        verdicts = result[file_of[walk.trace % len(file_of)]]
        question = walk.question
        verdicts.walks += 1
        if question.check == "none":
            verdicts.unchecked[question.reason or "no reason given"] += 1
            continue
        tallies = [verdicts.verdicts, verdicts.by_check.setdefault(question.check, Tally())]
        if question.source is not None:
            tallies.append(verdicts.by_source.setdefault(question.source, Tally()))
        for tally in tallies:
            tally.checked += 1
            tally.wrong += number in wrong
    return result


def _failures(plans: Mapping[str, Plan], figures: Mapping[str, ReplayFigures]) -> list[str]:
    """One line for each kind of fault, with the first of the kind."""
    lines = [line for name, found in figures.items() for line in faults(plans[name], found, name=name)]
    if figures["near"].run.wrong != figures["far"].run.wrong:
        lines.append("near and far verdicts differ: expected the same in both places")
    return lines
