"""The correction stage: one cycle, the right status, and the address of every error."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np

from hdl.config import ControllerConfig
from hdl.layouts import MemoryStatus
from hdl.memory.correction import Correction
from hdl.memory.ecc import ATOM_WORDS, CHECK_WIDTH, WORD_WIDTH
from sim.model.ecc import atom_checks

from ..streams import run

SLOTS = 8
ATOM = 1 << ATOM_WORDS * WORD_WIDTH


def _check(data: int) -> int:
    words = [data >> low & 0xFFFFFFFF for low in range(0, 256, 32)]
    return int(atom_checks(np.array([words], dtype=np.uint32))[0])


def test_reads_pass_in_one_cycle_with_their_status_and_address() -> None:
    rng = random.Random(20261130)
    dut = Correction(ControllerConfig(response_slots=SLOTS, ecc=True))
    seen = {status: 0 for status in MemoryStatus}

    async def bench(ctx: Any) -> None:
        flying: deque[int] = deque()
        for _ in range(1200):
            issue = len(flying) < SLOTS and rng.random() < 0.6
            address = rng.getrandbits(32)
            ctx.set(dut.issue, int(issue))
            ctx.set(dut.issue_address, address)
            arrives = bool(flying) and rng.random() < 0.6
            data = rng.getrandbits(256)
            wrong = [rng.choice((0, 0, 1, 2)) for _ in range(ATOM_WORDS)] if rng.random() < 0.6 else [0] * 4
            read = data | _check(data) << 256
            for word, count in enumerate(wrong):
                for position in rng.sample(range(72), count):
                    check = position - WORD_WIDTH
                    low = WORD_WIDTH * word + position if check < 0 else 256 + CHECK_WIDTH * word + check
                    read ^= 1 << low
            ctx.set(dut.read_valid, int(arrives))
            ctx.set(dut.read_data, read % ATOM)
            ctx.set(dut.read_check, read // ATOM)
            await ctx.tick()
            assert ctx.get(dut.valid) == arrives
            errors = dut.errors
            found = (ctx.get(errors.corrected), ctx.get(errors.uncorrectable))
            if arrives:
                bad, mended = 2 in wrong, 1 in wrong and 2 not in wrong
                status = ctx.get(dut.status)
                seen[status] += 1
                expected = (
                    MemoryStatus.POISONED if bad else MemoryStatus.CORRECTED if mended else MemoryStatus.OK
                )
                assert status == expected and found == (mended, bad)
                assert ctx.get(dut.data) == (0 if bad else data)
                source = flying.popleft()
                if bad or mended:
                    assert ctx.get(errors.address) == source
            else:
                assert found == (0, 0)
            if issue:
                flying.append(address)

    run(dut, bench)
    assert min(seen[s] for s in (MemoryStatus.OK, MemoryStatus.CORRECTED, MemoryStatus.POISONED)) > 100, seen
