"""The crossover: walk latency and walks per second over concurrency and cache, near, far and far with help.

Every point is a replay in RTL; its figures are measured. Paths, caches and on-chip cycles of the help are
inputs. All points have the same design, with 64 contexts in each walker, so that only place, help and the
number of searches differ; where there are fewer traces than searches, they are replayed again in turn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode

from .assembler import Image
from .batches import ring_size
from .compare import TraceFile, repeated
from .effect import Effect, ratio
from .errors import InputError
from .far_help import FarHelp, parse_help
from .hits import FileHits, hits_by_file
from .image import Layout
from .machine import Machine, OpenMachine
from .place import AT_THE_MEMORY, Place, PlaceFigures, faults
from .plan import Plan, make_plan, require_concurrent

__all__ = [
    "Crossover",
    "Point",
    "Variant",
    "crossover",
    "help_effect",
    "near_effect",
    "near_rate",
    "parse_concurrent",
    "variants",
]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A place with its help, as a row of the result."""

    name: str
    near: bool
    help: FarHelp


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one variant measured at one concurrency; latencies in ns."""

    concurrent: int
    variant: str
    near: bool
    walks: int
    mean_ns: float | None
    p50_ns: float | None
    p99_ns: float | None
    loop_mean_ns: float | None
    replay_ns: float
    """All batches, the host's writes included."""
    walks_per_second: float | None
    reads_per_walk: float | None
    hit_rate: float | None
    """Of the cache; None without one."""
    helped: int
    """Questions that stack and stream answered."""
    by_file: Sequence[FileHits] | None
    """Hits by trace file; None without a cache."""


@dataclass(frozen=True, kw_only=True)
class Crossover:
    """Every point, and what it says."""

    config: DesignConfig
    far: Place
    files: Sequence[str]
    variants: Sequence[Variant]
    concurrent: Sequence[int]
    record_bytes: Mapping[int, int]
    """By concurrency: bytes of the records of the trees in progress at a time, on average."""
    searches: Mapping[int, int]
    """By concurrency: searches replayed."""
    points: Sequence[Point]
    failures: Sequence[str]

    def point(self, concurrent: int, variant: str) -> Point:
        """The point of a variant. Raises KeyError."""
        for point in self.points:
            if (point.concurrent, point.variant) == (concurrent, variant):
                return point
        raise KeyError((concurrent, variant))

    @property
    def sentence(self) -> str:
        """Where near memory wins, and where it does not."""
        clauses = [
            f"in {what} {self._outcome(figure, less=less)}"
            for what, figure, less in (
                ("mean walk latency", "mean_ns", True),
                ("median walk latency", "p50_ns", True),
                ("walks per second", "walks_per_second", False),
            )
        ]
        return f"On these traces near memory wins {'; '.join(clauses)}."

    def _outcome(self, figure: str, *, less: bool) -> str:
        """Against which variants near wins at which concurrencies, those with the same answer together."""
        groups: dict[tuple[int, ...], list[str]] = {}
        for row in self.variants:
            if not row.near:
                groups.setdefault(self._wins(row.name, figure, less=less), []).append(row.name)
        lost = groups.pop((), [])
        parts = [f"against {_listed(names)} {self._where(won)}" for won, names in groups.items()]
        if lost:
            parts.append(f"nowhere against {_listed(lost)}")
        return ", ".join(parts)

    def _wins(self, variant: str, figure: str, *, less: bool) -> tuple[int, ...]:
        won: list[int] = []
        for concurrent in self.concurrent:
            near, far = (getattr(self.point(concurrent, name), figure) for name in ("near", variant))
            if near is not None and far is not None and (near < far if less else near > far):
                won.append(concurrent)
        return tuple(won)

    def _where(self, won: Sequence[int]) -> str:
        if len(won) == len(self.concurrent):
            return "at every concurrency"
        return f"at {_listed([f'{count:,}' for count in won])} at a time only"


def _listed(words: Sequence[str]) -> str:
    """Words with commas between them, and `and` before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def parse_concurrent(text: str) -> list[int]:
    """Numbers of searches, with commas between them, each once. Raises InputError."""
    found: list[int] = []
    for part in text.split(","):
        if not part.isdecimal():
            raise InputError(f"--concurrent has {part!r}: expected numbers with commas between them")
        require_concurrent(int(part))
        if int(part) in found:
            raise InputError(f"--concurrent has {part} twice: expected it once")
        found.append(int(part))
    return sorted(found)


def variants(caches: str) -> list[Variant]:
    """Near, far, far with each cache of `caches`, with stack and stream, and with the last cache and both.

    `caches` are NAME or NAME:SIZE, with commas between them. Raises InputError for a cache that cannot be.
    """
    tokens = [f"cache={token}" for token in caches.split(",") if token]
    helps = [*tokens, "stack,stream", *([f"{tokens[-1]},stack,stream"] if tokens else [])]
    far = [
        Variant(
            name="far" if not text else f"far {text.replace(',', ' ')}", near=False, help=parse_help(text)
        )
        for text in ("", *helps)
    ]
    names = [variant.name for variant in far]
    if len(set(names)) != len(names):
        raise InputError(f"--cache has {caches!r}: expected each cache once")
    return [Variant(name="near", near=True, help=FarHelp()), *far]


def crossover(
    files: Sequence[TraceFile],
    *,
    config: DesignConfig,
    far: str,
    concurrent: Sequence[int],
    rows: Sequence[Variant],
    program: Image,
    layout: Layout,
    open_machine: OpenMachine,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> Crossover:
    """Every variant of `rows` at every concurrency. Raises InputError and InternalError as `compare` does."""
    places = {
        row.name: Place.near(AT_THE_MEMORY, far, config)
        if row.near
        else Place.far(far, row.help.built_into(config), far_help=row.help)
        for row in rows
    }
    own = [trace for file in files for trace in file.traces]
    counts = [len(file.traces) for file in files]
    points: list[Point] = []
    failures: list[str] = []
    sizes: dict[int, int] = {}
    searches: dict[int, int] = {}
    with ExitStack() as machines:
        opened: dict[DesignConfig, Machine] = {}
        for number in concurrent:
            traces = repeated(own, number, beyond=0)
            searches[number] = len(traces)
            nodes = sum(trace.nodes for trace in traces)
            sizes[number] = round(32 * nodes * min(number, len(traces)) / max(len(traces), 1))
            plans: dict[tuple[bool, bool], Plan] = {}
            for row in rows:
                key = (row.help.stack, row.help.stream)
                if key not in plans:
                    announce(f"planning {len(traces):,} searches, {number:,} at a time")
                    plans[key] = make_plan(
                        traces,
                        program=program,
                        layout=layout,
                        ring=ring_size(config),
                        memory_atoms=config.memory.atoms,
                        contexts=config.walker.contexts,
                        concurrent=number,
                        far_help=dataclasses.replace(row.help, cache=None),
                    )
                place = places[row.name]
                if place.config not in opened:
                    opened[place.config] = machines.enter_context(open_machine(place.config, announce))
                name = f"{number:,} searches, {row.name}"
                figures = opened[place.config].measure(
                    plans[key],
                    place,
                    name=name,
                    program=program,
                    refresh=RefreshMode.ALL_BANK,
                    progress=progress,
                )
                failures += faults(plans[key], figures, name=name)
                points.append(_point(number, row, plans[key], figures, counts, config.memory.timing.clock_ns))
    return Crossover(
        config=config,
        far=places[next(row.name for row in rows if not row.near)],
        files=[file.file for file in files],
        variants=rows,
        concurrent=concurrent,
        record_bytes=sizes,
        searches=searches,
        points=points,
        failures=failures,
    )


def _point(
    concurrent: int, row: Variant, plan: Plan, figures: PlaceFigures, counts: Sequence[int], clock_ns: float
) -> Point:
    cached = row.help.cache is not None and figures.cache is not None
    walk = figures.walk.scaled(clock_ns)
    return Point(
        concurrent=concurrent,
        variant=row.name,
        near=row.near,
        walks=walk.count,
        mean_ns=walk.mean,
        p50_ns=walk.p50,
        p99_ns=walk.p99,
        loop_mean_ns=figures.loop.scaled(clock_ns).mean,
        replay_ns=figures.replay_cycles * clock_ns,
        walks_per_second=figures.walks_per_second,
        reads_per_walk=figures.reads_per_walk.mean,
        hit_rate=figures.cache.hit_rate if cached and figures.cache else None,
        helped=figures.helped.total(),
        by_file=hits_by_file(plan, figures.ledger, counts) if cached else None,
    )


def near_effect(result: Crossover, point: Point) -> Effect:
    """The effect of near memory over the place of a point, at the same concurrency."""
    return _effect(result.point(point.concurrent, "near"), point)


def help_effect(result: Crossover, point: Point) -> Effect:
    """The effect of a far place's help over the bare far place, at the same concurrency."""
    return _effect(point, result.point(point.concurrent, "far"))


def near_rate(result: Crossover, point: Point) -> float | None:
    """How many times as many walks near memory does a second."""
    return ratio(result.point(point.concurrent, "near").walks_per_second, point.walks_per_second)


def _effect(variant: Point, base: Point) -> Effect:
    return Effect(
        variant=variant.variant,
        over=base.variant,
        loop=ratio(base.loop_mean_ns, variant.loop_mean_ns),
        walk=ratio(base.mean_ns, variant.mean_ns),
        replay=ratio(base.replay_ns, variant.replay_ns),
    )
