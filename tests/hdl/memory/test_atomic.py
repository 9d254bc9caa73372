"""The atomic unit in front of a memory that answers late, with stalls on every stream."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hdl.layouts import MemoryStatus, Source
from hdl.memory.atomic import AtomicUnit
from sim.bench.memory_port import Request, Response, Scoreboard, TrafficShape, random_request, tag_of

from ..streams import check_stream_rule, randomly, run

ATOMS = 64


def _fields(request: Request) -> dict[str, Any]:
    return {
        "address": request.address,
        "write": request.write,
        "conditional": request.conditional,
        "expected": request.expected,
        "data": request.data,
        "mask": request.mask,
        "tag": {"source": Source(request.tag & 7), "context": request.tag >> 3},
        "priority": request.priority,
    }


class _Memory:
    """The controller's side: takes requests in order, answers after a random delay, in order."""

    def __init__(self, dut: AtomicUnit, rng: random.Random, poisoned: set[int]) -> None:
        self.port, self.rng, self.poisoned = dut.memory, rng, poisoned
        self.atoms: dict[int, int] = {}
        self.answers: list[dict[str, Any]] = []

    async def take(self, ctx: Any) -> None:
        request = self.port.request
        stall = randomly(self.rng)
        while True:
            ctx.set(request.ready, 0)
            for _ in range(1 + stall()):
                await ctx.tick()
            ctx.set(request.ready, 1)
            valid = False
            while not valid:
                _, _, valid, taken = await ctx.tick().sample(request.valid, request.payload)
            assert not taken.conditional
            status = MemoryStatus.POISONED if taken.address in self.poisoned else MemoryStatus.OK
            old = self.atoms.get(taken.address, 0)
            if taken.write:
                bits = sum(0xFF << 8 * n for n in range(32) if taken.mask >> n & 1)
                self.atoms[taken.address] = old & ~bits | taken.data & bits
                status = MemoryStatus.OK
            tag = {"source": taken.tag.source, "context": taken.tag.context}
            self.answers.append({"tag": tag, "write": taken.write, "data": old, "status": status})

    async def answer(self, ctx: Any) -> None:
        response = self.port.response
        stall = randomly(self.rng)
        while True:
            for _ in range(1 + stall()):
                await ctx.tick()
            if self.answers:
                ctx.set(response.payload, self.answers.pop(0))
                ctx.set(response.valid, 1)
                ready = False
                while not ready:
                    _, _, ready = await ctx.tick().sample(response.ready)
                ctx.set(response.valid, 0)


@pytest.mark.parametrize("seed", range(3))
def test_conditional_writes_are_atomic(seed: int) -> None:
    rng = random.Random(seed)
    dut = AtomicUnit()
    poisoned = {9}
    memory = _Memory(dut, rng, poisoned)
    board = Scoreboard(atoms=ATOMS)
    shape = TrafficShape(conditional=0.4, write=0.2, out_of_range=0)
    total = 150
    cycle = 0
    seen = {status: 0 for status in MemoryStatus}
    log: list[tuple[str, Any]] = []

    async def clock(ctx: Any) -> None:
        nonlocal cycle
        while True:
            await ctx.tick()
            cycle += 1

    async def ask(ctx: Any) -> None:
        stall = randomly(rng)
        for index in range(total):
            await ctx.tick().repeat(1 + stall())
            addresses = [3, 4, 9] if rng.random() < 0.2 else [3, 4]
            request = random_request(rng, shape, board, addresses, tag_of(Source.HOST, index % 64))
            while board.uses(request.tag):
                await ctx.tick()
            ctx.set(dut.port.request.payload, _fields(request))
            ctx.set(dut.port.request.valid, 1)
            await ctx.tick().until(dut.port.request.ready)
            ctx.set(dut.port.request.valid, 0)
            if request.address not in poisoned:
                board.accept(request, cycle)
            else:
                log.append(("poisoned", request))

    async def listen(ctx: Any) -> None:
        response = dut.port.response
        stall = randomly(rng)
        for _ in range(total):
            ctx.set(response.ready, 0)
            await ctx.tick().repeat(1 + stall())
            ctx.set(response.ready, 1)
            (payload,) = await ctx.tick().sample(response.payload).until(response.valid)
            answer = Response(
                tag=payload.tag.source.value | payload.tag.context << 3,
                write=bool(payload.write),
                data=payload.data,
                status=MemoryStatus(payload.status),
            )
            # An answer follows its acceptance, never in the same cycle.
            seen[answer.status] += 1
            if board.uses(answer.tag):
                board.respond(answer, cycle)
            else:
                request = next(r for kind, r in log if r.tag == answer.tag)
                log.remove(("poisoned", request))
                plain_write = request.write and not request.conditional
                assert answer.status == (MemoryStatus.OK if plain_write else MemoryStatus.POISONED)
                assert answer.write == request.write
        ctx.set(response.ready, 0)

    run(
        dut,
        ask,
        listen,
        processes=[
            clock,
            memory.take,
            memory.answer,
            check_stream_rule(dut.port.response, "response"),
            check_stream_rule(dut.memory.request, "request"),
        ],
    )
    assert {a: v for a, v in memory.atoms.items() if a not in poisoned and v} == {
        a: v for a, v in board.memory.items() if v
    }
    assert seen[MemoryStatus.MISMATCH] > 5 and seen[MemoryStatus.OK] > 5 and seen[MemoryStatus.POISONED] > 0


def test_hold_begins_nothing() -> None:
    dut = AtomicUnit()

    async def bench(ctx: Any) -> None:
        ctx.set(dut.hold, 1)
        ctx.set(dut.memory.request.ready, 1)
        ctx.set(dut.port.request.valid, 1)
        for conditional in (0, 1):
            fields = _fields(Request(address=1, tag=0, write=True, conditional=bool(conditional)))
            ctx.set(dut.port.request.payload, fields)
            for _ in range(3):
                await ctx.tick()
                assert not ctx.get(dut.port.request.ready) and not ctx.get(dut.memory.request.valid)
                assert ctx.get(dut.idle)

    run(dut, bench)
