"""The device: latency, order of accesses, byte masks."""

from __future__ import annotations

import itertools
import random

import pytest

from hdl.config import DesignConfig, MemoryConfig
from hdl.layouts import ATOM_BYTES, ATOM_WIDTH, ColumnOp, RowOp
from hdl.memory.device import Device
from hdl.memory.storage import Storage

from ..streams import run

CONFIG = DesignConfig(memory=MemoryConfig(rows=4, columns=4))


def test_reads_come_back_in_order_after_the_read_latency() -> None:
    dut = Device(CONFIG)
    rng = random.Random(20261130)
    latency = CONFIG.memory.timing.row_hit
    expected: dict[int, int] = {}
    memory: dict[tuple[int, int, int, int], int] = {}
    rows: dict[tuple[int, int], int] = {}
    total = 600

    async def commands(ctx) -> None:
        for cycle in range(total):
            place = (rng.randrange(2), rng.randrange(16))
            ctx.set(dut.row.op, RowOp.NOP)
            ctx.set(dut.column.op, ColumnOp.NOP)
            column = (rng.randrange(2), rng.randrange(16))
            if column in rows and rng.random() < 0.7:
                atom = (*column, rows[column], rng.randrange(4))
                ctx.set(dut.column.pseudo_channel, column[0])
                ctx.set(dut.column.bank, column[1])
                ctx.set(dut.column.column, atom[3])
                old = memory.get(atom, 0)
                if rng.random() < 0.5:
                    ctx.set(dut.column.op, rng.choice((ColumnOp.READ, ColumnOp.READ_AUTO)))
                    expected[cycle + latency] = old
                else:
                    data, mask = rng.getrandbits(ATOM_WIDTH), rng.getrandbits(ATOM_BYTES)
                    ctx.set(dut.column.op, rng.choice((ColumnOp.WRITE, ColumnOp.WRITE_AUTO)))
                    ctx.set(dut.column.write_data, data)
                    ctx.set(dut.column.write_mask, mask)
                    bits = sum(0xFF << 8 * n for n in range(ATOM_BYTES) if mask >> n & 1)
                    memory[atom] = old & ~bits | data & bits
            if rng.random() < 0.5:
                ctx.set(dut.row.op, RowOp.ACTIVATE)
                ctx.set(dut.row.pseudo_channel, place[0])
                ctx.set(dut.row.bank, place[1])
                rows[place] = rng.randrange(4)
                ctx.set(dut.row.row, rows[place])
            await ctx.tick()
        ctx.set(dut.column.op, ColumnOp.NOP)
        await ctx.tick().repeat(latency)

    async def answers(ctx) -> None:
        for cycle in itertools.count():
            _, _, valid, data = await ctx.tick().sample(dut.column.read_valid, dut.column.read_data)
            assert valid == (cycle in expected), cycle
            if valid:
                assert data == expected[cycle], cycle

    run(dut, commands, processes=[answers])
    assert len(expected) > 100


def test_an_array_too_big_for_verilog_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has 16777216 atoms: expected at most 65536"):
        Storage(MemoryConfig())
