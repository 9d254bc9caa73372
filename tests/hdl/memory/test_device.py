"""The device: latency, order of accesses, byte masks."""

from __future__ import annotations

import itertools
import random

import pytest

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import ATOM_BYTES, ATOM_CHECK_WIDTH, ATOM_WIDTH, ColumnOp, RowOp
from hdl.memory.device import Device
from hdl.memory.storage import Storage

from ..streams import run

CONFIG = DesignConfig(memory=MemoryConfig(rows=4, columns=4))
ECC_CONFIG = DesignConfig(memory=MemoryConfig(rows=4, columns=4), controller=ControllerConfig(ecc=True))


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


def test_check_bits_are_kept_with_their_words_and_faults_hit_them_too() -> None:
    """The device does not know the code: what is written beside a word comes back beside it."""
    dut = Device(ECC_CONFIG)
    rng = random.Random(5)
    latency = ECC_CONFIG.memory.timing.row_hit

    async def bench(ctx) -> None:
        ctx.set(dut.row.op, RowOp.ACTIVATE)
        await ctx.tick()
        ctx.set(dut.row.op, RowOp.NOP)
        data, check = {}, {}

        async def access(op: ColumnOp, column: int) -> None:
            ctx.set(dut.column.op, op)
            ctx.set(dut.column.column, column)
            await ctx.tick()
            ctx.set(dut.column.op, ColumnOp.NOP)

        async def read(column: int) -> tuple[int, int]:
            await access(ColumnOp.READ, column)
            await ctx.tick().repeat(latency - 1)
            assert ctx.get(dut.column.read_valid)
            return ctx.get(dut.column.read_data), ctx.get(dut.column.read_check)

        for _ in range(40):
            column, words = rng.randrange(4), rng.getrandbits(4)
            new, new_check = rng.getrandbits(ATOM_WIDTH), rng.getrandbits(ATOM_CHECK_WIDTH)
            ctx.set(dut.column.write_data, new)
            ctx.set(dut.column.write_check, new_check)
            ctx.set(dut.column.write_mask, sum(0xFF << 8 * w for w in range(4) if words >> w & 1))
            await access(ColumnOp.WRITE, column)
            for store, value, width in ((data, new, 64), (check, new_check, 8)):
                bits = sum((1 << width) - 1 << width * w for w in range(4) if words >> w & 1)
                store[column] = store.get(column, 0) & ~bits | value & bits
            assert await read(column) == (data[column], check[column])

        # Address 0 is bank 0, row 0, column 0.
        flips = rng.getrandbits(ATOM_WIDTH + ATOM_CHECK_WIDTH)
        ctx.set(dut.fault.set_flips, 1)
        for lane in range(9):
            ctx.set(dut.fault.lane, lane)
            ctx.set(dut.fault.flips, flips >> 32 * lane & 0xFFFFFFFF)
            await ctx.tick()
        ctx.set(dut.fault.set_flips, 0)
        ctx.set(dut.fault.arm, 1)
        ctx.set(dut.fault.set_armed, 1)
        await ctx.tick()
        ctx.set(dut.fault.set_armed, 0)
        assert await read(1) == (data[1], check[1])
        assert await read(0) == (data[0] ^ flips % (1 << ATOM_WIDTH), check[0] ^ flips >> ATOM_WIDTH)
        assert await read(0) == (data[0], check[0]), "the storage itself has changed"

    run(dut, bench)
