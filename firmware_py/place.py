"""One place of a comparison: which walker, across what, with what help, and what is measured there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hdl.config import DesignConfig
from hdl.fabric.cache import Cache
from hdl.layouts import RefreshMode

from .axi_port import AXI_PORT, behind_axi_port
from .bank_profile import BankProfile
from .driver import MemoryErrors
from .far_help import OFF, CacheSetting, FarHelp, cache_setting
from .layers import Layer
from .ledger import (
    Crossings,
    Ledger,
    RowShares,
    Statistics,
    TimeParts,
)
from .link_bytes import LinkBytes
from .paths import FarPath, crossing_cycles, far_path, port_path
from .replay import LinkedDriver, LoggedRun, Plan, Run

__all__ = [
    "AT_THE_MEMORY",
    "CacheCounts",
    "Place",
    "PlaceFigures",
    "ReplayFigures",
    "faults",
]

#: The near place where there is nothing between walker and controller.
AT_THE_MEMORY = "memory"


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

    @property
    def crossings(self) -> Crossings:
        """The cycles of the link that walks and their reads cannot avoid."""
        up, down = (
            cycles + crossing_cycles(self.config) for cycles in (self.link.latency_up, self.link.latency_down)
        )
        stages = self.config.walker.execute_stages
        if not self.walker:
            return Crossings(up=0, down=0, walk=up + down, execute=stages)
        lookup = Cache.miss_cycles if self.config.cache.built else 0
        return Crossings(up=up, down=down, walk=self.crossing, lookup=lookup, execute=stages)

    def set_up(self, driver: LinkedDriver, refresh: RefreshMode) -> None:
        """Sets link, refresh and cache as this place has them, and zeroes the counters."""
        driver.set_refresh(refresh)
        driver.set_link(latency_up=self.link.latency_up, latency_down=self.link.latency_down)
        if self.config.cache.built:
            driver.set_cache(
                sets_log2=self.cache.sets_log2, ways=self.cache.ways, hit_latency=self.cache.hit_latency
            )
        driver.reset_counters()

    @classmethod
    def near(cls, near: str, far: str, config: DesignConfig) -> Place:
        """Beside the memory, behind AXI ports of the design, or behind the host controller's port `near`.

        Behind a port the walker is the one that reads across the link, which is set to the port; launch and
        verdict take the cycles of the far path besides.
        """
        path = far_path(far, config)
        if near == AT_THE_MEMORY:
            return cls(walker=0, config=config, path=path, link=path)
        if near == AXI_PORT:
            return cls(walker=0, config=behind_axi_port(config), path=path, link=path)
        port = port_path(near, config)
        crossing = path.latency_up + path.latency_down + 2 * crossing_cycles(config)
        return cls(walker=1, config=config, path=path, link=port, port=port, crossing=crossing)

    @classmethod
    def far(cls, far: str, config: DesignConfig, *, far_help: FarHelp) -> Place:
        """Across the path of preset `far`, with help; `config` has been given what that needs."""
        path = far_path(far, config)
        return cls(walker=1, config=config, path=path, link=path, cache=cache_setting(far_help.cache, config))


@dataclass(frozen=True, kw_only=True)
class ReplayFigures:
    """The figures of one place that any machine gives, a board too; latencies in cycles.

    What has no source there is None, or a summary of `count` values whose others are None.
    """

    walk: Statistics
    reads_per_walk: Statistics
    loop: Statistics
    bound_mean: float | None
    ratio_to_bound: float | None
    """Mean loop over mean bound, of those that read memory."""
    rows: RowShares | None
    """What the reads of walks found."""
    channel_reads: Sequence[int] | None
    """Reads of walks by channel."""
    violations: Counter[str] | None
    """Broken timing rules by name, in all channels, whoever asked."""
    channel_violations: Sequence[int] | None
    """How many by channel."""
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
    stores: int | None
    """Words that the walks stored."""
    counters: Mapping[str, int]
    """The design's own counters over the replay, by name; empty of a simulation, whose logs say more."""
    run: Run


@dataclass(frozen=True, kw_only=True)
class PlaceFigures(ReplayFigures):
    """The figures of one place of a simulation, with what its logs give."""

    rows: RowShares
    channel_reads: Sequence[int]
    violations: Counter[str]
    stores: int
    ledger: Ledger
    layers: tuple[Layer, ...]
    """Device (of a controller of this design), port, loop, walk, replay, each with what refresh caused."""
    loop_time: TimeParts
    """The parts of every loop of `ledger.loops`."""
    walk_time: TimeParts
    """The parts of every walk, by number."""
    banks: BankProfile | None
    """None: there is no controller of this design whose commands could be seen."""
    link_bytes: LinkBytes
    """What crossed the path between compute and memory side."""
    port_bytes: LinkBytes | None
    """What crossed the host controller's port that a near walker reads through; None without one."""
    plan: Plan = field(repr=False)
    run: LoggedRun

    @property
    def controlled(self) -> bool:
        """The memory has a controller of this design; else rows, bound, banks and device are not known."""
        return self.banks is not None


def faults(plan: Plan, figures: ReplayFigures, *, name: str) -> list[str]:
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
