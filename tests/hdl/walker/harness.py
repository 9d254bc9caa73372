"""A walker in Amaranth's simulator with a mocked memory, launcher and verdict taker; all by cycle number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from amaranth.sim import Simulator

from hdl.config import DesignConfig, WalkerConfig
from hdl.layouts import HopEvent, MemoryStatus, Source, VerdictKind, WalkStatus
from hdl.walker.isa import Instruction
from hdl.walker.walker import Walker

__all__ = ["Answer", "Event", "Harness", "Request", "Seen", "walker_config"]


def walker_config(*, contexts: int = 4, stages: int = 1) -> DesignConfig:
    """A design with a walker of this size."""
    return DesignConfig(walker=WalkerConfig(contexts=contexts, execute_stages=stages))


@dataclass(frozen=True)
class Request:
    """A memory request; `first` is its first cycle of valid, `cycle` the one in which it was taken."""

    first: int
    cycle: int
    context: int
    address: int
    write: bool
    conditional: bool
    expected: int
    data: int
    mask: int
    priority: bool


@dataclass(frozen=True)
class Answer:
    """A response, in the cycle in which it was taken."""

    first: int
    cycle: int
    context: int
    write: bool


@dataclass(frozen=True)
class Seen:
    """A verdict; `first` is its first cycle of valid, `cycle` the one in which it was taken."""

    first: int
    cycle: int
    context: int
    tag: int
    kind: VerdictKind
    status: WalkStatus
    code: int
    hops: int
    cycles: int
    value: int
    registers: tuple[int, ...]


@dataclass(frozen=True)
class Event:
    """One event of the hop monitor."""

    cycle: int
    event: HopEvent
    context: int
    address: int


@dataclass
class _Waiting:
    due: int
    order: int
    context: int
    address: int
    write: bool
    data: int = 0
    status: MemoryStatus = MemoryStatus.OK


def always(cycle: int) -> bool:
    """A neighbour that is always there."""
    return True


@dataclass
class Harness:
    """Everything around the walker. Set the fields, then `run`, then read the logs.

    The memory keeps the order of one atom and answers others by their latency, whichever is due first.
    """

    contexts: int = 4
    stages: int = 1
    memory: dict[int, list[int]] = field(default_factory=dict)
    """Words by atom address; a missing one holds zeros."""
    latency: Callable[[int], int] = lambda address: 5
    """Cycles from the request's acceptance to the first cycle of its response."""
    write_latency: Callable[[int], int] | None = None
    request_ready: Callable[[int], bool] = always
    """Whether the memory takes a request in this cycle."""
    response_go: Callable[[int], bool] = always
    """Whether a response that is due may be offered in this cycle."""
    verdict_ready: Callable[[int], bool] = always
    read_status: dict[int, MemoryStatus] = field(default_factory=dict)
    """The status of reads of an address."""
    write_status: dict[int, MemoryStatus] = field(default_factory=dict)
    """The status of writes to an address; a failed write changes nothing."""
    watchdog: int = 3000
    on_cycle: Callable[[Any, Walker, int], None] | None = None
    """Called in every cycle after the inputs are set, for what a test does or looks at itself."""

    program: Sequence[Instruction] = ()
    windows: dict[int, tuple[int, int, bool, int]] = field(default_factory=dict)
    """By context: base, limit, writable, budget. Default: everything, read only, 1,000 steps."""
    tenants: dict[int, int] = field(default_factory=dict)
    """By context. Default: 0."""
    launches: list[dict[str, Any]] = field(default_factory=list)
    """Offered in this order: context, address, entry, registers, tag, and optionally the cycle `at`."""

    requests: list[Request] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    verdicts: list[Seen] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    accepted: list[tuple[int, int]] = field(default_factory=list)
    """Cycle and context of every launch."""

    def launch(self, context: int = 0, address: int = 1, **more: Any) -> None:
        """Queues a launch."""
        self.launches.append({"context": context, "address": address} | more)

    def run(self, ends: int | None = None) -> list[Seen]:
        """Simulates until `ends` walks (default: as many as were launched) have ended; their verdicts.

        Afterwards every store has been answered and the walker is idle, or AssertionError is raised.
        """
        wanted = len(self.launches) if ends is None else ends
        dut = Walker(walker_config(contexts=self.contexts, stages=self.stages), source=Source.FAR_WALKER)
        simulator = Simulator(dut)
        simulator.add_clock(1e-9)

        async def bench(ctx: Any) -> None:
            await self._configure(ctx, dut)
            await self._loop(ctx, dut, wanted)

        simulator.add_testbench(bench)
        simulator.run()
        return [verdict for verdict in self.verdicts if verdict.kind == VerdictKind.DONE]

    async def _configure(self, ctx: Any, dut: Walker) -> None:
        for index, instruction in enumerate(self.program):
            ctx.set(dut.program_write.enable, 1)
            ctx.set(dut.program_write.index, index)
            ctx.set(dut.program_write.word, instruction.encode())
            await ctx.tick()
        ctx.set(dut.program_write.enable, 0)
        for context in range(self.contexts):
            window = self.windows.get(context, (0, 0xFFFFFFFF, False, 1000))
            self.configure(ctx, dut, context, *window)
            await ctx.tick()
        ctx.set(dut.context_write.enable, 0)

    def configure(
        self, ctx: Any, dut: Walker, context: int, base: int, limit: int, writable: bool, budget: int
    ) -> None:
        """Sets the context-write port for this cycle."""
        port = dut.context_write
        ctx.set(port.enable, 1)
        ctx.set(port.index, context)
        ctx.set(port.base, base)
        ctx.set(port.limit, limit)
        ctx.set(port.writable, writable)
        ctx.set(port.tenant, self.tenants.get(context, 0))
        ctx.set(port.budget, budget)

    async def _loop(self, ctx: Any, dut: Walker, wanted: int) -> None:
        request, response = dut.memory.request, dut.memory.response
        launches = list(self.launches)
        waiting: list[_Waiting] = []
        offered: _Waiting | None = None
        offered_since = request_since = verdict_since = None
        ended = order = 0
        for cycle in range(self.watchdog):
            # -- Inputs of this cycle --
            ctx.set(request.ready, self.request_ready(cycle))
            ctx.set(dut.verdict.ready, self.verdict_ready(cycle))
            if offered is None and self.response_go(cycle):
                offered = self._due(waiting, cycle)
                offered_since = cycle
            ctx.set(response.valid, offered is not None)
            if offered is not None:
                ctx.set(
                    response.payload,
                    {
                        "tag": {"source": Source.FAR_WALKER, "context": offered.context},
                        "write": offered.write,
                        "data": offered.data,
                        "status": offered.status,
                    },
                )
            launch = launches[0] if launches and cycle >= launches[0].get("at", 0) else None
            ctx.set(dut.launch.valid, launch is not None)
            if launch is not None:
                ctx.set(
                    dut.launch.payload,
                    {
                        "context": launch["context"],
                        "entry": launch.get("entry", 0),
                        "tag": launch.get("tag", 0),
                        "address": launch["address"],
                        "registers": launch.get("registers", [0] * 6),
                    },
                )
            if self.on_cycle is not None:
                self.on_cycle(ctx, dut, cycle)

            # -- What happens at its end --
            event = HopEvent(ctx.get(dut.hop.event))
            if event != HopEvent.NONE:
                self.events.append(Event(cycle, event, ctx.get(dut.hop.context), ctx.get(dut.hop.address)))
            if ctx.get(request.valid):
                request_since = cycle if request_since is None else request_since
                if ctx.get(request.ready):
                    entry = self._take(ctx.get(request.payload), request_since, cycle)
                    self.requests.append(entry)
                    waiting.append(self._access(entry, cycle, order))
                    order += 1
                    request_since = None
            else:
                assert request_since is None, "the request fell before it was taken"
            if offered is not None and ctx.get(response.ready):
                assert offered_since is not None
                self.answers.append(Answer(offered_since, cycle, offered.context, offered.write))
                waiting.remove(offered)
                offered = None
            if ctx.get(dut.verdict.valid):
                verdict_since = cycle if verdict_since is None else verdict_since
                if ctx.get(dut.verdict.ready):
                    self.verdicts.append(self._seen(ctx.get(dut.verdict.payload), verdict_since, cycle))
                    verdict_since = None
                    ended += self.verdicts[-1].kind == VerdictKind.DONE
            else:
                assert verdict_since is None, "the verdict fell before it was taken"
            if launch is not None and ctx.get(dut.launch.ready):
                self.accepted.append((cycle, launch["context"]))
                launches.pop(0)
            await ctx.tick()
            if ended >= wanted and not launches:
                if wanted == len(self.launches):
                    assert ctx.get(dut.idle) and not ctx.get(request.valid) and not waiting
                    assert ctx.get(dut.free) == (1 << self.contexts) - 1
                return
        raise AssertionError(f"watchdog: {ended} of {wanted} walks ended in {self.watchdog} cycles")

    def _due(self, waiting: Iterable[_Waiting], cycle: int) -> _Waiting | None:
        """The response to offer: due, and not behind an earlier access to the same atom."""
        best: _Waiting | None = None
        blocked: set[int] = set()
        for access in waiting:
            if (
                access.due <= cycle
                and access.address not in blocked
                and (best is None or access.due < best.due)
            ):
                best = access
            blocked.add(access.address)
        return best

    def _take(self, payload: Any, first: int, cycle: int) -> Request:
        assert payload.tag.source == Source.FAR_WALKER
        assert payload.priority == 1 or len({self.tenants.get(n, 0) for n in range(self.contexts)}) == 2
        return Request(
            first=first,
            cycle=cycle,
            context=payload.tag.context,
            address=payload.address,
            write=bool(payload.write),
            conditional=bool(payload.conditional),
            expected=payload.expected,
            data=payload.data,
            mask=payload.mask,
            priority=bool(payload.priority),
        )

    def _access(self, request: Request, cycle: int, order: int) -> _Waiting:
        """Does an access at once, which keeps the order of every atom; its answer waits for the latency."""
        words = self.memory.setdefault(request.address, [0] * 8)
        latency = self.write_latency if request.write and self.write_latency else self.latency
        access = _Waiting(
            cycle + latency(request.address), order, request.context, request.address, request.write
        )
        if not request.write:
            assert request.mask == 0 and not request.conditional
            access.data = sum(word << 32 * index for index, word in enumerate(words))
            access.status = self.read_status.get(request.address, MemoryStatus.OK)
            return access
        lanes = [lane for lane in range(8) if request.mask >> 4 * lane & 0xF]
        assert len(lanes) == 1 and request.mask == 0xF << 4 * lanes[0], f"mask {request.mask:#x}"
        access.status = self.write_status.get(request.address, MemoryStatus.OK)
        if request.conditional and words[lanes[0]] != request.expected:
            access.status = MemoryStatus.MISMATCH
        elif access.status in (MemoryStatus.OK, MemoryStatus.CORRECTED):
            words[lanes[0]] = request.data >> 32 * lanes[0] & 0xFFFFFFFF
        return access

    def _seen(self, payload: Any, first: int, cycle: int) -> Seen:
        return Seen(
            first=first,
            cycle=cycle,
            context=payload.context,
            tag=payload.tag,
            kind=VerdictKind(payload.kind),
            status=WalkStatus(payload.status),
            code=payload.code,
            hops=payload.hops,
            cycles=payload.cycles,
            value=payload.value,
            registers=tuple(payload.registers),
        )
