"""The cache between random requesters and a mocked memory: coherence, order, latency, counts, golden model.

The mock serves each port in any order but that of one atom, applies a request some time after it took it, and
answers some time later. The two ports are not ordered among each other, as the two channels of the link.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import pytest

from hdl.config import CacheConfig, DesignConfig, MemoryConfig
from hdl.fabric.cache import Cache
from hdl.layouts import MemoryStatus, Source
from sim.model.cache import CacheModel
from tests.hdl.streams import bits, check_stream_rule, run

SETS_LOG2, WAYS = 1, 2
CONFIG = DesignConfig(
    memory=MemoryConfig(rows=2, columns=8), cache=CacheConfig(body="array", sets_log2=SETS_LOG2, ways=WAYS)
)
ATOMS = CONFIG.memory.atoms
FULL = 0xFFFFFFFF
PORTS = ("walk", "bulk")


def wide(mask: int) -> int:
    return sum(0xFF << 8 * byte for byte in range(32) if mask >> byte & 1)


class Memory:
    """The mocked memory: contents, and what came to it."""

    def __init__(self, rng: random.Random, *, slow: int, stall: float, fail: float = 0.0) -> None:
        self.rng, self.slow, self.stall, self.fail = rng, slow, stall, fail
        self.contents: dict[int, int] = defaultdict(int)
        self.reads = 0
        self.queues: dict[str, list[dict]] = {name: [] for name in PORTS}
        self.answers: dict[str, list[dict]] = {name: [] for name in PORTS}

    def apply(self, request: dict) -> dict:
        address = request["address"]
        status, data = MemoryStatus.OK, 0
        if address >= ATOMS:
            status = MemoryStatus.OUT_OF_RANGE
        elif self.rng.random() < self.fail:
            status = MemoryStatus.POISONED
        elif not request["write"]:
            data = self.contents[address]
        else:
            mask = wide(request["mask"])
            word = (request["mask"] & -request["mask"]).bit_length() // 4
            if request["conditional"] and self.contents[address] >> 32 * word & FULL != request["expected"]:
                status = MemoryStatus.MISMATCH
            else:
                self.contents[address] = self.contents[address] & ~mask | request["data"] & mask
        return {"tag": request["tag"], "write": request["write"], "data": data, "status": status}

    def step(self) -> None:
        for name in PORTS:
            queue = self.queues[name]
            if queue and self.rng.random() < 1 / (1 + self.slow):
                chosen = self.rng.randrange(len(queue))
                # The oldest of that atom goes first.
                chosen = next(i for i, one in enumerate(queue) if one["address"] == queue[chosen]["address"])
                self.answers[name].append(self.apply(queue.pop(chosen)))


def memory_side(dut: Cache, memory: Memory):
    async def port(name, ctx):
        sink, source = getattr(dut, f"memory_{name}").request, getattr(dut, f"memory_{name}").response
        offered = False
        while True:
            ready = memory.rng.random() >= memory.stall
            ctx.set(sink.ready, ready)
            if not offered and memory.answers[name] and memory.rng.random() >= memory.stall:
                ctx.set(source.payload, memory.answers[name].pop(0))
                offered = True
            ctx.set(source.valid, offered)
            _, _, valid, payload, taken = await ctx.tick().sample(sink.valid, sink.payload, source.ready)
            if valid and ready:
                memory.reads += not payload.write
                memory.queues[name].append(
                    {key: getattr(payload, key) for key in ("address", "data", "mask", "expected")}
                    | {"write": int(payload.write), "conditional": int(payload.conditional)}
                    | {"tag": {"source": payload.tag.source, "context": payload.tag.context}}
                )
            offered = offered and not taken
            if name == "bulk":
                memory.step()

    return [partial(port, name) for name in PORTS]


class Requester:
    """One port: random requests, at most one read a tag, and the answers checked.

    `mine` are addresses that nobody else writes: their content is known at every request.
    """

    def __init__(
        self, dut: Cache, name: str, rng: random.Random, mine: range, all_addresses: Sequence[int]
    ) -> None:
        self.port, self.name, self.rng = getattr(dut, name), name, rng
        self.mine, self.all = mine, all_addresses
        self.source = Source.FAR_WALKER if name == "walk" else Source.MOVER
        self.known: dict[int, int] = defaultdict(int)
        self.free = list(range(8))
        self.open = 0
        self.expected: dict[int, int | None] = {}
        self.read: dict[int, tuple[int, int]] = {}
        self.addresses: dict[int, int] = {}
        self.stall = 0.3
        self.exact = True
        self.theirs = range(0)

    def choose(self) -> dict:
        rng = self.rng
        address = rng.choice(self.mine if rng.random() < 0.5 else self.all)
        write = address not in self.theirs and rng.random() < 0.4
        mask = FULL if rng.random() < 0.4 else 0xF << 4 * rng.randrange(8)
        conditional = write and mask != FULL and rng.random() < 0.4
        word = (mask & -mask).bit_length() // 4
        expected = self.known[address] >> 32 * word & FULL if rng.random() < 0.5 else rng.getrandbits(32)
        return {
            "address": address,
            "write": int(write),
            "conditional": int(conditional),
            "expected": expected,
            "data": rng.getrandbits(256),
            "mask": mask if write else 0,
        }

    async def send(self, ctx, request: dict) -> None:
        while not self.free:
            await ctx.tick()
        context = self.free.pop(0)
        stream = self.port.request
        ctx.set(stream.payload, request | {"tag": {"source": self.source, "context": context}, "priority": 0})
        ctx.set(stream.valid, 1)
        while not (await ctx.tick().sample(stream.ready))[-1]:
            pass
        ctx.set(stream.valid, 0)
        self.open += 1
        address = request["address"]
        self.addresses[context] = address
        self.expected[context] = None
        if request["write"]:
            mask = wide(request["mask"])
            word = (request["mask"] & -request["mask"]).bit_length() // 4
            fits = self.known[address] >> 32 * word & FULL == request["expected"]
            if address < ATOMS and (fits or not request["conditional"]):
                self.known[address] = self.known[address] & ~mask | request["data"] & mask
        elif self.exact and address in self.mine:
            self.expected[context] = self.known[address]

    async def take(self, ctx) -> None:
        stream = self.port.response
        while True:
            ready = self.rng.random() >= self.stall
            ctx.set(stream.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
            if not (valid and ready):
                continue
            context = payload.tag.context
            assert payload.tag.source == self.source and context in self.expected
            expected = self.expected.pop(context)
            address = self.addresses[context]
            if address >= ATOMS:
                assert payload.status == MemoryStatus.OUT_OF_RANGE
            elif expected is not None and payload.status == MemoryStatus.OK:
                assert payload.data == expected, f"{self.name}: atom {address} has an old content"
            if not payload.write:
                self.read[address] = (bits(payload.data), bits(payload.status))
            self.open -= 1
            self.free.append(context)


class Golden:
    """Follows the requests and responses at the cache's ports, cycle by cycle, with the golden model."""

    def __init__(self, ways: int) -> None:
        self.model = CacheModel(sets_log2=SETS_LOG2, ways=ways)

    def watch(self, dut: Cache):
        async def watcher(ctx):
            writing = dict.fromkeys(PORTS, 0)
            asked: dict[int, int] = {}
            fill, clear = None, False
            streams = [getattr(dut, name).request for name in PORTS]
            answers = [getattr(dut, name).response for name in PORTS]
            response = dut.memory_walk.response
            signals = [
                s for one in (*streams, *answers, response) for s in (one.valid, one.ready, one.payload)
            ]
            while True:
                _, _, *now = await ctx.tick().sample(*signals)
                seen = [
                    payload if valid and ready else None
                    for valid, ready, payload in zip(now[::3], now[1::3], now[2::3], strict=True)
                ]
                if clear:
                    self.model.clear()
                    fill = None
                elif fill is not None and seen[0] is None and seen[1] is None:
                    self.model.fill(fill[0], owner=fill[1])
                    fill = None
                clear = False
                changes = dict.fromkeys(PORTS, 0)
                for name, other, request in zip(PORTS, reversed(PORTS), seen[:2], strict=True):
                    if request is None:
                        continue
                    address = int(request.address)
                    assert fill is None or fill[0] != address, f"atom {address} looked up before filled"
                    if request.write:
                        changes[name] += 1
                        if request.conditional or writing[other] or address >= ATOMS:
                            self.model.drop(address)
                        else:
                            self.model.write(address, whole=int(request.mask) == FULL)
                        continue
                    owner = int(request.tag.context)
                    keep = name == "walk" and not writing[other]
                    self.model.read(address, owner=owner if keep else None)
                    if name == "walk":
                        asked[owner] = address
                for name, answer in zip(PORTS, seen[2:4], strict=True):
                    if answer is not None and answer.write:
                        changes[name] -= 1
                        clear = clear or answer.status in (MemoryStatus.POISONED, MemoryStatus.OUT_OF_RANGE)
                for name in PORTS:
                    writing[name] += changes[name]
                answer = seen[4]
                if (
                    self.model.ways
                    and answer is not None
                    and not answer.write
                    and answer.status == MemoryStatus.OK
                ):
                    fill = (asked[int(answer.tag.context)], int(answer.tag.context))

        return watcher


def soak(seed: int, *, slow: int, stall: float, latency: int, fail: float = 0.0, ways: int = WAYS) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    dut = Cache(CONFIG)
    memory = Memory(rng, slow=slow, stall=stall, fail=fail)
    addresses = [*range(8), *([] if fail else [ATOMS + 1])]
    requesters = [
        Requester(dut, "walk", rng, range(2), addresses),
        Requester(dut, "bulk", rng, range(2, 4), addresses),
    ]
    for requester, other in zip(requesters, reversed(requesters), strict=True):
        requester.theirs = other.mine
        # What a write that fails leaves behind is not known before all is quiet.
        requester.exact = not fail
    golden = Golden(ways)
    idle = []

    async def bench(ctx):
        ctx.set(dut.sets_log2, SETS_LOG2)
        ctx.set(dut.ways, ways)
        ctx.set(dut.hit_latency, latency)
        ctx.set(dut.counting, 1)
        for _ in range(6):
            sending = [25, 25]
            for requester in requesters:
                requester.stall = rng.choice((0.0, 0.3, 0.7))
            while any(sending):
                index = rng.randrange(2)
                if sending[index]:
                    sending[index] -= 1
                    jobs[index].append(requesters[index].choose())
                if rng.random() < 0.4:
                    await ctx.tick()
            while any(jobs[0] + jobs[1]) or requesters[0].open or requesters[1].open or not ctx.get(dut.idle):
                await ctx.tick()
            # Quiet: both ports must see what memory holds.
            for index, requester in enumerate(requesters):
                for address in range(8):
                    jobs[index].append({"address": address, "write": 0, "mask": 0})
                while jobs[index] or requester.open:
                    await ctx.tick()
                for address in range(8):
                    data, status = requester.read[address]
                    if status == MemoryStatus.OK.value:
                        assert data == memory.contents[address], f"{requester.name}: atom {address}"
        idle.append(ctx.get(dut.idle))

    jobs: list[list[dict]] = [[], []]

    async def sender(index, ctx):
        while True:
            if not jobs[index]:
                await ctx.tick()
                continue
            requesters[index].open += 1  # so that nobody takes the port for quiet
            request = jobs[index].pop(0)
            await requesters[index].send(ctx, request)
            requesters[index].open -= 1
            for _ in range(rng.choice((0, 0, 1, 5))):
                await ctx.tick()

    counts = []

    async def counter(ctx):
        while True:
            _, _, hits, misses = await ctx.tick().sample(dut.hits, dut.misses)
            counts[:] = [hits, misses]

    run(
        dut,
        bench,
        processes=[
            *memory_side(dut, memory),
            *(partial(sender, index) for index in range(2)),
            *(requester.take for requester in requesters),
            golden.watch(dut),
            counter,
            *(
                check_stream_rule(stream, name)
                for name, stream in (
                    ("walk response", dut.walk.response),
                    ("bulk response", dut.bulk.response),
                    ("walk request", dut.memory_walk.request),
                    ("bulk request", dut.memory_bulk.request),
                )
            ),
        ],
    )
    assert idle == [1]
    assert counts[1] == memory.reads
    assert counts == [golden.model.hits, golden.model.misses]
    assert counts[0] > 20 or not ways


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("slow", "stall", "latency"), [(0, 0.0, 0), (4, 0.4, 3), (12, 0.2, 20)])
def test_random_traffic_is_coherent_and_hits_as_the_golden_model(seed, slow, stall, latency) -> None:
    soak(seed, slow=slow, stall=stall, latency=latency)


@pytest.mark.parametrize("seed", range(2))
def test_after_a_failed_write_nothing_old_is_seen(seed) -> None:
    soak(seed, slow=3, stall=0.2, latency=2, fail=0.1)


def test_without_ways_every_read_goes_on() -> None:
    soak(1, slow=3, stall=0.2, latency=2, ways=0)


def _isolated(ways: int, latency: int, respond: int) -> tuple[int, int]:
    """Cycles of two reads of one atom, one after the other, the memory answering after `respond` cycles."""
    dut = Cache(CONFIG)
    found = []

    async def bench(ctx):
        ctx.set(dut.sets_log2, SETS_LOG2)
        ctx.set(dut.ways, ways)
        ctx.set(dut.hit_latency, latency)
        ctx.set(dut.walk.response.ready, 1)
        ctx.set(dut.memory_walk.request.ready, 1)
        request, response = dut.walk.request, dut.memory_walk.response
        for _ in range(2):
            ctx.set(request.payload, {"address": 5, "tag": {"source": Source.FAR_WALKER, "context": 1}})
            ctx.set(request.valid, 1)
            cycles, due = 0, None
            while True:
                _, _, answered, out = await ctx.tick().sample(
                    dut.walk.response.valid, dut.memory_walk.request.valid
                )
                ctx.set(request.valid, 0)
                ctx.set(response.valid, 0)
                if answered:
                    break
                if out:
                    due = cycles + respond
                cycles += 1
                if cycles == due:
                    tag = {"source": Source.FAR_WALKER, "context": 1}
                    ctx.set(response.payload, {"tag": tag, "status": MemoryStatus.OK})
                    ctx.set(response.valid, 1)
            found.append(cycles)
            await ctx.tick().repeat(3)  # the line is filled

    run(dut, bench)
    return found[0], found[1]


@pytest.mark.parametrize("latency", [0, 7])
def test_an_isolated_hit_and_miss_take_what_the_constants_say(latency: int) -> None:
    miss, hit = _isolated(WAYS, latency, respond=9)
    assert (miss, hit) == (Cache.miss_cycles + 9, Cache.hit_cycles + latency)
    assert _isolated(0, latency, respond=9) == (Cache.miss_cycles + 9,) * 2
