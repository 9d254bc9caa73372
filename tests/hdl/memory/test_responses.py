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


async def _arrive(ctx: Any, dut: Responses, number: int) -> None:
    """The data of the oldest read comes from the device."""
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
