"""The scheduler's choice within one bank, with the queues and the timing counters mocked."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from hdl.config import ControllerConfig, DesignConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.scheduler import Scheduler, turn_tail, walk_turn

from ..streams import run

CONFIG = DesignConfig(controller=ControllerConfig(bank_queue=2, row_hit_cap=5, page_policy="open"))
BANK = 3


def _policy(name: str) -> Scheduler:
    """A scheduler of this page policy."""
    return Scheduler(DesignConfig(controller=ControllerConfig(bank_queue=3, page_policy=name)))


def _ask(ctx: Any, dut: Scheduler, *requests: Iterable[str]) -> None:
    """Queues reads at one bank, oldest first, each with these flags set; the table allows everything."""
    for name in ("activate", "precharge", "read", "write"):
        vector = getattr(dut, name)
        ctx.set(vector, (1 << len(vector)) - 1)
    ctx.set(dut.read_room, 1)
    ctx.set(dut.state.open, 1 << BANK)
    for before in dut.state.before:
        ctx.set(before, 1 << BANK)
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


def test_what_is_old_lets_one_read_of_a_walk_pass() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["old"], ["priority", "hit"])
        for _ in range(2):
            assert _decided(ctx, dut) == (RowOp.NOP, ColumnOp.READ, 0b10)
            await ctx.tick()
            assert _decided(ctx, dut) == (RowOp.PRECHARGE, ColumnOp.NOP, 0b01)
            # Now the old one finds its row open.
            ctx.set(dut.state.hit[0], 1 << BANK)
            assert _decided(ctx, dut) == (RowOp.NOP, ColumnOp.READ, 0b01)
            await ctx.tick()
            ctx.set(dut.state.hit[0], 0)

    run(dut, bench)


@pytest.mark.parametrize(
    ("flags", "drain", "slot"),
    [
        (["priority"], 0, 0b10),
        ([], 0, 0b01),
        (["priority"], 1, 0b01),
        (["priority", "ordered"], 0, 0b01),
    ],
)
def test_a_walks_read_keeps_its_bank_from_a_turn_of_writes(flags: list[str], drain: int, slot: int) -> None:
    """But for a drain, and for a read that waits for a write of its atom."""
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["write"], flags)
        ctx.set(dut.press, 1)
        ctx.set(dut.drain, drain)
        await ctx.tick().repeat(CONFIG.controller.drain_burst + 2)
        assert _decided(ctx, dut) == (RowOp.PRECHARGE, ColumnOp.NOP, slot)

    run(dut, bench)


@pytest.mark.parametrize("reason", ["seen", "press", None])
def test_a_write_takes_its_turn_when_it_has_waited_or_somebody_waits_for_room(reason: str | None) -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        # A bank that reads for ever, and one with a write.
        for vector in (dut.read, dut.write, dut.state.open, dut.state.valid[0], dut.state.hit[0]):
            ctx.set(vector, 1 << 3 | 1 << 4)
        ctx.set(dut.state.write[0], 1 << 4)
        ctx.set(dut.read_room, 1)
        if reason == "seen":
            ctx.set(dut.state.seen[0], 1 << 4)
        elif reason == "press":
            ctx.set(dut.press, 1)
        turned = False
        for _ in range(CONFIG.controller.drain_burst + turn_tail(CONFIG.memory) + 4):
            turned |= _turned(ctx, dut)
            await ctx.tick()
        assert turned == (reason is not None)

    run(dut, bench)


@pytest.mark.parametrize(
    ("policy", "requests", "close", "closes"),
    [
        ("open", [["hit"]], 1, False),
        ("open", [["hit"], []], 1, False),
        ("closed", [["hit"]], 0, True),
        ("closed", [["hit"], ["hit"]], 0, False),
        ("closed", [["hit"], [], ["hit"]], 0, False),
        ("adaptive", [["hit"]], 0, False),
        ("adaptive", [["hit"]], 1, True),
        ("adaptive", [["hit"], []], 0, True),
        ("adaptive", [["hit"], ["hit"]], 1, False),
        ("adaptive", [["hit"], [], ["hit"]], 1, False),
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_the_page_policy_closes_a_row_with_its_last_hit(
    policy: str, requests: list[list[str]], close: int, closes: bool, write: bool
) -> None:
    dut = _policy(policy)

    async def bench(ctx: Any) -> None:
        flags = ["write"] if write else []
        _ask(ctx, dut, *([*request, *flags] for request in requests))
        ctx.set(dut.drain, 1)
        ctx.set(dut.close, close << BANK)
        op = ColumnOp.NOP
        for _ in range(10):
            if (op := ColumnOp(ctx.get(dut.column_op))) != ColumnOp.NOP:
                break
            await ctx.tick()
        expected = {
            (False, False): ColumnOp.READ,
            (False, True): ColumnOp.READ_AUTO,
            (True, False): ColumnOp.WRITE,
            (True, True): ColumnOp.WRITE_AUTO,
        }[write, closes]
        assert op == expected

    run(dut, bench)


def test_banks_with_more_to_do_open_their_rows_first() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        everything = (1 << len(dut.activate)) - 1
        ctx.set(dut.activate, everything)
        ctx.set(dut.state.valid[0], 1 << 3 | 1 << 4 | 1 << 5)
        ctx.set(dut.state.valid[1], 1 << 4)
        assert (RowOp(ctx.get(dut.row_op)), ctx.get(dut.row_unit)) == (RowOp.ACTIVATE, 4)

    run(dut, bench)


def test_a_batch_is_served_before_what_came_after_it() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        everything = (1 << len(dut.read)) - 1
        for vector in (dut.read, dut.state.open):
            ctx.set(vector, everything)
        ctx.set(dut.read_room, 1)
        for vector in (dut.state.valid[0], dut.state.hit[0]):
            ctx.set(vector, 1 << 3 | 1 << 4)
        ctx.set(dut.state.batch[0], 1 << 4)
        assert (ctx.get(dut.column_unit), ctx.get(dut.begin_batch)) == (4, 0)
        ctx.set(dut.state.batch[0], 0)
        assert (ctx.get(dut.column_unit), ctx.get(dut.begin_batch)) == (3, 1)

    run(dut, bench)


def _turned(ctx: Any, dut: Scheduler) -> bool:
    """A write that is ready would be issued."""
    return ColumnOp(ctx.get(dut.column_op)) in (ColumnOp.WRITE, ColumnOp.WRITE_AUTO)


def test_banks_turn_before_the_bus_does() -> None:
    dut = Scheduler(CONFIG)
    reading, waiting = 1 << 3, 1 << 4

    async def bench(ctx: Any) -> None:
        # A read hit in bank 3, whose time has not come; a write in bank 4, whose row is closed.
        ctx.set(dut.activate, waiting)
        ctx.set(dut.read_room, 1)
        ctx.set(dut.state.open, reading)
        ctx.set(dut.state.hit[0], reading)
        ctx.set(dut.state.valid[0], reading | waiting)
        ctx.set(dut.state.write[0], waiting)
        ctx.set(dut.drain, 1)
        burst = CONFIG.controller.drain_burst
        for _ in range(burst + 1):
            assert RowOp(ctx.get(dut.row_op)) == RowOp.NOP
            await ctx.tick()
        # The turn has changed: bank 4 opens its row, and the read still uses the bus.
        assert (RowOp(ctx.get(dut.row_op)), ctx.get(dut.row_unit)) == (RowOp.ACTIVATE, 4)
        ctx.set(dut.state.open, reading | waiting)
        ctx.set(dut.state.hit[0], reading | waiting)
        ctx.set(dut.write, waiting)
        await ctx.tick().repeat(4)
        assert not _turned(ctx, dut)
        ctx.set(dut.read, reading)
        assert ColumnOp(ctx.get(dut.column_op)) == ColumnOp.READ
        await ctx.tick()
        # No read hit is left: the bus follows.
        for vector in (dut.state.hit[0], dut.state.valid[0]):
            ctx.set(vector, waiting)
        await ctx.tick()
        assert _turned(ctx, dut)

    run(dut, bench)


def test_the_bus_does_not_wait_for_the_old_direction_for_ever() -> None:
    dut = Scheduler(CONFIG)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.write, 1 << 4)
        ctx.set(dut.read_room, 1)
        ctx.set(dut.state.open, 1 << 3 | 1 << 4)
        for vector in (dut.state.hit[0], dut.state.valid[0]):
            ctx.set(vector, 1 << 3 | 1 << 4)
        ctx.set(dut.state.write[0], 1 << 4)
        ctx.set(dut.drain, 1)
        cycles = 0
        while not _turned(ctx, dut):
            await ctx.tick()
            cycles += 1
            assert cycles < 1000, "the write hit waits for the read hit"
        assert cycles == CONFIG.controller.drain_burst + 1 + turn_tail(CONFIG.memory) + 1

    run(dut, bench)


@pytest.mark.parametrize(
    ("flags", "cycles"), [([], CONFIG.controller.drain_burst), (["priority"], walk_turn(CONFIG.memory))]
)
def test_writes_make_way_for_a_walk_sooner_than_for_bulk(flags: list[str], cycles: int) -> None:
    dut = Scheduler(CONFIG)
    reading, writing = 1 << 3, 1 << 4

    async def bench(ctx: Any) -> None:
        # Writes alone, row hits whose time has not come: their turn begins at once, and the bus follows.
        ctx.set(dut.state.open, reading | writing)
        for vector in (dut.state.valid[0], dut.state.hit[0], dut.state.write[0]):
            ctx.set(vector, writing)
        ctx.set(dut.drain, 1)
        ctx.set(dut.read_room, 1)
        await ctx.tick().repeat(4)
        # Their turn's cycles count from here.
        for vector in (dut.state.valid[0], dut.state.hit[0]):
            ctx.set(vector, reading | writing)
        for name in flags:
            ctx.set(getattr(dut.state, name)[0], reading)
        ctx.set(dut.read, reading)
        waited = 0
        while ColumnOp(ctx.get(dut.column_op)) != ColumnOp.READ:
            await ctx.tick()
            waited += 1
            assert waited < 1000, "the writes' turn does not end"
        # The bus follows at once for a walk; for bulk the write hit keeps it a while.
        tail = 2 if flags else turn_tail(CONFIG.memory)
        assert waited == cycles + 1 + tail + 1

    run(dut, bench)


# -- Decisions in more than one cycle --


@pytest.mark.parametrize("stages", range(1, 6))
def test_each_stage_takes_a_cycle_and_then_none_decides_twice(stages: int) -> None:
    dut = Scheduler(DesignConfig(controller=dataclasses.replace(CONFIG.controller, decision_stages=stages)))
    # With three the queues are read in a cycle of its own, which is not the scheduler's.
    cycles = stages - (stages > 2) - 1

    async def bench(ctx: Any) -> None:
        _ask(ctx, dut, ["hit"])
        for _ in range(cycles):
            assert _decided(ctx, dut)[:2] == (RowOp.NOP, ColumnOp.NOP)
            await ctx.tick()
        assert _decided(ctx, dut) == (RowOp.NOP, ColumnOp.READ, 0b01)
        await ctx.tick()
        # It has left its queue, which earlier stages do not see yet.
        for name in ("valid", "hit"):
            ctx.set(getattr(dut.state, name)[0], 0)
        for _ in range(6):
            assert _decided(ctx, dut)[:2] == (RowOp.NOP, ColumnOp.NOP)
            await ctx.tick()

    run(dut, bench)


@pytest.mark.parametrize("stages", [4, 5])
def test_a_command_is_not_picked_from_what_another_made_too_early(stages: int) -> None:
    dut = Scheduler(DesignConfig(controller=dataclasses.replace(CONFIG.controller, decision_stages=stages)))

    async def bench(ctx: Any) -> None:
        # A row hit in each of many banks: the table says only a cycle after a read what it forbids.
        _ask(ctx, dut, ["hit"])
        every = (1 << len(dut.state.open)) - 1
        ctx.set(dut.state.open, every)
        for name in ("valid", "hit"):
            ctx.set(getattr(dut.state, name)[0], every)
        reads = []
        for _ in range(30):
            reads.append(ColumnOp(ctx.get(dut.column_op)) == ColumnOp.READ)
            await ctx.tick()
        assert sum(reads) > 10
        assert not any(first and second for first, second in itertools.pairwise(reads))

    run(dut, bench)


@pytest.mark.parametrize("stages", range(1, 6))
@pytest.mark.parametrize("claim", ["block", "hold_read"])
def test_what_a_refresh_claims_is_left_alone_at_once(claim: str, stages: int) -> None:
    dut = Scheduler(DesignConfig(controller=dataclasses.replace(CONFIG.controller, decision_stages=stages)))

    async def bench(ctx: Any) -> None:
        for before in range(stages + 1):
            _ask(ctx, dut, ["hit"])
            ctx.set(dut.block, 0)
            ctx.set(dut.hold_read, 0)
            for _ in range(before):
                await ctx.tick()
            ctx.set(getattr(dut, claim), {"block": 1 << BANK, "hold_read": 1}[claim])
            for _ in range(stages + 2):
                assert _decided(ctx, dut)[:2] == (RowOp.NOP, ColumnOp.NOP)
                await ctx.tick()

    run(dut, bench)


@pytest.mark.parametrize("stages", [4, 5])
def test_the_refreshers_row_command_is_alone(stages: int) -> None:
    dut = Scheduler(DesignConfig(controller=dataclasses.replace(CONFIG.controller, decision_stages=stages)))

    async def bench(ctx: Any) -> None:
        for before in range(2 * stages):
            _ask(ctx, dut, [])
            ctx.set(dut.state.open, 0)
            ctx.set(dut.row_block, 0)
            for _ in range(before):
                await ctx.tick()
            ctx.set(dut.row_block, 1)
            assert RowOp(ctx.get(dut.row_op)) == RowOp.NOP
            await ctx.tick()

    run(dut, bench)
