"""The replay of a plan in one place: every walk gets a verdict; of a simulation the logs are kept too.

Near and far runs of a plan differ only in the place bit of the WALK commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import HopEvent, RefreshMode, Source, VerdictKind
from sim.model.interpreter import BUDGET_MAX

from .assembler import Image
from .batches import Batch
from .commands import Atoms, fence
from .completion import Completions
from .control import Control
from .driver import MemoryErrors
from .errors import InternalError
from .plan import Plan, PlannedTrace, PlannedWalk, make_plan
from .walks import Answer

__all__ = [
    "Driver",
    "LinkedDriver",
    "LoggedRun",
    "Logs",
    "Monitor",
    "Plan",
    "PlannedTrace",
    "PlannedWalk",
    "Run",
    "make_plan",
    "replay",
    "run_plan",
]


class Driver(Protocol):
    """What a replay needs of `firmware_py.driver.Accelerator`."""

    def load_program(self, words: Sequence[int], *, first: int = 0) -> None: ...

    def configure_context(
        self,
        context: int,
        *,
        base: int,
        limit: int,
        writable: bool,
        budget: int = BUDGET_MAX,
        channel: int = 0,
    ) -> None: ...

    def run_batch(self, command_atoms: Atoms) -> Completions: ...


class LinkedDriver(Driver, Protocol):
    """A driver that also sets the off-chip link and refresh, and knows what ECC found."""

    def set_link(self, *, latency_up: int, latency_down: int, bytes_per_cycle: int = 0) -> None:
        """Sets the cycles added each way, and the width (0: a message a cycle)."""
        ...

    def set_refresh(self, mode: RefreshMode) -> None:
        """Sets how the memory is refreshed from the next batch on."""
        ...

    def reset_counters(self) -> None:
        """Zeroes every counter."""
        ...

    def memory_errors(self) -> MemoryErrors:
        """What ECC has found since then."""
        ...

    def set_cache(self, *, sets_log2: int, ways: int, hit_latency: int) -> None:
        """Sets the geometry and the hit latency of the compute side's cache, and empties it."""
        ...

    def cache_counts(self) -> tuple[int, int]:
        """Hits and misses of that cache since the counters were zeroed."""
        ...


class Monitor(Protocol):
    """What a replay needs of `sim.compiled.CompiledModel`: its logs, and its memory past the design."""

    def hops(self) -> NDArray[np.void]: ...

    def accesses(self) -> NDArray[np.void]: ...

    def ports(self) -> NDArray[np.void]: ...

    def commands(self, channel: int = 0) -> NDArray[np.void]: ...

    def batch_windows(self) -> NDArray[np.void]: ...

    def clear_logs(self) -> None: ...

    def fetch(self, address: int, count: int) -> Atoms: ...


@dataclass(kw_only=True)
class Logs:
    """The logs of a run, in order of cycles, with the batch number of each row; the control left out."""

    hops: NDArray[np.void]
    hop_batch: NDArray[np.int64]
    accesses: NDArray[np.void]
    access_batch: NDArray[np.int64]
    ports: NDArray[np.void]
    port_batch: NDArray[np.int64]
    commands: list[NDArray[np.void]]
    """Every command of the run by channel, the control's included."""
    windows: NDArray[np.void]
    """The cycles of every batch of the run, likewise, as BATCH_RECORD."""


@dataclass(kw_only=True)
class Run:
    """What came of a plan in one place."""

    place: int
    answers: list[Answer]
    """By number of the walk."""
    walk_cycles: NDArray[np.int64]
    """By number of the walk: from the command's launch to the arrival of its verdict; of what the far place
    answers by its help: its stream from mark to mark, and its on-chip cycles."""
    batch_cycles: NDArray[np.int64]
    wrong: list[int]
    """Walks whose answer is not the one that the trace says is right."""
    not_golden: list[int]
    """Walks whose answer is not the golden interpreter's."""
    memory_differs: list[int]
    """Addresses at which memory is not what the host's mirror holds after the replay."""


@dataclass(kw_only=True)
class LoggedRun(Run):
    """What came of a plan in one place of a simulation, with its logs."""

    logs: Logs = field(repr=False)

    @property
    def walker_source(self) -> int:
        """The `Source` of the walker's accesses in the logs."""
        return (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[self.place]


def replay(
    plan: Plan,
    *,
    program: Image,
    place: int,
    driver: Driver,
    fetch: Callable[[int, int], Atoms],
    batch_done: Callable[[int, Batch], Mapping[int, int]] = lambda index, batch: {},
) -> Run:
    """The run of a plan in `place` (0 near, 1 far), the negative control included.

    `fetch` reads so many atoms of memory from an address. `batch_done` is told the index of every batch when
    it is done, and gives the cycles of walks, by number, that the records do not hold: those of its streams.
    Raises InternalError when the control does not turn the verdict wrong, or a completion record belongs to
    no walk.
    """
    driver.load_program(program.words)
    answers: dict[int, Answer] = {}
    walk_cycles = np.zeros(len(plan.walks), dtype=np.int64)
    batch_cycles = np.zeros(len(plan.batches), dtype=np.int64)
    for index, batch in enumerate(plan.batches):
        done = _run_batch(batch, place=place, driver=driver)
        batch_cycles[index] = done.cycles
        for number, (answer, cycles) in _answers(batch, done).items():
            answers[number] = answer
            walk_cycles[number] = cycles
        for number, cycles in batch_done(index, batch).items():
            walk_cycles[number] = cycles
    for number, planned in enumerate(plan.walks):
        if planned.local is not None:
            answers[number] = planned.local.answer
            walk_cycles[number] += planned.local.cycles
    ordered = [answers[number] for number in range(len(plan.walks))]
    pairs = list(enumerate(zip(plan.walks, ordered, strict=True)))
    wrong = [number for number, (walk, answer) in pairs if not walk.question.expectation.right(answer)]
    not_golden = [number for number, (walk, answer) in pairs if not walk.as_golden(answer)]
    driver.run_batch(fence())  # starting a batch brings the buffered writes of the last one to the memory
    memory_differs = _memory_differences(plan, fetch)
    for check, control in plan.controls.items():
        _run_control(
            control,
            plan.control_batches[check],
            place=place,
            driver=driver,
            trusted=not wrong and not not_golden,
        )
    return Run(
        place=place,
        answers=ordered,
        walk_cycles=walk_cycles,
        batch_cycles=batch_cycles,
        wrong=wrong,
        not_golden=not_golden,
        memory_differs=memory_differs,
    )


def run_plan(
    plan: Plan,
    *,
    program: Image,
    place: int,
    driver: Driver,
    monitor: Monitor,
    progress: Callable[[int], None] = lambda batches: None,
) -> LoggedRun:
    """The run of a plan in `place` (0 near, 1 far) of a simulation; see `replay`.

    `progress` is told the batches done.
    """
    hops: list[NDArray[np.void]] = []
    accesses: list[NDArray[np.void]] = []
    ports: list[NDArray[np.void]] = []
    commands: list[list[NDArray[np.void]]] = [[] for _ in range(plan.channels)]
    windows: list[NDArray[np.void]] = []

    def batch_done(index: int, batch: Batch) -> Mapping[int, int]:
        hops.append(monitor.hops())
        accesses.append(monitor.accesses())
        ports.append(monitor.ports())
        for channel, parts in enumerate(commands):
            parts.append(monitor.commands(channel))
        windows.append(monitor.batch_windows())
        monitor.clear_logs()
        progress(index + 1)
        return _stream_cycles(batch, hops[-1])

    monitor.clear_logs()
    run = replay(
        plan, program=program, place=place, driver=driver, fetch=monitor.fetch, batch_done=batch_done
    )
    return LoggedRun(
        **vars(run),
        logs=Logs(
            hops=np.concatenate(hops),
            hop_batch=_numbers(hops),
            accesses=np.concatenate(accesses),
            access_batch=_numbers(accesses),
            ports=np.concatenate(ports),
            port_batch=_numbers(ports),
            commands=[
                np.concatenate([*parts, monitor.commands(channel)]) for channel, parts in enumerate(commands)
            ],
            windows=np.concatenate([*windows, monitor.batch_windows()]),
        ),
    )


def _numbers(parts: Sequence[NDArray[np.void]]) -> NDArray[np.int64]:
    """The number of the part that each row of the parts put together comes from."""
    return np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])


def _run_batch(batch: Batch, *, place: int, driver: Driver) -> Completions:
    for window in batch.windows:
        driver.configure_context(
            window.context,
            base=window.base,
            limit=window.limit,
            writable=window.writable,
            budget=BUDGET_MAX,
            channel=window.channel,
        )
    return driver.run_batch(batch.in_place(place))


def _stream_cycles(batch: Batch, hops: NDArray[np.void]) -> dict[int, int]:
    """The cycles of every stream of a batch, mark to mark, by number."""
    verdicts = hops["cycle"][hops["event"] == HopEvent.VERDICT.value].astype(np.int64)
    return {
        stream.number: int(verdicts[stream.verdict + 1] - verdicts[stream.verdict])
        for stream in batch.streams
    }


def _answers(batch: Batch, done: Completions) -> dict[int, tuple[Answer, int]]:
    """The answer and the cycles of every walk of a batch, by the walk's number."""
    number_of = dict(zip(batch.walk_rows, batch.walk_numbers, strict=True))
    marks = set(batch.mark_rows)
    yields: dict[int, list[int]] = {}
    answers: dict[int, tuple[Answer, int]] = {}
    records = done.records
    columns = [records[name].tolist() for name in ("tag", "kind", "value", "status", "code", "hops")]
    for index, (tag, kind, value, status, code, hops) in enumerate(zip(*columns, strict=True)):
        if tag in marks:
            continue
        if tag not in number_of or number_of[tag] in answers:
            raise InternalError(f"completion record {index} has tag {tag}: expected that of an open walk")
        if kind == VerdictKind.YIELD.value:
            yields.setdefault(tag, []).append(value)
            continue
        r0, r1, r2 = (int(register) for register in records["registers"][index])
        answer = Answer(
            status=status,
            code=code,
            value=value,
            registers=(r0, r1, r2),
            hops=hops,
            yields=tuple(yields.get(tag, ())),
        )
        answers[number_of[tag]] = (answer, int(records["walk_cycles"][index]))
    missing = set(batch.walk_numbers) - answers.keys()
    if missing:
        raise InternalError(f"walk {min(missing)} has no completion record: expected one for every walk")
    return answers


def _run_control(
    control: Control, batches: Sequence[Batch], *, place: int, driver: Driver, trusted: bool
) -> None:
    """Repeat a walk before and after the flip. `trusted`: every answer of the replay was the right one."""
    answers: dict[int, Answer] = {}
    for batch in batches:
        done = _run_batch(batch, place=place, driver=driver)
        answers |= {number: answer for number, (answer, _) in _answers(batch, done).items()}
    what = f"negative control of {control.check} ({control.flipped_field} at {control.flipped_address:#x})"
    if control.question.expectation.right(answers[1]):
        raise InternalError(f"{what}: the verdict after the flip is right: expected wrong")
    if trusted and not control.question.expectation.right(answers[0]):
        raise InternalError(f"{what}: the verdict before the flip is wrong: expected right")
    if trusted and answers[1] != control.answer:
        raise InternalError(
            f"{what}: after the flip the walk answers {answers[1]}: expected {control.answer}, "
            "as the golden interpreter"
        )


def _memory_differences(plan: Plan, fetch: Callable[[int, int], Atoms]) -> list[int]:
    """Addresses where memory is not the mirror."""
    differs: list[int] = []
    for image in plan.images:
        if image.size:
            memory = fetch(image.base, image.size)
            rows = np.flatnonzero((memory != image.words).any(axis=1) & image.known)
            differs += (image.base + rows).tolist()
    return differs
