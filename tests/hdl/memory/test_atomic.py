"""The atomic unit in front of a memory that answers late, with stalls on every stream.

Both kinds of memory: one that writes single bytes, and one that writes whole 64-bit words only.
"""

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


def _partial(request: Request, write_bytes: int) -> bool:
    """The mask has some but not all bytes of a group that is written only together."""
    group = (1 << write_bytes) - 1
    return any(request.mask >> low & group not in (0, group) for low in range(0, 32, write_bytes))


class _Memory:
    """The controller's side: takes requests in order, answers after a random delay, in order."""

    def __init__(
        self, dut: AtomicUnit, rng: random.Random, poisoned: set[int], *, write_bytes: int = 1
    ) -> None:
        self.port, self.rng, self.poisoned = dut.memory, rng, poisoned
        self.write_bytes = write_bytes
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
                group = (1 << self.write_bytes) - 1
                for low in range(0, 32, self.write_bytes):
                    assert taken.mask >> low & group in (0, group), f"mask {taken.mask:#010x}"
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


@pytest.mark.parametrize("write_bytes", (1, 8))
@pytest.mark.parametrize("seed", range(3))
def test_dependent_writes_are_atomic(seed: int, write_bytes: int) -> None:
    rng = random.Random(seed)
    dut = AtomicUnit(write_bytes=write_bytes)
    poisoned = {9}
    memory = _Memory(dut, rng, poisoned, write_bytes=write_bytes)
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
                blind = request.write and not request.conditional and not _partial(request, write_bytes)
                assert answer.status == (MemoryStatus.OK if blind else MemoryStatus.POISONED)
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


@pytest.mark.parametrize("status", (MemoryStatus.OK, MemoryStatus.CORRECTED, MemoryStatus.POISONED))
def test_a_partial_write_brings_the_rest_of_its_word_along(status: MemoryStatus) -> None:
    """Byte by byte: its own bytes are the request's, the others of its word what was read, no other word's
    are written; over a word that cannot be read nothing is written."""
    dut = AtomicUnit(write_bytes=8)
    old = int.from_bytes(range(100, 132), "little")
    new = int.from_bytes(range(200, 232), "little")
    mask = 0x00_FF_81_00
    tag = {"source": Source.MOVER, "context": 5}

    async def bench(ctx: Any) -> None:
        port, memory = dut.port, dut.memory
        ctx.set(memory.request.ready, 1)
        fields = _fields(Request(address=6, tag=tag_of(Source.MOVER, 5), write=True, data=new, mask=mask))
        ctx.set(port.request.payload, fields)
        ctx.set(port.request.valid, 1)
        read = ctx.get(memory.request.payload)
        assert ctx.get(memory.request.valid) and ctx.get(port.request.ready)
        assert not read.write and read.address == 6 and read.tag.source == Source.CONTROLLER
        await ctx.tick()
        ctx.set(port.request.valid, 0)
        for _ in range(5):
            assert not ctx.get(memory.request.valid) and not ctx.get(dut.idle)
            await ctx.tick()
        own = {"source": Source.CONTROLLER, "context": 5}
        ctx.set(memory.response.payload, {"tag": own, "write": 0, "data": old, "status": status})
        ctx.set(memory.response.valid, 1)
        assert ctx.get(memory.response.ready) and not ctx.get(port.response.valid)
        await ctx.tick()
        ctx.set(memory.response.valid, 0)
        if status == MemoryStatus.POISONED:
            assert not ctx.get(memory.request.valid)
            answer = ctx.get(port.response.payload)
            assert ctx.get(port.response.valid) and answer.write and answer.status == status
            assert answer.data == 0
        else:
            write = ctx.get(memory.request.payload)
            assert ctx.get(memory.request.valid) and write.write and write.mask == 0x00_FF_FF_00
            assert write.tag.source == tag["source"] and write.tag.context == tag["context"]
            found = write.data.to_bytes(32, "little")
            expected = [n + (200 if mask >> n & 1 else 100) for n in range(8, 24)]
            assert list(found[8:24]) == expected

    run(dut, bench)


def test_others_pass_while_a_dependent_write_is_decided() -> None:
    """Reads and writes of other atoms do; a request of its atom, and another dependent write, wait."""
    dut = AtomicUnit()
    conditional = Request(address=6, tag=tag_of(Source.HOST, 1), write=True, conditional=True, mask=0xF)
    waits = (
        Request(address=6, tag=tag_of(Source.HOST, 2)),
        Request(address=6, tag=tag_of(Source.HOST, 2), write=True, mask=0xFF),
        Request(address=7, tag=tag_of(Source.HOST, 2), write=True, conditional=True, mask=0xF0),
    )
    passes = (
        Request(address=7, tag=tag_of(Source.HOST, 3)),
        Request(address=8, tag=tag_of(Source.HOST, 4), write=True, data=5, mask=0xFFFF),
    )

    async def bench(ctx: Any) -> None:
        port, memory = dut.port, dut.memory
        ctx.set(memory.request.ready, 1)
        ctx.set(port.request.payload, _fields(conditional))
        ctx.set(port.request.valid, 1)
        await ctx.tick()
        for request in waits:
            ctx.set(port.request.payload, _fields(request))
            for _ in range(3):
                assert not ctx.get(port.request.ready) and not ctx.get(memory.request.valid)
                await ctx.tick()
            # Another requester's turn: the offers of this one need not stand.
        for request in passes:
            ctx.set(port.request.payload, _fields(request))
            passed = ctx.get(memory.request.payload)
            assert ctx.get(port.request.ready) and ctx.get(memory.request.valid)
            assert passed.address == request.address and passed.write == request.write
            assert passed.tag.context == request.tag >> 3
            await ctx.tick()
        # What the memory did not take yet stays on offer when the write is decided.
        ctx.set(memory.request.ready, 0)
        ctx.set(port.request.payload, _fields(passes[0]))
        await ctx.tick()
        ctx.set(
            memory.response.payload,
            {"tag": {"source": Source.CONTROLLER, "context": 1}, "write": 0, "data": 0, "status": 0},
        )
        ctx.set(memory.response.valid, 1)
        await ctx.tick()
        ctx.set(memory.response.valid, 0)
        for _ in range(3):
            assert ctx.get(memory.request.payload).address == passes[0].address
            assert not ctx.get(port.request.ready)
            await ctx.tick()
        ctx.set(memory.request.ready, 1)
        assert ctx.get(port.request.ready)
        await ctx.tick()
        ctx.set(port.request.payload, _fields(waits[0]))
        written = ctx.get(memory.request.payload)
        assert ctx.get(memory.request.valid) and written.write and written.address == 6
        assert written.tag.source == Source.HOST and written.tag.context == 1
        assert not ctx.get(port.request.ready)
        await ctx.tick()
        # Now the next one of the atom goes, behind the write.
        assert ctx.get(port.request.ready) and ctx.get(dut.idle)

    run(dut, bench)


def test_whole_words_pass_without_a_read() -> None:
    dut = AtomicUnit(write_bytes=8)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.memory.request.ready, 1)
        ctx.set(dut.port.request.valid, 1)
        for mask in (0, 0xFF, 0xFF00FF00, 0xFFFFFFFF):
            fields = _fields(Request(address=1, tag=0, write=True, data=mask, mask=mask))
            ctx.set(dut.port.request.payload, fields)
            await ctx.tick()
            passed = ctx.get(dut.memory.request.payload)
            assert ctx.get(dut.port.request.ready) and ctx.get(dut.idle)
            assert passed.write and passed.mask == mask

    run(dut, bench)


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
