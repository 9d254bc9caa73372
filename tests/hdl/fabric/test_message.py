"""Message sizes follow their rule, and their cycles are size over width, rounded up."""

import math
from typing import Any

import pytest
from amaranth.hdl import Shape

from hdl.fabric import message
from hdl.fabric.message import SIZES, MessageCycles
from hdl.layouts import Launch, MemoryRequest, MemoryResponse, Verdict
from tests.hdl.streams import run


def test_sizes_are_the_stated_ones() -> None:
    assert message.READ_REQUEST_BYTES == 8
    assert message.WRITE_REQUEST_BYTES == 8 + 32 + 4
    assert message.CONDITIONAL_WRITE_BYTES == 8 + 32 + 4 + 4
    assert message.READ_RESPONSE_BYTES == 8 + 32
    assert message.WRITE_RESPONSE_BYTES == 8
    assert message.LAUNCH_BYTES == message.VERDICT_BYTES == 32


@pytest.mark.parametrize(
    "layout, size",
    [
        (MemoryRequest, message.CONDITIONAL_WRITE_BYTES),
        (MemoryResponse, message.READ_RESPONSE_BYTES),
        (Launch, message.LAUNCH_BYTES),
        (Verdict, message.VERDICT_BYTES),
    ],
)
def test_the_largest_message_of_a_kind_holds_its_layout(layout: Any, size: int) -> None:
    assert Shape.cast(layout).width <= 8 * size


def test_cycles_of_every_size_and_width_in_any_order_of_changes() -> None:
    dut = MessageCycles()

    async def bench(ctx: Any) -> None:
        for width in (0, 1, 8, 7, 32, 40, 44, 48, 3, 47, 0, 65535, 5, 31):
            ctx.set(dut.bytes_per_cycle, width)
            waited = 0
            while not ctx.get(dut.settled):
                await ctx.tick()
                waited += 1
            assert waited <= 50
            for size in SIZES:
                expected = math.ceil(size / width) if width else 1
                assert ctx.get(dut.of(size)) == expected, (size, width)

    run(dut, bench)


def test_a_change_is_not_settled_in_its_own_cycle() -> None:
    dut = MessageCycles()

    async def bench(ctx: Any) -> None:
        assert ctx.get(dut.settled)
        ctx.set(dut.bytes_per_cycle, 4)
        assert not ctx.get(dut.settled)

    run(dut, bench)
