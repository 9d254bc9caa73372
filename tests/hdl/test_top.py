"""The whole design in Amaranth's simulator: what is tied together in `hdl/top.py` alone."""

import pytest
from amaranth.hdl import Signal

from hdl import memory_channel, memory_side, top
from hdl.config import named_config
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
