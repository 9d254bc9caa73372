"""The plan of a replay: batches of commands, and by number what every walk must answer.

Everything is worked out on the host before anything runs: what each walk must answer according to the
trace, and what the golden interpreter answers on the host's mirror of memory. The plan is the same for
every place.

With `concurrent` = N the traces are replayed N at a time, in rounds: each search goes on to its next walk;
then come the writes of all, a fence, the walks of all, a fence. Up to the contexts of a walker each search
has a context of its own. Beyond, contexts are shared: the walks of a round queue for them in order, each for
the one that has the fewest reads before it, and every window is the whole memory.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hdl.layouts import WalkStatus
from sim.model.interpreter import BUDGET_MAX, Atom, WalkResult, run_walk
from sim.trace.events import Backtrack
from sim.trace.schema import Trace

from .assembler import Image
from .batches import Batch, BatchBuilder, RingSize, WalkCommand, Window
from .control import Control, build_control, control_batches
from .errors import InputError
from .far_help import STACK_LEVEL_CYCLES, STREAM_RESULT_CYCLES, FarHelp
from .image import AddressSpace, Layout, MemoryFull, TreeImage
from .path_stack import PathStack
from .placement import Placement, RoundRobin
from .programs import select_k
from .repeats import Interpreted, RepeatedAnswers
from .search import Search, Unasked
from .walks import Answer, Check, Question

__all__ = [
    "CONCURRENT_MAX",
    "Local",
    "Plan",
    "PlannedTrace",
    "PlannedWalk",
    "make_plan",
    "require_concurrent",
]

#: Searches that may be replayed at a time.
CONCURRENT_MAX = 10_000

#: Checks that have a count, flag or score whose flip can be decisive.
_CONTROLLED: tuple[Check, ...] = ("climb", "select", "ancestor")
#: Walks of a check that are tried until one has a field whose flip is decisive.
_CONTROL_TRIES = 1000


@dataclass(frozen=True, kw_only=True)
class Local:
    """A question that the far place answers by its help, without a walk."""

    help: Literal["stack", "stream"]
    answer: Answer
    cycles: int
    """On-chip cycles, an input; of a stream those after its records have come."""


@dataclass(frozen=True, kw_only=True)
class PlannedWalk:
    """One walk of the plan: which trace asks, what, and what the golden interpreter answers."""

    trace: int
    question: Question
    golden: Answer
    round: int
    """Walks of one round are in progress together."""
    local: Local | None = None
    """How the far place answers it instead."""

    def as_golden(self, answer: Answer) -> bool:
        """Whether an answer is the golden interpreter's; of a local one what it says of the search."""
        if self.local is None:
            return answer == self.golden
        if self.local.help == "stream":
            return (answer.status, answer.yields) == (self.golden.status, self.golden.yields)
        return (answer.status, answer.value) == (self.golden.status, self.golden.value)


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


def require_concurrent(concurrent: int) -> None:
    """Check that so many searches may be replayed at a time. Raises InputError."""
    if not 1 <= concurrent <= CONCURRENT_MAX:
        raise InputError(f"--concurrent is {concurrent}: expected 1 to {CONCURRENT_MAX}")


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
    far_help: FarHelp | None = None,
) -> Plan:
    """The plan of a replay on a stack of `memory_atoms` in `channels`, trees placed by `placement`.

    A search has a context number, whatever its channel, so that the plan is the same for the far walker,
    which has one set of contexts. With `far_help` it is a plan for the far place alone: what a path stack
    answers is no walk, and a selection whose list fits in the part of the command ring that is kept free for
    it is read as a stream. The default placement is `RoundRobin`. `climbing` is the program of `CLIMBS`, in
    the image `program`, that finds where a search resumes.

    Raises InputError naming file, trace and event for a tree that does not fit in the memory, a value that
    a record cannot hold and a list longer than the completion ring; and for `concurrent` out of range.
    """
    require_concurrent(concurrent)
    space = _Space(memory_atoms, channels, placement or RoundRobin())
    planner = _Planner(
        program,
        layout,
        climbing,
        ring,
        memory_atoms,
        contexts,
        concurrent,
        space,
        far_help or FarHelp(),
    )
    return planner.plan(iter(traces))


@dataclass
class _Slot:
    """One of the searches that are replayed at a time."""

    place: int
    """Among those; its context when it has one of its own."""
    context: int
    channel: int
    number: int
    trace: Trace
    search: Search
    stack: PathStack
    tree: object
    """Equal for trees of one trace that lie alike."""
    followed: int = 0
    """Events that the stack has followed."""

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
        contexts: int,
        concurrent: int,
        space: _Space,
        far_help: FarHelp,
    ) -> None:
        self._program = program
        self._layout = layout
        self._climbing = climbing
        self._help = far_help
        self._ring = ring
        self._memory_atoms = memory_atoms
        self._contexts = contexts
        self._concurrent = concurrent
        self._shared = concurrent > contexts
        self._space = space
        self._builder = BatchBuilder(ring, stream=far_help.stream)
        self._rounds = 0
        self._repeats = RepeatedAnswers()
        self._walks: list[PlannedWalk] = []
        self._traces: list[PlannedTrace] = []
        self._controls: dict[Check, Control] = {}
        self._control_tries: Counter[Check] = Counter()
        self._images: dict[int, TreeImage] = {}
        self._bases: list[int] = []
        """Of the images, in order."""

    def plan(self, traces: Iterator[Trace]) -> Plan:
        slots: dict[int, _Slot] = {}
        free = list(range(self._concurrent))
        number = 0
        if self._shared:
            self._share_contexts()
        while True:
            while free and (trace := next(traces, None)) is not None:
                slot = self._open(trace, place=heapq.heappop(free), number=number)
                slots[slot.place] = slot
                number += 1
            if not slots:
                break
            for place in self._round(list(slots.values())):
                slot = slots.pop(place)
                self._close(slot)
                heapq.heappush(free, place)
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

    def _share_contexts(self) -> None:
        """Every context may touch all of memory, in every channel: it walks in one tree after another."""
        for channel in range(self._space.channels):
            for context in range(self._contexts):
                self._builder.window(
                    Window(context=context, channel=channel, base=1, limit=self._memory_atoms, writable=True)
                )

    def _open(self, trace: Trace, *, place: int, number: int) -> _Slot:
        search = Search(trace.events, layout=self._layout, climbing=self._climbing, turn=number)
        image = search.image
        try:
            channel, base = self._space.allocate(image.size, alignment=image.alignment)
            image.move_to(base)
        except InputError as error:
            raise InputError(f"{trace.file}: trace {trace.name}: {error}") from None
        self._keep(image)
        self._traces.append(
            PlannedTrace(
                trace=trace, nodes=search.nodes, addresses=image.addresses, channel=channel, unasked=()
            )
        )
        slot = _Slot(
            place=place,
            context=0 if self._shared else place,
            channel=channel,
            number=number,
            trace=trace,
            search=search,
            stack=PathStack(),
            tree=(id(trace), (image.addresses - image.base).tobytes()),
        )
        if not self._shared:
            self._builder.window(slot.window)
        return slot

    def _keep(self, image: TreeImage) -> None:
        """The image holds its range from now on, and no finished search does any part of it."""
        first = max(bisect_left(self._bases, image.base) - 1, 0)
        last = bisect_left(self._bases, image.limit)
        for base in self._bases[first:last]:
            if image.base < self._images[base].limit:
                del self._images[base]
        self._bases[first:last] = [base for base in self._bases[first:last] if base in self._images]
        if image.base not in self._images:
            insort(self._bases, image.base)
        self._images[image.base] = image

    def _close(self, slot: _Slot) -> None:
        self._space.release(slot.channel, slot.search.image.base)
        planned = self._traces[slot.number]
        self._traces[slot.number] = replace(planned, unasked=tuple(slot.search.unasked))

    def _round(self, slots: Sequence[_Slot]) -> list[int]:
        """Every search to its next walk; the places of those that have ended."""
        ended: list[int] = []
        asked: list[tuple[_Slot, Question]] = []
        for slot in slots:
            try:
                question = slot.search.advance()
            except InputError as error:
                raise self._located(slot, slot.search.event, error) from None
            if question is None:
                ended.append(slot.place)
            else:
                asked.append((slot, question))
            for run in slot.search.image.flush():
                self._builder.write(run)
        self._builder.fence()
        # Reads that are ahead in each context that is shared.
        queue = [(0, context) for context in range(self._contexts)] if self._shared else []
        streams: list[tuple[_Slot, Question]] = []
        for slot, question in asked:
            if self._streamed(question):
                streams.append((slot, question))
            else:
                self._ask(slot, question, queue)
        self._builder.fence()
        for slot, question in streams:
            self._stream(slot, question)
        self._rounds += 1
        return ended

    def _ask(self, slot: _Slot, question: Question, queue: list[tuple[int, int]]) -> None:
        golden = self._answer(slot, question)
        local = self._climbed(slot, question) if self._help.stack else None
        if local is None:
            context = slot.context
            if queue:
                ahead, context = queue[0]
                heapq.heapreplace(queue, (ahead + golden.hops, context))
            try:
                self._builder.walk(self._command(question, context), number=len(self._walks))
            except ValueError as error:
                raise self._located(slot, question.event, error) from None
        self._asked(slot, question, golden, local)

    def _answer(self, slot: _Slot, question: Question) -> Answer:
        """The golden interpreter's answer; a negative control is made of it if that is possible."""
        walked: list[WalkResult] = []

        def interpret() -> Interpreted:
            walked.append(self._golden(question, slot.search.image, slot.window))
            return Interpreted(answer=_golden_answer(walked[0]), stores=bool(walked[0].stores))

        answer = self._repeats.answer(slot.tree, question.event, slot.search.image.base, interpret)
        if walked and question.check in _CONTROLLED and question.check not in self._controls:
            self._try_control(slot, question, walked[0])
        return answer

    def _asked(self, slot: _Slot, question: Question, golden: Answer, local: Local | None) -> None:
        self._walks.append(
            PlannedWalk(
                trace=slot.number,
                question=question,
                golden=golden,
                round=self._rounds,
                local=local,
            )
        )

    def _climbed(self, slot: _Slot, question: Question) -> Local | None:
        """What the path stack answers; None: it must be a walk."""
        for event in slot.trace.events[slot.followed : slot.search.event]:
            slot.stack.follow(event)
        slot.followed = slot.search.event
        if question.program != "climb":
            return None
        asking = slot.trace.events[question.event]
        assert isinstance(asking, Backtrack)
        resumed = slot.stack.climb(slot.search.parent(asking.from_))
        if resumed is None:
            return None
        address = 0 if resumed.node is None else slot.search.image.address(resumed.node)
        status = WalkStatus.DONE if address else WalkStatus.NULL_POINTER
        return Local(
            help="stack",
            answer=Answer(
                status=status.value, code=0, value=address, registers=(address, 0, 0), hops=0, yields=()
            ),
            cycles=STACK_LEVEL_CYCLES * resumed.levels,
        )

    def _streamed(self, question: Question) -> bool:
        """The question is a selection whose list is read as a stream."""
        if not self._help.stream or question.program not in ("select_k", "select_k_live"):
            return False
        return question.records <= self._builder.stream_atoms

    def _stream(self, slot: _Slot, question: Question) -> None:
        image = slot.search.image
        chosen = tuple(
            select_k.reference(
                image,
                start=question.start,
                k=question.registers[0],
                live_only=question.program == "select_k_live",
            )
        )
        golden = self._answer(slot, question)
        marker = WalkCommand(
            entry=self._program.entries[question.program], context=slot.context, address=0, registers=()
        )
        self._builder.stream(
            address=question.start, count=question.records, marker=marker, number=len(self._walks)
        )
        answer = Answer(
            status=WalkStatus.DONE.value, code=0, value=0, registers=(0, 0, 0), hops=0, yields=chosen
        )
        self._asked(
            slot,
            question,
            golden,
            Local(help="stream", answer=answer, cycles=STREAM_RESULT_CYCLES * len(chosen)),
        )

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
