"""The walker alone under cocotb: random programs on random memories against the golden interpreter.

Environment: CLEW_WALKS, the number of walks to run at least (default 100); CLEW_BROKEN, the name of a
field of `_BROKEN`: the walker executes programs in which that field is wrong, which has to be noticed.
"""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from hdl.layouts import (
    HopEvent,
    MemoryRequest,
    MemoryResponse,
    MemoryStatus,
    Source,
    Verdict,
    VerdictKind,
    Walk,
    WalkStatus,
)
from hdl.walker.isa import Instruction, Op, UpdateKind
from sim.model.interpreter import WalkResult, record_words
from sim.model.random_programs import RandomCase, expected_results, random_case

from .packing import Packing

__all__ = ["random_walks"]

#: The context count of the component that runs here, and the walks of one case: one for each.
CONTEXTS = 16

_REQUEST, _RESPONSE = Packing(MemoryRequest), Packing(MemoryResponse)
_WALK, _VERDICT = Packing(Walk), Packing(Verdict)

#: Ways to break what an instruction does, for the negative control of this testbench.
_BROKEN: dict[str, Callable[[Instruction], Instruction]] = {
    "": lambda instruction: instruction,
    "op": lambda i: replace(i, op=Op.LT_U if i.op == Op.LT_S else i.op),
    "update": lambda i: replace(
        i, update=replace(i.update, kind=UpdateKind.MAX if i.update.kind == UpdateKind.MIN else i.update.kind)
    ),
    "store": lambda i: replace(i, store_word=(i.store_word + 1) % 8),
    "exit": lambda i: replace(i, not_taken=replace(i.not_taken, offset=i.not_taken.offset ^ 1)),
}


def _stalls(rng: random.Random) -> Callable[[], bool]:
    """A generator of go / wait: always, mostly, rarely, or in bursts."""
    kind = rng.randrange(4)
    if kind == 0:
        return lambda: True
    if kind < 3:
        share = 0.8 if kind == 1 else 0.2
        return lambda: rng.random() < share
    state = {"go": True, "left": 0}

    def burst() -> bool:
        if state["left"] == 0:
            state["go"], state["left"] = not state["go"], rng.randint(1, 40)
        state["left"] -= 1
        return state["go"]

    return burst


def _latency(rng: random.Random) -> Callable[[], int]:
    """A generator of latencies: constant, spread, or mostly short with some long ones."""
    kind = rng.randrange(3)
    if kind == 0:
        constant = rng.randint(1, 30)
        return lambda: constant
    if kind == 1:
        return lambda: rng.randint(1, 60)
    return lambda: 200 if rng.random() < 0.1 else rng.randint(1, 8)


@dataclass
class _Access:
    due: int
    address: int
    response: dict[str, int]


class _Memory:
    """A memory that reorders: in order for one atom, otherwise whatever is due first."""

    def __init__(self, case: RandomCase, rng: random.Random) -> None:
        self.case = case
        self.atoms = {address: list(record_words(words)) for address, words in case.memory.items()}
        self.latency, self.rng = _latency(rng), rng
        self.waiting: list[_Access] = []

    def accept(self, request: dict[str, int], cycle: int) -> None:
        """Does an access at once, which keeps the order of each atom; only the answer takes its time."""
        address = request["address"]
        response = {"tag.source": request["tag.source"], "tag.context": request["tag.context"]}
        status = MemoryStatus.CORRECTED if self.rng.random() < 0.1 else MemoryStatus.OK
        if not address < self.case.memory_atoms:
            status = MemoryStatus.OUT_OF_RANGE
        elif address in self.case.unreadable:
            status = MemoryStatus[self.case.unreadable[address].name]
        elif request["write"]:
            words = self.atoms[address]
            # The mask selects whole words, which `_Scoreboard.request` has checked.
            word = (request["mask"].bit_length() - 1) // 4
            if request["conditional"] and words[word] != request["expected"]:
                status = MemoryStatus.MISMATCH
            else:
                words[word] = request["data"] >> 32 * word & 0xFFFFFFFF
        else:
            response["data"] = sum(word << 32 * at for at, word in enumerate(self.atoms[address]))
        if request["write"]:
            # An answer to a write carries no data; whatever is there must not be used.
            response |= {"write": 1, "data": self.rng.getrandbits(256)}
        self.waiting.append(_Access(cycle + self.latency(), address, response | {"status": status.value}))

    def due(self, cycle: int) -> _Access | None:
        """The access to answer next, taken out."""
        best: _Access | None = None
        earlier: set[int] = set()
        for access in self.waiting:
            if (
                access.due <= cycle
                and access.address not in earlier
                and (best is None or access.due < best.due)
            ):
                best = access
            earlier.add(access.address)
        if best is not None:
            self.waiting.remove(best)
        return best


@dataclass
class _Progress:
    """What one context has shown so far."""

    result: WalkResult
    tag: int
    accepted: int | None = None
    reads: list[int] = field(default_factory=list)
    stores: list[tuple[int, int, int]] = field(default_factory=list)
    unanswered: int = 0
    yields: int = 0
    ended: bool = False


class _Scoreboard:
    """Compares everything visible with the golden interpreter's results, as it happens."""

    def __init__(self, results: list[WalkResult], order: list[int]) -> None:
        # The walk of each context.
        self.contexts = {
            context: _Progress(results[walk], tag=walk * 257 & 0xFFFF) for context, walk in enumerate(order)
        }
        self.events: Counter[tuple[HopEvent, int]] = Counter()
        self.tenants = set[int]()

    @property
    def running(self) -> int:
        """Walks that have not ended."""
        return sum(not progress.ended for progress in self.contexts.values())

    def request(self, request: dict[str, int]) -> None:
        """Checks an accepted request: the next read or the next store of its context."""
        assert request["tag.source"] == Source.NEAR_WALKER.value
        assert request["priority"] or self.tenants == {0, 1}, "no priority, and nobody to give way to"
        progress = self.contexts[request["tag.context"]]
        if not request["write"]:
            assert len(progress.reads) < progress.result.hops, f"read {request}: expected none"
            expected = progress.result.addresses[len(progress.reads)]
            assert request["address"] == expected, f"read of {request['address']:#x}: expected {expected:#x}"
            assert request["mask"] == 0 and not request["conditional"]
            progress.reads.append(request["address"])
            return
        assert len(progress.stores) < len(progress.result.stores), f"store {request}: expected none"
        store = progress.result.stores[len(progress.stores)]
        mask = 0xF << 4 * store.word
        assert request["mask"] == mask, f"mask {request['mask']:#x}: expected {mask:#x}"
        value = request["data"] >> 32 * store.word & 0xFFFFFFFF
        seen = request["address"], store.word, value
        assert seen == (store.address, store.word, store.value), f"store {seen}: expected {store}"
        # Program order between stores and loads of one context.
        before = progress.result.addresses[: len(progress.reads)]
        assert before and before[-1] == store.address, f"store to {store.address} after reads {before}"
        progress.stores.append(seen)
        progress.unanswered += 1

    def response(self, response: dict[str, int]) -> None:
        """Counts an answer that was taken."""
        if response.get("write"):
            self.contexts[response["tag.context"]].unanswered -= 1

    def verdict(self, verdict: dict[str, int], first: int) -> WalkStatus | None:
        """Checks a taken verdict whose first cycle of valid was `first`; the status if it is an end."""
        progress = self.contexts[verdict["context"]]
        result = progress.result
        registers = tuple(verdict[f"registers.{index}"] for index in range(3))
        assert progress.accepted is not None and not progress.ended
        assert verdict["cycles"] == first - progress.accepted, (verdict, first, progress.accepted)
        assert verdict["tag"] == progress.tag
        if verdict["kind"] == VerdictKind.YIELD.value:
            at = progress.yields
            progress.yields += 1
            assert (verdict["status"], verdict["code"]) == (0, 0)
            seen = verdict["value"], verdict["hops"], registers
            expected = result.yields[at], result.yield_hops[at], result.yield_registers[at][:3]
            assert seen == expected, f"yield {at}: {seen}, expected {expected}"
            return None
        progress.ended = True
        status = WalkStatus(verdict["status"])
        seen = status, verdict["code"], verdict["value"], verdict["hops"], registers
        expected = result.status, result.code, result.value, result.hops, result.registers[:3]
        assert seen == expected, f"verdict {seen}: expected {expected}"
        assert progress.yields == len(result.yields)
        assert tuple(progress.reads) == result.addresses
        assert len(progress.stores) == len(result.stores)
        assert progress.unanswered == 0, "the verdict came before the answers to all stores"
        return status

    def finish(self) -> None:
        """Checks the hop monitor's counts: one event for every read, store and end."""
        for context, progress in self.contexts.items():
            counts = tuple(self.events[event, context] for event in (HopEvent.REQUEST, HopEvent.STORE))
            assert counts == (progress.result.hops, len(progress.result.stores)), (context, counts)
            assert self.events[HopEvent.VERDICT, context] == 1


class _Bench:
    """Clock, the ports of the walker and the cycle number; runs one case after the other."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.cycle = 0
        self.statuses: Counter[WalkStatus] = Counter()
        self.seen: Counter[str] = Counter()
        self.breaks = _BROKEN[os.environ.get("CLEW_BROKEN", "")]

    async def start(self) -> None:
        """Starts the clock and resets."""
        dut = self.dut
        for name in (
            "launch__valid",
            "verdict__ready",
            "memory__request__ready",
            "memory__response__valid",
            "program_write__enable",
            "context_write__enable",
        ):
            getattr(dut, name).value = 0
        dut.rst.value = 1
        cocotb.start_soon(Clock(dut.clk, 1000, "ps").start())
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        await RisingEdge(dut.clk)

    async def configure(self, case: RandomCase, order: list[int], rng: random.Random) -> set[int]:
        """Writes program memory and every context's configuration; the tenants of the contexts.

        Contexts of other cases that walk no more keep theirs.
        """
        dut = self.dut
        dut.program_write__enable.value = 1
        for index, instruction in enumerate(case.program):
            dut.program_write__index.value = index
            dut.program_write__word.value = self.breaks(instruction).encode()
            await RisingEdge(dut.clk)
        dut.program_write__enable.value = 0
        dut.context_write__enable.value = 1
        both = rng.random() < 0.5
        tenants = set[int]()
        for context, walk in enumerate(order):
            launch = case.walks[walk]
            tenant = rng.randrange(2) if both else 0
            tenants.add(tenant)
            dut.context_write__tenant.value = tenant
            dut.context_write__index.value = context
            dut.context_write__base.value = launch.window[0]
            dut.context_write__limit.value = launch.window[1]
            dut.context_write__writable.value = launch.writable
            dut.context_write__budget.value = launch.budget
            await RisingEdge(dut.clk)
        dut.context_write__enable.value = 0
        return tenants

    async def run(self, case: RandomCase, rng: random.Random, *, watchdog: int = 100_000) -> None:
        """Runs the walks of a case, each in a context of its own, with stalls on every stream."""
        dut = self.dut
        order = rng.sample(range(len(case.walks)), len(case.walks))
        results, memory_after = expected_results(case)
        board = _Scoreboard(results, order)
        memory = _Memory(case, rng)
        board.tenants = await self.configure(case, order, rng)

        launches = deque(rng.sample(range(len(order)), len(order)))
        launch_go, response_go, request_go, verdict_go = (_stalls(rng) for _ in range(4))
        launching: int | None = None
        answering: _Access | None = None
        offered: dict[str, int | None] = {"request": None, "verdict": None}
        verdict_first = 0
        for _ in range(watchdog):
            # -- This cycle's inputs --
            if launching is None and launches and launch_go():
                launching = launches.popleft()
                dut.launch__payload.value = self._walk(case, board, launching, order[launching])
            dut.launch__valid.value = launching is not None
            if answering is None and response_go():
                answering = memory.due(self.cycle)
                if answering is not None:
                    dut.memory__response__payload.value = _RESPONSE.pack(answering.response)
            dut.memory__response__valid.value = answering is not None
            request_ready, verdict_ready = request_go(), verdict_go()
            dut.memory__request__ready.value = request_ready
            dut.verdict__ready.value = verdict_ready
            await ReadOnly()

            # -- What its end transfers --
            event = HopEvent(int(dut.hop__event.value))
            if event != HopEvent.NONE:
                board.events[event, int(dut.hop__context.value)] += 1
            request_valid = int(dut.memory__request__valid.value)
            if request_valid:
                payload = int(dut.memory__request__payload.value)
                request = _REQUEST.unpack(payload)
                first = offered["request"] is None
                self._stable(offered, "request", payload, taken=request_ready)
                logged = event in (HopEvent.REQUEST, HopEvent.STORE)
                assert first == logged, f"request {request}, first cycle {first}, event {event}"
                if first:
                    assert int(dut.hop__address.value) == request["address"]
                    assert (event == HopEvent.STORE) == bool(request["write"])
                if request_ready:
                    board.request(request)
                    memory.accept(request, self.cycle)
            else:
                assert offered["request"] is None, "the request fell before it was taken"
                assert event not in (HopEvent.REQUEST, HopEvent.STORE)
            if int(dut.verdict__valid.value):
                payload = int(dut.verdict__payload.value)
                if offered["verdict"] is None:
                    verdict_first = self.cycle
                self._stable(offered, "verdict", payload, taken=verdict_ready)
                if verdict_ready:
                    status = board.verdict(_VERDICT.unpack(payload), verdict_first)
                    if status is not None:
                        self.statuses[status] += 1
            else:
                assert offered["verdict"] is None, "the verdict fell before it was taken"
            if answering is not None and int(dut.memory__response__ready.value):
                board.response(answering.response)
                answering = None
            if launching is not None and int(dut.launch__ready.value):
                board.contexts[launching].accepted = self.cycle
                launching = None
            await RisingEdge(dut.clk)
            self.cycle += 1
            if not board.running:
                break
        else:
            raise TimeoutError(f"case {case.seed}: {board.running} walks still run after {watchdog} cycles")

        dut.memory__response__valid.value = 0
        dut.memory__request__ready.value = 0
        dut.verdict__ready.value = 0
        await ReadOnly()
        assert int(dut.idle.value) and not int(dut.memory__request__valid.value) and not memory.waiting
        await RisingEdge(dut.clk)
        self.cycle += 1
        board.finish()
        for address in case.memory:
            expected = record_words(memory_after[address])
            assert memory.atoms[address] == expected, f"atom {address}: {memory.atoms[address]}"
        self.seen["yields"] += sum(len(result.yields) for result in results)
        self.seen["stores"] += sum(len(result.stores) for result in results)
        self.seen["hops"] += sum(result.hops for result in results)
        self.seen["steps"] += sum(result.steps for result in results)

    def _walk(self, case: RandomCase, board: _Scoreboard, context: int, walk: int) -> int:
        launch = case.walks[walk]
        fields = {"context": context, "entry": launch.entry, "tag": board.contexts[context].tag}
        fields |= {f"registers.{index}": value for index, value in enumerate(launch.registers)}
        return _WALK.pack(fields | {"address": launch.address})

    @staticmethod
    def _stable(offered: dict[str, int | None], name: str, payload: int, *, taken: bool) -> None:
        before = offered[name]
        assert before in (None, payload), f"{name} changed before it was taken: {before:#x}, {payload:#x}"
        offered[name] = None if taken else payload


@cocotb.test()
async def random_walks(dut: Any) -> None:
    """At least CLEW_WALKS walks; a failure names the case, which the seed of the run repeats."""
    wanted = int(os.environ.get("CLEW_WALKS", "100"))
    bench = _Bench(dut)
    await bench.start()
    rng = random.Random(random.getrandbits(64))
    cases = 0
    while bench.statuses.total() < wanted:
        seed = rng.getrandbits(32)
        case = random_case(
            seed,
            walks=rng.choice((1, 3, CONTEXTS, CONTEXTS)),
            region_atoms=rng.choice((2, 12, 40)),
            poison=rng.choice((0.0, 0.0, 0.05)),
        )
        try:
            await bench.run(case, rng)
        except Exception:
            dut._log.error(f"case {cases} with program seed {seed}, cycle {bench.cycle}")
            raise
        cases += 1
    statuses = {status.name: count for status, count in bench.statuses.items()}
    dut._log.info(f"{cases} cases, {bench.cycle} cycles, {dict(bench.seen)}, {statuses}")
    missing = [status.name for status in WalkStatus if not bench.statuses[status]]
    assert wanted < 500 or not missing, f"no walk ended with {missing}"
