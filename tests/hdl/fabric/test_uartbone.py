"""UartBone against the golden model, its bus mocked: plain commands, checked frames, the lock, a bad line."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hdl.fabric.serial_protocol import Command, Status
from hdl.fabric.uartbone import UartBone
from tests.hdl.fabric.bridge_model import BridgeModel, Broken, Event, Silence, checked, plain
from tests.hdl.streams import Stall, check_stream_rule, get, never, put, randomly, run

TIMEOUT = 200
#: The mock's words; an access beyond them is refused.
WORDS = 64
#: Cycles without a byte after which the bridge is taken to have said all.
_QUIET = 120


class Words:
    """The bus as the model sees it, and what it was asked."""

    def __init__(self) -> None:
        self.words = [0x01010101 * index ^ 0xC0DE0000 for index in range(WORDS)]
        self.asked: list[tuple[int, int | None]] = []

    def read(self, address: int) -> tuple[int, bool]:
        self.asked.append((address, None))
        inside = address // 4 < WORDS
        return (self.words[address // 4] if inside else 0xBAD0BAD0), not inside

    def write(self, address: int, word: int) -> bool:
        self.asked.append((address, word))
        if address // 4 < WORDS:
            self.words[address // 4] = word
        return address // 4 >= WORDS


async def serve(ctx: Any, axi: Any, words: Words, stall: Stall) -> None:
    """The subordinate: one access at a time, address and data of a write in either order."""
    while True:
        *_, aw, w, ar = await ctx.tick().sample(axi.awvalid, axi.wvalid, axi.arvalid)
        if not (aw or w or ar):
            continue
        for _ in range(stall()):
            await ctx.tick()
        if ar:
            address = ctx.get(axi.araddr)
            ctx.set(axi.arready, 1)
            await ctx.tick()
            ctx.set(axi.arready, 0)
            value, refused = words.read(address)
        else:
            address, word = 0, 0
            for channel in ("aw", "w") if stall() % 2 else ("w", "aw"):
                address = ctx.get(axi.awaddr) if channel == "aw" else address
                word = ctx.get(axi.wdata) if channel == "w" else word
                assert ctx.get(getattr(axi, f"{channel}valid")) and ctx.get(axi.wstrb) == 0xF
                ctx.set(getattr(axi, f"{channel}ready"), 1)
                await ctx.tick()
                ctx.set(getattr(axi, f"{channel}ready"), 0)
            value, refused = 0, words.write(address, word)
        for _ in range(stall()):
            await ctx.tick()
        channel = "r" if ar else "b"
        ctx.set(getattr(axi, f"{channel}resp"), 2 if refused else 0)
        if ar:
            ctx.set(axi.rdata, value)
        ctx.set(getattr(axi, f"{channel}valid"), 1)
        while True:
            *_, ready = await ctx.tick().sample(getattr(axi, f"{channel}ready"))
            if ready:
                break
        ctx.set(getattr(axi, f"{channel}valid"), 0)


def exchange(
    commands: list[list[Event]], *, stall: Stall = never
) -> tuple[bytes, list[tuple[int, int | None]]]:
    """What the bridge answers to the commands, one after another, and what it asked of the bus."""
    dut, words, sent = UartBone(timeout=TIMEOUT), Words(), bytearray()
    quiet = 0

    async def bus(ctx: Any) -> None:
        await serve(ctx, dut.axi, words, stall)

    async def listen(ctx: Any) -> None:
        nonlocal quiet
        while True:
            for _ in range(stall()):
                await ctx.tick()
            sent.append(await get(ctx, dut.send))
            quiet = 0

    async def main(ctx: Any) -> None:
        nonlocal quiet
        for events in commands:
            for event in events:
                if isinstance(event, Silence):
                    await ctx.tick().repeat(TIMEOUT + 1)
                    continue
                for _ in range(stall()):
                    await ctx.tick()
                broken = isinstance(event, Broken)
                await put(ctx, dut.received, {"data": 0x55 if broken else event, "broken": broken})
            quiet = 0
            while quiet < _QUIET:
                await ctx.tick()
                idle = not (ctx.get(dut.axi.awvalid) | ctx.get(dut.axi.arvalid) | ctx.get(dut.axi.wvalid))
                quiet = quiet + 1 if idle else 0

    run(dut, main, processes=[bus, listen, check_stream_rule(dut.send, "send")], watchdog=400_000)
    return bytes(sent), words.asked


def expected(commands: list[list[Event]]) -> tuple[bytes, list[tuple[int, int | None]]]:
    words = Words()
    model = BridgeModel(words)
    for events in commands:
        for event in events:
            model.take(event)
    return bytes(model.sent), words.asked


@pytest.mark.parametrize(
    "command",
    [
        plain(Command.WRITE, 0x10, [0xDEADBEEF]),
        plain(Command.WRITE, 0x10, [1, 2, 3]),
        plain(Command.WRITE_FIXED, 0x20, [7, 8]),
        plain(Command.READ, 0x0C, 1),
        plain(Command.READ, 0x0C, 5),
        plain(Command.READ_FIXED, 0x0C, 3),
        plain(0x77, 0x01020300, 1),
        plain(Command.READ, 4 * WORDS, 1),
    ],
)
def test_plain_commands_are_those_of_litex(command: bytes) -> None:
    # A read behind it shows what was done, and that the bridge has taken as many bytes as it should.
    commands: list[list[Event]] = [list(command), list(plain(Command.READ, 0x10, 6))]
    assert exchange(commands) == expected(commands)


def test_lengths_of_256_words() -> None:
    commands: list[list[Event]] = [
        list(plain(Command.READ_FIXED, 0x08, 256)),
        list(checked(Command.CHECKED_READ, 1, 0x00, 64)),
        list(checked(Command.CHECKED_WRITE, 2, 4 * WORDS - 4, list(range(256)))),
    ]
    sent, asked = exchange(commands)
    assert (sent, asked) == expected(commands)
    # The word that was refused is the last that was asked for.
    assert len(asked) == 256 + 64 + 2 and sent[-5] != 0


def test_a_frame_is_executed_once_and_answered_as_often_as_it_comes() -> None:
    write, read = checked(Command.CHECKED_WRITE, 1, 8, [5, 6]), checked(Command.CHECKED_READ, 2, 8, 2)
    spoilt = bytearray(checked(Command.CHECKED_WRITE, 3, 8, [9, 9]))
    spoilt[-1] ^= 1
    commands: list[list[Event]] = [
        list(write),
        list(write),
        list(read),
        [*spoilt, Silence()],
        list(read),
        list(write),
    ]
    sent, asked = exchange(commands)
    assert (sent, asked) == expected(commands)
    assert asked == [(8, 5), (12, 6), (8, None), (12, None)]
    # The first write came again after the read: that is no repetition of the last one.
    assert sent[-7:-4] == bytes([Command.CHECKED_WRITE, 1, Status.OUT_OF_SEQUENCE])


def test_a_refused_frame_is_answered_so_each_time() -> None:
    refused = checked(Command.CHECKED_WRITE, 1, 4 * WORDS, [1])
    done = checked(Command.CHECKED_READ, 2, 0, 1)
    commands: list[list[Event]] = [list(refused), list(refused), list(done), list(done)]
    sent, asked = exchange(commands)
    assert (sent, asked) == expected(commands)
    assert [sent[2], sent[9]] == [Status.REFUSED] * 2 and len(asked) == 2


def test_under_the_lock_plain_commands_are_ignored() -> None:
    write = [*plain(Command.WRITE, 8, [1]), Silence()]
    commands: list[list[Event]] = [
        list(checked(Command.LOCK, 77)),
        list(write),
        [*plain(Command.READ, 8, 1), Silence()],
        list(checked(Command.CHECKED_WRITE, 78, 8, [2])),
        list(checked(Command.RELEASE, 0)),
        list(write),
    ]
    sent, asked = exchange(commands)
    assert (sent, asked) == expected(commands)
    assert asked == [(8, 2), (8, 1)]


def test_silence_ends_a_command_and_a_broken_byte_spoils_it() -> None:
    commands: list[list[Event]] = [
        [*plain(Command.WRITE, 8, [1])[:-1], Silence()],
        list(plain(Command.WRITE, 12, [2])),
        [*plain(Command.WRITE, 16, [3])[:-1], Broken(), *plain(Command.WRITE, 16, [4]), Silence()],
        list(checked(Command.CHECKED_WRITE, 1, 20, [5])),
    ]
    sent, asked = exchange(commands)
    assert (sent, asked) == expected(commands)
    assert asked == [(12, 2), (20, 5)]


@pytest.mark.parametrize("seed", range(2))
def test_random_sessions_over_a_bad_line(seed: int) -> None:
    rng = random.Random(seed)
    commands: list[list[Event]] = []
    sequence = 0
    for _ in range(40):
        frame, sequence = _random_frame(rng, sequence)
        events = _disturbed(rng, frame) if rng.random() < 0.5 else list(frame)
        # An answer may come before the end of what a line has made of a command: wait before the next one.
        commands.append([*events, Silence()])
        if rng.random() < 0.3:
            commands.append([*frame, Silence()])
    stall = randomly(rng, share=0.2, longest=5)
    assert exchange(commands, stall=stall) == expected(commands)


def _random_frame(rng: random.Random, sequence: int) -> tuple[bytes, int]:
    kind = rng.choice([*Command, Command.CHECKED_READ, Command.CHECKED_WRITE, 0x05])
    address = 4 * rng.randrange(WORDS + 2)
    count = rng.randint(1, 6)
    words = [rng.getrandbits(32) for _ in range(count)]
    if kind in (Command.CHECKED_WRITE, Command.CHECKED_READ, Command.LOCK, Command.RELEASE):
        if rng.random() < 0.9:
            sequence = (sequence + 1) % 256
        writes = kind == Command.CHECKED_WRITE
        return checked(kind, sequence, address, words if writes else count), sequence
    return plain(kind, address, words if kind in (Command.WRITE, Command.WRITE_FIXED) else count), sequence


def _disturbed(rng: random.Random, frame: bytes) -> list[Event]:
    """The frame with one byte changed, lost, doubled, broken or added."""
    events: list[Event] = list(frame)
    at = rng.randrange(len(events))
    match rng.randrange(5):
        case 0:
            events[at] = frame[at] ^ 1 << rng.randrange(8)
        case 1:
            del events[at]
        case 2:
            events.insert(at, frame[at])
        case 3:
            events[at] = Broken()
        case _:
            events.insert(at, rng.randrange(256))
    return events
