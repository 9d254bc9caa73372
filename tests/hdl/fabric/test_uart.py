"""The UART: every byte at every divisor and clock, noise, framing errors, breaks."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hdl.fabric.uart import ReceivedByte, UartReceiver, UartTransmitter
from tests.hdl.streams import drive, run


def bits_of(byte: int) -> list[int]:
    return [0, *(byte >> position & 1 for position in range(8)), 1]


async def hold(ctx: Any, rx: Any, level: int, cycles: int) -> None:
    ctx.set(rx, level)
    await ctx.tick().repeat(cycles)


def listen(receiver: Any, into: list[tuple[int, int]]) -> Any:
    async def watch(ctx: Any) -> None:
        while True:
            *_, valid, received = await ctx.tick().sample(receiver.valid, receiver.received)
            if valid:
                into.append((received.data, received.broken))

    return watch


@pytest.mark.parametrize(
    ("divisor", "percent"), [(4, 0), (5, -1), (5, 1), (8, -3), (8, 3), (16, -3), (16, 3)]
)
def test_receiver_takes_bytes_of_a_clock_that_is_off(divisor: int, percent: int) -> None:
    dut = UartReceiver(divisor=divisor)
    received: list[tuple[int, int]] = []
    sent = [0x00, 0xFF, 0x55, 0xAA, *random.Random(divisor).randbytes(12)]

    async def line(ctx: Any) -> None:
        await hold(ctx, dut.rx, 1, 3 * divisor)
        # The sender's edges, in cycles of the receiver.
        level_ends, at = 0.0, 0
        for byte in sent:
            for level in bits_of(byte):
                level_ends += divisor * (1 + percent / 100)
                await hold(ctx, dut.rx, level, int(level_ends) - at)
                at = int(level_ends)
        await hold(ctx, dut.rx, 1, 3 * divisor)

    run(dut, line, processes=[listen(dut, received)])
    assert received == [(byte, 0) for byte in sent]


class Loop(wiring.Component):
    """A transmitter whose line goes to a receiver."""

    def __init__(self, divisor: int) -> None:
        self.transmitter = UartTransmitter(divisor=divisor)
        self.receiver = UartReceiver(divisor=divisor)
        super().__init__(
            {
                "data": In(stream.Signature(8)),
                "tx": Out(1),
                "received": Out(ReceivedByte),
                "valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.transmitter, m.submodules.receiver = self.transmitter, self.receiver
        connect(m, wiring.flipped(self.data), self.transmitter.data)
        m.d.comb += [
            self.tx.eq(self.transmitter.tx),
            self.receiver.rx.eq(self.transmitter.tx),
            self.received.eq(self.receiver.received),
            self.valid.eq(self.receiver.valid),
        ]
        return m


@pytest.mark.parametrize("divisor", [4, 7])
def test_transmitter_sends_what_a_receiver_takes_without_a_pause(divisor: int) -> None:
    dut = Loop(divisor)
    received: list[tuple[int, int]] = []
    sent = [0x00, 0xFF, 0x01, 0x80, *random.Random(divisor).randbytes(8)]
    levels: list[int] = []

    async def send(ctx: Any) -> None:
        await drive(ctx, dut.data, sent)
        await ctx.tick().repeat(12 * divisor)

    async def watch(ctx: Any) -> None:
        while True:
            levels.append((await ctx.tick().sample(dut.tx))[-1])

    run(dut, send, processes=[listen(dut, received), watch])
    assert received == [(byte, 0) for byte in sent]
    # Ten bits of exactly so many cycles, and one cycle between two bytes.
    first = levels.index(0)
    for number, byte in enumerate(sent):
        begin = first + number * (10 * divisor + 1)
        assert levels[begin : begin + 10 * divisor] == [bit for bit in bits_of(byte) for _ in range(divisor)]


@pytest.mark.parametrize("at", range(5, 11))
def test_noise_is_no_start_and_one_bad_sample_no_wrong_bit(at: int) -> None:
    dut = UartReceiver(divisor=16)
    received: list[tuple[int, int]] = []

    async def line(ctx: Any) -> None:
        await hold(ctx, dut.rx, 1, 40)
        await hold(ctx, dut.rx, 0, 7)  # less than half a bit
        await hold(ctx, dut.rx, 1, 200)
        for level in bits_of(0x5A):
            # A cycle of the other level, about where the samples are.
            await hold(ctx, dut.rx, level, at)
            await hold(ctx, dut.rx, 1 - level, 1)
            await hold(ctx, dut.rx, level, 15 - at)
        await hold(ctx, dut.rx, 1, 40)

    run(dut, line, processes=[listen(dut, received)])
    assert received == [(0x5A, 0)]


def test_a_missing_stop_bit_is_reported_once_and_the_line_must_rise_again() -> None:
    dut = UartReceiver(divisor=8)
    received: list[tuple[int, int]] = []

    async def line(ctx: Any) -> None:
        await hold(ctx, dut.rx, 1, 20)
        await hold(ctx, dut.rx, 0, 400)  # a break
        await hold(ctx, dut.rx, 1, 3)
        for level in bits_of(0xC3):
            await hold(ctx, dut.rx, level, 8)
        await hold(ctx, dut.rx, 1, 40)

    run(dut, line, processes=[listen(dut, received)])
    assert [broken for _, broken in received] == [1, 0] and received[1] == (0xC3, 0)


def test_too_few_cycles_a_bit_are_refused() -> None:
    for unit in (UartReceiver, UartTransmitter):
        with pytest.raises(ValueError, match="expected at least 4"):
            unit(divisor=3)
