"""cocotb tests of an AXI memory: random traffic, against the RAM of cocotbext-axi and a hostile memory."""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.axi import AxiBus, AxiMaster, AxiRam

from hdl.layouts import ATOM_BYTES, MemoryStatus, Source
from hdl.memory.address import AddressMap
from sim.bench.axi import AxiProtocol, AxiSignals, HostileAxiMemory, HostileShape
from sim.bench.memory_port import Request, Response, Scoreboard, TrafficShape, random_request, tag_of

from .axi_subsystem import CHANNEL, CONFIG

ATOMS = AddressMap(CONFIG.memory).atoms
BASE = CHANNEL * ATOMS * ATOM_BYTES
TAGS = [
    tag_of(source, context) for source in Source if source is not Source.CONTROLLER for context in range(64)
]
BURST = 16
#: Cycles in which something must be taken or answered: ten times the latency of the slowest hostile memory.
PROGRESS = 3_000
#: Periods of the memory's clock in ps; that of the design is 1,000.
PERIODS = (1_000, 2_222, 700)


class Bench:
    """Both clocks, one cycle of the design's at a time at the port; every response goes to the scoreboard."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut = dut
        self.rng = rng
        self.cycle = 0
        self._progress = 0
        self.scoreboard = Scoreboard(atoms=ATOMS)
        self._offered: int | None = None

    async def start(self, period: int) -> None:
        dut = self.dut
        dut.rst.value = 1
        dut.m_axi_aresetn.value = 0
        dut.restart.value = 0
        dut.memory__request__valid.value = 0
        dut.memory__response__ready.value = 0
        for name in ("awready", "wready", "arready", "rvalid", "bvalid"):
            getattr(dut, f"m_axi_{name}").value = 0
            getattr(dut, f"m_axi_narrow_{name}").value = 0
        for name in ("awvalid", "wvalid", "arvalid", "rready", "bready"):
            getattr(dut, f"s_axi_{name}").value = 0
        Clock(dut.clk, 1_000, "ps", impl="gpi").start()
        Clock(dut.m_axi_aclk, period, "ps", impl="gpi").start()
        for _ in range(8):
            await FallingEdge(dut.clk)
        dut.m_axi_aresetn.value = 1
        dut.rst.value = 0

    async def step(self, request: Request | None = None, *, ready: bool = True) -> bool:
        """One cycle: offers `request`, takes a response if `ready`; whether the request was taken."""
        dut = self.dut
        dut.memory__request__valid.value = int(request is not None)
        if request is not None:
            dut.memory__request__payload.value = request.pack()
        dut.memory__response__ready.value = int(ready)
        await ReadOnly()
        accepted = request is not None and bool(dut.memory__request__ready.value)
        bits = int(dut.memory__response__payload.value) if dut.memory__response__valid.value else None
        assert self._offered in (None, bits), f"cycle {self.cycle}: a response changed before it was taken"
        self._offered = None if ready else bits
        if ready and bits is not None:
            self.scoreboard.respond(Response.unpack(bits), self.cycle)
        if accepted:
            assert request is not None
            self.scoreboard.accept(request, self.cycle)
        waits = self.scoreboard.outstanding or request is not None
        if accepted or (ready and bits is not None) or not waits:
            self._progress = self.cycle
        assert self.cycle - self._progress < PROGRESS, (
            f"cycle {self.cycle}: nothing taken or answered for {PROGRESS} cycles, "
            f"{self.scoreboard.outstanding} requests outstanding"
        )
        await FallingEdge(dut.clk)
        self.cycle += 1
        return accepted

    async def drain(self) -> None:
        """Waits until every request is answered."""
        while self.scoreboard.outstanding:
            await self.step()

    async def traffic(self, requests: Iterator[Request], shape: TrafficShape) -> None:
        """Offers every request, with idle and back-pressured cycles; an offer stays until it is taken."""
        for request in requests:
            while self.rng.random() < shape.idle:
                await self.step(ready=self.rng.random() >= shape.stall)
            while not await self.step(request, ready=self.rng.random() >= shape.stall):
                pass
        await self.drain()

    def requests(self, count: int, shape: TrafficShape) -> Iterator[Request]:
        """Random requests to few atoms, and between them runs over consecutive atoms."""
        rng = self.rng
        hot = [rng.randrange(ATOMS) for _ in range(6)]
        made = 0
        while made < count:
            if rng.random() < 0.15:
                first, write = rng.randrange(ATOMS - 40), rng.random() < 0.5
                for address in range(first, first + rng.randrange(1, 40)):
                    made += 1
                    data = rng.getrandbits(256) if write else 0
                    yield Request(address=address, tag=self.free(Source.MOVER), write=write, data=data)
            else:
                made += 1
                tag = self.free(rng.choice([source for source in Source if source is not Source.CONTROLLER]))
                yield random_request(rng, shape, self.scoreboard, hot, tag)

    def free(self, source: Source) -> int:
        """A tag of a source that is not in use."""
        tags = [tag_of(source, context) for context in range(64)]
        return self.rng.choice([tag for tag in tags if not self.scoreboard.uses(tag)])

    async def restart(self) -> None:
        """A restart ends although something is collected and under way."""
        self.dut.restart.value = 1
        for _ in range(3_000):
            await self.step()
            if self.dut.restarted.value:
                break
        else:
            raise AssertionError("the restart never ended")
        assert not self.scoreboard.outstanding
        self.dut.restart.value = 0


def _rng() -> random.Random:
    return random.Random(int(os.environ["COCOTB_RANDOM_SEED"]))


def _shapes(rng: random.Random) -> Iterator[TrafficShape]:
    while True:
        yield TrafficShape(
            conditional=rng.choice((0.0, 0.2)),
            write=rng.choice((0.1, 0.5)),
            out_of_range=0.03,
            idle=rng.choice((0.0, 0.3, 0.8)),
            stall=rng.choice((0.0, 0.3, 0.8)),
        )


async def _watch(protocol: AxiProtocol, dut: Any) -> None:
    """Checks the rules of AXI in every cycle, beside a memory that does not."""
    while True:
        await FallingEdge(dut.m_axi_aclk)
        await ReadOnly()
        if dut.m_axi_aresetn.value:
            protocol.check()


@cocotb.test()
@cocotb.parametrize(period=PERIODS)
async def cocotbext_ram(dut: Any, period: int) -> None:
    """Nothing lost, doubled or out of order against the memory of cocotbext-axi."""
    rng = _rng()
    logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.WARNING)
    bench = Bench(dut, rng)
    axi = AxiSignals(dut, "m_axi_")
    ram = AxiRam(
        AxiBus.from_prefix(dut, "m_axi"),
        dut.m_axi_aclk,
        dut.m_axi_aresetn,
        reset_active_level=False,
        size=2**CONFIG.axi.address_bits,
    )
    for channel in (
        ram.write_if.aw_channel,
        ram.write_if.w_channel,
        ram.write_if.b_channel,
        ram.read_if.ar_channel,
        ram.read_if.r_channel,
    ):
        share = rng.choice((0.0, 0.3, 0.7))
        channel.set_pause_generator(rng.random() < share for _ in itertools.repeat(None))
    protocol = AxiProtocol(axi)
    await bench.start(period)
    cocotb.start_soon(_watch(protocol, dut))
    shapes = _shapes(rng)
    for _ in range(3):
        shape = next(shapes)
        await bench.traffic(bench.requests(150, shape), shape)
    for address, data in bench.scoreboard.memory.items():
        assert ram.read(BASE + 32 * address, 32) == data.to_bytes(32, "little"), f"atom {address:#x}"
    assert any(beats > 4 for _, beats in protocol.bursts)


@cocotb.test()
@cocotb.parametrize(period=PERIODS, errors=(False, True))
async def hostile_memory(dut: Any, period: int, errors: bool) -> None:
    """The same against a memory that does what it likes; errors come back as BUS_ERROR."""
    rng = _rng()
    # Whole bursts fail: which of a burst's atoms a failed write has reached is not known.
    failing = {block for block in range(ATOMS // BURST) if errors and rng.random() < 0.2}
    bench = Bench(dut, rng)
    bench.scoreboard.failing = lambda address: address // BURST in failing
    memory = HostileAxiMemory(
        dut,
        AxiSignals(dut, "m_axi_"),
        clock=dut.m_axi_aclk,
        rng=rng,
        shape=HostileShape(slowest=rng.choice((4, 60, 300))),
        fails=lambda address: (address - BASE) // 32 // BURST in failing,
    )
    await bench.start(period)
    cocotb.start_soon(memory.run())
    shapes = _shapes(rng)
    for _ in range(4):
        shape = next(shapes)
        await bench.traffic(bench.requests(250, shape), shape)
        if rng.random() < 0.5:
            await bench.step(Request(address=rng.randrange(ATOMS), tag=bench.free(Source.MOVER)))
            await bench.restart()
    for address, data in bench.scoreboard.memory.items():
        assert memory.memory.get(BASE + 32 * address, 0) == data, f"atom {address:#x}"
    statuses = {status for status in MemoryStatus if bench.scoreboard.statuses[status]}
    assert (MemoryStatus.BUS_ERROR in statuses) == errors
    assert {MemoryStatus.OK, MemoryStatus.OUT_OF_RANGE} <= statuses


@cocotb.test()
async def bursts(dut: Any) -> None:
    """Consecutive atoms become bursts of 16; a walk's read is a transaction of its own and passes them."""
    rng = _rng()
    bench = Bench(dut, rng)
    memory = HostileAxiMemory(
        dut,
        AxiSignals(dut, "m_axi_"),
        clock=dut.m_axi_aclk,
        rng=rng,
        shape=HostileShape(address_stall=0, data_stall=0, read_gap=0, reply_gap=0, slowest=1),
    )
    await bench.start(1_000)
    cocotb.start_soon(memory.run())
    bursts = memory.protocol.bursts
    for write, channel in ((True, "aw"), (False, "ar")):
        for address in range(3, 3 + 13 + 4 * BURST):
            tag = bench.free(Source.MOVER)
            while not await bench.step(Request(address=address, tag=tag, write=write, data=address)):
                pass
        await bench.drain()
        assert {key: count for key, count in bursts.items() if key[0] == channel} == {
            (channel, 13): 1,
            (channel, BURST): 4,
        }
    bursts.clear()
    # A burst is being collected; the walk's read is answered before it is put out.
    await bench.step(Request(address=40, tag=tag_of(Source.MOVER, 0)))
    await bench.step(Request(address=99, tag=tag_of(Source.NEAR_WALKER, 5), priority=True))
    for _ in range(6):
        await bench.step()
    assert bursts == {("ar", 1): 1}
    await bench.drain()
    assert bursts == {("ar", 1): 2}
    walk, bulk = (latency for _, latency in sorted(bench.scoreboard.latencies[-2:], key=lambda x: x[1]))
    assert bulk - walk >= 5


@cocotb.test()
async def width_converter(dut: Any) -> None:
    """A 256-bit manager of cocotbext-axi on its RAM of 128 bits: reads and writes of many sizes."""
    rng = _rng()
    for name in (dut._name, "cocotb.axi"):
        logging.getLogger(f"cocotb.{name}").setLevel(logging.WARNING)
    bench = Bench(dut, rng)
    clock, reset = dut.m_axi_aclk, dut.m_axi_aresetn
    manager = AxiMaster(
        AxiBus.from_prefix(dut, "s_axi"), clock, reset, reset_active_level=False, max_burst_len=BURST
    )
    ram = AxiRam(
        AxiBus.from_prefix(dut, "m_axi_narrow"), clock, reset, reset_active_level=False, size=1 << 14
    )
    for channel in (
        *(ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel),
        *(ram.read_if.ar_channel, ram.read_if.r_channel),
        *(manager.write_if.b_channel, manager.read_if.r_channel),
    ):
        share = rng.choice((0.0, 0.3, 0.7))
        channel.set_pause_generator(rng.random() < share for _ in itertools.repeat(None))
    protocol = AxiProtocol(AxiSignals(dut, "m_axi_narrow_"), data_bytes=16, longest=2 * BURST)
    await bench.start(1_000)
    cocotb.start_soon(_watch(protocol, dut))
    content = bytearray(1 << 14)
    for _ in range(60):
        beats = rng.choice((1, 1, 2, BURST, 40))
        address = 32 * rng.randrange((1 << 14) // 32 - beats)
        if rng.random() < 0.5:
            # Whole beats, but for some bytes at the end: byte enables.
            data = rng.randbytes(32 * beats - rng.choice((0, 5, 17)))
            await manager.write(address, data)
            content[address : address + len(data)] = data
        else:
            found = await manager.read(address, 32 * beats)
            assert found.data == bytes(content[address : address + 32 * beats])
    assert ram.read(0, 1 << 14) == bytes(content)
    assert protocol.bursts["ar", 2 * BURST]
    assert protocol.bursts["aw", 2]
