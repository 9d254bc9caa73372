"""The refresher against neighbours that hold it up for as long as the timing table can."""

from __future__ import annotations

from typing import Any

from hdl.config import MemoryConfig
from hdl.layouts import RowOp
from hdl.memory.controller import CONTROLLER_COMMANDS
from hdl.memory.refresher import Refresher
from hdl.memory.timers import waits
from hdl.memory.timing import Command

from ..streams import run

CONFIG = MemoryConfig()


def test_every_refresh_meets_its_deadline_however_long_it_is_held_up() -> None:
    dut = Refresher(CONFIG, commands=CONTROLLER_COMMANDS)
    table = waits(CONFIG.timing, CONTROLLER_COMMANDS)
    # The refresh before is long over: its tRFC does not hold this one up.
    to_close = max(
        wait.cycles for wait in table if wait.after is Command.PREA and wait.before is not Command.REFAB
    )
    to_refresh = max(
        wait.cycles for wait in table if (wait.before, wait.after) == (Command.PREA, Command.REFAB)
    )
    interval, channels = CONFIG.timing["tREFI"], CONFIG.organisation.pseudo_channels
    everyone = (1 << channels) - 1
    refreshed: list[list[int]] = [[] for _ in range(channels)]

    async def bench(ctx: Any) -> None:
        ctx.set(dut.enable, 1)
        # Cycles of the scheduler's last command, and of the last PREA.
        scheduled = closed = 0
        for cycle in range(2 * interval + 1):
            if not ctx.get(dut.block):
                scheduled = cycle
            ctx.set(dut.precharge_all, everyone if cycle >= scheduled + to_close else 0)
            ctx.set(dut.refresh_all, everyone if cycle >= closed + to_refresh else 0)
            op = ctx.get(dut.row_op)
            if op == RowOp.PRECHARGE_ALL:
                closed = cycle
                ctx.set(dut.refresh_all, 0)
            elif op == RowOp.REFRESH_ALL:
                # A command is on the bus in the cycle after its decision.
                refreshed[ctx.get(dut.pseudo_channel)].append(cycle + 1)
            await ctx.tick()

    run(dut, bench)
    for cycles in refreshed:
        assert len(cycles) == 2
        for number, cycle in enumerate(cycles, 1):
            assert number * interval - dut.lead <= cycle <= number * interval, (number, cycle)


def test_a_restart_is_done_when_every_counter_has_run_out() -> None:
    dut = Refresher(CONFIG, commands=CONTROLLER_COMMANDS)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.restart, 1)
        ctx.set(dut.precharge_all, (1 << CONFIG.organisation.pseudo_channels) - 1)
        for signal in (dut.quiet, dut.settled):
            await ctx.tick().repeat(20)
            assert not ctx.get(dut.restarted), signal.name
            ctx.set(signal, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.restarted)

    run(dut, bench)
