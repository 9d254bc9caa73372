"""A testbench of the memory subsystem in Amaranth's simulator: one cycle at a time at the port, and every
detector that looks at single cycles: RTL checker, scoreboard, placement of reads, watchdog."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, RefreshMode, RowClass, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.checker import published_rules
from sim.bench.memory import MemorySubsystem
from sim.bench.memory_port import Request, Response, Scoreboard, TrafficShape, random_request, tag_of
from sim.model.command_checker import COLUMN_BUS, COMMAND_DTYPE, ROW_BUS

__all__ = ["PIPELINE", "Failure", "MemoryBench", "Step", "simulate"]

#: Cycles from a request's acceptance to its response beyond the bound of the table, ECC off.
PIPELINE = 2
_WATCHDOG = 3000
_SEED = 20261130


class Failure(AssertionError):
    """What a detector saw, and in which cycle."""

    def __init__(self, detector: str, what: str, cycle: int) -> None:
        super().__init__(f"cycle {cycle}: {detector}: {what}")
        self.detector, self.what, self.cycle = detector, what, cycle


@dataclass(frozen=True)
class Step:
    """What happened at the port in one cycle."""

    accepted: bool
    response: Response | None
    restarted: bool


class MemoryBench:
    """Drives one `MemorySubsystem`. Every detector raises Failure; a restart comes before what needs refresh.

    `commands` are the commands so far as (cycle, bus, op, pseudo channel, bank, row or column), `accesses`
    the column commands as (cycle, row class, tag).
    """

    def __init__(self, config: DesignConfig, dut: MemorySubsystem, ctx: Any) -> None:
        self.config, self.dut, self.ctx = config, dut, ctx
        self.timing = config.memory.timing
        self.map = AddressMap(config.memory)
        self.organisation = config.memory.organisation
        self.rng = random.Random(_SEED)
        self.scoreboard = Scoreboard(atoms=self.map.atoms)
        self.cycle = 0
        self.commands: list[tuple[int, int, int, int, int, int]] = []
        self.accesses: list[tuple[int, RowClass, int]] = []
        self._rules = published_rules(self.timing)
        self._offered: int | None = None
        self._reads: dict[int, int] = {}
        self._open: dict[tuple[int, int], int] = {}
        row, column = dut.row, dut.column
        self._row = [Value.cast(v) for v in (row.op, row.pseudo_channel, row.bank, row.row)]
        self._column = [
            Value.cast(v)
            for v in (
                *(column.op, column.pseudo_channel, column.bank, column.column),
                *(dut.access.row_class, dut.access.tag),
            )
        ]
        ctx.set(dut.refresh, RefreshMode.NONE)

    def fail(self, detector: str, what: str) -> NoReturn:
        """Ends the simulation with a Failure of this cycle."""
        raise Failure(detector, what, self.cycle)

    @property
    def log(self) -> npt.NDArray[np.void]:
        """The commands so far, as the command checker reads them."""
        return np.array(self.commands, dtype=COMMAND_DTYPE)

    async def step(self, request: Request | None = None, *, ready: bool = True) -> Step:
        """One cycle: offers `request`, takes a response if `ready`."""
        ctx, dut = self.ctx, self.dut
        ctx.set(dut.memory.request.valid, request is not None)
        if request is not None:
            ctx.set(Value.cast(dut.memory.request.payload), request.pack())
        ctx.set(dut.memory.response.ready, ready)
        _, _, row, column, taken, valid, bits, violation, rule, restarted = await ctx.tick().sample(
            Cat(self._row),
            Cat(self._column),
            dut.memory.request.ready,
            dut.memory.response.valid,
            Value.cast(dut.memory.response.payload),
            dut.violation,
            dut.violation_rule,
            dut.restarted,
        )
        if violation:
            self.fail("RTL checker", self._rules[rule])
        if row:
            self._see_row(_unpack(row, self._row))
        if column:
            self._see_column(_unpack(column, self._column))
        if self._offered is not None and (not valid or self._offered != bits):
            self.fail("scoreboard", "a response changed before it was taken")
        self._offered = bits if valid and not ready else None
        accepted = request is not None and bool(taken)
        response = Response.unpack(bits) if ready and valid else None
        try:
            if response is not None:
                self.scoreboard.respond(response, self.cycle)
                self._reads.pop(response.tag, None)
            if request is not None and accepted:
                self.scoreboard.accept(request, self.cycle)
                if not request.write:
                    self._reads[request.tag] = request.address
        except AssertionError as error:
            self.fail("scoreboard", _kind(str(error)))
        self.cycle += 1
        return Step(accepted, response, bool(restarted))

    def _see_row(self, fields: list[int]) -> None:
        op, pseudo_channel, bank, row = fields
        if op == RowOp.NOP.value:
            return
        self.commands.append((self.cycle, ROW_BUS, op, pseudo_channel, bank, row))
        if op == RowOp.ACTIVATE.value:
            self._open[pseudo_channel, bank] = row

    def _see_column(self, fields: list[int]) -> None:
        op, pseudo_channel, bank, column, row_class, tag = fields
        if op == ColumnOp.NOP.value:
            return
        self.commands.append((self.cycle, COLUMN_BUS, op, pseudo_channel, bank, column))
        self.accesses.append((self.cycle, RowClass(row_class), tag))
        if op in (ColumnOp.READ.value, ColumnOp.READ_AUTO.value) and tag in self._reads:
            place = Place(pseudo_channel, bank, self._open.get((pseudo_channel, bank)), column)
            if self._reads[tag] >= self.map.atoms:
                self.fail("placement", "a read beyond the memory is done")
            expected = self.map.decode(self._reads[tag])
            if place != expected:
                self.fail("placement", f"{_different(place, expected)} of a read")

    def latency_of(self, tag: int) -> int:
        """Cycles from acceptance to response of the last answered request with `tag`."""
        return next(cycles for request, cycles in reversed(self.scoreboard.latencies) if request.tag == tag)

    # -- Ways to drive --

    def tags(self) -> Iterator[int]:
        """Tags for ever, each source in turn; the controller's own is left out."""
        while True:
            for context in range(64):
                for source in Source:
                    if source is not Source.CONTROLLER:
                        yield tag_of(source, context)

    def at(self, pseudo_channel: int, bank: int, row: int, column: int = 0) -> int:
        """The address of a place."""
        return self.map.encode(Place(pseudo_channel, bank, row, column))

    async def idle(self, cycles: int) -> None:
        """That many cycles without a request."""
        for _ in range(cycles):
            await self.step()

    async def drain(self) -> None:
        """Takes what is outstanding."""
        start = self.cycle
        while self.scoreboard.outstanding:
            await self.step()
            if self.cycle - start > _WATCHDOG:
                self.fail("watchdog", f"{self.scoreboard.outstanding} requests are never answered")

    async def send(self, requests: Iterable[Request]) -> None:
        """Offers requests back to back."""
        for request in requests:
            start = self.cycle
            while self.scoreboard.uses(request.tag) or not (await self.step(request)).accepted:
                if self.scoreboard.uses(request.tag):
                    await self.step()
                if self.cycle - start > _WATCHDOG:
                    self.fail("watchdog", "a request is never accepted")

    async def restart(self, mode: RefreshMode) -> None:
        """A restart, in which refresh changes to `mode`; returns in the first cycle after it."""
        self.ctx.set(self.dut.restart, 1)
        start = self.cycle
        refused = Request(address=0, tag=next(tag for tag in self.tags() if not self.scoreboard.uses(tag)))
        while not (step := await self.step(refused)).restarted:
            if step.accepted:
                self.fail("restart", "a request is accepted before its end")
            if self.cycle - start > _WATCHDOG:
                self.fail("watchdog", "a restart does not end")
        if self.scoreboard.outstanding:
            self.fail("scoreboard", "restarted with requests unanswered")
        self.ctx.set(self.dut.refresh, mode)
        await self.step()
        self.ctx.set(self.dut.restart, 0)

    async def traffic(self, shape: TrafficShape, addresses: list[int], count: int) -> None:
        """`count` random requests with idle cycles, and responses taken with stalls."""
        tags, rng, sent = self.tags(), self.rng, 0
        request: Request | None = None
        last = self.cycle
        while sent < count or self.scoreboard.outstanding:
            if request is None and sent < count and rng.random() >= shape.idle:
                tag = next(tags)
                if not self.scoreboard.uses(tag):
                    request = random_request(rng, shape, self.scoreboard, addresses, tag)
            step = await self.step(request, ready=rng.random() >= shape.stall)
            if step.accepted:
                request = None
                sent += 1
            if step.accepted or step.response:
                last = self.cycle
            elif self.cycle - last > _WATCHDOG:
                self.fail("watchdog", f"{self.scoreboard.outstanding} requests are never answered")

    def hot(self, *, banks: int, atoms: int) -> list[int]:
        """A few banks, rows and columns, so that requests meet: same atom, same row, same bank."""
        rng, shape = self.rng, self.organisation
        chosen = [(rng.randrange(shape.pseudo_channels), rng.randrange(shape.banks)) for _ in range(banks)]
        return [
            self.at(*rng.choice(chosen), rng.randrange(shape.rows), rng.randrange(shape.columns))
            for _ in range(atoms)
        ]


def _unpack(bits: int, fields: list[Value]) -> list[int]:
    found = []
    for value in fields:
        found.append(bits & (1 << len(value)) - 1)
        bits >>= len(value)
    return found


def _different(found: Place, expected: Place) -> str:
    return ", ".join(
        name for name, here, there in zip(Place._fields, found, expected, strict=True) if here != there
    )


def _kind(message: str) -> str:
    """What a scoreboard complains about, without the data."""
    for text, kind in (
        ("response to nothing", "a response to nothing"),
        ("read as", "wrong data"),
        ("answers", "a response of the wrong kind"),
        ("expected _Expected", "wrong status"),
    ):
        if text in message:
            return kind
    return message[:80]


class _Simulation:
    """A memory subsystem in Amaranth's simulator, which often takes longer to make than to run."""

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        self._dut = MemorySubsystem(config)
        self._simulator = Simulator(self._dut)
        self._simulator.add_clock(1e-9)
        self._simulator.add_testbench(self._testbench)
        self._used = False

    def run(self, body: Callable[[MemoryBench], Awaitable[None]]) -> MemoryBench:
        """What `simulate` does."""
        if self._used:
            self._simulator.reset()
        self._used = True
        self._body = body
        self._simulator.run()
        return self._bench

    async def _testbench(self, ctx: Any) -> None:
        self._bench = MemoryBench(self._config, self._dut, ctx)
        await self._body(self._bench)


#: By what the configuration and its memory's preset hold.
_simulations: dict[str, _Simulation] = {}


def simulate(config: DesignConfig, body: Callable[[MemoryBench], Awaitable[None]]) -> MemoryBench:
    """Runs `body` on a memory subsystem in `config` to its end; the bench as it was then. Raises Failure."""
    if config.content not in _simulations:
        _simulations[config.content] = _Simulation(config)
    return _simulations[config.content].run(body)
