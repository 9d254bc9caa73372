"""The scheduler's choice within one bank, with the queues and the timing counters mocked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hdl.config import ControllerConfig, DesignConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.scheduler import Scheduler

from ..streams import run

CONFIG = DesignConfig(controller=ControllerConfig(bank_queue=2, row_hit_cap=5))
BANK = 3


def _ask(ctx: Any, dut: Scheduler, *requests: Iterable[str]) -> None:
    """Queues reads at one bank, oldest first, each with these flags set; the table allows everything."""
    for name in ("activate", "precharge", "read", "write"):
        vector = getattr(dut, name)
        ctx.set(vector, (1 << len(vector)) - 1)
    ctx.set(dut.read_room, 1)
    ctx.set(dut.state.open, 1 << BANK)
    ctx.set(dut.state.before[0], 1 << BANK)
    for slot, flags in enumerate(requests):
        for name in ("valid", *flags):
            ctx.set(getattr(dut.state, name)[slot], 1 << BANK)


def _decided(ctx: Any, dut: Scheduler) -> tuple[RowOp, ColumnOp, int]:
    """The two commands of this cycle, and the slot that one of them is for (one hot)."""
    row, column = RowOp(ctx.get(dut.row_op)), ColumnOp(ctx.get(dut.column_op))
    return row, column, ctx.get(dut.row_slot if row != RowOp.NOP else dut.column_slot)


def test_a_read_waits_for_a_response_slot() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["hit"])
        ctx.set(dut.read_room, 0)
        for _ in range(5):
            assert _decided(ctx, dut)[:2] == (RowOp.NOP, ColumnOp.NOP)
            await ctx.tick()
        ctx.set(dut.read_room, 1)
        assert _decided(ctx, dut) == (RowOp.NOP, ColumnOp.READ, 0b01)

    run(dut, bench)


def test_row_hits_pass_the_oldest_request_up_to_the_cap() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, [], ["hit"])
        for _ in range(CONFIG.controller.row_hit_cap):
            assert _decided(ctx, dut) == (RowOp.NOP, ColumnOp.READ, 0b10)
            await ctx.tick()
        assert _decided(ctx, dut) == (RowOp.PRECHARGE, ColumnOp.NOP, 0b01)

    run(dut, bench)


def test_no_row_hit_passes_an_old_request() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["old"], ["hit"])
        assert _decided(ctx, dut) == (RowOp.PRECHARGE, ColumnOp.NOP, 0b01)

    run(dut, bench)


def test_no_row_hit_of_bulk_passes_a_walk() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["hit"], ["priority"])
        assert _decided(ctx, dut) == (RowOp.PRECHARGE, ColumnOp.NOP, 0b10)

    run(dut, bench)
