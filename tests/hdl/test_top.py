"""The whole design in Amaranth's simulator: what is tied together in `hdl/top.py` alone."""

import dataclasses

import pytest
from amaranth.hdl import Signal

from hdl import memory_channel, memory_side, top
from hdl.config import named_config
from hdl.memory.stack import StackMap
from hdl.registers import MEMORY_WINDOW, REGISTER_BY_NAME
from tests.hdl.streams import run


async def _write(ctx, axi, address, data):
    """One AXI4-Lite write."""
    ctx.set(axi.awaddr, address)
    ctx.set(axi.wdata, data)
    ctx.set(axi.wstrb, 0xF)
    ctx.set(axi.awvalid, 1)
    ctx.set(axi.wvalid, 1)
    await ctx.tick().until(axi.awready & axi.wready)
    ctx.set(axi.awvalid, 0)
    ctx.set(axi.wvalid, 0)
    ctx.set(axi.bready, 1)
    await ctx.tick().until(axi.bvalid)
    ctx.set(axi.bready, 0)


@pytest.mark.parametrize(
    ("module", "name", "config"),
    [
        (top, "BulkMerge", "small"),
        (memory_channel, "Arbiter", "small"),
        (memory_side, "StreamMerge", "stack"),
    ],
)
def test_whose_turn_it_is_does_not_depend_on_what_was_before_a_batch(module, name, config, monkeypatch):
    """A register beside the turn shows that a batch begins with the reset state of both.

    Seen from outside, an old turn counts only if two first requests of a batch meet in one cycle.
    """
    touched = []

    class Probed(getattr(module, name)):
        """The component, which also remembers that something went through it."""

        def elaborate(self, platform):
            m = super().elaborate(platform)
            touched.append(Signal())
            with m.If(self.output.valid if name == "StreamMerge" else self.memory.request.valid):
                m.d.sync += touched[-1].eq(1)
            return m

    monkeypatch.setattr(module, name, Probed)
    dut = top.Clew(named_config(config))

    async def bench(ctx):
        await _write(ctx, dut.s_axil, MEMORY_WINDOW, 1)
        assert any(ctx.get(one) for one in touched)
        # An empty batch.
        await _write(ctx, dut.s_axil, REGISTER_BY_NAME["START"].offset, 1)
        for _ in range(1000):
            if not any(ctx.get(one) for one in touched):
                return
            await ctx.tick()
        raise AssertionError("the state of before outlived the start of a batch")

    run(dut, bench)


async def _read(ctx, axi, address):
    """One AXI4-Lite read."""
    ctx.set(axi.araddr, address)
    ctx.set(axi.arvalid, 1)
    await ctx.tick().until(axi.arready)
    ctx.set(axi.arvalid, 0)
    ctx.set(axi.rready, 1)
    *_, data = await ctx.tick().sample(axi.rdata).until(axi.rvalid)
    ctx.set(axi.rready, 0)
    return data


@pytest.mark.parametrize("channel", [0, 1])
def test_a_fault_strikes_and_is_logged_in_the_channel_of_its_address(channel):
    """Reads of the same place of every channel: one of them is corrected, and its address is the stack's."""
    base = named_config("stack")
    config = dataclasses.replace(base, controller=dataclasses.replace(base.controller, ecc=True))
    stack = StackMap(config.memory)
    place = 5
    dut = top.Clew(config)

    async def register(ctx, name, value):
        await _write(ctx, dut.s_axil, REGISTER_BY_NAME[name].offset, value)

    async def bench(ctx):
        target = stack.first(channel) + place
        for name, value in (
            ("INJECT_LANE", 0), ("INJECT_FLIPS", 4), ("INJECT_ADDRESS", target), ("INJECT_CONTROL", 1),
        ):  # fmt: skip
            await register(ctx, name, value)
        for other in reversed(range(stack.channels)):
            assert await _read(ctx, dut.s_axil, MEMORY_WINDOW + 32 * (stack.first(other) + place)) == 0
        found = [
            await _read(ctx, dut.s_axil, REGISTER_BY_NAME[name].offset)
            for name in ("COUNT_CORRECTED", "CORRECTED_ADDRESS", "COUNT_UNCORRECTABLE", "INJECT_CONTROL")
        ]
        assert found == [1, target, 0, 0]

    run(dut, bench)
