"""The self-test of every preset: what its channel reaches, and the known traps of memory models.

Each test runs the RTL of one preset under the RTL checker and the scoreboard. The traps are those that were
reproduced or reported on public simulators; those of reports and trace readers are not the memory's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise

import pytest
from amaranth.hdl import Value as HdlValue

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import ATOM_BYTES, ColumnOp, MemoryStatus, RefreshMode, RowOp
from hdl.memory.address import AddressMap, Place
from hdl.memory.controller import Controller
from hdl.memory.timing import PRESETS, Value
from sim.bench.memory_port import Request, Response
from sim.model.command_checker import COLUMN_BUS, ROW_BUS, check

from ...memory_bench import PIPELINE, MemoryBench, simulate
from ..streams import run

EACH = pytest.mark.parametrize("name", PRESETS)

_READS = (ColumnOp.READ.value, ColumnOp.READ_AUTO.value)


def _simulate(
    name: str, body: Callable[[MemoryBench], Awaitable[None]], *, controller: ControllerConfig | None = None
) -> MemoryBench:
    """Runs `body` on a channel of the preset with few rows; the command checker sees nothing wrong either."""
    memory = MemoryConfig(preset=name, rows=8)
    bench = simulate(DesignConfig(controller=controller or ControllerConfig(), memory=memory), body)
    assert not check(bench.log, bench.timing, bench.organisation).by_rule()
    return bench


def _activates(bench: MemoryBench, begin: int = 0) -> list[tuple[int, int, int]]:
    """(cycle, pseudo channel, bank) of every ACT from command `begin` on."""
    return [
        (cycle, pseudo_channel, bank)
        for cycle, bus, op, pseudo_channel, bank, _ in bench.commands[begin:]
        if bus == ROW_BUS and op == RowOp.ACTIVATE.value
    ]


# -- Bandwidth --


@EACH
def test_a_stream_reaches_the_peak_bandwidth(name: str) -> None:
    """Every pseudo channel's data bus is busy in every cycle: a wrong burst length would halve it.

    Within the first row of the banks, so that no row command is in the way.
    """
    window = 56

    async def body(bench: MemoryBench) -> None:
        tags = bench.tags()
        address, answered = 0, 0
        warm = bench.timing.row_closed + 60
        while bench.cycle < warm + window:
            request = Request(address=address, tag=next(tags))
            while True:
                step = await bench.step(request)
                answered += step.response is not None and bench.cycle > warm
                if step.accepted or bench.cycle == warm + window:
                    break
            address += 1
        bytes_in_window = answered * ATOM_BYTES
        peak = bench.timing.peak_bandwidth * bench.timing.clock_ns
        assert peak == bench.organisation.pseudo_channels * ATOM_BYTES / bench.timing.burst_cycles
        assert 0.93 <= bytes_in_window / (window * peak) <= 1 + ATOM_BYTES / (window * peak)
        await bench.drain()

    _simulate(name, body)


# -- Pseudo channels --


@EACH
@pytest.mark.parametrize("write", [False, True], ids=["reads", "writes"])
def test_pseudo_channels_are_independent(name: str, write: bool) -> None:
    """Row misses in all banks of one pseudo channel delay a row hit of the other by no more than the column
    bus does: one command, because the other pseudo channel's next is not due in the cycle after."""

    async def body(bench: MemoryBench) -> None:
        banks, rows = bench.organisation.banks, bench.organisation.rows
        tags = bench.tags()
        hit = bench.timing.row_hit + PIPELINE
        probe = Request(address=bench.at(1, 0, 0, 0), tag=next(tags))
        await bench.send([probe])
        await bench.drain()
        waited = []
        n = 0
        for column in range(1, 9):
            for _ in range(23):
                # Every second visit of a bank comes to another row, so that there are hits as well.
                address = bench.at(0, n % banks, n // banks // 2 % rows, n % 4)
                request = Request(address=address, tag=next(tags), write=write, data=n)
                n += (await bench.step(request)).accepted
            probe = Request(address=bench.at(1, 0, 0, column), tag=next(tags))
            await bench.send([probe])
            while bench.scoreboard.uses(probe.tag):
                await bench.step()
            waited.append(bench.latency_of(probe.tag))
        assert min(waited) >= hit and max(waited) <= hit + 1, (waited, hit)
        assert len({bank for _, channel, bank in _activates(bench) if channel == 0}) == banks
        await bench.drain()

    _simulate(name, body)


# -- Capacity --


@EACH
def test_the_whole_capacity_is_there_and_nothing_behind_it(name: str) -> None:
    """The controller of the preset's own size: the last atom is in the last row, the next is out of range."""
    config = DesignConfig(memory=MemoryConfig(preset=name, storage="dpi"))
    organisation = config.memory.organisation
    address_map = AddressMap(config.memory)
    # A page is 1 KB in every public description: column bits that count beats, or twice, would show here.
    assert organisation.columns * ATOM_BYTES == 1024
    assert address_map.atoms * ATOM_BYTES == (
        organisation.pseudo_channels * organisation.banks * organisation.rows * 1024
    )
    dut = Controller(config)
    commands: list[tuple[str, int, int, int]] = []
    answers: list[Response] = []

    async def bench(ctx) -> None:
        ctx.set(dut.memory.response.ready, 1)
        pending = [Request(address=address_map.atoms + n, tag=n + 2) for n in (-1, 0)]
        for _ in range(config.memory.timing.row_closed + 20):
            request = pending[0] if pending else None
            ctx.set(dut.memory.request.valid, request is not None)
            if request is not None:
                ctx.set(HdlValue.cast(dut.memory.request.payload), request.pack())
            _, _, taken, valid, bits, *buses = await ctx.tick().sample(
                dut.memory.request.ready,
                dut.memory.response.valid,
                HdlValue.cast(dut.memory.response.payload),
                *(dut.row.op, dut.row.pseudo_channel, dut.row.bank, dut.row.row),
                *(dut.column.op, dut.column.pseudo_channel, dut.column.bank, dut.column.column),
            )
            if request is not None and taken:
                pending.pop(0)
            if valid:
                answers.append(Response.unpack(bits))
            for bus, (op, *where) in (("row", buses[:4]), ("column", buses[4:])):
                if op.value:
                    commands.append((bus, *where))

    run(dut, bench)
    last = Place(1, organisation.banks - 1, organisation.rows - 1, organisation.columns - 1)
    assert commands == [("row", *last[:3]), ("column", *last[:2], last.column)]
    assert [(answer.tag, answer.status) for answer in answers] == [(2, MemoryStatus.OUT_OF_RANGE)]


# -- Known traps --


@EACH
def test_trap_activates_are_spaced_in_the_pseudo_channel(name: str) -> None:
    """Trap: tRRD and tFAW kept per bank. Reads of all banks of one pseudo channel come as fast as these two
    allow and no faster, and the other pseudo channel's do not count."""

    async def body(bench: MemoryBench) -> None:
        timing = bench.timing
        banks = bench.organisation.banks
        tags = bench.tags()
        for channels in ((0,), (0, 1)):
            begin = len(bench.commands)
            await bench.send(
                Request(address=bench.at(channel, bank, 3 + len(channels)), tag=next(tags))
                for bank in range(banks)
                for channel in channels
            )
            await bench.drain()
            await bench.idle(timing["tRC"])
            for channel in channels:
                times = [cycle for cycle, where, _ in _activates(bench, begin) if where == channel]
                assert len(times) == banks
                near = [after - before for before, after in pairwise(times)]
                far = [after - before for before, after in zip(times, times[4:], strict=False)]
                assert min(near) >= timing["tRRDS"] and min(far) >= timing["tFAW"]
                # Four banks of one group or of several: tRRDL is what the slowest order takes.
                assert sum(near) <= max(timing["tFAW"] / 4, timing["tRRDL"] + len(channels)) * len(near) + 8

    _simulate(name, body)


@EACH
@pytest.mark.parametrize("mode", [RefreshMode.ALL_BANK, RefreshMode.PER_BANK])
def test_trap_refresh_comes_and_holds_its_banks(
    name: str, mode: RefreshMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traps: all-bank refresh that never issues; ACT one cycle after a per-bank refresh."""
    own = PRESETS[name]
    # Long enough for what may hold a refresh up, short enough for a simulation in Python.
    interval = Value(cycles=own["tRFC"] + 400, source="test")
    brief = dataclasses.replace(own, name="brief", values=own.values | {"tREFI": interval})
    monkeypatch.setitem(PRESETS, "brief", brief)
    parameter, op = {
        RefreshMode.ALL_BANK: ("tRFC", RowOp.REFRESH_ALL.value),
        RefreshMode.PER_BANK: ("tRFCpb", RowOp.REFRESH_BANK.value),
    }[mode]

    def refreshes(bench: MemoryBench) -> Iterator[tuple[int, int, int]]:
        for cycle, bus, found, channel, bank, _ in bench.commands:
            if bus == ROW_BUS and found == op:
                yield cycle, channel, bank

    async def body(bench: MemoryBench) -> None:
        timing = bench.timing
        await bench.restart(mode)
        start = bench.cycle
        tags = bench.tags()
        while not (seen := list(refreshes(bench))):
            await bench.step()
            assert bench.cycle - start <= timing["tREFI"], "no refresh in an interval"
        (cycle, channel, bank) = seen[0]
        await bench.send([Request(address=bench.at(channel, bank, 1), tag=next(tags))])
        await bench.drain()
        opened = next(when for when, *where in _activates(bench) if where == [channel, bank])
        # ACT's time is `activate_lag` after its first slot, and its decision takes a cycle.
        assert 0 <= opened + timing.activate_lag - (cycle + timing[parameter]) <= 1

    _simulate("brief", body)


@EACH
def test_trap_order_of_an_atom_and_a_drain_that_waits_for_a_read(name: str) -> None:
    """Traps: a younger write that overtakes an older read; a full write buffer that waits for a read that
    waits for the drain. The scoreboard has the order, the watchdog the end."""
    limits = ControllerConfig(write_buffer=8, drain_high=6, drain_low=2)

    async def body(bench: MemoryBench) -> None:
        tags = bench.tags()
        # Row 1 is open, so that the write of row 1 could pass the read of row 2 before it.
        await bench.send([Request(address=bench.at(0, 3, 1), tag=next(tags))])
        atoms = [bench.at(0, 3, row, 2) for row in (2, 1, 2)]
        for n in range(2 * limits.write_buffer):
            address = atoms[n % 3]
            await bench.send(
                [
                    Request(address=address, tag=next(tags)),
                    Request(address=address, tag=next(tags), write=True, data=n),
                    Request(address=address, tag=next(tags)),
                ]
            )
        await bench.drain()

    _simulate(name, body, controller=limits)


@EACH
def test_trap_a_row_stays_for_its_hits_and_a_bank_for_who_opened_it(name: str) -> None:
    """Traps: a row precharged while queued requests still hit it; a bank closed between its ACT and the
    column access that asked for it."""

    async def body(bench: MemoryBench) -> None:
        tags = bench.tags()
        # The queue holds them all before the first is served: two rows, each by two requests.
        await bench.send(
            Request(address=bench.at(1, 2, row, column), tag=next(tags))
            for column, row in enumerate((1, 5, 1, 5))
        )
        await bench.drain()
        columns = [command[5] for command in bench.commands if command[1] == COLUMN_BUS]
        assert columns == [0, 2, 1, 3]
        assert len(_activates(bench)) == 2
        # Rows of one bank and of others, all at once: no ACT is in vain.
        begin = len(bench.commands)
        await bench.send(
            Request(address=bench.at(n % 2, n % 3, n * 5 % 8, n % 4), tag=next(tags)) for n in range(40)
        )
        await bench.drain()
        unserved: set[tuple[int, int]] = set()
        for _, bus, op, channel, bank, _ in bench.commands[begin:]:
            if bus == COLUMN_BUS:
                unserved.discard((channel, bank))
            elif op == RowOp.ACTIVATE.value:
                unserved.add((channel, bank))
            else:
                assert (channel, bank) not in unserved, "PRE before the access that ACT was for"
        assert not unserved

    _simulate(name, body)
