"""The bulk merge with random requesters and a memory that stalls and reorders."""

import random
from functools import partial

import pytest
from amaranth.sim import Simulator

from hdl.fabric.merge import BulkMerge
from hdl.layouts import MemoryStatus, Source

PORTS = {"sequencer": Source.SEQUENCER, "mover": Source.MOVER, "host": Source.HOST}


def run(seed, *, count=60, busy=0.5, ready=0.5):
    """Each port sends `count` requests; returns (granted sources in order, answers by port)."""
    choose = random.Random(seed)
    dut = BulkMerge()
    grants, answers, waiting = [], {name: [] for name in PORTS}, []

    async def requester(name, ctx):
        port = getattr(dut, name)
        for number in range(count):
            while choose.random() > busy:
                await ctx.tick()
            ctx.set(port.request.payload, {"address": number, "tag": {"source": PORTS[name], "context": 5}})
            ctx.set(port.request.valid, 1)
            await ctx.tick().until(port.request.ready)
            ctx.set(port.request.valid, 0)
        for _ in range(20_000):
            if len(answers[name]) == count:
                return
            await ctx.tick()
        raise AssertionError(f"{name} got {len(answers[name])} of {count} answers")

    async def taker(name, ctx):
        port = getattr(dut, name)
        while True:
            ctx.set(port.response.ready, choose.random() < ready)
            *_, valid, taken, payload = await ctx.tick().sample(
                port.response.valid, port.response.ready, port.response.payload
            )
            if valid and taken:
                answers[name].append(payload.data)

    async def memory(ctx):
        port = dut.memory
        offered, answering = None, False
        while True:
            ctx.set(port.request.ready, choose.random() < ready)
            if not answering and waiting and choose.random() < 0.7:
                request = waiting.pop(choose.randrange(len(waiting)))
                tag = {"source": request.tag.source, "context": 5}
                answer = {"tag": tag, "data": request.address, "status": MemoryStatus.OK}
                ctx.set(port.response.payload, answer)
                ctx.set(port.response.valid, 1)
                answering = True
            *_, valid, taken, request, sent = await ctx.tick().sample(
                port.request.valid, port.request.ready, port.request.payload, port.response.ready
            )
            if offered is not None:
                assert valid and request == offered, "an offered request was changed or taken back"
            offered = request if valid and not taken else None
            if valid and taken:
                grants.append(request.tag.source)
                waiting.append(request)
            if answering and sent:
                ctx.set(port.response.valid, 0)
                answering = False

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    for name in PORTS:
        simulator.add_testbench(partial(requester, name))
        simulator.add_testbench(partial(taker, name), background=True)
    simulator.add_testbench(memory, background=True)
    simulator.run()
    return grants, answers


@pytest.mark.parametrize("seed", range(5))
def test_every_request_is_answered_to_its_requester_once(seed):
    grants, answers = run(seed)
    assert len(grants) == 3 * 60
    for name in PORTS:
        assert sorted(answers[name]) == list(range(60))


def test_grants_go_round():
    grants, _ = run(7, busy=1.0, ready=1.0)
    # All three always ask: nobody is granted again before the two others were.
    for first, second, third in zip(grants[3:90], grants[4:91], grants[5:92], strict=True):
        assert {first, second, third} == set(PORTS.values())
