"""The measurement of a plan in one place of a simulation: the replay, and every figure of its logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from hdl.layouts import HopEvent, RefreshMode, Source
from hdl.memory.stack import StackMap
from sim.model.command_checker import check as check_commands

from .assembler import Image
from .bank_profile import BankProfile, bank_profile
from .errors import InternalError
from .layers import make_layers
from .ledger import (
    Ledger,
    Service,
    loop_time,
    make_ledger,
    make_port_ledger,
    port_service,
    service,
    statistics,
    walk_time,
)
from .link_bytes import LinkBytes, link_bytes
from .place import CacheCounts, Place, PlaceFigures
from .plan import Plan
from .replay import LinkedDriver, LoggedRun, Monitor, run_plan
from .throughput import busy_cycles
from .walk_numbers import walk_numbers

__all__ = ["measure"]


def measure(
    plan: Plan,
    place: Place,
    *,
    name: str,
    driver: LinkedDriver,
    monitor: Monitor,
    program: Image,
    refresh: RefreshMode,
    progress: Callable[[str, int, int], None],
) -> PlaceFigures:
    """The figures of a plan in one place, called `name` in messages. Raises InternalError."""
    config, cached = place.config, place.config.cache.built
    place.set_up(driver, refresh)
    counted = (0, 0)

    def batch_done(done: int) -> None:
        nonlocal counted
        progress(name, done, len(plan.batches))
        if cached and done == len(plan.batches):
            # What comes after the last batch is the negative control.
            counted = driver.cache_counts()

    run = run_plan(
        plan,
        program=program,
        place=place.walker,
        driver=driver,
        monitor=monitor,
        progress=batch_done,
    )
    run.walk_cycles += place.crossing
    memory = config.memory
    try:
        ledger, served, banks = _observed(plan, place, run)
        numbers = walk_numbers(plan, place=place.walker, stack=StackMap(memory))
        busy = busy_cycles(plan, run, ledger.loops, numbers=numbers)
        in_loop = loop_time(ledger, served, place.crossings)
        in_walk = walk_time(
            run.walk_cycles,
            loops=ledger.loops,
            time=in_loop,
            numbers=numbers,
            helped=[walk.local is not None for walk in plan.walks],
            crossings=place.crossings,
        )
    except ValueError as error:
        raise InternalError(f"{name}: {error}") from None
    violations = _violations(place, run, refresh)
    # A far walker has contexts of its own, so a read's channel is that of its address.
    channel = StackMap(memory).channel(ledger.loops.address[ledger.read])
    crossed, through_port = _bytes(plan, run, place)
    bound = ledger.bound_cycles
    return PlaceFigures(
        walk=statistics(run.walk_cycles),
        reads_per_walk=statistics([answer.hops for answer in run.answers]),
        loop=statistics(ledger.loops.cycles),
        bound_mean=float(bound.mean()) if len(bound) else None,
        ratio_to_bound=ledger.ratio_to_bound,
        rows=ledger.rows,
        channel_reads=np.bincount(channel, minlength=memory.channels).tolist(),
        violations=sum(violations, Counter()),
        channel_violations=[counts.total() for counts in violations] if memory.controlled else None,
        ledger=ledger,
        errors=driver.memory_errors() if config.controller.ecc else None,
        replay_cycles=int(run.batch_cycles.sum()),
        walks_per_second=len(plan.walks) / (busy * memory.timing.clock_ns * 1e-9) if busy else None,
        cache=CacheCounts(hits=counted[0], misses=counted[1]) if cached else None,
        helped=Counter(walk.local.help for walk in plan.walks if walk.local is not None),
        stores=int(
            np.count_nonzero(
                (run.logs.hops["place"] == place.walker) & (run.logs.hops["event"] == HopEvent.STORE.value)
            )
        ),
        counters={},
        layers=make_layers(
            ledger,
            served,
            walk_cycles=run.walk_cycles,
            numbers=numbers,
            replay_cycles=int(run.batch_cycles.sum()),
            device=banks is not None,
        ),
        loop_time=in_loop,
        walk_time=in_walk,
        banks=banks,
        link_bytes=crossed,
        port_bytes=through_port,
        plan=plan,
        run=run,
    )


def _observed(plan: Plan, place: Place, run: LoggedRun) -> tuple[Ledger, Service, BankProfile | None]:
    """What the logs say of the reads of walks, and of every bank where there is a controller to watch.

    Raises ValueError when the logs do not belong together.
    """
    memory, logs = place.config.memory, run.logs
    if not memory.controlled:
        ledger = make_port_ledger(place=place.walker, hops=logs.hops, hop_batch=logs.hop_batch)
        return ledger, port_service(ledger, place=place.walker, ports=logs.ports), None
    ledger = make_ledger(
        place=place.walker,
        hops=logs.hops,
        hop_batch=logs.hop_batch,
        accesses=logs.accesses,
        access_batch=logs.access_batch,
        commands=logs.commands,
        timing=memory.timing,
        stack=StackMap(memory),
        cached=place.config.cache.built,
    )
    served = service(
        ledger,
        place=place.walker,
        accesses=logs.accesses,
        access_batch=logs.access_batch,
        ports=logs.ports,
        commands=logs.commands,
        timing=memory.timing,
    )
    banks = bank_profile(
        accesses=logs.accesses,
        commands=logs.commands,
        windows=logs.windows[: len(plan.batches)],
        organisation=memory.organisation,
    )
    return ledger, served, banks


def _violations(place: Place, run: LoggedRun, refresh: RefreshMode) -> list[Counter[str]]:
    """Broken timing rules by channel; where there are no commands to see, nobody breaks one."""
    memory, logs = place.config.memory, run.logs
    if not memory.controlled:
        return []
    windows = [] if refresh is RefreshMode.NONE else logs.windows.tolist()
    return [
        Counter(
            check_commands(commands, memory.timing, memory.organisation, refresh_windows=windows).by_rule()
        )
        for commands in logs.commands
    ]


def _bytes(plan: Plan, run: LoggedRun, place: Place) -> tuple[LinkBytes, LinkBytes | None]:
    """What crossed the path, and the port of a near walker behind one."""
    ports = run.logs.ports
    launches = sum(len(batch.walk_rows) for batch in plan.batches)
    verdicts = sum(1 + len(answer.yields) for answer in run.answers)
    if not place.walker:
        return link_bytes(ports, launches=launches, verdicts=verdicts), None
    if place.port is None:
        return link_bytes(ports, launches=0, verdicts=0), None
    walkers = ports["source"] == Source.FAR_WALKER.value
    return (
        link_bytes(ports[~walkers], launches=launches, verdicts=verdicts),
        link_bytes(ports[walkers], launches=0, verdicts=0),
    )
