"""The response side of the controller: slots for reads, room for acknowledgements, and when all has left."""

from __future__ import annotations

from typing import Any

from hdl.config import ControllerConfig
from hdl.layouts import MemoryStatus, Source
from hdl.memory.responses import ACKNOWLEDGEMENTS, Responses

from ..streams import collect, run

SLOTS = 8
CONFIG = ControllerConfig(response_slots=SLOTS)


async def _issue(ctx: Any, dut: Responses, number: int) -> None:
    """One read command; its data is not there yet."""
    ctx.set(dut.issue, 1)
    ctx.set(dut.issue_tag, {"source": Source.MOVER, "context": number})
    await ctx.tick()
    ctx.set(dut.issue, 0)


async def _arrive(ctx: Any, dut: Responses, number: int, *, status: MemoryStatus = MemoryStatus.OK) -> None:
    """The data of the oldest read comes from the device."""
    if status is not MemoryStatus.OK:
        ctx.set(dut.read_status, status)
    ctx.set(dut.read_valid, 1)
    ctx.set(dut.read_data, number)
    await ctx.tick()
    ctx.set(dut.read_valid, 0)


async def _acknowledge(ctx: Any, dut: Responses, number: int) -> None:
    ctx.set(dut.acknowledge, 1)
    tag = {"source": Source.MOVER, "context": number}
    ctx.set(dut.acknowledgement, {"tag": tag, "write": 1, "status": MemoryStatus.OK})
    await ctx.tick()
    ctx.set(dut.acknowledge, 0)


def test_a_read_reserves_its_slot_when_it_is_issued() -> None:
    """Read data cannot be stalled: with every slot promised, no read may be issued, though none has come."""
    dut = Responses(CONFIG)
    taken: list[Any] = []

    async def bench(ctx: Any) -> None:
        for number in range(SLOTS):
            assert ctx.get(dut.room)
            await _issue(ctx, dut, number)
        assert not ctx.get(dut.room)
        for number in range(SLOTS):
            await _arrive(ctx, dut, 100 + number)
            assert not ctx.get(dut.room)
        await collect(ctx, dut.response, 1, taken)
        assert ctx.get(dut.room)
        await collect(ctx, dut.response, SLOTS - 1, taken)
        assert ctx.get(dut.empty)

    run(dut, bench)
    assert [(p.tag.context, p.data) for p in taken] == [(n, 100 + n) for n in range(SLOTS)]


def test_acknowledgements_stop_when_their_queue_is_full() -> None:
    dut = Responses(CONFIG)
    taken: list[Any] = []

    async def bench(ctx: Any) -> None:
        for number in range(ACKNOWLEDGEMENTS):
            assert ctx.get(dut.acknowledge_room)
            await _acknowledge(ctx, dut, number)
        assert not ctx.get(dut.acknowledge_room)
        await collect(ctx, dut.response, 1, taken)
        assert ctx.get(dut.acknowledge_room)
        await collect(ctx, dut.response, ACKNOWLEDGEMENTS - 1, taken)

    run(dut, bench)
    assert [p.tag.context for p in taken] == list(range(ACKNOWLEDGEMENTS))
    assert all(p.write and p.status == MemoryStatus.OK for p in taken)


def test_it_is_empty_only_when_every_answer_has_been_taken() -> None:
    dut = Responses(CONFIG)

    async def bench(ctx: Any) -> None:
        assert ctx.get(dut.empty)
        await _acknowledge(ctx, dut, 1)
        assert not ctx.get(dut.empty), "an acknowledgement waits"
        await collect(ctx, dut.response, 1, [])
        assert ctx.get(dut.empty)
        await _issue(ctx, dut, 2)
        assert not ctx.get(dut.empty), "a read is under way"
        await _arrive(ctx, dut, 5)
        assert not ctx.get(dut.empty), "read data waits"
        await collect(ctx, dut.response, 1, [])
        assert ctx.get(dut.empty)

    run(dut, bench)


def test_the_status_of_a_read_stays_with_its_data() -> None:
    """Through the FIFO as well as past it, beside acknowledgements with a status of their own."""
    dut = Responses(ControllerConfig(response_slots=SLOTS, ecc=True))
    statuses = (MemoryStatus.CORRECTED, MemoryStatus.POISONED, MemoryStatus.CORRECTED)
    taken: list[Any] = []

    async def bench(ctx: Any) -> None:
        for ready in (0, 1):
            for number in range(len(statuses)):
                await _issue(ctx, dut, number)
            ctx.set(dut.response.ready, ready)
            for number, status in enumerate(statuses):
                if ready:
                    ctx.set(dut.read_status, status)
                    ctx.set(dut.read_valid, 1)
                    ctx.set(dut.read_data, 50 + number)
                    _, _, valid, passed = await ctx.tick().sample(dut.response.valid, dut.response.payload)
                    assert valid, "data that nothing waits before leaves in its cycle"
                    taken.append(passed)
                    ctx.set(dut.read_valid, 0)
                else:
                    await _arrive(ctx, dut, 50 + number, status=status)
            if not ready:
                # What comes in later does not change what waits.
                ctx.set(dut.read_status, MemoryStatus.OK)
                await _acknowledge(ctx, dut, 9)
                await collect(ctx, dut.response, len(statuses) + 1, taken)
        ctx.set(dut.response.ready, 0)

    run(dut, bench)
    reads = [(p.tag.context, p.data, p.status) for p in taken if not p.write]
    assert reads == 2 * [(number, 50 + number, status) for number, status in enumerate(statuses)]
    assert [p.status for p in taken if p.write] == [MemoryStatus.OK]
