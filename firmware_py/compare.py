"""The comparison: the same traces replayed near and far on one design, with every figure of the report."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from hdl.config import DesignConfig, named_config
from hdl.layouts import HopEvent, RefreshMode
from hdl.memory.stack import StackMap
from hdl.memory.timing import preset
from sim.model.command_checker import check as check_commands
from sim.model.memory_bounds import effective_mode
from sim.trace.importers import import_file
from sim.trace.schema import Trace

from .assembler import Image
from .batches import ring_size
from .control import Control
from .driver import MemoryErrors
from .errors import InputError, InternalError
from .far_help import OFF, CacheSetting, FarHelp, cache_setting
from .image import Layout
from .ledger import Ledger, RowShares, Statistics, make_ledger, statistics
from .loop_parts import loop_parts
from .machine import Machine, OpenMachine
from .paths import LINK_CYCLES, FarPath, far_path, port_path
from .placement import Placement, RoundRobin
from .replay import Plan, Run, make_plan, run_plan
from .throughput import busy_cycles
from .walks import Check

__all__ = [
    "AT_THE_MEMORY",
    "CONTEXTS_MAX",
    "CacheCounts",
    "ChannelFigures",
    "Comparison",
    "FileVerdicts",
    "Place",
    "PlaceFigures",
    "Tally",
    "TraceFile",
    "compare",
    "design_for",
    "faults",
    "measure",
    "read_files",
    "refresh_named",
    "repeated",
    "require_help",
]

#: The near place where there is nothing between walker and controller.
AT_THE_MEMORY = "memory"
#: Contexts of walkers that serve more searches at a time than the usual ones have.
CONTEXTS_MAX = 64


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


def design_for(
    memory: str,
    *,
    channels: int = 1,
    ecc: bool = False,
    address_map: str | None = None,
    concurrent: int = 1,
    stages: int = 1,
    clock_ratio: int = 1,
) -> DesignConfig:
    """The design that comparisons simulate: a stack of `channels` of the memory preset `memory`.

    Its walkers have 16 contexts, or 64 for more than 16 searches at a time.

    The preset is a name, or a file FILE.toml. `address_map` lists the entries of another map than the usual
    one, with commas between them (`hdl/memory/address_bits.py`). `stages` are the walkers' execute stages.
    Raises InputError, or OSError for a file that cannot be read.
    """
    try:
        preset(memory)
    except ValueError as error:
        raise InputError(str(error)) from None
    base = named_config("simulation")
    contexts = base.walker.contexts if concurrent <= base.walker.contexts else CONTEXTS_MAX
    try:
        entries = base.memory.address_map if address_map is None else tuple(address_map.split(","))
        return dataclasses.replace(
            base,
            walker=dataclasses.replace(base.walker, contexts=contexts, execute_stages=stages),
            controller=dataclasses.replace(base.controller, ecc=ecc),
            memory=dataclasses.replace(base.memory, preset=memory, channels=channels, address_map=entries),
            clock_ratio=clock_ratio,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def repeated(traces: Sequence[Trace], concurrent: int, *, beyond: int) -> list[Trace]:
    """The traces, and again from the first until there are `concurrent`; as they are up to `beyond`."""
    if concurrent <= beyond or not traces:
        return list(traces)
    return list(islice(cycle(traces), max(concurrent, len(traces))))


def require_help(far_help: FarHelp, *, climbing: str) -> None:
    """Check that the help fits the program. Raises InputError."""
    if far_help.stack and climbing != "climb":
        raise InputError(f"--far-help stack stands in for climb: expected --program climb, not {climbing}")


def refresh_named(name: str) -> RefreshMode:
    """The refresh called `name`. Raises InputError that lists the known names."""
    modes = {mode.name.lower(): mode for mode in RefreshMode}
    if name not in modes:
        raise InputError(f"unknown refresh {name!r}: expected one of {', '.join(modes)}")
    return modes[name]


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


@dataclass(frozen=True, kw_only=True)
class ChannelFigures:
    """What one channel did for the walks of one place."""

    rows: RowShares
    """What their reads found."""
    violations: Counter[str]
    """Broken timing rules by name, whoever asked."""


@dataclass(frozen=True, kw_only=True)
class CacheCounts:
    """Reads of a replay that the cache answered, and that went on, by its counters."""

    hits: int
    misses: int

    @property
    def hit_rate(self) -> float | None:
        """The share of hits, 0 to 1; None without a read."""
        reads = self.hits + self.misses
        return self.hits / reads if reads else None


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place of the comparison: which walker, across what, on which design, with what help."""

    walker: int
    """0 the near walker, 1 the far one."""
    config: DesignConfig
    path: FarPath
    """The path between search and memory."""
    link: FarPath
    """What the link is set to: the path, or a host controller's port."""
    port: FarPath | None = None
    """A host controller's port that a near walker reads through."""
    crossing: int = 0
    """Cycles that a walk takes besides, for its launch and verdict on the path."""
    cache: CacheSetting = OFF

    @classmethod
    def near(cls, near: str, far: str, config: DesignConfig) -> Place:
        """Beside the memory, or behind the host controller's port of preset `near`.

        Behind a port the walker is the one that reads across the link, which is set to the port; launch and
        verdict take the cycles of the far path besides.
        """
        path = far_path(far, config)
        if near == AT_THE_MEMORY:
            return cls(walker=0, config=config, path=path, link=path)
        port = port_path(near, config)
        crossing = path.latency_up + path.latency_down + LINK_CYCLES
        return cls(walker=1, config=config, path=path, link=port, port=port, crossing=crossing)

    @classmethod
    def far(cls, far: str, config: DesignConfig, *, far_help: FarHelp) -> Place:
        """Across the path of preset `far`, with help; `config` has been given what that needs."""
        path = far_path(far, config)
        return cls(walker=1, config=config, path=path, link=path, cache=cache_setting(far_help.cache, config))


@dataclass(frozen=True, kw_only=True)
class PlaceFigures:
    """The figures of one place; latencies in cycles."""

    walk: Statistics
    reads_per_walk: Statistics
    loop: Statistics
    bound_mean: float | None
    ledger: Ledger
    channels: Sequence[ChannelFigures]
    errors: MemoryErrors | None
    """What ECC found in the replay; None without ECC."""
    replay_cycles: int
    """Cycles inside batches."""
    walks_per_second: float | None
    """All walks over the time in which any was in progress (`throughput`); None without a walk."""
    cache: CacheCounts | None
    """What the cache did for the reads of walks; None without one."""
    helped: Counter[str]
    """Questions that path stack and stream answered."""
    stores: int
    """Words that the walks stored."""
    run: Run

    @property
    def violations(self) -> Counter[str]:
        """Broken timing rules by name, in all channels."""
        return sum((channel.violations for channel in self.channels), Counter())


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that a report says."""

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
    """The port that the near walker reads through; None: it is beside the memory."""
    far_help: FarHelp
    cache: CacheSetting | None
    """The far place's cache; None without one."""
    repeated: int
    """Searches that were replayed again, because there were fewer than asked at a time."""
    files: Sequence[FileVerdicts]
    near: PlaceFigures
    far: PlaceFigures
    controls: Sequence[Control]
    """Negative controls that were run in both places; each turned its verdict wrong."""
    failures: Sequence[str]
    """Why the run is not good, one line each; empty when it is."""

    @property
    def clock_ns(self) -> float:
        """Length of a cycle."""
        return self.config.memory.timing.clock_ns

    @property
    def violations(self) -> int:
        """Broken timing rules, near and far together."""
        return self.near.violations.total() + self.far.violations.total()

    @property
    def isolated_speedup(self) -> float:
        """Isolated far loop over isolated near loop: an input, for the preset chose the far one."""
        if self.near_path is not None:
            return self.far_path.isolated_cycles / self.near_path.isolated_cycles
        near = sum(loop_parts(self.config, self.far_path.path.row_state).values())
        return self.far_path.isolated_cycles / near


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
    open_machine: OpenMachine,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> Comparison:
    """The comparison of the traces of `files` on `config`, across the far preset `far`.

    `near` is the memory's own side, or the preset of a host controller's port, where the near walker's reads
    take the published time and a walk still crosses the far path. The far place has `far_help`, by default
    none; the near one runs on the design without it. The default placement is `RoundRobin`. `climbing` is the
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
    plans = {"near": plan, "far": planned(help_) if help_.plans else plan}
    figures: dict[str, PlaceFigures] = {}
    with ExitStack() as machines:
        opened: dict[DesignConfig, Machine] = {}
        for name, place in places.items():
            if place.config not in opened:
                opened[place.config] = machines.enter_context(open_machine(place.config, announce))
            figures[name] = measure(
                plans[name],
                place,
                name=name,
                machine=opened[place.config],
                program=program,
                refresh=refresh,
                progress=progress,
            )
    near_figures, away = figures["near"], figures["far"]
    return Comparison(
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
        far_help=help_,
        cache=places["far"].cache if help_.cache else None,
        repeated=len(traces) - sum(len(file.traces) for file in files),
        files=_verdicts(plan, files, near_figures.run, away.run),
        near=near_figures,
        far=away,
        controls=list(plan.controls.values()),
        failures=_failures(plans, near_figures, away),
    )


def measure(
    plan: Plan,
    place: Place,
    *,
    name: str,
    machine: Machine,
    program: Image,
    refresh: RefreshMode,
    progress: Callable[[str, int, int], None],
) -> PlaceFigures:
    """The figures of a plan in one place, called `name` in messages. Raises InternalError."""
    config, cached = place.config, place.config.cache.built
    machine.driver.set_refresh(refresh)
    machine.driver.set_link(latency_up=place.link.latency_up, latency_down=place.link.latency_down)
    if cached:
        machine.driver.set_cache(
            sets_log2=place.cache.sets_log2, ways=place.cache.ways, hit_latency=place.cache.hit_latency
        )
    machine.driver.reset_counters()
    counted = (0, 0)

    def batch_done(done: int) -> None:
        nonlocal counted
        progress(name, done, len(plan.batches))
        if cached and done == len(plan.batches):
            # What comes after the last batch is the negative control.
            counted = machine.driver.cache_counts()

    run = run_plan(
        plan,
        program=program,
        place=place.walker,
        driver=machine.driver,
        monitor=machine.monitor,
        progress=batch_done,
    )
    run.walk_cycles += place.crossing
    memory = config.memory
    logs = run.logs
    try:
        ledger = make_ledger(
            place=place.walker,
            hops=logs.hops,
            hop_batch=logs.hop_batch,
            accesses=logs.accesses,
            access_batch=logs.access_batch,
            commands=logs.commands,
            timing=memory.timing,
            stack=StackMap(memory),
            cached=cached,
        )
        busy = busy_cycles(plan, run, ledger.loops)
    except ValueError as error:
        raise InternalError(f"{name}: {error}") from None
    windows = [] if refresh is RefreshMode.NONE else logs.windows.tolist()
    channels = [
        ChannelFigures(
            rows=rows,
            violations=Counter(
                check_commands(
                    commands, memory.timing, memory.organisation, refresh_windows=windows
                ).by_rule()
            ),
        )
        for rows, commands in zip(ledger.channel_rows, logs.commands, strict=True)
    ]
    bound = ledger.bound_cycles
    return PlaceFigures(
        walk=statistics(run.walk_cycles),
        reads_per_walk=statistics([answer.hops for answer in run.answers]),
        loop=statistics(ledger.loops.cycles),
        bound_mean=float(bound.mean()) if len(bound) else None,
        ledger=ledger,
        channels=channels,
        errors=machine.driver.memory_errors() if config.controller.ecc else None,
        replay_cycles=int(run.batch_cycles.sum()),
        walks_per_second=len(plan.walks) / (busy * memory.timing.clock_ns * 1e-9) if busy else None,
        cache=CacheCounts(hits=counted[0], misses=counted[1]) if cached else None,
        helped=Counter(walk.local.help for walk in plan.walks if walk.local is not None),
        stores=int(
            np.count_nonzero(
                (logs.hops["place"] == place.walker) & (logs.hops["event"] == HopEvent.STORE.value)
            )
        ),
        run=run,
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


def _failures(plans: Mapping[str, Plan], near: PlaceFigures, far: PlaceFigures) -> list[str]:
    """One line for each kind of fault, with the first of the kind."""
    lines = [*faults(plans["near"], near, name="near"), *faults(plans["far"], far, name="far")]
    if near.run.wrong != far.run.wrong:
        lines.append("near and far verdicts differ: expected the same in both places")
    return lines


def faults(plan: Plan, figures: PlaceFigures, *, name: str) -> list[str]:
    """Why the figures of a place, called `name`, are not good, one line each; empty when they are."""
    lines: list[str] = []
    run = figures.run
    for what, walks in (
        ("verdicts are wrong", run.wrong),
        ("walks differ from the golden interpreter", run.not_golden),
    ):
        if walks:
            first = _describe(plan, run, walks[0])
            lines.append(f"{name}: {len(walks)} of {len(plan.walks)} {what}; the first: {first}")
    if run.memory_differs:
        lines.append(
            f"{name}: {len(run.memory_differs)} atoms of memory are not what the replay has written and "
            f"its walks have stored; the first is {run.memory_differs[0]:#x}"
        )
    if figures.violations:
        rules = ", ".join(f"{rule} {count}" for rule, count in figures.violations.most_common())
        lines.append(f"{name}: {figures.violations.total()} protocol violations: {rules}")
    return lines


def _describe(plan: Plan, run: Run, number: int) -> str:
    walk = plan.walks[number]
    planned = plan.traces[walk.trace]
    trace = planned.trace
    event = trace.events[walk.question.event]

    def name(address: int) -> str:
        if address == 0:
            return "null"
        nodes = np.flatnonzero(planned.addresses == address)
        return f"node {nodes[0]}" if len(nodes) else f"atom {address:#x}"

    found, golden = run.answers[number], walk.golden
    agrees = "the same" if found == golden else golden.describe(name)
    return (
        f"{trace.file}: trace {trace.name}: event {walk.question.event} ({event.name}): "
        f"expected {walk.question.expectation.describe(name)}, found {found.describe(name)}; "
        f"the golden interpreter finds {agrees}"
    )
