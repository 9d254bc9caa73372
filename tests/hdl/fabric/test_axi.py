"""AxiLiteSubordinate: the AXI rules, turns between reads and writes, errors."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module

from hdl.fabric.axi import AxiLiteSubordinate, AxiResponse
from tests.hdl.streams import Stall, check_stream_rule, get, never, put, randomly, run, until


async def send(ctx: Any, axi: Any, channel: str, **values: int) -> None:
    """One transfer of channel aw, w or ar."""
    for name, value in values.items():
        ctx.set(getattr(axi, name), value)
    ctx.set(getattr(axi, f"{channel}valid"), 1)
    await until(ctx, getattr(axi, f"{channel}ready"))
    ctx.set(getattr(axi, f"{channel}valid"), 0)
    # What an idle channel carries must not matter.
    for name, value in values.items():
        ctx.set(getattr(axi, name), ~value & 0xF)


async def receive(ctx: Any, axi: Any, channel: str, *names: str) -> list[int]:
    """One transfer of channel b or r: the named values, once it is held for a cycle without ready."""
    values = [getattr(axi, name) for name in names]
    first = await until(ctx, getattr(axi, f"{channel}valid"), *values)
    ctx.set(getattr(axi, f"{channel}ready"), 1)
    _, _, valid, *second = await ctx.tick().sample(getattr(axi, f"{channel}valid"), *values)
    ctx.set(getattr(axi, f"{channel}ready"), 0)
    assert valid, f"{channel}valid fell before ready"
    assert first == second, f"{channel} changed before ready"
    return [int(getattr(value, "value", value)) for value in second]


class Registers:
    """The far side of the bus: 64 words; an address beyond them is refused. Keeps what it was asked."""

    def __init__(self, dut: AxiLiteSubordinate, stall: Stall = never) -> None:
        self.dut = dut
        self.stall = stall
        self.words = {index: 0 for index in range(64)}
        self.asked: list[tuple[str, int]] = []

    async def serve(self, ctx: Any) -> None:
        while True:
            for _ in range(self.stall()):
                await ctx.tick()
            request = await get(ctx, self.dut.request)
            self.asked.append(("write" if request.write else "read", request.address))
            index = request.address >> 2
            error = index not in self.words
            if request.write and not error:
                for byte in range(4):
                    if request.strobe >> byte & 1:
                        self.words[index] &= ~(0xFF << 8 * byte)
                        self.words[index] |= request.data & (0xFF << 8 * byte)
            for _ in range(self.stall()):
                await ctx.tick()
            value = 0 if request.write or error else self.words[index]
            await put(ctx, self.dut.response, {"data": value, "error": int(error)})


@pytest.mark.parametrize("first", ["aw", "w", "both"])
def test_write_takes_address_and_data_in_either_order(first: str) -> None:
    dut = AxiLiteSubordinate()
    registers = Registers(dut)

    async def address(ctx: Any) -> None:
        if first == "w":
            await ctx.tick().repeat(7)
        await send(ctx, dut.axi, "aw", awaddr=0x14)

    async def data(ctx: Any) -> None:
        if first == "aw":
            await ctx.tick().repeat(7)
        await send(ctx, dut.axi, "w", wdata=0xA1B2C3D4, wstrb=0b1010)

    async def answer(ctx: Any) -> None:
        assert await receive(ctx, dut.axi, "b", "bresp") == [AxiResponse.OKAY.value]

    run(dut, address, data, answer, processes=[registers.serve])
    assert registers.words[5] == 0xA100C300
    assert registers.asked == [("write", 0x14)]


def test_refused_access_answers_slverr() -> None:
    dut = AxiLiteSubordinate()
    registers = Registers(dut)

    async def host(ctx: Any) -> None:
        await send(ctx, dut.axi, "ar", araddr=0xFFFFC)
        assert (await receive(ctx, dut.axi, "r", "rresp")) == [AxiResponse.SLVERR.value]
        await send(ctx, dut.axi, "ar", araddr=0x8)
        assert (await receive(ctx, dut.axi, "r", "rresp", "rdata")) == [AxiResponse.OKAY.value, 0]
        await send(ctx, dut.axi, "aw", awaddr=0x100)
        await send(ctx, dut.axi, "w", wdata=1, wstrb=15)
        assert (await receive(ctx, dut.axi, "b", "bresp")) == [AxiResponse.SLVERR.value]

    run(dut, host, processes=[registers.serve])


def test_reads_and_writes_that_both_wait_take_turns() -> None:
    dut = AxiLiteSubordinate()
    registers = Registers(dut)

    async def reads(ctx: Any) -> None:
        for _ in range(8):
            await send(ctx, dut.axi, "ar", araddr=0)

    async def write_addresses(ctx: Any) -> None:
        for _ in range(8):
            await send(ctx, dut.axi, "aw", awaddr=0)

    async def write_data(ctx: Any) -> None:
        for _ in range(8):
            await send(ctx, dut.axi, "w", wdata=0, wstrb=15)

    async def read_answers(ctx: Any) -> None:
        for _ in range(8):
            await receive(ctx, dut.axi, "r", "rresp")

    async def write_answers(ctx: Any) -> None:
        for _ in range(8):
            await receive(ctx, dut.axi, "b", "bresp")

    run(
        dut,
        reads,
        write_addresses,
        write_data,
        read_answers,
        write_answers,
        processes=[registers.serve, check_stream_rule(dut.request, "request")],
    )
    kinds = [kind for kind, _ in registers.asked]
    assert kinds.count("read") == kinds.count("write") == 8
    assert all(kind != after for kind, after in itertools.pairwise(kinds)), kinds


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_accesses_with_stalls_match_a_memory(seed: int) -> None:
    rng = random.Random(seed)
    dut = AxiLiteSubordinate()
    registers = Registers(dut, randomly(rng))
    golden = {index: 0 for index in range(64)}

    async def host(ctx: Any) -> None:
        for _ in range(60):
            index = rng.randrange(64)
            if rng.random() < 0.5:
                value, strobe = rng.getrandbits(32), rng.getrandbits(4)
                parts = [("aw", {"awaddr": 4 * index}), ("w", {"wdata": value, "wstrb": strobe})]
                rng.shuffle(parts)
                for channel, values in parts:
                    await ctx.tick().repeat(rng.randint(1, 3))
                    await send(ctx, dut.axi, channel, **values)
                await receive(ctx, dut.axi, "b", "bresp")
                for byte in range(4):
                    if strobe >> byte & 1:
                        golden[index] = golden[index] & ~(0xFF << 8 * byte) | value & (0xFF << 8 * byte)
            else:
                await send(ctx, dut.axi, "ar", araddr=4 * index)
                await ctx.tick().repeat(rng.randint(1, 3))
                assert await receive(ctx, dut.axi, "r", "rdata") == [golden[index]], f"seed {seed}"

    run(dut, host, processes=[registers.serve, check_stream_rule(dut.request, "request")])
    assert registers.words == golden, f"seed {seed}"


def test_nothing_is_taken_in_reset():
    """A manager may ask in the first cycle after its reset, while the design is still in its own."""
    dut = AxiLiteSubordinate()
    domain = ClockDomain("sync")
    m = Module()
    m.domains += domain
    m.submodules.dut = dut
    readies = [dut.axi.awready, dut.axi.wready, dut.axi.arready]

    async def bench(ctx):
        for reset in (1, 0, 1):
            ctx.set(domain.rst, reset)
            await ctx.tick()
            assert [ctx.get(ready) for ready in readies] == [1 - reset] * 3

    run(m, bench)
