"""The replay of traces: events become batches of commands, and every walk gets a verdict.

`make_plan` works everything out on the host: the batches, what each walk must answer according to the trace,
and what the golden interpreter answers on the host's mirror of memory. The plan is the same for every place;
`run_plan` executes it near or far, where only the place bit of the WALK commands differs.

With `concurrent` = N the traces are replayed N at a time, in rounds: each search goes on to its next walk;
then come the writes of all, a fence, the walks of all (each in its own context), a fence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import VerdictKind
from sim.model.interpreter import BUDGET_MAX, Atom, WalkResult, run_walk
from sim.trace.schema import Trace

from .assembler import Image
from .batches import Batch, BatchBuilder, RingSize, WalkCommand, Window
from .commands import Atoms, fence
from .completion import Completions
from .control import Control, build_control, control_batches
from .errors import InputError, InternalError
from .image import AddressSpace, Layout, TreeImage
from .search import Search, Unasked
from .walks import Answer, Check, Question

__all__ = [
    "Driver",
    "Logs",
    "Monitor",
    "Plan",
    "PlannedTrace",
    "PlannedWalk",
    "Run",
    "make_plan",
    "run_plan",
]

#: Checks that have a count, flag or score whose flip can be decisive.
_CONTROLLED: tuple[Check, ...] = ("climb", "select", "ancestor")


@dataclass(frozen=True, kw_only=True)
class PlannedWalk:
    """One walk of the plan: which trace asks, what, and what the golden interpreter answers."""

    trace: int
    question: Question
    golden: Answer


@dataclass(frozen=True, kw_only=True)
class PlannedTrace:
    """One trace of the plan."""

    trace: Trace
    nodes: int
    unasked: tuple[Unasked, ...]
    """Events that ask for an answer but start no walk."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A replay, worked out: batches and, by number, what every walk must answer."""

    concurrent: int
    batches: Sequence[Batch]
    walks: Sequence[PlannedWalk]
    traces: Sequence[PlannedTrace]
    controls: Mapping[Check, Control]
    """One for each check that the traces have, where a flip can be decisive."""
    control_batches: Mapping[Check, Sequence[Batch]]
    images: Sequence[TreeImage]
    """The ranges of memory that hold a finished search when the replay is over, as the mirror has them."""


class Driver(Protocol):
    """What a replay needs of `firmware_py.driver.Accelerator`."""

    def load_program(self, words: Sequence[int], *, first: int = 0) -> None: ...

    def configure_context(
        self, context: int, *, base: int, limit: int, writable: bool, budget: int = BUDGET_MAX
    ) -> None: ...

    def run_batch(self, command_atoms: Atoms) -> Completions: ...


class Monitor(Protocol):
    """What a replay needs of `sim.compiled.CompiledModel`: its logs, and its memory past the design."""

    def hops(self) -> NDArray[np.void]: ...

    def accesses(self) -> NDArray[np.void]: ...

    def commands(self) -> NDArray[np.void]: ...

    def clear_logs(self) -> None: ...

    def fetch(self, address: int, count: int) -> Atoms: ...


@dataclass(kw_only=True)
class Logs:
    """The logs of a run, in order of cycles, with the batch number of each row; the control left out."""

    hops: NDArray[np.void]
    hop_batch: NDArray[np.int64]
    accesses: NDArray[np.void]
    access_batch: NDArray[np.int64]
    commands: NDArray[np.void]
    """Every command of the run, the control's included."""


@dataclass(kw_only=True)
class Run:
    """What came of a plan in one place."""

    place: int
    answers: list[Answer]
    """By number of the walk."""
    walk_cycles: NDArray[np.int64]
    """By number of the walk: from the command's launch to the arrival of its verdict."""
    batch_cycles: NDArray[np.int64]
    wrong: list[int]
    """Walks whose answer is not the one that the trace says is right."""
    not_golden: list[int]
    """Walks whose answer is not the golden interpreter's."""
    memory_differs: list[int]
    """Addresses at which memory is not what the host's mirror holds after the replay."""
    logs: Logs = field(repr=False)


# -- Planning -------------------------------------------------------------------------------------------


def make_plan(
    traces: Iterable[Trace],
    *,
    program: Image,
    layout: Layout,
    ring: RingSize,
    memory_atoms: int,
    contexts: int,
    concurrent: int = 1,
) -> Plan:
    """The plan of a replay.

    Raises InputError naming file, trace and event for a tree that does not fit in the memory, a value that
    a record cannot hold and a list longer than the completion ring; and for `concurrent` out of range.
    """
    if not 1 <= concurrent <= contexts:
        raise InputError(f"--concurrent is {concurrent}: expected 1 to {contexts}, the contexts of a walker")
    return _Planner(program, layout, ring, memory_atoms, concurrent).plan(iter(traces))


@dataclass
class _Slot:
    """One of the searches that are replayed at a time; its number is its context."""

    context: int
    number: int
    trace: Trace
    search: Search

    @property
    def window(self) -> Window:
        image = self.search.image
        return Window(context=self.context, base=image.base, limit=image.limit, writable=True)


class _Planner:
    def __init__(
        self, program: Image, layout: Layout, ring: RingSize, memory_atoms: int, concurrent: int
    ) -> None:
        self._program = program
        self._layout = layout
        self._ring = ring
        self._memory_atoms = memory_atoms
        self._concurrent = concurrent
        self._space = AddressSpace(atoms=memory_atoms)
        self._builder = BatchBuilder(ring)
        self._walks: list[PlannedWalk] = []
        self._traces: list[PlannedTrace] = []
        self._controls: dict[Check, Control] = {}
        self._images: dict[int, TreeImage] = {}

    def plan(self, traces: Iterator[Trace]) -> Plan:
        slots: dict[int, _Slot] = {}
        free = list(range(self._concurrent))
        number = 0
        while True:
            while free and (trace := next(traces, None)) is not None:
                slot = self._open(trace, context=free.pop(0), number=number)
                slots[slot.context] = slot
                number += 1
            if not slots:
                break
            for context in self._round(list(slots.values())):
                slot = slots.pop(context)
                self._close(slot)
                free.append(context)
            free.sort()
        return Plan(
            concurrent=self._concurrent,
            batches=self._builder.finish(),
            walks=self._walks,
            traces=self._traces,
            controls=self._controls,
            control_batches={
                check: control_batches(control, ring=self._ring, command=self._command)
                for check, control in self._controls.items()
            },
            images=list(self._images.values()),
        )

    def _open(self, trace: Trace, *, context: int, number: int) -> _Slot:
        search = Search(trace.events, layout=self._layout)
        image = search.image
        try:
            image.move_to(self._space.allocate(image.size))
        except InputError as error:
            raise InputError(f"{trace.file}: trace {trace.name}: {error}") from None
        for base, old in list(self._images.items()):
            if base < image.limit and image.base < old.limit:
                del self._images[base]
        self._images[image.base] = image
        self._traces.append(PlannedTrace(trace=trace, nodes=search.nodes, unasked=()))
        slot = _Slot(context=context, number=number, trace=trace, search=search)
        self._builder.window(slot.window)
        return slot

    def _close(self, slot: _Slot) -> None:
        self._space.release(slot.search.image.base)
        planned = self._traces[slot.number]
        self._traces[slot.number] = PlannedTrace(
            trace=planned.trace, nodes=planned.nodes, unasked=tuple(slot.search.unasked)
        )

    def _round(self, slots: Sequence[_Slot]) -> list[int]:
        """Every search to its next walk; the contexts of those that have ended."""
        ended: list[int] = []
        asked: list[tuple[_Slot, Question]] = []
        for slot in slots:
            try:
                question = slot.search.advance()
            except InputError as error:
                raise self._located(slot, slot.search.event, error) from None
            if question is None:
                ended.append(slot.context)
            else:
                asked.append((slot, question))
            for run in slot.search.image.flush():
                self._builder.write(run)
        self._builder.fence()
        for slot, question in asked:
            self._ask(slot, question)
        self._builder.fence()
        return ended

    def _ask(self, slot: _Slot, question: Question) -> None:
        image = slot.search.image
        if question.check in _CONTROLLED and question.check not in self._controls:
            control = build_control(
                question,
                image,
                golden=lambda asked, memory: self._golden(asked, memory, slot.window),
                as_answer=_golden_answer,
                window=slot.window,
                trace=slot.number,
            )
            if control is not None:
                self._controls[question.check] = control
        golden = _golden_answer(self._golden(question, image, slot.window))
        try:
            self._builder.walk(self._command(question, slot.context), number=len(self._walks))
        except ValueError as error:
            raise self._located(slot, question.event, error) from None
        self._walks.append(PlannedWalk(trace=slot.number, question=question, golden=golden))

    def _golden(self, question: Question, memory: MutableMapping[int, Atom], window: Window) -> WalkResult:
        return run_walk(
            self._program.instructions,
            memory,
            address=question.start,
            entry=self._program.entries[question.program],
            registers=[value & 0xFFFFFFFF for value in question.registers],
            window=(window.base, window.limit),
            writable=window.writable,
            budget=BUDGET_MAX,
            memory_atoms=self._memory_atoms,
        )

    def _command(self, question: Question, context: int) -> WalkCommand:
        return WalkCommand(
            entry=self._program.entries[question.program],
            context=context,
            address=question.start,
            registers=question.registers,
            completions=question.yields + 1,
        )

    @staticmethod
    def _located(slot: _Slot, event: int, error: Exception) -> InputError:
        name = slot.trace.events[event].name
        return InputError(f"{slot.trace.file}: trace {slot.trace.name}: event {event} ({name}): {error}")


def _golden_answer(result: WalkResult) -> Answer:
    r0, r1, r2 = result.registers[:3]
    return Answer(
        status=result.status.value,
        code=result.code,
        value=result.value,
        registers=(r0, r1, r2),
        hops=result.hops,
        yields=result.yields,
    )


# -- Running --------------------------------------------------------------------------------------------


def run_plan(
    plan: Plan,
    *,
    program: Image,
    place: int,
    driver: Driver,
    monitor: Monitor,
    progress: Callable[[int], None] = lambda batches: None,
) -> Run:
    """The run of a plan in `place` (0 near, 1 far), the negative control included.

    `progress` is told the batches done. Raises InternalError when the control does not turn the verdict
    wrong, or a completion record belongs to no walk.
    """
    driver.load_program(program.words)
    monitor.clear_logs()
    answers: dict[int, Answer] = {}
    walk_cycles = np.zeros(len(plan.walks), dtype=np.int64)
    batch_cycles = np.zeros(len(plan.batches), dtype=np.int64)
    hops: list[NDArray[np.void]] = []
    accesses: list[NDArray[np.void]] = []
    commands: list[NDArray[np.void]] = []
    for index, batch in enumerate(plan.batches):
        done = _run_batch(batch, place=place, driver=driver)
        batch_cycles[index] = done.cycles
        hops.append(monitor.hops())
        accesses.append(monitor.accesses())
        commands.append(monitor.commands())
        monitor.clear_logs()
        for number, (answer, cycles) in _answers(batch, done).items():
            answers[number] = answer
            walk_cycles[number] = cycles
        progress(index + 1)
    ordered = [answers[number] for number in range(len(plan.walks))]
    pairs = list(enumerate(zip(plan.walks, ordered, strict=True)))
    wrong = [number for number, (walk, answer) in pairs if not walk.question.expectation.right(answer)]
    not_golden = [number for number, (walk, answer) in pairs if answer != walk.golden]
    driver.run_batch(fence())  # starting a batch brings the buffered writes of the last one to the memory
    memory_differs = _memory_differences(plan, monitor)
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
        logs=Logs(
            hops=np.concatenate(hops),
            hop_batch=_numbers(hops),
            accesses=np.concatenate(accesses),
            access_batch=_numbers(accesses),
            commands=np.concatenate([*commands, monitor.commands()]),
        ),
    )


def _numbers(parts: Sequence[NDArray[np.void]]) -> NDArray[np.int64]:
    """The number of the part that each row of the parts put together comes from."""
    return np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])


def _run_batch(batch: Batch, *, place: int, driver: Driver) -> Completions:
    for window in batch.windows:
        driver.configure_context(
            window.context, base=window.base, limit=window.limit, writable=window.writable, budget=BUDGET_MAX
        )
    return driver.run_batch(batch.in_place(place))


def _answers(batch: Batch, done: Completions) -> dict[int, tuple[Answer, int]]:
    """The answer and the cycles of every walk of a batch, by the walk's number."""
    number_of = dict(zip(batch.walk_rows, batch.walk_numbers, strict=True))
    yields: dict[int, list[int]] = {}
    answers: dict[int, tuple[Answer, int]] = {}
    records = done.records
    columns = [records[name].tolist() for name in ("tag", "kind", "value", "status", "code", "hops")]
    for index, (tag, kind, value, status, code, hops) in enumerate(zip(*columns, strict=True)):
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


def _memory_differences(plan: Plan, monitor: Monitor) -> list[int]:
    """Addresses where memory is not the mirror."""
    differs: list[int] = []
    for image in plan.images:
        if image.size:
            memory = monitor.fetch(image.base, image.size)
            rows = np.flatnonzero((memory != image.words).any(axis=1))
            differs += (image.base + rows).tolist()
    return differs
