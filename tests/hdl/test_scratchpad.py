"""Scratchpad: exact read time, masks, parallel banks, bounded waits, agreement with a plain memory."""

import random
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from hdl.config import DesignConfig, ScratchpadConfig
from hdl.layouts import ScratchpadPort
from hdl.scratchpad import Scratchpad, ScratchpadRegisters
from tests.hdl.streams import monitor, put, randomly, run

PORTS = ("sequencer", "mover", "host")
ATOM = (1 << 256) - 1
ALL = (1 << 32) - 1


def scratchpad(banks: int = 4) -> Scratchpad:
    return Scratchpad(DesignConfig(scratchpad=ScratchpadConfig(banks=banks, bank_bytes=1024)))


def merged(old: int, data: int, mask: int) -> int:
    """The atom after a write with byte enables `mask`."""
    bits = sum(0xFF << 8 * byte for byte in range(32) if mask >> byte & 1)
    return old & ~bits & ATOM | data & bits


async def write(ctx: Any, port: Any, address: int, data: int, mask: int = ALL) -> None:
    await put(ctx, port.request, {"address": address, "write": 1, "data": data, "mask": mask})


async def read(ctx: Any, port: Any, address: int) -> int:
    """A read; fails unless its data is there in the cycle after acceptance and not in that of it."""
    await put(ctx, port.request, {"address": address})
    assert ctx.get(port.read_valid), "read data must come one cycle after acceptance"
    data = ctx.get(port.read_data)
    await ctx.tick()
    assert not ctx.get(port.read_valid)
    return data


@pytest.mark.parametrize("banks", [1, 2, 4])
@pytest.mark.parametrize("name", PORTS)
def test_written_atoms_are_read_by_every_port(name: str, banks: int) -> None:
    dut = scratchpad(banks)

    async def bench(ctx: Any) -> None:
        addresses = [0, 1, 2, 3, 4, 32 * banks - 1]
        for address in addresses:
            await write(ctx, getattr(dut, name), address, address * 3 + 1 << 128 | address)
        for reader in PORTS:
            for address in addresses:
                assert await read(ctx, getattr(dut, reader), address) == (address * 3 + 1 << 128 | address)

    run(dut, bench)


@pytest.mark.parametrize("mask", [0, 1, 1 << 31, 0xF0, 0x80000001, 0x7FFFFFFF, ALL])
def test_mask_selects_bytes(mask: int) -> None:
    dut = scratchpad()
    old, new = int.from_bytes(range(32), "little"), int.from_bytes(range(100, 132), "little")

    async def bench(ctx: Any) -> None:
        await write(ctx, dut.host, 6, old)
        await write(ctx, dut.host, 6, new, mask)
        assert await read(ctx, dut.host, 6) == merged(old, new, mask)

    run(dut, bench)


def test_one_port_reads_an_atom_in_every_cycle() -> None:
    dut = scratchpad()

    async def bench(ctx: Any) -> None:
        for address in range(16):
            await write(ctx, dut.mover, address, address + 500)
        ctx.set(dut.mover.request.valid, 1)
        ctx.set(dut.mover.request.p.write, 0)
        for address in range(16):
            ctx.set(dut.mover.request.p.address, address)
            assert ctx.get(dut.mover.request.ready)
            await ctx.tick()
            assert ctx.get(dut.mover.read_valid) and ctx.get(dut.mover.read_data) == address + 500

    run(dut, bench)


def test_different_banks_serve_all_ports_in_one_cycle() -> None:
    dut = scratchpad()

    async def bench(ctx: Any) -> None:
        for address in range(4):
            await write(ctx, dut.host, address, 70 + address)
        for address, name in enumerate(PORTS):
            request = getattr(dut, name).request
            ctx.set(request.payload, {"address": address, "write": name == "host", "data": 9, "mask": ALL})
            ctx.set(request.valid, 1)
        assert all(ctx.get(getattr(dut, name).request.ready) for name in PORTS)
        await ctx.tick()
        assert ctx.get(dut.sequencer.read_data) == 70
        assert ctx.get(dut.mover.read_data) == 71
        assert not ctx.get(dut.host.read_valid)
        for name in PORTS:
            ctx.set(getattr(dut, name).request.valid, 0)
        assert await read(ctx, dut.sequencer, 2) == 9

    run(dut, bench)


def test_conflict_goes_by_fixed_priority() -> None:
    dut = scratchpad()

    async def bench(ctx: Any) -> None:
        for name in PORTS:
            ctx.set(getattr(dut, name).request.valid, 1)
        for name in PORTS:
            assert [other for other in PORTS if ctx.get(getattr(dut, other).request.ready)] == [name]
            await ctx.tick()
            ctx.set(getattr(dut, name).request.valid, 0)

    run(dut, bench)


def test_masked_write_is_not_interrupted_by_a_higher_port() -> None:
    dut = scratchpad()
    taken: dict[str, list[tuple[int, int]]] = {"host": [], "sequencer": []}

    async def host(ctx: Any) -> None:
        await write(ctx, dut.host, 4, 0x11)
        await write(ctx, dut.host, 4, 0x2200, 0b10)
        await ctx.tick().repeat(2)
        assert await read(ctx, dut.host, 4) == 0x2233

    async def sequencer(ctx: Any) -> None:
        # It comes in the second cycle of the host's masked write.
        await ctx.tick().repeat(2)
        await write(ctx, dut.sequencer, 4, 0x33, 0b01)

    run(
        dut,
        host,
        sequencer,
        processes=[monitor(getattr(dut, name).request, log) for name, log in taken.items()],
    )
    assert [cycle for cycle, _ in taken["host"]][:2] == [0, 2]
    assert [cycle for cycle, _ in taken["sequencer"]] == [4]


@pytest.mark.parametrize("masks", [False, True])
def test_no_port_is_refused_longer_than_stated(masks: bool) -> None:
    """Every port wants the same bank all the time, with breaks at random; whole atoms and masked ones."""
    rng = random.Random(11)
    dut = scratchpad()
    longest: dict[str, int] = dict.fromkeys(PORTS, 0)

    def user(name: str) -> Any:
        share = {"sequencer": 0.04, "mover": 0.1, "host": 0.1}[name]

        async def bench(ctx: Any) -> None:
            stall = randomly(rng, share=share, longest=12)
            for _ in range(400):
                for _ in range(stall()):
                    await ctx.tick()
                mask = rng.getrandbits(32) & ~1 if masks else ALL
                await write(ctx, getattr(dut, name), 8, rng.getrandbits(256), mask)

        return bench

    def watch(name: str) -> Any:
        port = getattr(dut, name)
        served = 2 if masks else 1

        async def watch(ctx: Any) -> None:
            cycles = 0
            while True:
                _, _, valid, ready = await ctx.tick().sample(port.request.valid, port.request.ready)
                cycles += valid
                if ready and valid:
                    longest[name] = max(longest[name], cycles - served)
                    cycles = 0

        return watch

    run(dut, *(user(name) for name in PORTS), processes=[watch(name) for name in PORTS])
    for name in PORTS:
        assert longest[name] <= Scratchpad.LONGEST_WAIT[name], longest
    assert longest["mover"] >= Scratchpad.PATIENCE, "the test did not press hard enough"
    assert longest["host"] >= Scratchpad.PATIENCE, "the test did not press hard enough"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_accesses_of_all_ports_agree_with_a_plain_memory(seed: int) -> None:
    """The golden memory takes the accesses in the order of acceptance."""
    rng = random.Random(seed)
    dut = scratchpad(2)
    golden = {address: 0 for address in range(12)}
    checked = 0

    def user(name: str) -> Any:
        port = getattr(dut, name)

        async def bench(ctx: Any) -> None:
            stall = randomly(rng, share=0.3, longest=4)
            for _ in range(150):
                for _ in range(stall()):
                    await ctx.tick()
                mask = rng.choice([ALL, rng.getrandbits(32)])
                await put(
                    ctx,
                    port.request,
                    {
                        "address": rng.randrange(12),
                        "write": rng.random() < 0.5,
                        "data": rng.getrandbits(256),
                        "mask": mask,
                    },
                )
            await ctx.tick().repeat(2)

        return bench

    async def scoreboard(ctx: Any) -> None:
        nonlocal checked
        samples = []
        for name in PORTS:
            port = getattr(dut, name)
            samples += [port.request.valid, port.request.ready, port.request.payload]
            samples += [port.read_valid, port.read_data]
        expected: list[int | None] = [None] * len(PORTS)
        while True:
            _, _, *now = await ctx.tick().sample(*samples)
            for index, name in enumerate(PORTS):
                valid, ready, request, read_valid, data = now[5 * index : 5 * index + 5]
                assert read_valid == (expected[index] is not None), f"{name}, seed {seed}"
                if read_valid:
                    assert data == expected[index], f"{name}, seed {seed}"
                    checked += 1
                expected[index] = None
                if valid and ready and not request.write:
                    expected[index] = golden[request.address]
            # Ports that are served together use different banks: a write here cannot meet a read above.
            for index in range(len(PORTS)):
                valid, ready, request, _, _ = now[5 * index : 5 * index + 5]
                if valid and ready and request.write:
                    golden[request.address] = merged(golden[request.address], request.data, request.mask)

    run(dut, *(user(name) for name in PORTS), processes=[scoreboard])
    assert checked > 100


# -- Registers in front of a port --


class _Behind(wiring.Component):
    """A scratchpad with registers in front of the sequencer's port; the host's is as it is."""

    port: In(ScratchpadPort())
    host: In(ScratchpadPort())

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.scratchpad = dut = scratchpad(2)
        m.submodules.registers = registers = ScratchpadRegisters()
        connect(m, flipped(self.port), registers.requester)
        connect(m, registers.scratchpad, dut.sequencer)
        connect(m, flipped(self.host), dut.host)
        return m


@pytest.mark.parametrize("share", [0, 0.5])
def test_behind_registers_reads_are_answered_in_order(share: float) -> None:
    rng = random.Random(7)
    dut = _Behind()
    golden = {address: 0 for address in range(12)}
    expected: list[int] = []
    answers: list[int] = []

    async def user(ctx: Any) -> None:
        stall = randomly(rng, share=share, longest=4)
        for _ in range(150):
            for _ in range(stall()):
                await ctx.tick()
            address, data, mask = rng.randrange(12), rng.getrandbits(256), rng.choice([ALL, 0xFF])
            writes = share > 0 and rng.random() < 0.5
            if writes:
                golden[address] = merged(golden[address], data, mask)
            else:
                expected.append(golden[address])
            request = {"address": address, "write": writes, "data": data, "mask": mask}
            await put(ctx, dut.port.request, request)
        await ctx.tick().repeat(20)

    async def host(ctx: Any) -> None:
        # It takes the banks of other atoms now and then.
        for _ in range(60 if share else 0):
            await write(ctx, dut.host, 12 + rng.randrange(4), 1, rng.choice([ALL, 1]))
            await ctx.tick().repeat(rng.randint(1, 5))

    async def listen(ctx: Any) -> None:
        while True:
            _, _, valid, data = await ctx.tick().sample(dut.port.read_valid, dut.port.read_data)
            if valid:
                answers.append(data)

    run(dut, user, host, processes=[listen])
    assert answers == expected and len(answers) > 40


def test_behind_registers_a_read_takes_two_cycles_more() -> None:
    dut = _Behind()

    async def bench(ctx: Any) -> None:
        await write(ctx, dut.port, 3, 77)
        await put(ctx, dut.port.request, {"address": 3, "write": 0})
        for _ in range(2):
            assert not ctx.get(dut.port.read_valid)
            await ctx.tick()
        assert ctx.get(dut.port.read_valid) and ctx.get(dut.port.read_data) == 77

    run(dut, bench)
