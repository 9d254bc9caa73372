"""What a controller owes its neighbours at a restart and when nobody takes its answers."""

from __future__ import annotations

from typing import Any

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import ColumnOp, Source
from hdl.memory.address import AddressMap
from hdl.memory.responses import ACKNOWLEDGEMENTS
from sim.bench.memory import MemorySubsystem

from ..streams import collect, put, run

CONFIG = DesignConfig(
    # Writes below the mark would wait for their drain longer than any test here does.
    controller=ControllerConfig(
        bank_queue=3,
        overflow=4,
        write_buffer=8,
        drain_high=8,
        drain_low=0,
        drain_idle=1023,
        response_slots=8,
    ),
    memory=MemoryConfig(rows=4, columns=4),
)


def _request(number: int, *, write: bool) -> dict[str, Any]:
    return {
        "address": number,
        "write": write,
        "data": number,
        "mask": 0xFFFFFFFF if write else 0,
        "tag": {"source": Source.MOVER, "context": number},
    }


def test_a_restart_does_not_wait_for_silence_to_drain_the_writes() -> None:
    dut = MemorySubsystem(CONFIG)
    timing = CONFIG.memory.timing

    async def bench(ctx: Any) -> None:
        ctx.set(dut.memory.response.ready, 1)
        for number in range(4):
            await put(ctx, dut.memory.request, _request(number, write=True))
        ctx.set(dut.restart, 1)
        # Open and write; close; let every counter run out, of which a refresh's is the longest.
        for _ in range(2 * timing.same_bank + timing["tRFC"]):
            await ctx.tick()
            if ctx.get(dut.restarted):
                return
        raise AssertionError("the writes still wait for their drain")

    run(dut, bench)


def test_no_restart_is_done_while_an_answer_waits() -> None:
    dut = MemorySubsystem(CONFIG)

    async def bench(ctx: Any) -> None:
        for write in (True, False):
            await put(ctx, dut.memory.request, _request(1, write=write))
            ctx.set(dut.restart, 1)
            for _ in range(300):
                await ctx.tick()
                assert not ctx.get(dut.restarted), f"the answer waits: write {write}"
            ctx.set(dut.memory.response.ready, 1)
            for _ in range(100):
                await ctx.tick()
            assert ctx.get(dut.restarted)
            ctx.set(dut.memory.response.ready, 0)
            ctx.set(dut.restart, 0)
            await ctx.tick()

    run(dut, bench)


async def _offer(ctx: Any, dut: MemorySubsystem, first: int, cycles: int) -> tuple[int, int]:
    """Offers reads from address `first` on and takes no answer; (accepted, column reads)."""
    accepted = issued = 0
    ctx.set(dut.memory.request.valid, 1)
    for _ in range(cycles):
        request = _request(first + accepted, write=False)
        ctx.set(dut.memory.request.payload, request | {"tag": {"source": Source.MOVER, "context": accepted}})
        _, _, taken, op = await ctx.tick().sample(dut.memory.request.ready, dut.column.op)
        accepted += taken
        issued += op in (ColumnOp.READ, ColumnOp.READ_AUTO)
    ctx.set(dut.memory.request.valid, 0)
    return accepted, issued


async def _answered(ctx: Any, dut: MemorySubsystem, count: int) -> list[int]:
    """Takes `count` answers; whose they are."""
    answers: list[Any] = []
    await collect(ctx, dut.memory.response, count, answers)
    return sorted(answer.tag.context for answer in answers)


def test_reads_stop_at_the_slots_when_nothing_is_taken() -> None:
    dut = MemorySubsystem(CONFIG)

    async def bench(ctx: Any) -> None:
        accepted, issued = await _offer(ctx, dut, 0, 200)
        assert issued == CONFIG.controller.response_slots < accepted
        assert await _answered(ctx, dut, accepted) == list(range(accepted))

    run(dut, bench)


def test_what_is_answered_at_once_stops_when_nothing_is_taken() -> None:
    dut = MemorySubsystem(CONFIG)

    async def bench(ctx: Any) -> None:
        accepted, issued = await _offer(ctx, dut, AddressMap(CONFIG.memory).atoms, 50)
        assert (accepted, issued) == (ACKNOWLEDGEMENTS, 0)
        assert await _answered(ctx, dut, accepted) == list(range(accepted))

    run(dut, bench)
