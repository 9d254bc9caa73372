"""Arbiter: no added cycle, priority of walks, bounded waits both ways, held offers, routing."""

import itertools
import random
from typing import Any

import pytest

from hdl.config import DesignConfig
from hdl.fabric.arbiter import Arbiter
from hdl.layouts import MemoryStatus, Source
from tests.hdl.streams import check_stream_rule, collect, drive, randomly, run

SOURCES = {"near": Source.NEAR_WALKER, "far": Source.FAR_WALKER, "bulk": Source.MOVER}


def request(name: str, number: int) -> dict[str, Any]:
    return {
        "address": number,
        "write": number & 1,
        "data": number * 0x0101,
        "mask": number & 0xFF,
        "tag": {"source": SOURCES[name], "context": number % 64},
    }


def response(source: Source, number: int) -> dict[str, Any]:
    return {
        "tag": {"source": source, "context": number % 64},
        "write": number & 1,
        "data": number,
        "status": MemoryStatus.OK,
    }


async def offer(ctx: Any, dut: Arbiter, *names: str) -> None:
    """Keeps a request of each of these ports valid for ever, and none of the others."""
    for name in SOURCES:
        port = getattr(dut, name).request
        ctx.set(port.payload, request(name, 1))
        ctx.set(port.valid, name in names)


async def grants(ctx: Any, dut: Arbiter, count: int) -> list[str]:
    """Whose requests the memory takes in the next `count` cycles; it is always ready."""
    ctx.set(dut.memory.request.ready, 1)
    order = []
    for _ in range(count):
        _, _, valid, *ready = await ctx.tick().sample(
            dut.memory.request.valid, *(getattr(dut, name).request.ready for name in SOURCES)
        )
        offered = [getattr(dut, name).request.valid for name in SOURCES]
        took = [name for name, r, v in zip(SOURCES, ready, offered, strict=True) if r and ctx.get(v)]
        assert len(took) == valid, took
        order += took
    ctx.set(dut.memory.request.ready, 0)
    return order


@pytest.mark.parametrize("name", SOURCES)
def test_lone_request_passes_in_the_same_cycle(name: str) -> None:
    dut = Arbiter(DesignConfig())
    port = getattr(dut, name)

    async def bench(ctx: Any) -> None:
        ctx.set(port.request.payload, request(name, 77))
        ctx.set(port.request.valid, 1)
        ctx.set(dut.memory.request.ready, 1)
        assert ctx.get(dut.memory.request.valid)
        assert ctx.get(dut.memory.request.p.address) == 77
        assert ctx.get(dut.memory.request.p.data) == 77 * 0x0101
        assert ctx.get(port.request.ready)

    run(dut, bench)


@pytest.mark.parametrize("name", SOURCES)
def test_response_goes_to_its_requester_only_in_the_same_cycle(name: str) -> None:
    dut = Arbiter(DesignConfig())
    others = [getattr(dut, other) for other in SOURCES if other != name]

    async def bench(ctx: Any) -> None:
        ctx.set(dut.memory.response.payload, response(SOURCES[name], 5))
        ctx.set(dut.memory.response.valid, 1)
        assert ctx.get(getattr(dut, name).response.valid)
        assert ctx.get(getattr(dut, name).response.p.data) == 5
        assert not any(ctx.get(port.response.valid) for port in others)
        for port in others:
            ctx.set(port.response.ready, 1)
        assert not ctx.get(dut.memory.response.ready)
        ctx.set(getattr(dut, name).response.ready, 1)
        assert ctx.get(dut.memory.response.ready)

    run(dut, bench)


@pytest.mark.parametrize("source", [Source.SEQUENCER, Source.MOVER, Source.HOST])
def test_bulk_gets_the_responses_of_every_other_source(source: Source) -> None:
    dut = Arbiter(DesignConfig())

    async def bench(ctx: Any) -> None:
        ctx.set(dut.memory.response.payload, response(source, 5))
        ctx.set(dut.memory.response.valid, 1)
        assert ctx.get(dut.bulk.response.valid)

    run(dut, bench)


def test_walkers_take_turns() -> None:
    dut = Arbiter(DesignConfig())

    async def bench(ctx: Any) -> None:
        await offer(ctx, dut, "near", "far")
        order = await grants(ctx, dut, 12)
        assert sorted(order[:2]) == ["far", "near"] and order == order[:2] * 6

    run(dut, bench)


@pytest.mark.parametrize("walkers", [("near",), ("far",), ("near", "far")])
def test_bulk_is_served_after_exactly_the_stated_number_of_walks(walkers: tuple[str, ...]) -> None:
    dut = Arbiter(DesignConfig())

    async def bench(ctx: Any) -> None:
        await offer(ctx, dut, *walkers)
        await grants(ctx, dut, 5)
        await offer(ctx, dut, *walkers, "bulk")
        order = await grants(ctx, dut, 60)
        served = [index for index, name in enumerate(order) if name == "bulk"]
        assert served[0] == Arbiter.BULK_WAIT
        gaps = {after - before - 1 for before, after in itertools.pairwise(served)}
        assert gaps == {Arbiter.BULK_WAIT}

    run(dut, bench)


def test_walk_waits_for_at_most_the_stated_number_of_others() -> None:
    dut = Arbiter(DesignConfig())

    async def bench(ctx: Any) -> None:
        await offer(ctx, dut, "near", "far", "bulk")
        order = await grants(ctx, dut, 200)
        for name in ("near", "far"):
            served = [index for index, who in enumerate(order) if who == name]
            waits = [after - before - 1 for before, after in itertools.pairwise(served)]
            assert max(waits) == Arbiter.WALK_WAIT

    run(dut, bench)


def test_offered_bulk_request_is_not_taken_back_for_a_walk() -> None:
    dut = Arbiter(DesignConfig())

    async def bench(ctx: Any) -> None:
        await offer(ctx, dut, "bulk")
        await ctx.tick().repeat(3)
        await offer(ctx, dut, "near", "far", "bulk")
        await ctx.tick().repeat(3)
        assert (await grants(ctx, dut, 3))[0] == "bulk"

    run(dut, bench, processes=[check_stream_rule(dut.memory.request, "memory.request")])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_request_and_response_arrives_once_in_its_order(seed: int) -> None:
    rng = random.Random(seed)
    count = 80
    dut = Arbiter(DesignConfig())
    taken: list[Any] = []
    answers: dict[str, list[Any]] = {name: [] for name in SOURCES}
    sent = [(name, number) for name in SOURCES for number in range(count)]
    rng.shuffle(sent)

    def requester(name: str) -> Any:
        async def bench(ctx: Any) -> None:
            port = getattr(dut, name).request
            await drive(ctx, port, [request(name, number) for number in range(count)], randomly(rng))

        return bench

    def receiver(name: str) -> Any:
        async def bench(ctx: Any) -> None:
            await collect(ctx, getattr(dut, name).response, count, answers[name], randomly(rng, longest=3))

        return bench

    async def memory_takes(ctx: Any) -> None:
        await collect(ctx, dut.memory.request, 3 * count, taken, randomly(rng, longest=3))

    async def memory_answers(ctx: Any) -> None:
        payloads = [response(SOURCES[name], number) for name, number in sent]
        await drive(ctx, dut.memory.response, payloads, randomly(rng, share=0.2))

    run(
        dut,
        *(requester(name) for name in SOURCES),
        *(receiver(name) for name in SOURCES),
        memory_takes,
        memory_answers,
        processes=[
            check_stream_rule(dut.memory.request, "memory.request"),
            *(check_stream_rule(getattr(dut, name).response, f"{name}.response") for name in SOURCES),
        ],
    )
    for name, source in SOURCES.items():
        got = [p for p in taken if p.tag.source == source]
        assert [p.address for p in got] == list(range(count)), f"seed {seed}"
        assert all(p.data == p.address * 0x0101 for p in got), f"seed {seed}"
        expected = [number for who, number in sent if who == name]
        assert [p.data for p in answers[name]] == expected, f"seed {seed}"
