"""cocotb tests of the memory subsystem: random traffic under a scoreboard, policies, and bandwidth."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly

from hdl.layouts import RefreshMode, RowClass, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.scheduler import turn_tail
from sim.bench.backdoor import StorageBackdoor
from sim.bench.memory_port import Request, Response, Scoreboard, TrafficShape, random_request, tag_of

from .subsystem import CONFIG

TIMING = CONFIG.memory.timing
MAP = AddressMap(CONFIG.memory)
ORGANISATION = CONFIG.memory.organisation
TAGS = [
    tag_of(source, context) for source in Source if source is not Source.CONTROLLER for context in range(64)
]


@dataclass(frozen=True)
class Cycle:
    """What happened at the port in one cycle."""

    accepted: bool
    response: Response | None
    restarted: bool


class Bench:
    """Clock, reset, watchdog and one cycle at a time at the port; every response goes to the scoreboard."""

    def __init__(self, dut: Any, *, watchdog_cycles: int = 1_000_000) -> None:
        self.dut = dut
        self.watchdog_cycles = watchdog_cycles
        self.cycle = 0
        self.scoreboard = Scoreboard(atoms=MAP.atoms)
        self.watchers: list[Callable[[], None]] = []
        self.violations: list[int] = []
        self._offered: int | None = None

    async def start(self, *, refresh: RefreshMode = RefreshMode.NONE) -> None:
        dut = self.dut
        dut.rst.value = 1
        dut.refresh.value = refresh.value
        dut.restart.value = 0
        dut.memory__request__valid.value = 0
        dut.memory__response__ready.value = 0
        cocotb.start_soon(Clock(dut.clk, round(TIMING.clock_ns * 1000), "ps").start())
        await ClockCycles(dut.clk, 4)
        await FallingEdge(dut.clk)
        dut.rst.value = 0
        # The design is still in reset in the cycle after.
        await FallingEdge(dut.clk)
        self.backdoor = StorageBackdoor(CONFIG)

    async def step(self, request: Request | None = None, *, ready: bool = True) -> Cycle:
        """One cycle: offers `request`, takes a response if `ready`."""
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
        response = Response.unpack(bits) if ready and bits is not None else None
        if dut.violation.value:
            self.violations.append(int(dut.violation_rule.value))
        restarted = bool(dut.restarted.value)
        for watch in self.watchers:
            watch()
        # The response first: a tag is free again in the cycle of its response, not before.
        if response is not None:
            self.scoreboard.respond(response, self.cycle)
        if accepted:
            assert request is not None
            self.scoreboard.accept(request, self.cycle)
        await FallingEdge(dut.clk)
        self.cycle += 1
        assert self.cycle < self.watchdog_cycles, "watchdog: the testbench still runs"
        assert not self.violations, f"cycle {self.cycle}: rule {self.violations[0]} is broken"
        return Cycle(accepted, response, restarted)

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await self.step()

    async def drain(self) -> None:
        """Takes what is outstanding."""
        while self.scoreboard.outstanding:
            await self.step()

    async def send(self, requests: Iterable[Request]) -> None:
        """Offers requests back to back, as fast as the port takes them and tags come free."""
        for request in requests:
            while self.scoreboard.uses(request.tag):
                await self.step()
            while not (await self.step(request)).accepted:
                pass

    async def alone(self, request: Request) -> int:
        """Sends one request into the silent port; its latency."""
        await self.send([request])
        await self.drain()
        return self.scoreboard.latencies[-1][1]

    async def restart(self) -> None:
        """Takes the subsystem through a restart; returns in the first cycle after it."""
        self.dut.restart.value = 1
        while not (await self.step()).restarted:
            pass
        self.dut.restart.value = 0

    def check_memory(self) -> None:
        """The storage holds what the scoreboard says, once every write is on the bus."""
        for address, atom in self.scoreboard.memory.items():
            words = self.backdoor.fetch(address, 1)[0]
            stored = int.from_bytes(words.tobytes(), "little")
            assert stored == atom, f"atom {address:#x} holds {stored:#x}, expected {atom:#x}"


def _seeded() -> random.Random:
    seed = int(os.environ["COCOTB_RANDOM_SEED"])
    cocotb.log.info("seed %d", seed)
    return random.Random(seed)


def _at(pseudo_channel: int, bank: int, row: int, column: int = 0) -> int:
    return MAP.encode(Place(pseudo_channel, bank, row, column))


def _hot_addresses(rng: random.Random) -> list[int]:
    """A few banks, rows and columns, so that requests meet: same atom, same row, same bank."""
    banks = [
        (rng.randrange(ORGANISATION.pseudo_channels), rng.randrange(ORGANISATION.banks))
        for _ in range(rng.choice((1, 3, 10, 32)))
    ]
    return [
        _at(*rng.choice(banks), rng.randrange(ORGANISATION.rows), rng.randrange(ORGANISATION.columns))
        for _ in range(rng.choice((3, 20, 200)))
    ]


def _tags() -> Iterator[int]:
    while True:
        yield from TAGS


async def _traffic(
    bench: Bench, rng: random.Random, shape: TrafficShape, addresses: list[int], count: int
) -> None:
    """`count` random requests with idle cycles, and responses taken with stalls."""
    tags = _tags()
    request: Request | None = None
    sent = 0
    while sent < count or bench.scoreboard.outstanding:
        if request is None and sent < count and rng.random() >= shape.idle:
            tag = next(tags)
            if not bench.scoreboard.uses(tag):
                request = random_request(rng, shape, bench.scoreboard, addresses, tag)
        if (await bench.step(request, ready=rng.random() >= shape.stall)).accepted:
            request = None
            sent += 1


@cocotb.test()
async def soak(dut: Any) -> None:
    """Random mixes, idle and back-pressure: data, same-atom order, statuses, every timing rule."""
    rng = _seeded()
    bench = Bench(dut)
    await bench.start(refresh=RefreshMode.ALL_BANK)
    total = int(os.environ.get("CLEW_SOAK_REQUESTS", "5000"))
    while (done := len(bench.scoreboard.latencies)) < total:
        shape = TrafficShape(
            write=rng.choice((0, 0.1, 0.4, 0.9)),
            conditional=rng.choice((0, 0.02, 0.1)),
            out_of_range=rng.choice((0, 0.05)),
            priority=rng.choice((0, 0.5, 1)),
            idle=rng.choice((0, 0, 0.3, 0.9)),
            stall=rng.choice((0, 0, 0.3, 0.9)),
        )
        await _traffic(bench, rng, shape, _hot_addresses(rng), rng.randint(50, 500))
        if rng.random() < 0.3:
            await bench.restart()
    await bench.restart()
    bench.check_memory()
    cocotb.log.info("%d requests in %d cycles", done, bench.cycle)


@cocotb.test()
async def latencies(dut: Any) -> None:
    """An isolated read takes the physical time of its row state and two cycles more."""
    bench = Bench(dut)
    await bench.start()
    classes: list[tuple[RowClass, int]] = []

    def watch() -> None:
        found = RowClass(int(dut.access__row_class.value))
        if found is not RowClass.NONE:
            classes.append((found, int(dut.access__tag.value)))

    bench.watchers.append(watch)
    pipeline = 2
    for bank in (0, 7, 15):
        assert await bench.alone(Request(address=_at(1, bank, 5), tag=1)) == TIMING.row_closed + pipeline
        assert await bench.alone(Request(address=_at(1, bank, 5, 9), tag=2)) == TIMING.row_hit + pipeline
        await bench.idle(TIMING["tRAS"])
        assert await bench.alone(Request(address=_at(1, bank, 6), tag=3)) == TIMING.row_conflict + pipeline
    assert classes == [(RowClass.CLOSED, 1), (RowClass.HIT, 2), (RowClass.CONFLICT, 3)] * 3
    # Dependent reads of different rows of one bank: the row cycle bounds their distance.
    start = bench.cycle
    for index in range(4):
        await bench.alone(Request(address=_at(1, 15, 20 + index), tag=4))
    assert (bench.cycle - start) / 4 <= TIMING.same_bank + pipeline
    await bench.alone(Request(address=MAP.atoms, tag=5))
    assert bench.scoreboard.latencies[-1][1] == 1


async def _refreshes(dut: Any, mode: RefreshMode, op: RowOp) -> None:
    """Under idle, bulk, walks and idle again: every bank's refresh in time, and never two orders of it."""
    rng = _seeded()
    bench = Bench(dut)
    await bench.start(refresh=mode)
    await bench.restart()
    start = bench.cycle
    banks = ORGANISATION.banks
    refreshed: dict[tuple[int, int], list[int]] = {
        (channel, bank): [] for channel in range(ORGANISATION.pseudo_channels) for bank in range(banks)
    }
    order: list[tuple[int, int]] = []

    def watch() -> None:
        if int(dut.row__op.value) in (RowOp.REFRESH_ALL.value, RowOp.REFRESH_BANK.value):
            assert int(dut.row__op.value) == op.value
            channel, bank = int(dut.row__pseudo_channel.value), int(dut.row__bank.value)
            order.append((channel, bank))
            for each in (bank,) if op is RowOp.REFRESH_BANK else range(banks):
                refreshed[channel, each].append(bench.cycle - start)

    bench.watchers.append(watch)
    interval = TIMING["tREFI"]

    async def traffic(until: int, priority: float) -> None:
        shape = TrafficShape(out_of_range=0, idle=0, stall=0, priority=priority)
        while bench.cycle - start < until * interval:
            addresses = [rng.randrange(MAP.atoms) for _ in range(500)]
            await _traffic(bench, rng, shape, addresses, 500)

    def require(postponed: int) -> None:
        now = bench.cycle - start
        for cycles in refreshed.values():
            for number, cycle in enumerate([*cycles, now], 1):
                assert cycle <= (number + postponed) * interval

    await bench.idle(2 * interval)
    require(0)
    await traffic(5, priority=0)
    require(op is RowOp.REFRESH_BANK)  # Up to a round is owed while every bank is in use.
    await traffic(16, priority=1)
    owed = (bench.cycle - start) // interval - min(map(len, refreshed.values()))
    assert CONFIG.controller.refresh_postpone - 1 <= owed
    require(CONFIG.controller.refresh_postpone)
    await bench.idle(interval)
    due = (bench.cycle - start) / interval
    assert all(abs(len(cycles) - due) <= 1 for cycles in refreshed.values())
    if op is RowOp.REFRESH_BANK:
        for channel in range(ORGANISATION.pseudo_channels):
            own = [bank for where, bank in order if where == channel]
            rounds = [own[at : at + banks] for at in range(0, len(own), banks)]
            assert all(len(set(one)) == len(one) for one in rounds), "a bank twice in a round"
    else:
        assert all(a[0] == 0 and b[0] == 1 for a, b in zip(order[::2], order[1::2], strict=True))
    # Disabled, it stops.
    dut.refresh.value = RefreshMode.NONE.value
    await bench.restart()
    count = len(order)
    await bench.idle(2 * interval)
    assert len(order) == count


@cocotb.test()
async def refresh_all_bank(dut: Any) -> None:
    """Both pseudo channels at once, once in tREFI, postponed only for walks."""
    await _refreshes(dut, RefreshMode.ALL_BANK, RowOp.REFRESH_ALL)


@cocotb.test()
async def refresh_per_bank(dut: Any) -> None:
    """Every bank once a round, a round in tREFI, postponed only for walks."""
    await _refreshes(dut, RefreshMode.PER_BANK, RowOp.REFRESH_BANK)


@cocotb.test()
async def restart(dut: Any) -> None:
    """After a restart the same requests take the same cycles, whatever was before."""
    rng = _seeded()
    bench = Bench(dut)
    await bench.start(refresh=RefreshMode.ALL_BANK)
    addresses = [rng.randrange(MAP.atoms) for _ in range(60)]
    logs = []
    for _ in range(3):
        await _traffic(bench, rng, TrafficShape(), _hot_addresses(rng), rng.randint(30, 200))
        tags = _tags()
        left = [Request(address=_at(0, 3, rng.randrange(50)), tag=next(tags)) for _ in range(6)]
        await bench.send(left)
        await bench.restart()
        assert not bench.scoreboard.outstanding, "restarted with requests unanswered"
        bench.check_memory()
        start, log = bench.cycle, []

        def watch(log: list[tuple[int, ...]] = log, start: int = start) -> None:
            row, column = int(dut.row__op.value), int(dut.column__op.value)
            if row or column:
                log.append((bench.cycle - start, row, column, int(dut.row__bank.value)))

        bench.watchers.append(watch)
        tags = _tags()
        for n in range(10):
            await bench.send(
                Request(address=address, tag=next(tags), write=k % 5 == n % 5, data=k)
                for k, address in enumerate(addresses)
            )
        await bench.drain()
        log.append((bench.cycle - start,))
        bench.watchers.remove(watch)
        logs.append(log)
    for log in logs[1:]:
        for here, there in zip(logs[0], log, strict=True):
            assert here == there, "the same requests took another course after a restart"
    # While `restart` is high nothing is accepted.
    dut.restart.value = 1
    quiet = 0
    while quiet < 100:
        cycle = await bench.step(Request(address=0, tag=0))
        assert not cycle.accepted
        assert cycle.restarted or not quiet, "restarted fell by itself"
        quiet += cycle.restarted
    dut.restart.value = 0
    assert (await bench.step(Request(address=0, tag=0))).accepted


@cocotb.test()
async def write_drain(dut: Any) -> None:
    """Writes wait for the mark or for silence, and reads get through a drain soon."""
    bench = Bench(dut)
    await bench.start()
    writes: list[int] = []

    def watch() -> None:
        if dut.access__write.value and int(dut.access__row_class.value):
            writes.append(bench.cycle)

    bench.watchers.append(watch)
    limits = CONFIG.controller
    tags = _tags()
    written = iter(range(limits.drain_high))

    def write() -> Request:
        # Three rows a bank: a drain also finishes what its rows are open for already.
        n = next(written)
        return Request(address=_at(0, 4 + n % 8, 3 + n // 8, n), tag=next(tags), write=True, data=n + 1)

    def reads(count: int) -> list[Request]:
        # Row hits of all bank groups of the pseudo channel that is written to.
        return [Request(address=_at(0, n % 4, 0, n % 32), tag=next(tags)) for n in range(count)]

    # Reads keep coming, so writes below the mark stay (until they are old).
    for request in reads(limits.drain_high - 1):
        await bench.send([write(), request])
    await bench.send(reads(40))
    assert not writes
    # The mark is reached: a drain starts and goes down to its low mark, reads or not.
    await bench.send([write()])
    while len(writes) < limits.drain_high - limits.drain_low:
        await bench.send(reads(4))
    await bench.send(reads(16))
    assert bench.cycle < limits.age_cap // 2 + limits.age_cap // 4, "the writes are old: the test is too slow"
    assert len(writes) < limits.drain_high
    waited = [latency for request, latency in bench.scoreboard.latencies if not request.write]
    # A turn with its tail, the way there and back, and the reads before it in the queues of their four banks.
    turn = limits.drain_burst + turn_tail(CONFIG.memory)
    queued = 4 * limits.bank_queue + limits.overflow
    assert max(waited) <= turn + 2 * TIMING.same_bank + queued * TIMING["tCCDS"]
    # Silence: the rest goes out.
    await bench.drain()
    await bench.idle(limits.drain_idle + limits.write_buffer * TIMING.same_bank)
    assert len(writes) == limits.drain_high
    bench.check_memory()


@cocotb.test()
async def response_back_pressure(dut: Any) -> None:
    """With no response taken, reads stop at the slots; nothing is lost when they are taken again."""
    bench = Bench(dut)
    await bench.start()
    issued = 0

    def watch() -> None:
        nonlocal issued
        issued += bool(int(dut.access__row_class.value))

    bench.watchers.append(watch)
    requests = [Request(address=address, tag=tag) for address, tag in enumerate(TAGS[:100])]
    offered = 0
    for _ in range(1000):
        request = requests[offered] if offered < len(requests) else None
        offered += (await bench.step(request, ready=False)).accepted
    assert issued == CONFIG.controller.response_slots
    await bench.send(requests[offered:])
    await bench.drain()
    assert issued == len(requests)


@cocotb.test()
async def row_hit_cap(dut: Any) -> None:
    """At most `row_hit_cap` row hits pass an older request of their bank."""
    bench = Bench(dut)
    await bench.start()
    served: list[int] = []

    def watch() -> None:
        if int(dut.access__row_class.value):
            served.append(int(dut.access__tag.value))

    bench.watchers.append(watch)
    tags = _tags()
    cap = CONFIG.controller.row_hit_cap
    victim = tag_of(Source.HOST, 63)

    def hits(count: int) -> list[Request]:
        return [Request(address=_at(0, 0, 1, n % 32), tag=next(tags)) for n in range(count)]

    before = 4
    await bench.send(hits(before))
    await bench.send([Request(address=_at(0, 0, 2), tag=victim)])
    begin = len(served)
    await bench.send(hits(4 * cap))
    await bench.drain()
    passed = served[begin:].index(victim)
    # The hits that were queued before the victim do not count.
    assert cap <= passed <= cap + before


@cocotb.test()
async def walk_passes_bulk(dut: Any) -> None:
    """A walk's read does not wait behind the bulk of its bank, but for a write of its atom."""
    bench = Bench(dut)
    await bench.start()
    limits = CONFIG.controller
    tags = (tag for tag in _tags() if tag & 7 != Source.HOST.value)
    walk = tag_of(Source.HOST, 0)
    served: list[int] = []

    def watch() -> None:
        if int(dut.access__row_class.value):
            served.append(int(dut.access__tag.value))

    bench.watchers.append(watch)
    bulk = limits.bank_queue + limits.overflow // 2
    for write in (False, True):
        # Every other row, so that no bulk is a row hit of the walk's.
        await bench.send(
            Request(address=_at(0, 5, 2 * n), tag=next(tags), write=write, data=n) for n in range(bulk)
        )
        served.clear()
        await bench.send([Request(address=_at(0, 5, 1), tag=walk, priority=True)])
        await bench.drain()
        await bench.idle(limits.drain_idle + bulk * 2 * TIMING.same_bank)
        # What a row was opened for is finished first.
        assert len(served) >= bulk - 2
        assert served.index(walk) <= 1, served.index(walk)
    # The last of the writes changes the walk's atom: the scoreboard knows what is to be read.
    await bench.send(
        Request(address=_at(0, 5, 2 * n), tag=next(tags), write=True, data=~n & 0xFF) for n in range(bulk)
    )
    served.clear()
    await bench.send([Request(address=_at(0, 5, 2 * (bulk - 1)), tag=walk, priority=True)])
    await bench.drain()
    assert len(served) >= bulk - 2 and served[-1] == walk


@cocotb.test()
async def age_cap(dut: Any) -> None:
    """Bulk reads and buffered writes get their turn under walks that never pause."""
    bench = Bench(dut)
    await bench.start()
    limits = CONFIG.controller
    tags = (tag for tag in _tags() if tag & 7 != Source.HOST.value)
    bulk = [
        Request(address=_at(0, 1, 9), tag=tag_of(Source.HOST, 0)),
        Request(address=_at(0, 2, 9), tag=tag_of(Source.HOST, 1), write=True, data=5),
        Request(address=_at(0, 2, 9), tag=tag_of(Source.HOST, 2)),
    ]

    def walk(n: int) -> Request:
        # Row hits of every bank group: without the cap they are served for ever.
        return Request(address=_at(0, n % 3, 1, n % 32), tag=next(tags), priority=True)

    await bench.send(walk(n) for n in range(30))
    await bench.send(bulk)
    await bench.send(walk(n) for n in range(8 * limits.age_cap // 2))
    await bench.drain()
    waited = {
        request.tag: latency
        for request, latency in bench.scoreboard.latencies
        if request.tag & 7 == Source.HOST.value and not request.write
    }
    bound = limits.age_cap + 2 * limits.drain_burst + 2 * limits.bank_queue * TIMING.same_bank
    assert set(waited) == {tag_of(Source.HOST, 0), tag_of(Source.HOST, 2)}
    assert all(latency <= bound for latency in waited.values()), (waited, bound)


async def _bandwidth(bench: Bench, requests: Iterable[Request], cycles: int) -> float:
    """Bytes per nanosecond over `cycles`, with at most `OUTSTANDING` requests offered and not answered.

    The first `WARM_UP` cycles do not count.
    """
    await bench.restart()
    iterator = iter(requests)
    request = next(iterator)
    done = 0
    for cycle in range(WARM_UP + cycles):
        free = bench.scoreboard.outstanding < OUTSTANDING and not bench.scoreboard.uses(request.tag)
        result = await bench.step(request if free else None)
        if result.accepted:
            request = next(iterator)
        done += result.response is not None and cycle >= WARM_UP
    await bench.drain()
    return done * 32 / (cycles * TIMING.clock_ns)


OUTSTANDING = 64
WARM_UP = 4000


@cocotb.test()
async def bandwidth(dut: Any) -> None:
    """Interleaved streams reach the peak of the column bus, random reads all but that of the row bus."""
    rng = _seeded()
    bench = Bench(dut)
    await bench.start()

    def stream(write: bool) -> Iterator[Request]:
        for address, tag in enumerate(_tags()):
            yield Request(address=address, tag=tag, write=write)

    def scattered(writes: float) -> Iterator[Request]:
        for tag in _tags():
            yield Request(address=rng.randrange(MAP.atoms), tag=tag, write=rng.random() < writes)

    peak = TIMING.peak_bandwidth
    # ACT of every access takes its slots of the row bus; with auto-precharge nothing else does.
    row_peak = 32 / TIMING.clock_ns / TIMING.activate_slots
    cycles = 2 * TIMING["tREFI"]
    for refreshing in (False, True):
        dut.refresh.value = RefreshMode.ALL_BANK.value if refreshing else RefreshMode.NONE.value
        # What the closing and opening of all rows takes besides.
        share = 1 - refreshing * (TIMING["tRFC"] + 2 * TIMING.same_bank) / TIMING["tREFI"]
        figures = {
            "stream read": (await _bandwidth(bench, stream(False), cycles), 0.999 * peak * share),
            "stream write": (await _bandwidth(bench, stream(True), cycles), 0.999 * peak * share),
            "random read": (await _bandwidth(bench, scattered(0), cycles), 0.95 * row_peak * share),
            "random mixed": (await _bandwidth(bench, scattered(1 / 3), cycles), 0.75 * row_peak * share),
        }
        for name, (reached, expected) in figures.items():
            cocotb.log.info("%s, refresh %s: %.2f GB/s", name, "on" if refreshing else "off", reached)
            assert reached >= expected, (name, refreshing, reached, expected)
