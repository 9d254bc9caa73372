"""The campaign: one small memory subsystem under directed and random traffic, and everything that may see it
do wrong. `python -m tests.mutants.campaign DESIGN` prints what saw it, as JSON.

Detectors, all of them in every cycle or at the end of every phase:

* RTL checker and Python command checker: the timing table, the state of the banks, refresh overdue;
* scoreboard: data, order of one atom, status, each request answered once, an offer that changes;
* placement: a read's column command goes to the pseudo channel, bank, row and column of its address;
* latency: an isolated read takes the bound of its row state and two cycles more;
* refresh count: what was refreshed since a restart, over what was due;
* wait bound: row-hit cap and age cap;
* determinism: the same requests take the same course after a restart, whatever was before;
* watchdog: everything is answered, and a restart ends.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import sys
from collections.abc import Callable
from typing import Any

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import RefreshMode, RowClass, RowOp, Source
from hdl.memory.timing import PRESETS
from hdl.memory.timing import Value as Cycles
from sim.bench.memory_port import Request, TrafficShape, tag_of
from sim.model.command_checker import ROW_BUS, check

from ..memory_bench import PIPELINE, Failure, MemoryBench, simulate

__all__ = ["DESIGNS", "run_campaign"]

_SEED = 20261130


def _design(preset: str, *, banks_per_group: int, ecc: bool = False) -> DesignConfig:
    """A channel of 2 x 2 groups, 4 x 4 atoms a bank, that refreshes often: a campaign sees many intervals."""
    own = PRESETS[preset]
    brief = {"tREFI": 700, "tRFC": 90, "tRFCpb": 60}
    PRESETS[f"{preset}_brief"] = dataclasses.replace(
        own,
        name=f"{preset}_brief",
        organisation=dataclasses.replace(own.organisation, bank_groups=2, banks_per_group=banks_per_group),
        values=own.values | {name: Cycles(cycles=cycles, source="test") for name, cycles in brief.items()},
    )
    return DesignConfig(
        controller=ControllerConfig(
            bank_queue=4,
            overflow=4,
            write_buffer=8,
            drain_high=6,
            drain_low=2,
            drain_idle=8,
            row_hit_cap=4,
            age_cap=128,
            response_slots=8,
            ecc=ecc,
        ),
        memory=MemoryConfig(preset=f"{preset}_brief", rows=4, columns=4),
    )


#: The designs of the campaign by name.
DESIGNS: dict[str, Callable[[], DesignConfig]] = {
    "hbm2": lambda: _design("hbm2_2000", banks_per_group=2),
    # More banks: tFAW asks for five of a pseudo channel.
    "hbm3": lambda: _design("hbm3_6400", banks_per_group=4),
    "hbm2 with ECC": lambda: _design("hbm2_2000", banks_per_group=2, ecc=True),
}


# -- Phases --


async def _latencies(bench: MemoryBench) -> None:
    """Isolated reads in every row state, and dependent reads of different rows of one bank."""
    timing, last = bench.timing, bench.organisation.banks - 1
    tags = bench.tags()
    pipeline = PIPELINE + bench.config.controller.ecc
    for bank in (0, last):
        for row, wanted, bound in (
            (1, RowClass.CLOSED, timing.row_closed),
            (1, RowClass.HIT, timing.row_hit),
            (2, RowClass.CONFLICT, timing.row_conflict),
        ):
            await bench.send([Request(address=bench.at(bank & 1, bank, row, bank & 1), tag=next(tags))])
            await bench.drain()
            latency, found = bench.scoreboard.latencies[-1][1], bench.accesses[-1][1]
            if (latency, found) != (bound + pipeline, wanted):
                expected = f"{wanted.name.lower()} in {bound + pipeline}"
                bench.fail("latency", f"{found.name.lower()} in {latency} cycles, expected {expected}")
            await bench.idle(timing["tRAS"])
    start = bench.cycle
    for row in (0, 1, 2, 3):
        await bench.send([Request(address=bench.at(0, 2, row), tag=next(tags))])
        await bench.drain()
    if (each := (bench.cycle - start) / 4) > timing.same_bank + pipeline:
        bench.fail("latency", f"reads of different rows of a bank every {each} cycles")


async def _random(bench: MemoryBench) -> None:
    """Mixes of everything, hot and spread, with idle cycles and back-pressure, under both refresh modes."""
    everywhere = list(range(bench.map.atoms))
    modes = itertools.cycle((RefreshMode.ALL_BANK, RefreshMode.PER_BANK))
    for shape, addresses, count in (
        (TrafficShape(write=0.4, idle=0.5, stall=0.1, out_of_range=0.05), bench.hot(banks=8, atoms=40), 100),
        (TrafficShape(write=0.4, idle=0, stall=0, conditional=0, out_of_range=0), everywhere, 120),
        (TrafficShape(write=0, idle=0, stall=0, conditional=0, out_of_range=0), everywhere, 120),
        (TrafficShape(write=0.5, idle=0.1, stall=0, conditional=0.1), bench.hot(banks=1, atoms=3), 40),
        (TrafficShape(write=0.1, idle=0, stall=0.9), bench.hot(banks=6, atoms=30), 40),
        (TrafficShape(write=0.5, idle=0, stall=0, conditional=0), bench.hot(banks=2, atoms=8), 60),
        (TrafficShape(write=0.5, idle=0, stall=0, conditional=0), bench.hot(banks=4, atoms=60), 120),
    ):
        await bench.restart(next(modes))
        await bench.traffic(shape, addresses, count)
    await bench.restart(RefreshMode.NONE)


async def _hazards(bench: MemoryBench) -> None:
    """Reads and writes of three atoms of one bank while writes elsewhere press for their turn."""
    atoms = [bench.at(0, 1, row, 2) for row in (0, 1, 1)]
    elsewhere = [bench.at(0, bank, 3, column) for bank in (0, 2) for column in range(4)]
    shape = TrafficShape(write=0.6, conditional=0, out_of_range=0, partial_mask=0, idle=0, stall=0)
    await bench.traffic(shape, 3 * atoms + elsewhere, 200)


async def _stream(bench: MemoryBench) -> None:
    """Row hits without a pause into all-bank refreshes: some are queued when PREA closes their rows."""
    await bench.restart(RefreshMode.ALL_BANK)
    tags, start = bench.tags(), bench.cycle
    n, banks = 0, bench.organisation.banks
    while bench.cycle - start < 3 * bench.timing["tREFI"]:
        address = bench.at(n & 1, n // 2 % banks, 1, n // (2 * banks) % 4)
        request = Request(address=address, tag=next(tags))
        if not bench.scoreboard.uses(request.tag):
            n += (await bench.step(request)).accepted
    await bench.drain()
    await bench.restart(RefreshMode.NONE)


async def _no_takers(bench: MemoryBench) -> None:
    """Reads while no response is taken: they stop at the slots, and nothing is lost."""
    tags = bench.tags()
    requests = [Request(address=address, tag=next(tags)) for address in range(40)]
    offered = 0
    for _ in range(120):
        request = requests[offered] if offered < len(requests) else None
        offered += (await bench.step(request, ready=False)).accepted
    await bench.send(requests[offered:])
    await bench.drain()


async def _caps(bench: MemoryBench) -> None:
    """Row hits that pass an older request, and bulk under walks that never pause."""
    limits = bench.config.controller
    tags = (tag for tag in bench.tags() if tag & 7 != Source.HOST.value)
    victim = tag_of(Source.HOST, 1)
    await bench.send(Request(address=bench.at(0, 0, 1, n % 4), tag=next(tags)) for n in range(4))
    await bench.send([Request(address=bench.at(0, 0, 2), tag=victim)])
    begin = len(bench.accesses)
    await bench.send(Request(address=bench.at(0, 0, 1, n % 4), tag=next(tags)) for n in range(12))
    await bench.drain()
    passed = [tag for _, _, tag in bench.accesses[begin:]].index(victim)
    if passed > limits.row_hit_cap + limits.bank_queue:
        bench.fail("wait bound", f"{passed} row hits passed an older request")
    start = bench.cycle
    bound = limits.age_cap + 2 * limits.drain_burst + 2 * limits.bank_queue * bench.timing.same_bank
    bulk = Request(address=bench.at(0, 1, 3), tag=victim)
    await bench.send([bulk])
    n = 0
    while bench.scoreboard.uses(victim):
        walk = Request(address=bench.at(0, n % 2, 1, n % 4), tag=next(tags), priority=True)
        n += (await bench.step(None if bench.scoreboard.uses(walk.tag) else walk)).accepted
        if bench.cycle - start > bound:
            bench.fail("wait bound", f"a bulk read waits for more than {bound} cycles")
    await bench.drain()


def _refresh(mode: RefreshMode) -> Callable[[MemoryBench], Any]:
    """Bulk traffic, walks, and silence in which what they postponed is repaid: every refresh is counted."""

    async def phase(bench: MemoryBench) -> None:
        await bench.restart(mode)
        start, begin = bench.cycle, len(bench.commands)
        interval = bench.timing["tREFI"]
        for priority in (0, 0.7):
            until = bench.cycle + interval + interval // 2
            shape = TrafficShape(priority=priority, idle=0.2, stall=0.1, conditional=0)
            while bench.cycle < until:
                await bench.traffic(shape, bench.hot(banks=6, atoms=60), 20)
        # To the end of the interval after this one, and a little: what was due then is done.
        intervals = (bench.cycle - start) // interval + 2
        await bench.idle(intervals * interval + interval // 16 - (bench.cycle - start))
        refreshed = [command for command in bench.commands[begin:] if command[1] == ROW_BUS]
        for channel in range(bench.organisation.pseudo_channels):
            here = [command for command in refreshed if command[3] == channel]
            every = [command[0] - start for command in here if command[2] == RowOp.REFRESH_ALL.value]
            # Bulk postpones nothing.
            if every and every[0] > interval:
                bench.fail("refresh count", f"the first refresh comes in cycle {every[0]} of {interval}")
            for bank in range(bench.organisation.banks):
                own = sum(c[2] == RowOp.REFRESH_BANK.value and c[4] == bank for c in here)
                if len(every) + own != intervals:
                    what = f"{len(every) + own} refreshes of a bank in {intervals} intervals"
                    bench.fail("refresh count", what)

    phase.__name__ = f"_refresh_{mode.name.lower()}"
    return phase


async def _settled(bench: MemoryBench) -> None:
    """Reads in the first cycle after a restart, of banks in use until then: every counter has run off."""
    tags, pipeline = bench.tags(), PIPELINE + bench.config.controller.ecc
    expected = bench.timing.row_closed + pipeline
    for write in (False, True):
        await bench.send(
            Request(address=bench.at(0, 1, 1, column), tag=next(tags), write=write, data=column)
            for column in range(4)
        )
        await bench.drain()
        await bench.restart(RefreshMode.NONE)
        await bench.send([Request(address=bench.at(0, 1, 2), tag=next(tags))])
        await bench.drain()
        if (latency := bench.scoreboard.latencies[-1][1]) != expected:
            bench.fail("latency", f"{latency} cycles after a restart, expected {expected}")


async def _determinism(bench: MemoryBench) -> None:
    """The same requests after two restarts, with different pasts."""
    rng, shape = random.Random(_SEED), bench.organisation
    addresses = [rng.randrange(bench.map.atoms) for _ in range(80)]
    writes = [rng.random() < 0.3 for _ in addresses]
    logs = []
    # Rows that are hit again and again, rows that never are, and writes that are left over.
    pasts = (
        [bench.at(p, b, 1, n % 4) for n in range(8) for b in range(shape.banks) for p in (0, 1)],
        [bench.at(p, b, n % 4) for n in range(5) for b in range(shape.banks) for p in (0, 1)],
    )
    for past in pasts:
        tags = bench.tags()
        await bench.send(Request(address=a, tag=next(tags), priority=len(logs) == 0) for a in past)
        await bench.send(
            Request(address=a, tag=next(tags), write=True, data=n)
            for n, a in enumerate(past[: 3 + len(logs)])
        )
        await bench.idle(37 * len(logs))
        await bench.restart(RefreshMode.ALL_BANK)
        start, begin = bench.cycle, len(bench.commands)
        tags = bench.tags()
        await bench.send(
            Request(address=address, tag=next(tags), write=write, data=n, priority=n % 3 == 0)
            for n, (address, write) in enumerate(zip(addresses, writes, strict=True))
        )
        await bench.drain()
        await bench.idle(300)
        logs.append([(cycle - start, *rest) for cycle, *rest in bench.commands[begin:]])
    if logs[0] != logs[1]:
        bench.fail("determinism", "the same requests took another course after a restart")


#: What a campaign does, cheapest and most telling first.
PHASES: tuple[Callable[[MemoryBench], Any], ...] = (
    _latencies,
    _no_takers,
    _caps,
    _hazards,
    _stream,
    _random,
    _refresh(RefreshMode.ALL_BANK),
    _refresh(RefreshMode.PER_BANK),
    _determinism,
    _settled,
)


def run_campaign(config: DesignConfig) -> tuple[list[Failure], int]:
    """What saw a defect of the memory subsystem in `config`, and the cycles that were simulated.

    At most one detector that sees single cycles or the end of a phase, which ends the campaign, and the
    Python command checker over the commands until then.
    """
    seen: list[Failure] = []

    async def run(bench: MemoryBench) -> None:
        try:
            for phase in PHASES:
                await phase(bench)
        except Failure as failure:
            seen.append(failure)

    bench = simulate(config, run)
    first = next(iter(check(bench.log, bench.timing, bench.organisation)), None)
    if first is not None:
        seen.append(Failure("command checker", first.rule, first.cycle))
    return seen, bench.cycle


def main() -> None:
    """Runs the campaign of the design that the command line names."""
    seen, cycles = run_campaign(DESIGNS[sys.argv[1]]())
    print(json.dumps({"seen": [f"{failure.detector}: {failure.what}" for failure in seen], "cycles": cycles}))


if __name__ == "__main__":
    main()
