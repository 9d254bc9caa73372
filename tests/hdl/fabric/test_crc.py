"""The CRC-32 against zlib, a byte and several at a time."""

import random
import zlib

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from hdl.fabric.crc import CRC32_INIT, crc32_final, crc32_next


@pytest.mark.parametrize("width", [8, 64])
def test_the_crc_is_that_of_zlib(width: int) -> None:
    m = Module()
    state, data, crc = Signal(32, init=CRC32_INIT), Signal(width), Signal(32)
    m.d.sync += state.eq(crc32_next(state, data))
    m.d.comb += crc.eq(crc32_final(state))
    text = random.Random(width).randbytes(32)

    async def bench(ctx):
        assert ctx.get(crc) == 0
        for at in range(0, len(text), width // 8):
            ctx.set(data, int.from_bytes(text[at : at + width // 8], "little"))
            await ctx.tick()
            assert ctx.get(crc) == zlib.crc32(text[: at + width // 8])

    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
