"""The plan of a replay: batches of commands, and by number what every walk must answer.

Everything is worked out on the host before anything runs: what each walk must answer according to the
trace, and what the golden interpreter answers on the host's mirror of memory. The plan is the same for
every place.

With `concurrent` = N the traces are replayed N at a time, in rounds: each search goes on to its next walk;
then come the writes of all, a fence, the walks of all (each in its own context), a fence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sim.model.interpreter import BUDGET_MAX, Atom, WalkResult, run_walk
from sim.trace.schema import Trace

from .assembler import Image
from .batches import Batch, BatchBuilder, RingSize, WalkCommand, Window
from .control import Control, build_control, control_batches
from .errors import InputError
from .image import AddressSpace, Layout, MemoryFull, TreeImage
from .placement import Placement, RoundRobin
from .search import Search, Unasked
from .walks import Answer, Check, Question

__all__ = ["Plan", "PlannedTrace", "PlannedWalk", "make_plan", "require_concurrent"]

#: Checks that have a count, flag or score whose flip can be decisive.
_CONTROLLED: tuple[Check, ...] = ("climb", "select", "ancestor")
#: Walks of a check that are tried until one has a field whose flip is decisive.
_CONTROL_TRIES = 1000


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
    addresses: NDArray[np.int64]
    """Where its nodes lie, by id."""
    channel: int
    """The channel that they lie in."""
    unasked: tuple[Unasked, ...]
    """Events that ask for an answer but start no walk."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A replay, worked out: batches and, by number, what every walk must answer."""

    concurrent: int
    channels: int
    batches: Sequence[Batch]
    walks: Sequence[PlannedWalk]
    traces: Sequence[PlannedTrace]
    controls: Mapping[Check, Control]
    """One for each check that the traces have, where a flip can be decisive."""
    control_batches: Mapping[Check, Sequence[Batch]]
    images: Sequence[TreeImage]
    """The ranges of memory that hold a finished search when the replay is over, as the mirror has them."""


def require_concurrent(concurrent: int, *, contexts: int) -> None:
    """Check that a walker has contexts for this many searches. Raises InputError."""
    if not 1 <= concurrent <= contexts:
        raise InputError(f"--concurrent is {concurrent}: expected 1 to {contexts}, the contexts of a walker")


def make_plan(
    traces: Iterable[Trace],
    *,
    program: Image,
    layout: Layout,
    climbing: str = "climb",
    ring: RingSize,
    memory_atoms: int,
    contexts: int,
    concurrent: int = 1,
    channels: int = 1,
    placement: Placement | None = None,
) -> Plan:
    """The plan of a replay on a stack of `memory_atoms` in `channels`, trees placed by `placement`.

    Every search has a context number of its own, so that the plan is the same for the far walker, which has
    one set of contexts. The default placement is `RoundRobin`. `climbing` is the program of `CLIMBS`, in
    the image `program`, that finds where a search resumes.

    Raises InputError naming file, trace and event for a tree that does not fit in the memory, a value that
    a record cannot hold and a list longer than the completion ring; and for `concurrent` out of range.
    """
    require_concurrent(concurrent, contexts=contexts)
    space = _Space(memory_atoms, channels, placement or RoundRobin())
    return _Planner(program, layout, climbing, ring, memory_atoms, concurrent, space).plan(iter(traces))


@dataclass
class _Slot:
    """One of the searches that are replayed at a time; its number is its context."""

    context: int
    channel: int
    number: int
    trace: Trace
    search: Search

    @property
    def window(self) -> Window:
        image = self.search.image
        return Window(
            context=self.context, channel=self.channel, base=image.base, limit=image.limit, writable=True
        )


class _Space:
    """The free memory of every channel, and how many searches are in progress in each."""

    def __init__(self, atoms: int, channels: int, placement: Placement) -> None:
        size = atoms // channels
        self._spaces = [AddressSpace(atoms=size, first=channel * size) for channel in range(channels)]
        self._placement = placement
        self._placed = 0
        self._searches = [0] * channels

    @property
    def channels(self) -> int:
        return len(self._spaces)

    def allocate(self, count: int, *, alignment: int) -> tuple[int, int]:
        """A channel and the first of `count` free atoms in it. Raises MemoryFull when no channel has them."""
        refused: MemoryFull | None = None
        for channel in self._placement.order(number=self._placed, searches=self._searches):
            try:
                base = self._spaces[channel].allocate(count, alignment=alignment)
            except MemoryFull as error:
                refused = refused or error
                continue
            self._placed += 1
            self._searches[channel] += 1
            return channel, base
        assert refused is not None
        raise refused

    def release(self, channel: int, base: int) -> None:
        self._spaces[channel].release(base)
        self._searches[channel] -= 1


class _Planner:
    def __init__(
        self,
        program: Image,
        layout: Layout,
        climbing: str,
        ring: RingSize,
        memory_atoms: int,
        concurrent: int,
        space: _Space,
    ) -> None:
        self._program = program
        self._layout = layout
        self._climbing = climbing
        self._ring = ring
        self._memory_atoms = memory_atoms
        self._concurrent = concurrent
        self._space = space
        self._builder = BatchBuilder(ring)
        self._walks: list[PlannedWalk] = []
        self._traces: list[PlannedTrace] = []
        self._controls: dict[Check, Control] = {}
        self._control_tries: Counter[Check] = Counter()
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
            channels=self._space.channels,
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
        search = Search(trace.events, layout=self._layout, climbing=self._climbing, turn=number)
        image = search.image
        try:
            channel, base = self._space.allocate(image.size, alignment=image.alignment)
            image.move_to(base)
        except InputError as error:
            raise InputError(f"{trace.file}: trace {trace.name}: {error}") from None
        for base, old in list(self._images.items()):
            if base < image.limit and image.base < old.limit:
                del self._images[base]
        self._images[image.base] = image
        self._traces.append(
            PlannedTrace(
                trace=trace, nodes=search.nodes, addresses=image.addresses, channel=channel, unasked=()
            )
        )
        slot = _Slot(context=context, channel=channel, number=number, trace=trace, search=search)
        self._builder.window(slot.window)
        return slot

    def _close(self, slot: _Slot) -> None:
        self._space.release(slot.channel, slot.search.image.base)
        planned = self._traces[slot.number]
        self._traces[slot.number] = replace(planned, unasked=tuple(slot.search.unasked))

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
        command = self._command(question, slot.context)
        try:
            self._builder.walk(command, number=len(self._walks))
        except ValueError as error:
            raise self._located(slot, question.event, error) from None
        golden = self._golden(question, slot.search.image, slot.window)
        if question.check in _CONTROLLED and question.check not in self._controls:
            self._try_control(slot, question, golden)
        self._walks.append(PlannedWalk(trace=slot.number, question=question, golden=_golden_answer(golden)))

    def _try_control(self, slot: _Slot, question: Question, walked: WalkResult) -> None:
        if self._control_tries[question.check] == _CONTROL_TRIES:
            return
        self._control_tries[question.check] += 1
        control = build_control(
            question,
            walked,
            slot.search.image,
            golden=lambda asked, memory: self._golden(asked, memory, slot.window),
            as_answer=_golden_answer,
            window=slot.window,
            trace=slot.number,
        )
        if control is not None:
            self._controls[question.check] = control

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
