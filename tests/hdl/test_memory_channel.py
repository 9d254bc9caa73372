"""A memory channel whose walker, arbiter and front end are on a slower clock: cycles, alignment, ports.

The rest of a channel is tested in the whole design; this needs no build.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig, WalkerConfig
from hdl.layouts import HopEvent, RefreshMode, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.device import Device
from hdl.memory_channel import MemoryChannel
from hdl.walker.isa import Exit, ExitKind, Instruction

from .streams import check_stream_rule, get, put, run, until

_CHASE = Instruction(taken=Exit(kind=ExitKind.LOAD))
#: A closed row of a bank, a row hit in it, then the same in another bank.
_PLACES = (Place(0, 1, 1, 0), Place(0, 1, 1, 1), Place(1, 2, 0, 3), Place(1, 2, 0, 2))
_SETTLED = 300
_WATCHDOG = 20_000


def _config(ratio: int) -> DesignConfig:
    return DesignConfig(
        clock_ratio=ratio,
        walker=WalkerConfig(contexts=2),
        controller=ControllerConfig(
            bank_queue=2, overflow=4, write_buffer=4, drain_high=3, drain_low=1, response_slots=8
        ),
        memory=MemoryConfig(rows=2, columns=4),
    )


@dataclass
class _Seen:
    """What came of a walk: hops after the restart's end, the verdict, and bulk reads by address."""

    hops: list[tuple[int, int]] = field(default_factory=list)
    verdict: Any = None
    read: dict[int, int] = field(default_factory=dict)


async def _pulse(ctx: Any, port: Any, **fields: int) -> None:
    """One write of the host's settings: high for a cycle."""
    for name, value in {**fields, "enable": 1}.items():
        ctx.set(getattr(port, name), value)
    await ctx.tick()
    ctx.set(port.enable, 0)


async def _write(ctx: Any, port: Any, address: int, data: int) -> None:
    request = {"address": address, "write": 1, "data": data, "mask": 0xFFFFFFFF}
    await put(ctx, port.request, request | {"tag": {"source": Source.HOST, "context": 1}})
    assert (await get(ctx, port.response)).write


class _DeviceOutside(wiring.Component):
    """A channel whose memory end is `bus`, wired to a device: with the members that the other end has."""

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        super().__init__(MemoryChannel(config, channel=0).signature)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = replace(self._config, memory=replace(self._config.memory, end="bus"))
        m.submodules.channel = channel = MemoryChannel(config, channel=0)
        m.submodules.device = device = Device(config)
        connect(m, channel.row, device.row)
        connect(m, channel.column, device.column)
        for path, member, value in self.signature.flatten(self):
            inner = channel
            for name in path:
                inner = getattr(inner, name)
            if path[0] not in ("row", "column"):
                m.d.comb += inner.eq(value) if member.flow == In else value.eq(inner)
        return m


def _walk(ratio: int, *, before: int, bulk: int = 0, seed: int = 0, outside: bool = False) -> _Seen:
    """A walk through `_PLACES` with `before` idle cycles before the restart, and bulk reads beside it."""
    config, seen, chance = _config(ratio), _Seen(), random.Random(seed)
    dut: Any = _DeviceOutside(config) if outside else MemoryChannel(config, channel=0)
    chain = [int(AddressMap(config.memory).encode(place)) for place in _PLACES]
    began = 0
    now = 0

    async def clock(ctx: Any) -> None:
        nonlocal now
        while True:
            *_, event, address = await ctx.tick().sample(dut.hop.event, dut.hop.address)
            if event != HopEvent.NONE:
                seen.hops.append((now - began, address))
            now += 1

    async def host(ctx: Any) -> None:
        nonlocal began
        ctx.set(dut.refresh, RefreshMode.NONE)
        # One cycle each, at any time within a slow cycle.
        await _pulse(ctx, dut.program_write, index=0, word=_CHASE.encode())
        for context in (0, 1):
            await _pulse(ctx, dut.context_write, index=context, base=1, limit=1 << 20, budget=100)
        for address, following in zip(chain, [*chain[1:], 0], strict=True):
            await _write(ctx, dut.bulk, address, following)
        # Until the writes have left the write buffer and every timer has run out.
        for _ in range(_SETTLED + before):
            await ctx.tick()
        ctx.set(dut.restart, 1)
        await until(ctx, dut.restarted)
        ctx.set(dut.restart, 0)
        began = now
        await put(ctx, dut.launch, {"context": 1, "entry": 0, "tag": 77, "address": chain[0]})
        while not ctx.get(dut.verdict.valid):
            # The link makes the verdict wait for a while.
            await ctx.tick()
        for _ in range(chance.randrange(6)):
            await ctx.tick()
        seen.verdict = await get(ctx, dut.verdict)
        for _ in range(3 * ratio):
            assert not ctx.get(dut.verdict.valid), "the verdict leaves twice"
            await ctx.tick()
        assert ctx.get(dut.idle)

    async def reads(ctx: Any) -> None:
        await until(ctx, dut.restart)
        await until(ctx, ~dut.restart)
        for number in range(bulk):
            address = chain[number % len(chain)]
            for _ in range(chance.randrange(5)):
                await ctx.tick()
            tag = {"source": Source.MOVER, "context": number}
            await put(ctx, dut.bulk.request, {"address": address, "tag": tag})
            for _ in range(chance.randrange(3)):
                await ctx.tick()
            answer = await get(ctx, dut.bulk.response)
            assert answer.tag.context == number
            seen.read[address] = answer.data

    benches = (host, reads) if bulk else (host,)
    processes = [
        clock,
        *(
            check_stream_rule(stream, name)
            for name, stream in (("bulk", dut.bulk.response), ("verdict", dut.verdict))
        ),
    ]
    run(dut, *benches, processes=processes, watchdog=_WATCHDOG)
    return seen


#: Loops of a closed row and of a row hit: what `firmware_py/loop_parts.py` says of these ratios.
_LOOPS = {1: (34, 19), 2: (38, 22), 4: (44, 28)}


@pytest.mark.parametrize("ratio", [1, 4])
def test_a_device_outside_changes_no_cycle(ratio: int) -> None:
    inside, outside = (_walk(ratio, before=5, bulk=3, outside=there) for there in (False, True))
    assert outside.hops == inside.hops
    assert (outside.verdict.cycles, outside.read) == (inside.verdict.cycles, inside.read)


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_a_loop_takes_whole_slow_cycles_and_is_reported_once(ratio: int) -> None:
    seen = _walk(ratio, before=5)
    cycles = [cycle for cycle, _ in seen.hops]
    closed, hit = _LOOPS[ratio]
    assert [later - earlier for earlier, later in pairwise(cycles)] == [
        closed,
        hit,
        closed,
        hit,
    ]
    assert (seen.verdict.tag, seen.verdict.hops) == (77, len(_PLACES))
    # Accepted in the slow cycle before the first request.
    assert seen.verdict.cycles == cycles[-1] - cycles[0] + ratio


def test_a_restart_begins_a_slow_cycle_whatever_was_before() -> None:
    found = [_walk(4, before=before).hops for before in range(3)]
    assert len(found[0]) == len(_PLACES) + 1
    assert all(hops == found[0] for hops in found)


@pytest.mark.parametrize(("ratio", "seed"), [(2, 0), (4, 1)])
def test_bulk_reads_beside_a_walk_are_answered_once_and_right(ratio: int, seed: int) -> None:
    print(f"seed {seed}")
    seen = _walk(ratio, before=seed, bulk=20, seed=seed)
    config = _config(ratio)
    chain = [int(AddressMap(config.memory).encode(place)) for place in _PLACES]
    assert seen.read == dict(zip(chain, [*chain[1:], 0], strict=True))
    assert (seen.verdict.tag, seen.verdict.hops) == (77, len(_PLACES))
