"""One place of a comparison: which walker, across what, with what help, and what is measured there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hdl.config import DesignConfig
from hdl.layouts import HopEvent, RefreshMode
from hdl.memory.stack import StackMap
from sim.model.command_checker import check as check_commands

from .assembler import Image
from .driver import MemoryErrors
from .errors import InternalError
from .far_help import OFF, CacheSetting, FarHelp, cache_setting
from .ledger import Ledger, RowShares, Statistics, make_ledger, statistics
from .machine import Machine
from .paths import LINK_CYCLES, FarPath, far_path, port_path
from .replay import Plan, Run, run_plan
from .throughput import busy_cycles

__all__ = [
    "AT_THE_MEMORY",
    "CacheCounts",
    "ChannelFigures",
    "Place",
    "PlaceFigures",
    "faults",
    "measure",
]

#: The near place where there is nothing between walker and controller.
AT_THE_MEMORY = "memory"


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
    plan: Plan = field(repr=False)
    run: Run

    @property
    def violations(self) -> Counter[str]:
        """Broken timing rules by name, in all channels."""
        return sum((channel.violations for channel in self.channels), Counter())


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

    with machine.recording(name):
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
        plan=plan,
        run=run,
    )


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
