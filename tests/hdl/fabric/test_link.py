"""Link: exact crossing times, order, credits, turns, separation of walk and bulk, no loss under stalls."""

import itertools
import math
import random
from collections.abc import Iterable
from typing import Any

import pytest

from hdl.config import DesignConfig, LinkConfig
from hdl.fabric.channel import Channel
from hdl.fabric.link import Link
from hdl.layouts import Launch, MemoryRequest, MemoryResponse, MemoryStatus, Source, Verdict, VerdictKind
from tests.hdl.streams import (
    Stall,
    bits,
    check_stream_rule,
    collect,
    drive,
    get,
    monitor,
    never,
    put,
    randomly,
    run,
)

CREDITS = 4


class Kind:
    """One kind of message: where it enters, where it leaves, what shares its channel, example payloads."""

    def __init__(self, enters: str, leaves: str, channel: str, layout: Any) -> None:
        self.enters, self.leaves, self.channel, self.layout = enters, leaves, channel, layout

    def payload(self, number: int) -> dict[str, Any]:
        """A message that carries `number` wherever that kind has room for one."""
        tag = {"source": Source.FAR_WALKER, "context": number % 64}
        if self.layout is MemoryRequest:
            write = number % 3 != 0
            return {
                "address": number,
                "write": write,
                "conditional": number % 3 == 2,
                "expected": ~number & 0xFFFFFFFF,
                "data": number << 200 | number,
                "mask": number & 0xFFFFFFFF,
                "tag": tag,
                "priority": number & 1,
            }
        if self.layout is MemoryResponse:
            status = MemoryStatus.POISONED if number % 5 == 0 else MemoryStatus.OK
            return {"tag": tag, "write": number & 1, "data": number << 200 | number, "status": status}
        if self.layout is Launch:
            words = [number + index for index in range(6)]
            return {
                "context": number % 64,
                "entry": 3,
                "tag": number,
                "count_minus_1": number % 7,
                "address": number,
                "words": words,
            }
        return {
            "context": number % 64,
            "tag": number,
            "kind": VerdictKind.YIELD,
            "code": number & 0xFF,
            "hops": number,
            "value": number,
            "registers": [number, 1, 2],
        }

    def bits(self, number: int) -> int:
        return bits(self.layout.const(self.payload(number)))

    def size(self, number: int) -> int:
        """Bytes of the message, restated from the rule and not taken from the design."""
        if self.layout is MemoryRequest:
            return (8, 44, 48)[number % 3]
        if self.layout is MemoryResponse:
            return (40, 8)[number & 1]
        return 32


KINDS = {
    "walk_request": Kind("walk_request", "memory_walk_request", "walk up", MemoryRequest),
    "launch": Kind("launch", "memory_launch", "walk up", Launch),
    "bulk_request": Kind("bulk_request", "memory_bulk_request", "bulk up", MemoryRequest),
    "walk_response": Kind("memory_walk_response", "walk_response", "walk down", MemoryResponse),
    "verdict": Kind("memory_verdict", "verdict", "walk down", Verdict),
    "bulk_response": Kind("memory_bulk_response", "bulk_response", "bulk down", MemoryResponse),
}
#: The kinds whose response is counted against a request's credit.
ANSWERED_BY = {"walk_request": "walk_response", "bulk_request": "bulk_response"}


def link(credits: int = CREDITS) -> Link:
    return Link(DesignConfig(link=LinkConfig(walk_credits=credits, bulk_credits=credits)))


async def settle(ctx: Any, dut: Link, *, up: int = 0, down: int = 0, width: int = 0) -> None:
    ctx.set(dut.latency_up, up)
    ctx.set(dut.latency_down, down)
    ctx.set(dut.bytes_per_cycle, width)
    while not ctx.get(dut.idle):
        await ctx.tick()


def cycles(size: int, width: int) -> int:
    return math.ceil(size / width) if width else 1


def predicted(accepted: Iterable[tuple[int, int]], latency: int, width: int) -> list[int]:
    """Golden model of a channel whose takers never wait: arrival cycle of (cycle, size) in their order."""
    free, arrivals = 0, []
    for cycle, size in accepted:
        start = max(cycle, free)
        free = start + cycles(size, width)
        arrivals.append(free - 1 + Link.minimum_latency + latency)
    return arrivals


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("latency, width", [(0, 0), (1, 0), (37, 0), (0, 8), (5, 16), (100, 1), (300, 64)])
def test_isolated_crossing_takes_exactly_the_stated_time(name: str, latency: int, width: int) -> None:
    kind = KINDS[name]
    dut = link()
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        up = "up" in kind.channel
        # The other direction's latency must not matter.
        await settle(ctx, dut, up=latency if up else 9, down=9 if up else latency, width=width)
        ctx.set(getattr(dut, kind.leaves).ready, 1)
        for number in (3, 4, 5):
            if name in ANSWERED_BY.values():
                # A response needs a request before it.
                asked = next(request for request, response in ANSWERED_BY.items() if response == name)
                await put(ctx, getattr(dut, asked), KINDS[asked].payload(number))
                await get(ctx, getattr(dut, KINDS[asked].leaves))
            await put(ctx, getattr(dut, kind.enters), kind.payload(number))
            while len(left) < number - 2:
                await ctx.tick()
            # The channel is free again as soon as the message has arrived.

    run(
        dut,
        bench,
        processes=[monitor(getattr(dut, kind.enters), entered), monitor(getattr(dut, kind.leaves), left)],
    )
    for number, (start, _), (end, payload) in zip((3, 4, 5), entered, left, strict=True):
        assert payload == kind.bits(number)
        assert end - start == Link.minimum_latency + latency + cycles(kind.size(number), width) - 1


@pytest.mark.parametrize("wait", [0, 100, 200, 300, 400])
def test_longest_latency_and_messages_with_a_full_queue_are_exact(wait: int) -> None:
    """On a channel whose clock comes round every 512 cycles, at different times of it."""
    channel = Channel({"message": 8}, credits=CREDITS, latency_bits=8)
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        ctx.set(channel.latency, 255)
        ctx.set(channel.message_cycles, 48)
        ctx.set(channel.far_message.ready, 1)
        for _ in range(wait):
            await ctx.tick()
        await drive(ctx, channel.message, range(CREDITS))
        while not ctx.get(channel.idle):
            await ctx.tick()

    run(channel, bench, processes=[monitor(channel.message, entered), monitor(channel.far_message, left)])
    arrivals = predicted([(cycle, 48) for cycle, _ in entered], 255, 1)
    assert left == list(zip(arrivals, range(CREDITS), strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_edges_that_are_left_out_change_no_arrival(seed: int) -> None:
    """A clock that sleeps whenever the channel does, past many rounds of the stamps' 256 cycles."""
    channel = Channel({"message": 8}, credits=2, latency_bits=4)
    rng = random.Random(seed)
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []
    asleep = 0

    async def bench(ctx: Any) -> None:
        nonlocal asleep
        ctx.set(channel.latency, 15)
        ctx.set(channel.message_cycles, 3)
        ctx.set(channel.far_message.ready, 1)
        number, slept, offers = 0, 0, False
        for cycle in range(10_000):
            # What is offered comes from a register: it changes after an edge.
            offers = offers or (slept == 0 and rng.random() < 0.1)
            ctx.set(channel.message.valid, offers)
            ctx.set(channel.message.payload, number % 256)
            ctx.set(channel.slept, slept)
            if ctx.get(channel.sleeps) and slept < 2 ** len(channel.slept) - 1 and rng.random() < 0.95:
                slept, asleep = slept + 1, asleep + 1
                continue
            if ctx.get(channel.far_message.valid):
                left.append((cycle, ctx.get(channel.far_message.payload)))
            if offers and ctx.get(channel.message.ready):
                entered.append((cycle, number % 256))
                number, offers = number + 1, False
            slept = 0
            await ctx.tick()

    run(channel, bench)
    arrivals = predicted([(cycle, 3) for cycle, _ in entered], 15, 1)
    expected = [(at, number) for at, (_, number) in zip(arrivals, entered, strict=True) if at < 10_000]
    assert left == expected, f"seed {seed}"
    assert asleep > 1000


def test_message_that_waits_to_be_taken_stays_offered() -> None:
    """However long: on a channel whose clock comes round to its stamp every 256 cycles."""
    channel = Channel({"message": 8}, credits=2, latency_bits=4)

    async def bench(ctx: Any) -> None:
        ctx.set(channel.message_cycles, 1)
        await drive(ctx, channel.message, [7, 8])
        for _ in range(600):
            await ctx.tick()
            assert ctx.get(channel.far_message.valid)
        assert await get(ctx, channel.far_message) == 7
        assert ctx.get(channel.far_message.valid), "the one behind it had arrived too"
        assert await get(ctx, channel.far_message) == 8
        assert ctx.get(channel.idle)

    run(channel, bench, processes=[check_stream_rule(channel.far_message, "far")])


@pytest.mark.parametrize("held, passes", [("launch", "walk_request"), ("walk_response", "verdict")])
def test_messages_of_a_kind_that_are_not_taken_hold_nothing_of_the_other_back(held: str, passes: str) -> None:
    """A near launch waits for its context; far reads, and a far place's credits, do not wait with it."""
    dut = link()
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []
    waited: list[Any] = []

    async def bench(ctx: Any) -> None:
        await settle(ctx, dut, up=7, down=7)
        if held == "walk_response":
            ctx.set(dut.memory_walk_request.ready, 1)
            await drive(ctx, dut.walk_request, [KINDS["walk_request"].payload(n) for n in range(CREDITS)])
            await ctx.tick().repeat(20)
        await drive(ctx, getattr(dut, KINDS[held].enters), [KINDS[held].payload(n) for n in range(CREDITS)])
        ctx.set(getattr(dut, KINDS[passes].leaves).ready, 1)
        await drive(
            ctx, getattr(dut, KINDS[passes].enters), [KINDS[passes].payload(n) for n in range(CREDITS)]
        )
        await ctx.tick().repeat(20)
        await collect(ctx, getattr(dut, KINDS[held].leaves), CREDITS, waited)

    run(
        dut,
        bench,
        processes=[
            monitor(getattr(dut, KINDS[passes].enters), entered),
            monitor(getattr(dut, KINDS[passes].leaves), left),
        ],
    )
    assert [cycle for cycle, _ in left] == [cycle + Link.minimum_latency + 7 for cycle, _ in entered]
    assert [payload for _, payload in left] == [KINDS[passes].bits(number) for number in range(CREDITS)]
    assert [bits(payload) for payload in waited] == [KINDS[held].bits(number) for number in range(CREDITS)]


@pytest.mark.parametrize("latency, width", [(0, 0), (3, 0), (40, 0), (0, 8), (20, 10), (9, 1)])
def test_every_arrival_of_random_traffic_matches_the_golden_model(latency: int, width: int) -> None:
    seed = 1000 * latency + width
    rng = random.Random(seed)
    dut = link()
    count = 24
    logs: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {name: ([], []) for name in KINDS}
    asked: dict[str, list[Any]] = {name: [] for name in ANSWERED_BY}

    def sender(name: str) -> Any:
        async def bench(ctx: Any) -> None:
            await settle(ctx, dut, up=latency, down=latency, width=width)
            payloads = [KINDS[name].payload(number) for number in range(count)]
            await drive(ctx, getattr(dut, KINDS[name].enters), payloads, randomly(rng, longest=20))

        return bench

    def memory(request: str) -> Any:
        """Answers each request, after any time, in order."""

        async def bench(ctx: Any) -> None:
            ctx.set(getattr(dut, KINDS[request].leaves).ready, 1)
            answer = ANSWERED_BY[request]
            for number in range(count):
                while len(asked[request]) <= number:
                    await ctx.tick()
                for _ in range(rng.randint(0, 9)):
                    await ctx.tick()
                await put(ctx, getattr(dut, KINDS[answer].enters), KINDS[answer].payload(number))

        return bench

    async def receivers(ctx: Any) -> None:
        for name in KINDS:
            ctx.set(getattr(dut, KINDS[name].leaves).ready, 1)
        while any(len(left) < count for _, left in logs.values()):
            await ctx.tick()
        assert ctx.get(dut.idle)

    def asks(request: str) -> Any:
        return monitor(getattr(dut, KINDS[request].leaves), asked[request])

    run(
        dut,
        *(sender(name) for name in KINDS if name not in ANSWERED_BY.values()),
        *(memory(request) for request in ANSWERED_BY),
        receivers,
        processes=[
            *(monitor(getattr(dut, kind.enters), logs[name][0]) for name, kind in KINDS.items()),
            *(monitor(getattr(dut, kind.leaves), logs[name][1]) for name, kind in KINDS.items()),
            *(asks(request) for request in ANSWERED_BY),
        ],
    )
    for channel in sorted({kind.channel for kind in KINDS.values()}):
        entered, left = [], []
        for name, kind in KINDS.items():
            if kind.channel == channel:
                entered += [(cycle, name, number) for number, (cycle, _) in enumerate(logs[name][0])]
                left += [(cycle, name, payload) for cycle, payload in logs[name][1]]
        entered.sort()
        left.sort()
        arrivals = predicted(((c, KINDS[name].size(number)) for c, name, number in entered), latency, width)
        expected = [
            (arrival, name, KINDS[name].bits(number))
            for arrival, (_, name, number) in zip(arrivals, entered, strict=True)
        ]
        assert left == expected, f"{channel}, seed {seed}"


@pytest.mark.parametrize("name", ["launch", "verdict"])
def test_messages_of_a_kind_in_the_link_are_bounded_by_its_credits(name: str) -> None:
    kind = KINDS[name]
    dut = link()
    entered: list[tuple[int, int]] = []
    got: list[Any] = []

    async def sender(ctx: Any) -> None:
        await drive(ctx, getattr(dut, kind.enters), [kind.payload(number) for number in range(20)])

    async def receiver(ctx: Any) -> None:
        await ctx.tick().repeat(100)
        assert len(entered) == CREDITS and not ctx.get(getattr(dut, kind.enters).ready)
        await get(ctx, getattr(dut, kind.leaves))
        await ctx.tick().repeat(20)
        assert len(entered) == CREDITS + 1, "one taken, one more sent"
        await collect(ctx, getattr(dut, kind.leaves), 19, got)

    run(dut, sender, receiver, processes=[monitor(getattr(dut, kind.enters), entered)])
    assert [bits(payload) for payload in got] == [kind.bits(number) for number in range(1, 20)]


@pytest.mark.parametrize("request_name", ANSWERED_BY)
def test_requests_without_a_taken_response_are_bounded_by_credits(request_name: str) -> None:
    """So that there is a place for each response, even when nobody takes any."""
    request, response = KINDS[request_name], KINDS[ANSWERED_BY[request_name]]
    dut = link()
    entered: list[tuple[int, int]] = []

    async def sender(ctx: Any) -> None:
        await drive(ctx, getattr(dut, request.enters), [request.payload(number) for number in range(12)])

    async def memory(ctx: Any) -> None:
        ctx.set(getattr(dut, request.leaves).ready, 1)
        await ctx.tick().repeat(50)
        assert len(entered) == CREDITS
        answers = getattr(dut, response.enters)
        for number in range(CREDITS):
            ctx.set(answers.payload, response.payload(number))
            ctx.set(answers.valid, 1)
            assert ctx.get(answers.ready), "the memory side never waits with a response"
            await ctx.tick()
        ctx.set(answers.valid, 0)
        await ctx.tick().repeat(20)
        assert len(entered) == CREDITS, "the responses were not taken yet"
        for number in range(12):
            assert bits(await get(ctx, getattr(dut, response.leaves))) == response.bits(number)
            if number + CREDITS < 12:
                await put(ctx, answers, response.payload(number + CREDITS))
        await ctx.tick()
        assert ctx.get(dut.idle)

    run(dut, sender, memory, processes=[monitor(getattr(dut, request.enters), entered)])


@pytest.mark.parametrize("first, second", [("walk_request", "launch"), ("verdict", "walk_response")])
def test_two_kinds_that_wait_take_turns(first: str, second: str) -> None:
    dut = link(credits=16)
    logs: dict[str, list[tuple[int, int]]] = {first: [], second: []}

    async def bench(ctx: Any) -> None:
        for name in logs:
            port = getattr(dut, KINDS[name].enters)
            ctx.set(port.payload, KINDS[name].payload(1))
            ctx.set(port.valid, 1)
        await ctx.tick().repeat(12)

    run(dut, bench, processes=[monitor(getattr(dut, KINDS[name].enters), log) for name, log in logs.items()])
    order = sorted((cycle, name) for name, log in logs.items() for cycle, _ in log)
    assert [cycle for cycle, _ in order] == list(range(12)), "one message a cycle"
    assert all(name != after for (_, name), (_, after) in itertools.pairwise(order))


def test_which_kind_goes_first_does_not_depend_on_what_an_empty_channel_carried() -> None:
    first_ready: list[tuple[int, int]] = []

    def after(*names: str) -> None:
        channel = Channel({"one": 8, "other": 8}, credits=2, latency_bits=4)
        ports = {"one": channel.one, "other": channel.other}

        async def bench(ctx: Any) -> None:
            for signal in (channel.far_one.ready, channel.far_other.ready):
                ctx.set(signal, 1)
            for cycles_of_it in (channel.one_cycles, channel.other_cycles):
                ctx.set(cycles_of_it, 1)
            for name in names:
                await put(ctx, ports[name], 1)
            await ctx.tick().repeat(10)
            assert ctx.get(channel.idle)
            for port in ports.values():
                ctx.set(port.valid, 1)
            first_ready.append((ctx.get(channel.one.ready), ctx.get(channel.other.ready)))

        run(channel, bench)

    for names in ([], ["one"], ["other"], ["one", "other"], ["other", "one"]):
        after(*names)
    assert set(first_ready) in ({(1, 0)}, {(0, 1)})


def test_saturated_bulk_channel_does_not_delay_a_walk() -> None:
    dut = link()
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []

    async def bulk(ctx: Any) -> None:
        await settle(ctx, dut, up=10, width=4)
        await drive(ctx, dut.bulk_request, [KINDS["bulk_request"].payload(1)] * CREDITS)

    async def walk(ctx: Any) -> None:
        await ctx.tick().repeat(70)
        ctx.set(dut.memory_walk_request.ready, 1)
        await put(ctx, dut.walk_request, KINDS["walk_request"].payload(3))
        await ctx.tick().repeat(40)

    run(
        dut,
        bulk,
        walk,
        processes=[monitor(dut.walk_request, entered), monitor(dut.memory_walk_request, left)],
    )
    assert left[0][0] - entered[0][0] == Link.minimum_latency + 10 + cycles(8, 4) - 1


def test_link_is_not_idle_while_a_request_is_unanswered() -> None:
    dut = link()

    async def bench(ctx: Any) -> None:
        assert ctx.get(dut.idle)
        await put(ctx, dut.walk_request, KINDS["walk_request"].payload(3))
        await get(ctx, dut.memory_walk_request)
        await ctx.tick().repeat(9)
        assert not ctx.get(dut.idle)
        await put(ctx, dut.memory_walk_response, KINDS["walk_response"].payload(3))
        await get(ctx, dut.walk_response)
        assert ctx.get(dut.idle)
        ctx.set(dut.bytes_per_cycle, 4)
        assert not ctx.get(dut.idle), "the width is not settled"

    run(dut, bench)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_nothing_is_lost_or_reordered_under_random_stalls(seed: int) -> None:
    rng = random.Random(seed)
    dut = link(credits=rng.choice([2, 4, 8]))
    latency, width, count = rng.randrange(30), rng.choice([0, 1, 6, 40]), 40
    got: dict[str, list[Any]] = {name: [] for name in KINDS}

    def stall() -> Stall:
        return rng.choice([never, randomly(rng), randomly(rng, share=0.9, longest=15)])

    def sender(name: str) -> Any:
        async def bench(ctx: Any) -> None:
            ctx.set(dut.latency_up, latency)
            ctx.set(dut.latency_down, 2 * latency)
            ctx.set(dut.bytes_per_cycle, width)
            payloads = [KINDS[name].payload(number) for number in range(count)]
            await drive(ctx, getattr(dut, KINDS[name].enters), payloads, stall())

        return bench

    def answerer(request: str) -> Any:
        async def bench(ctx: Any) -> None:
            answer = KINDS[ANSWERED_BY[request]]
            for number in range(count):
                while len(got[request]) <= number:
                    await ctx.tick()
                await put(ctx, getattr(dut, answer.enters), answer.payload(number))

        return bench

    def receiver(name: str) -> Any:
        async def bench(ctx: Any) -> None:
            await collect(ctx, getattr(dut, KINDS[name].leaves), count, got[name], stall())

        return bench

    run(
        dut,
        *(sender(name) for name in KINDS if name not in ANSWERED_BY.values()),
        *(answerer(request) for request in ANSWERED_BY),
        *(receiver(name) for name in KINDS),
        processes=[check_stream_rule(getattr(dut, kind.leaves), name) for name, kind in KINDS.items()],
        watchdog=40_000,
    )
    for name, kind in KINDS.items():
        expected = [kind.bits(number) for number in range(count)]
        assert [bits(payload) for payload in got[name]] == expected, f"{name}, seed {seed}"


@pytest.mark.parametrize(
    "kinds, credits, complaint",
    [
        ({}, 4, r"kinds are \[\]: expected one or two"),
        ({"a": 1, "b": 1, "c": 1}, 4, r"kinds are \['a', 'b', 'c'\]: expected one or two"),
        ({"a": 1}, 3, "credits is 3: expected a power of two from 2"),
    ],
)
def test_wrong_parameters_are_named(kinds: dict[str, int], credits: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Channel(kinds, credits=credits)
