"""The refresher with the real timing counters, against a scheduler that holds it up as long as it may."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import ColumnOp, RefreshMode, RowOp
from hdl.memory.refresher import Refresher
from hdl.memory.timers import Timers
from hdl.memory.timing import PRESETS, Value

from ..streams import run

MODES = (RefreshMode.ALL_BANK, RefreshMode.PER_BANK)
POSTPONE = 8


@pytest.fixture(params=["hbm2_2000", "hbm3_6400"])
def preset(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A preset with four banks and a short tREFI, so that many intervals pass in a test."""
    base = PRESETS[request.param]
    short = {
        name: Value(cycles=base[name] // share, source="test")
        for name, share in (("tREFI", 12), ("tRFC", 8), ("tRFCpb", 8))
    }
    small = dataclasses.replace(
        base,
        name="short_refresh",
        organisation=dataclasses.replace(base.organisation, bank_groups=2, banks_per_group=2),
        values=base.values | short,
    )
    monkeypatch.setitem(PRESETS, small.name, small)
    return small.name


class Bench(wiring.Component):
    """A refresher, its timing counters and which banks are open; the test plays scheduler and queues."""

    def __init__(self, config: DesignConfig) -> None:
        self.config = config
        self.timing = config.memory.timing
        self.organisation = config.memory.organisation
        self.units = self.organisation.pseudo_channels * self.organisation.banks
        commands = self.timing.commands
        self.refresher = Refresher(config, commands=commands)
        self.timers = Timers(config.memory, commands=commands)
        unit = range(self.units)
        super().__init__(
            {
                "row_op": In(RowOp),
                "row_unit": In(unit),
                "column_op": In(ColumnOp),
                "column_unit": In(unit),
                "open": Out(self.units),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.refresher = refresher = self.refresher
        m.submodules.timers = timers = self.timers
        banks = self.organisation.banks
        row_op, row_unit = Signal(RowOp), Signal.like(self.row_unit)
        one = (1 << row_unit)[: self.units]
        every = Cat((row_unit // banks == p).replicate(banks) for p in range(self.units // banks))
        m.d.comb += [
            row_op.eq(Mux(refresher.row_block, refresher.row_op, self.row_op)),
            row_unit.eq(Mux(refresher.row_block, refresher.row_unit, self.row_unit)),
            timers.row_op.eq(row_op),
            timers.row_unit.eq(row_unit),
            timers.column_op.eq(self.column_op),
            timers.column_unit.eq(self.column_unit),
            refresher.open.eq(self.open),
            refresher.settled.eq(timers.idle),
            *(
                getattr(refresher, name).eq(getattr(timers, name))
                for name in ("precharge", "refresh_bank", "bank_rested", "precharge_all", "refresh_all")
            ),
        ]
        with m.If(row_op == RowOp.ACTIVATE):
            m.d.sync += self.open.eq(self.open | one)
        with m.Elif(row_op == RowOp.PRECHARGE):
            m.d.sync += self.open.eq(self.open & ~one)
        with m.Elif(row_op == RowOp.PRECHARGE_ALL):
            m.d.sync += self.open.eq(self.open & ~every)
        return m


Refreshes = dict[int, list[int]]


class Play:
    """A test's side of the bench: cycles since the restart, refreshes by bank, and the traffic."""

    def __init__(self, ctx: Any, bench: Bench, mode: RefreshMode, seed: int) -> None:
        self.ctx, self.bench, self.rng = ctx, bench, random.Random(seed)
        self.cycle = 0
        self.refreshes: Refreshes = defaultdict(list)
        """Cycles since the restart in which each unit's refresh was on the bus."""
        self.commands: list[tuple[int, RowOp, int]] = []
        ctx.set(bench.refresher.mode, mode)

    async def restart(self) -> None:
        """Brings the refresher through a restart; the next cycle is cycle 0."""
        refresher, ctx = self.bench.refresher, self.ctx
        ctx.set(refresher.restart, 1)
        ctx.set(refresher.quiet, 1)
        await self.cycles(1)
        while not ctx.get(refresher.restarted):
            await self.cycles(1)
        ctx.set(refresher.restart, 0)
        ctx.set(refresher.quiet, 0)
        self.cycle = 0
        self.refreshes.clear()
        self.commands.clear()

    async def cycles(
        self,
        count: int,
        *,
        traffic: bool = False,
        free: int = 0,
        walks: bool | Callable[[int], bool] = False,
    ) -> None:
        """`count` cycles, idle or with every command that timing and refresher allow.

        With traffic, requests are queued for all banks but `free`.
        """
        ctx, bench, refresher = self.ctx, self.bench, self.bench.refresher
        queued = (1 << bench.units) - 1 & ~free
        for vector in (refresher.busy, refresher.reads):
            ctx.set(vector, queued if traffic else 0)
        for _ in range(count):
            walk = walks(self.cycle) if callable(walks) else walks
            ctx.set(refresher.walks, walk)
            row, column = (RowOp.NOP, 0), (ColumnOp.NOP, 0)
            if traffic:
                row, column = self._choose()
            for signal, value in zip(
                (bench.row_op, bench.row_unit, bench.column_op, bench.column_unit), row + column, strict=True
            ):
                ctx.set(signal, value)
            self._record()
            await ctx.tick()
            self.cycle += 1

    def _choose(self) -> tuple[tuple[RowOp, int], tuple[ColumnOp, int]]:
        """A random row and a random column command among the legal ones."""
        get, bench, refresher, timers = self.ctx.get, self.bench, self.bench.refresher, self.bench.timers
        free, opened = ~get(refresher.block), get(bench.open)
        choices = []
        if not get(refresher.row_block):
            activate = get(timers.activate) & ~get(refresher.hold_activate) & ~opened & free
            choices += [(RowOp.ACTIVATE, unit) for unit in self._units(activate)]
            # A row is closed only now and then, so that tRAS and tWR hold the refresher up.
            if not choices and self.rng.random() < 0.05:
                choices += [
                    (RowOp.PRECHARGE, unit) for unit in self._units(get(timers.precharge) & opened & free)
                ]
        row = self.rng.choice(choices) if choices else (RowOp.NOP, 0)
        columns = []
        if not get(refresher.hold_write):
            columns += [(ColumnOp.WRITE, unit) for unit in self._units(get(timers.write) & opened & free)]
        if not get(refresher.hold_read):
            columns += [(ColumnOp.READ, unit) for unit in self._units(get(timers.read) & opened & free)]
        columns = [choice for choice in columns if (RowOp.PRECHARGE, choice[1]) != row]
        return row, self.rng.choice(columns) if columns else (ColumnOp.NOP, 0)

    def _units(self, vector: int) -> Iterator[int]:
        return (unit for unit in range(self.bench.units) if vector >> unit & 1)

    def _record(self) -> None:
        refresher, banks = self.bench.refresher, self.bench.organisation.banks
        op, unit = RowOp(self.ctx.get(refresher.row_op)), self.ctx.get(refresher.row_unit)
        if op is RowOp.NOP:
            return
        # A command is on the bus in the cycle after its decision.
        self.commands.append((self.cycle + 1, op, unit))
        if op is RowOp.REFRESH_BANK:
            assert not self.ctx.get(self.bench.open) >> unit & 1
            self.refreshes[unit].append(self.cycle + 1)
        elif op is RowOp.REFRESH_ALL:
            for each in range(unit, unit + banks):
                self.refreshes[each].append(self.cycle + 1)

    def require_deadlines(self, *, postpone: int) -> None:
        """Every bank's n-th refresh came within (n + postpone) intervals, the missing ones included."""
        interval = self.bench.timing["tREFI"]
        assert len(self.refreshes) == self.bench.units
        for unit, cycles in self.refreshes.items():
            for number, cycle in enumerate([*cycles, self.cycle], 1):
                assert cycle <= (number + postpone) * interval, (unit, number, cycle)


def play(
    preset: str, mode: RefreshMode, script: Callable[[Play], Any], *, postpone: int = POSTPONE, seed: int = 1
) -> None:
    """Runs `script` on a bench in `mode`."""
    bench = Bench(
        DesignConfig(
            controller=ControllerConfig(refresh_postpone=postpone), memory=MemoryConfig(preset=preset)
        )
    )

    async def testbench(ctx: Any) -> None:
        await script(Play(ctx, bench, mode, seed))

    run(bench, testbench, watchdog=200_000)


@pytest.mark.parametrize("mode", MODES)
def test_refresh_meets_its_deadline_while_walks_never_stop(preset: str, mode: RefreshMode) -> None:
    async def script(play: Play) -> None:
        interval = play.bench.timing["tREFI"]
        await play.restart()
        await play.cycles(12 * interval, traffic=True, walks=True)
        play.require_deadlines(postpone=POSTPONE)
        # It was postponed as far as it may be, not less: all-bank refresh to the cycle.
        owed = play.cycle // interval - min(map(len, play.refreshes.values()))
        assert owed >= POSTPONE - 1
        if mode is RefreshMode.ALL_BANK:
            assert play.refreshes[play.bench.units - 1][0] == (POSTPONE + 1) * interval

    play(preset, mode, script)


@pytest.mark.parametrize("mode", MODES)
def test_bulk_traffic_postpones_nothing(preset: str, mode: RefreshMode) -> None:
    async def script(play: Play) -> None:
        interval, units = play.bench.timing["tREFI"], play.bench.units
        await play.restart()
        # Every bank is always busy, so per-bank refresh waits until it must: this is the worst case.
        await play.cycles(12 * interval, traffic=True)
        if mode is RefreshMode.ALL_BANK:
            play.require_deadlines(postpone=0)
            assert len(play.refreshes[0]) == 12
            assert all(
                b - a == interval for a, b in zip(*(play.refreshes[0][i:] for i in (0, 1)), strict=False)
            )
        else:
            play.require_deadlines(postpone=POSTPONE)
        assert units == len(play.refreshes)

    play(preset, mode, script)


@pytest.mark.parametrize("mode", MODES)
def test_without_postponement_the_bound_holds(preset: str, mode: RefreshMode) -> None:
    async def script(play: Play) -> None:
        interval = play.bench.timing["tREFI"]
        bound = play.bench.refresher.bound[mode]
        assert bound < interval * 2
        await play.restart()
        await play.cycles(4 * interval, traffic=True, walks=True)
        for unit, cycles in play.refreshes.items():
            for number, cycle in enumerate([*cycles, play.cycle], 1):
                assert cycle <= number * interval + bound, (unit, number, cycle)

    play(preset, mode, script, postpone=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("traffic", [False, True])
def test_the_count_is_that_of_the_intervals(preset: str, mode: RefreshMode, traffic: bool) -> None:
    async def script(play: Play) -> None:
        await play.restart()
        interval = play.bench.timing["tREFI"]
        while play.cycle < 12 * interval:
            # Now this bank is free, now that one, as under any traffic but the worst.
            free = play.rng.getrandbits(play.bench.units)
            await play.cycles(play.rng.randrange(interval // 4), traffic=traffic, free=free)
        # In silence nothing is owed for long.
        await play.cycles(interval // 2)
        due = play.cycle / interval
        for cycles in play.refreshes.values():
            assert abs(len(cycles) - due) <= 1

    play(preset, mode, script)


def test_a_round_has_every_bank_once(preset: str) -> None:
    async def script(play: Play) -> None:
        banks = play.bench.organisation.banks
        interval = play.bench.timing["tREFI"]
        await play.restart()
        for _ in range(40):
            traffic = play.rng.random() < 0.5
            await play.cycles(play.rng.randrange(interval), traffic=traffic, walks=play.rng.random() < 0.3)
        for channel in range(play.bench.organisation.pseudo_channels):
            order = [
                unit % banks
                for _, op, unit in play.commands
                if op is RowOp.REFRESH_BANK and unit // banks == channel
            ]
            rounds = [order[at : at + banks] for at in range(0, len(order), banks)]
            assert len(rounds) > 10
            assert all(len(set(one)) == len(one) for one in rounds), rounds

    play(preset, RefreshMode.PER_BANK, script)


@pytest.mark.parametrize("mode", MODES)
def test_what_walks_postponed_is_repaid_when_they_rest(preset: str, mode: RefreshMode) -> None:
    async def script(play: Play) -> None:
        bench = play.bench
        timing, interval = bench.timing, bench.timing["tREFI"]
        thinking = bench.refresher.thinking
        await play.restart()
        # A chain of reads: a walk's request is queued in every `thinking`-th cycle at least.
        await play.cycles(5 * interval, walks=lambda cycle: cycle % thinking == 0)
        assert not play.refreshes
        pause = play.cycle
        banks = bench.organisation.banks
        step = max(timing["tRFCpb"], banks * timing["tRREFD"])
        needed = 5 * (timing["tRFC"] + 20 if mode is RefreshMode.ALL_BANK else step)
        await play.cycles(thinking + needed + 60)
        # Nothing is owed any more, what fell due meanwhile included.
        due = play.cycle / interval
        assert all(due - 1 <= len(cycles) <= due + 1 for cycles in play.refreshes.values())
        assert due >= 5
        assert min(cycles[0] for cycles in play.refreshes.values()) > pause
        if mode is RefreshMode.PER_BANK:
            times = [cycle for cycle, op, unit in play.commands if op is RowOp.REFRESH_BANK and unit < banks]
            assert [b - a for a, b in itertools.pairwise(times)][: banks - 1] == [timing["tRREFD"]] * (
                banks - 1
            )

    play(preset, mode, script)


def test_all_bank_refresh_wastes_no_cycle(preset: str) -> None:
    async def script(play: Play) -> None:
        timing = play.bench.timing
        await play.restart()
        await play.cycles(3 * timing["tREFI"], traffic=True)
        found = [(cycle, op) for cycle, op, _ in play.commands]
        channels = play.bench.organisation.pseudo_channels
        size = 2 * channels
        for at in range(0, len(found), size):
            start = found[at][0]
            expected = [(start + n, RowOp.PRECHARGE_ALL) for n in range(channels)]
            expected += [(start + timing["tRP"] + n, RowOp.REFRESH_ALL) for n in range(channels)]
            assert found[at : at + size] == expected

    play(preset, RefreshMode.ALL_BANK, script)


@pytest.mark.parametrize("mode", MODES)
def test_a_restart_forgets_everything(preset: str, mode: RefreshMode) -> None:
    courses: list[list[tuple[int, RowOp, int]]] = []

    async def script(play: Play) -> None:
        interval = play.bench.timing["tREFI"]
        for before in (0, interval // 3, 3 * interval, 3 * interval + 77):
            await play.cycles(before, traffic=True, walks=before > interval)
            await play.restart()
            await play.cycles(2 * interval)
            courses.append(list(play.commands))

    play(preset, mode, script)
    assert courses[0]
    assert all(course == courses[0] for course in courses[1:])


def test_a_restart_is_done_when_every_counter_has_run_out(preset: str) -> None:
    dut = Refresher(DesignConfig(memory=MemoryConfig(preset=preset)), commands=PRESETS[preset].commands)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.restart, 1)
        ctx.set(dut.precharge_all, (1 << len(dut.precharge_all)) - 1)
        for signal in (dut.quiet, dut.settled):
            await ctx.tick().repeat(20)
            assert not ctx.get(dut.restarted), signal.name
            ctx.set(signal, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.restarted)

    run(dut, bench)


def test_without_refresh_nothing_is_commanded(preset: str) -> None:
    async def script(play: Play) -> None:
        await play.restart()
        await play.cycles(10 * play.bench.timing["tREFI"])
        assert not play.commands

    play(preset, RefreshMode.NONE, script)


def test_without_per_bank_refresh_the_mode_is_all_bank(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base = PRESETS[preset]
    values = {name: value for name, value in base.values.items() if name not in ("tRFCpb", "tRREFD")}
    monkeypatch.setitem(
        PRESETS, "no_bank_refresh", dataclasses.replace(base, name="no_bank_refresh", values=values)
    )
    config = DesignConfig(memory=MemoryConfig(preset="no_bank_refresh"))
    dut = Refresher(config, commands=config.memory.timing.commands)
    found = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.mode, RefreshMode.PER_BANK)
        ctx.set(dut.precharge_all, (1 << len(dut.precharge_all)) - 1)
        ctx.set(dut.refresh_all, (1 << len(dut.refresh_all)) - 1)
        for _ in range(2 * base["tREFI"]):
            found.append(RowOp(ctx.get(dut.row_op)))
            await ctx.tick()

    assert not dut.per_bank
    run(dut, bench, watchdog=100_000)
    assert found.count(RowOp.REFRESH_ALL) == 2 * config.memory.organisation.pseudo_channels
