"""The timeline of a comparison as Chrome trace events in JSON, which ui.perfetto.dev opens.

Each place is a process whose time 0 is the first cycle of its first batch. Its tracks are the walks by
context, with the loops nested in them; the refreshes of each pseudo channel; and the commands of each bank,
nested in the time that their row is open. A crossing of the link is an asynchronous slice; it lasts what the
link is set to, and begins with the request or ends with the walker's next step.

The events are those of the Trace Event Format (`ph` M, X, b, e); `ts` and `dur` are in microseconds as that
format asks. Begin and end are each the nearest whole nanosecond: Perfetto keeps no parts of one, and drops
slices that would overlap when it cuts them off. A cycle shorter than that may so last 0 ns; each slice has
the exact cycle it begins in. What the negative controls did is left out.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hdl.memory.timing import COLUMN_COMMANDS, Command
from sim.model.command_checker import COMMANDS
from sim.trace.output import whole_file

from ..compare import Comparison
from ..paths import crossing_cycles
from ..place import PlaceFigures
from ..walk_log import LoggedWalk, replay_span, walk_log
from .command_list import ALL_BANKS

__all__ = ["trace_events", "write_perfetto"]

Event: TypeAlias = dict[str, Any]

_REFRESHES = (Command.REFAB, Command.REFPB)
#: Commands after which the bank's row is no longer open.
_CLOSING = (Command.PRE, Command.PREA, Command.RDA, Command.WRA)


def write_perfetto(path: Path, comparison: Comparison) -> None:
    """Write the timeline so that it appears whole or not at all. Raises OSError naming `path`."""
    with whole_file(path) as temporary, temporary.open("w", encoding="ascii") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for index, event in enumerate(trace_events(comparison)):
            file.write(f"{',' if index else ' '} {json.dumps(event, allow_nan=False)}\n")
        file.write("]}\n")


def trace_events(comparison: Comparison) -> Iterator[Event]:
    """Every event of the timeline: of each track in order of time, an outer slice before those in it."""
    for process, (name, figures) in enumerate(comparison.places.items(), start=1):
        yield from _Timeline(comparison, process, name, figures).events()


class _Timeline:
    """The events of one place."""

    def __init__(self, comparison: Comparison, process: int, name: str, figures: PlaceFigures) -> None:
        self._config = comparison.config
        self._process, self._name, self._figures = process, name, figures
        self._begin, self._end = replay_span(figures.plan, figures.run)
        self._clock_ns = comparison.clock_ns
        path = comparison.near_path if name == "near" else comparison.far_path
        self._reads_cross = figures.run.place == 1 and path is not None
        self._link = comparison.far_path if path is None else path
        self._threads: dict[str, int] = {}

    def events(self) -> Iterator[Event]:
        yield self._metadata("process_name", name=self._name)
        yield self._metadata("process_sort_index", sort_index=self._process)
        yield from self._walks()
        for channel, log in enumerate(self._figures.run.logs.commands):
            inside = (log["cycle"] >= self._begin) & (log["cycle"] < self._end)
            yield from self._banks(channel, log[inside])

    # -- Walks --

    def _walks(self) -> Iterator[Event]:
        plan = self._figures.plan
        walks = walk_log(plan, self._figures.run, self._config.memory)
        read = set(self._read_cycles())
        crossings = 0
        for walk in sorted(walks, key=lambda walk: walk.verdict):
            question = plan.walks[walk.number].question
            channel = f"channel {walk.channel}, " if self._config.memory.channels > 1 else ""
            thread = yield from self._track(f"{channel}walks of context {walk.context}")
            begin = int(walk.requested[0]) if len(walk.requested) else walk.verdict
            yield self._slice(
                thread,
                question.program,
                begin,
                walk.verdict,
                walk=walk.number,
                check=question.check,
                trace=plan.traces[plan.walks[walk.number].trace].trace.name,
                cycles_seen_by_the_search=int(self._figures.run.walk_cycles[walk.number]),
            )
            ends = [*walk.requested[1:].tolist(), walk.verdict]
            loops = list(zip(walk.requested.tolist(), ends, walk.address.tolist(), strict=True))
            for start, end, address in loops:
                yield self._slice(thread, "loop", start, end, address=f"{address:#x}")
            for way, start, end in self._crossings(walk, loops, read):
                yield from self._asynchronous(f"link {way}", crossings, start, end)
                crossings += 1

    def _read_cycles(self) -> Iterable[int]:
        """The cycles of the requests that went to memory: with a cache, those that missed."""
        ledger = self._figures.ledger
        return ledger.loops.requested[ledger.read].tolist()

    def _crossings(
        self, walk: LoggedWalk, loops: list[tuple[int, int, int]], read: set[int]
    ) -> Iterator[tuple[str, int, int]]:
        crossing = crossing_cycles(self._config)
        up, down = self._link.latency_up + crossing, self._link.latency_down + crossing
        if not self._reads_cross:
            first = loops[0][0] if loops else walk.verdict
            yield "up", max(first - up, self._begin), first
            yield "down", walk.verdict, walk.verdict + down
            return
        decided = self._config.walker.execute_stages
        for start, end, _ in loops:
            if start in read:
                yield "up", start, start + up
                yield "down", end - decided - down, end - decided

    # -- Commands --

    def _banks(self, channel: int, log: NDArray[np.void]) -> Iterator[Event]:
        timing, banks = self._config.memory.timing, self._config.memory.organisation.banks
        lasts = {Command.ACT: timing.activate_slots, Command.REFAB: timing["tRFC"]}
        if Command.REFPB in timing.commands:
            lasts[Command.REFPB] = timing["tRFCpb"]
        # By bank: its commands with their cycles, those to all banks among them.
        commands: dict[tuple[int, int], list[tuple[int, Command, int]]] = {}
        for cycle, bus, op, pseudo_channel, bank, detail in log.tolist():
            command = COMMANDS[bus, op]
            if command in _REFRESHES:
                # Refreshes of banks overlap: each bank has a track of its own for them.
                whose = "refresh" if command in ALL_BANKS else f"refresh of bank {bank:02}"
                thread = yield from self._track(f"channel {channel}.{pseudo_channel} {whose}")
                yield self._slice(thread, command.value, cycle, cycle + lasts[command])
                continue
            for one in range(banks) if command in ALL_BANKS else [bank]:
                commands.setdefault((pseudo_channel, one), []).append((cycle, command, detail))
        for (pseudo_channel, bank), given in sorted(commands.items()):
            thread = yield from self._track(f"channel {channel}.{pseudo_channel} bank {bank:02}")
            yield from self._bank(thread, given, lasts)

    def _bank(
        self, thread: int, given: list[tuple[int, Command, int]], lasts: dict[Command, int]
    ) -> Iterator[Event]:
        """The slices of a bank: its rows while they are open, and the commands in and between them."""
        closes = iter([cycle for cycle, command, _ in given if command in _CLOSING])
        close = next(closes, None)
        for cycle, command, detail in given:
            about: dict[str, int] = {}
            if command is Command.ACT:
                while close is not None and close <= cycle:
                    close = next(closes, None)
                yield self._slice(thread, f"row {detail}", cycle, self._end if close is None else close + 1)
                about["row"] = detail
            elif command in COLUMN_COMMANDS:
                about["column"] = detail
            if command not in ALL_BANKS:
                yield self._slice(thread, command.value, cycle, cycle + lasts.get(command, 1), **about)

    # -- Events --

    def _track(self, name: str) -> Generator[Event, None, int]:
        """The thread of that name; its metadata comes before its first event."""
        if name not in self._threads:
            self._threads[name] = thread = len(self._threads) + 1
            yield self._metadata("thread_name", thread, name=name)
            yield self._metadata("thread_sort_index", thread, sort_index=thread)
        return self._threads[name]

    def _nanoseconds(self, cycle: int) -> int:
        return round((cycle - self._begin) * self._clock_ns)

    def _microseconds(self, cycle: int) -> float:
        return self._nanoseconds(cycle) / 1000

    def _metadata(self, kind: str, thread: int = 0, **about: object) -> Event:
        return {"ph": "M", "pid": self._process, "tid": thread, "name": kind, "args": about}

    def _slice(self, thread: int, name: str, begin: int, end: int, **about: object) -> Event:
        return {
            "ph": "X",
            "pid": self._process,
            "tid": thread,
            "name": name,
            "ts": self._microseconds(begin),
            "dur": (self._nanoseconds(end) - self._nanoseconds(begin)) / 1000,
            "args": {"cycle": begin} | about,
        }

    def _asynchronous(self, name: str, number: int, begin: int, end: int) -> Iterator[Event]:
        about = {
            "cat": "link",
            "name": name,
            "id": f"{self._process}.{number}",
            "pid": self._process,
            "tid": 0,
        }
        yield {"ph": "b", "ts": self._microseconds(begin), **about}
        yield {"ph": "e", "ts": self._microseconds(end), **about}
