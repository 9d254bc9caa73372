"""DataMover: both directions, answers in any order, bounded tags, full rate, errors, stalls everywhere."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from hdl.config import DesignConfig
from hdl.layouts import MemoryStatus, Source
from hdl.mover import DataMover
from tests.hdl.streams import Stall, check_stream_rule, get, never, put, randomly, run

ALL = (1 << 32) - 1


def memory_word(address: int) -> int:
    """What the mock memory holds where nothing was written."""
    return address * 0x10001 | 1 << 255


def scratchpad_word(address: int) -> int:
    """What the mock scratchpad holds where nothing was written."""
    return address * 0x3001 | 1 << 254


class Neighbours:
    """A memory that answers in any order and a scratchpad that stalls, with what they were told."""

    def __init__(
        self, dut: DataMover, rng: random.Random, *, stall: Stall = never, shuffle: bool = True
    ) -> None:
        self.dut, self.rng, self.stall, self.shuffle = dut, rng, stall, shuffle
        self.memory: dict[int, int] = {}
        self.scratchpad: dict[int, int] = {}
        self.status: dict[int, MemoryStatus] = {}
        self.pending: list[Any] = []
        self.hold = False
        self.most = 0
        self.processes = [
            self.take_requests,
            self.answer,
            self.serve_scratchpad,
            check_stream_rule(dut.memory.request, "memory.request"),
            check_stream_rule(dut.scratchpad.request, "scratchpad.request"),
        ]

    async def take_requests(self, ctx: Any) -> None:
        while True:
            for _ in range(self.stall()):
                await ctx.tick()
            request = await get(ctx, self.dut.memory.request)
            assert request.tag.source == Source.MOVER
            assert request.tag.context not in [other.tag.context for other in self.pending], "tag in use"
            if request.write:
                assert request.mask == ALL and not request.conditional
                self.memory[request.address] = request.data
            self.pending.append(request)
            self.most = max(self.most, len(self.pending))

    async def answer(self, ctx: Any) -> None:
        port = self.dut.memory.response
        while True:
            if self.hold or not self.pending:
                await ctx.tick()
                continue
            for _ in range(self.stall()):
                await ctx.tick()
            request = self.rng.choice(self.pending) if self.shuffle else self.pending[0]
            payload = {
                "tag": request.tag,
                "write": request.write,
                "data": 0
                if request.write
                else self.memory.get(request.address, memory_word(request.address)),
                "status": self.status.get(request.address, MemoryStatus.OK),
            }
            ctx.set(port.payload, payload)
            ctx.set(port.valid, 1)
            while True:
                _, _, ready = await ctx.tick().sample(port.ready)
                if ready:
                    break
            ctx.set(port.valid, 0)
            self.pending.remove(request)

    async def serve_scratchpad(self, ctx: Any) -> None:
        port = self.dut.scratchpad
        wait = 0
        while True:
            ctx.set(port.request.ready, wait == 0)
            _, _, valid, request = await ctx.tick().sample(port.request.valid, port.request.payload)
            reads = bool(valid and wait == 0 and not request.write)
            ctx.set(port.read_valid, reads)
            # Read data is there for one cycle only.
            data = self.scratchpad.get(request.address, scratchpad_word(request.address)) if reads else 0
            ctx.set(port.read_data, data)
            if valid and wait == 0:
                if request.write:
                    assert request.mask == ALL
                    self.scratchpad[request.address] = request.data
                wait = self.stall()
            elif wait:
                wait -= 1


def command(to_memory: bool, memory_address: int, scratchpad_address: int, count: int) -> dict[str, int]:
    return {
        "to_memory": int(to_memory),
        "memory_address": memory_address,
        "scratchpad_address": scratchpad_address,
        "count_minus_1": count - 1,
    }


async def execute(ctx: Any, dut: DataMover, **values: Any) -> int:
    """One command to its end: the cycles from its acceptance to idle."""
    assert ctx.get(dut.idle)
    await put(ctx, dut.command, command(**values))
    cycles = 0
    while not ctx.get(dut.idle):
        await ctx.tick()
        cycles += 1
    return cycles


def expected_copy(
    to_memory: bool, memory_address: int, scratchpad_address: int, count: int
) -> dict[int, int]:
    """What must have been written where, and nothing else."""
    source, destination = memory_address, scratchpad_address
    if to_memory:
        return {source + index: scratchpad_word(destination + index) for index in range(count)}
    return {destination + index: memory_word(source + index) for index in range(count)}


# Not shrunk: a simulation is slow, and a failing command is short anyway.
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@example(commands=[(False, 0, 0, 1), (True, 0, 0, 5)], seed=0, share=0.8)
@given(
    commands=st.lists(
        st.tuples(st.booleans(), st.integers(0, 2**32 - 200), st.integers(0, 2**14), st.integers(1, 90)),
        min_size=1,
        max_size=3,
    ),
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.0, 0.3, 0.8]),
)
def test_copies_arrive_with_any_order_of_answers_and_any_stalls(
    commands: list[tuple[bool, int, int, int]], seed: int, share: float
) -> None:
    rng = random.Random(seed)
    dut = DataMover(DesignConfig())
    around = Neighbours(dut, rng, stall=randomly(rng, share=share, longest=4))

    async def bench(ctx: Any) -> None:
        for to_memory, memory_address, scratchpad_address, count in commands:
            around.memory.clear()
            around.scratchpad.clear()
            values = {
                "to_memory": to_memory,
                "memory_address": memory_address,
                "scratchpad_address": scratchpad_address,
                "count": count,
            }
            await execute(ctx, dut, **values)
            assert not around.pending, "idle before all was answered"
            written, other = around.scratchpad, around.memory
            if to_memory:
                written, other = other, written
            assert written == expected_copy(**values)
            assert not other
        assert not ctx.get(dut.errors)

    run(dut, bench, processes=around.processes)


@pytest.mark.parametrize("to_memory", [False, True])
def test_long_copy_takes_one_cycle_an_atom(to_memory: bool) -> None:
    dut = DataMover(DesignConfig())
    around = Neighbours(dut, random.Random(1), shuffle=False)
    taken: list[int] = []

    async def bench(ctx: Any) -> None:
        for count in (50, 150):
            taken.append(
                await execute(
                    ctx, dut, to_memory=to_memory, memory_address=0, scratchpad_address=0, count=count
                )
            )

    run(dut, bench, processes=around.processes)
    assert taken[1] - taken[0] == 100
    assert taken[0] <= 50 + 8


@pytest.mark.parametrize("to_memory", [False, True])
def test_outstanding_atoms_are_bounded_by_the_tag_contexts(to_memory: bool) -> None:
    dut = DataMover(DesignConfig())
    around = Neighbours(dut, random.Random(2))
    around.hold = True

    async def copy(ctx: Any) -> None:
        await execute(ctx, dut, to_memory=to_memory, memory_address=7, scratchpad_address=9, count=130)

    async def bench(ctx: Any) -> None:
        await ctx.tick().repeat(150)
        assert len(around.pending) == 64
        assert not ctx.get(dut.idle)
        around.hold = False

    run(dut, copy, bench, processes=around.processes)
    assert around.most == 64
    written = around.memory if to_memory else around.scratchpad
    assert written == expected_copy(to_memory, 7, 9, 130)


def test_not_idle_until_the_last_atom_is_answered() -> None:
    dut = DataMover(DesignConfig())
    around = Neighbours(dut, random.Random(3))

    async def bench(ctx: Any) -> None:
        around.hold = True
        await put(ctx, dut.command, command(True, 0, 0, 3))
        for _ in range(40):
            await ctx.tick()
            assert not ctx.get(dut.idle) and not ctx.get(dut.command.ready)
        around.hold = False
        await ctx.tick().repeat(10)
        assert ctx.get(dut.idle)

    run(dut, bench, processes=around.processes)


@pytest.mark.parametrize("to_memory", [False, True])
def test_failed_atoms_are_counted_and_not_copied(to_memory: bool) -> None:
    dut = DataMover(DesignConfig())
    around = Neighbours(dut, random.Random(4))
    around.status = {
        102: MemoryStatus.POISONED,
        103: MemoryStatus.CORRECTED,
        105: MemoryStatus.OUT_OF_RANGE,
    }
    where = {"to_memory": to_memory, "memory_address": 100, "scratchpad_address": 30}

    async def bench(ctx: Any) -> None:
        await execute(ctx, dut, **where, count=2)
        assert not ctx.get(dut.errors) and ctx.get(dut.error_count) == 0
        await execute(ctx, dut, **where, count=6)
        assert ctx.get(dut.errors) and ctx.get(dut.error_count) == 2
        await execute(ctx, dut, **where, count=2)
        assert ctx.get(dut.errors), "sticky"
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        assert not ctx.get(dut.errors) and ctx.get(dut.error_count) == 0

    run(dut, bench, processes=around.processes)
    if not to_memory:
        assert sorted(around.scratchpad) == [30, 31, 33, 34]
