"""The overflow of the bank queues against a list of Python a bank."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import pytest

from hdl.memory.overflow import Overflow

from ..streams import run

UNITS, DEPTH, WIDTH, KEY_WIDTH = 4, 8, 12, 3


@dataclass
class _Waiting:
    request: int
    key: int
    write: bool
    seen: bool = False
    old: bool = False


@pytest.mark.parametrize("seed", range(3))
def test_every_bank_has_a_first_in_first_out_list(seed: int) -> None:
    dut = Overflow(units=UNITS, depth=DEPTH, width=WIDTH, key_width=KEY_WIDTH)
    rng = random.Random(seed)
    lists: list[deque[_Waiting]] = [deque() for _ in range(UNITS)]
    removed_last = grown_while_last = written = unwritten = 0

    async def bench(ctx: Any) -> None:
        nonlocal removed_last, grown_while_last, written, unwritten
        for cycle in range(3000):
            count = sum(map(len, lists))
            assert ctx.get(dut.waiting) == sum(bool(entries) << unit for unit, entries in enumerate(lists))
            assert ctx.get(dut.room) == (count < DEPTH), f"cycle {cycle}: {count} wait"
            filling = cycle % 400 < 200
            append = count < DEPTH and rng.random() < (0.8 if filling else 0.3)
            unit, request = rng.randrange(UNITS), rng.getrandbits(WIDTH)
            key, write = rng.getrandbits(KEY_WIDTH), rng.random() < 0.5
            busy = [unit for unit, entries in enumerate(lists) if entries]
            remove = bool(busy) and rng.random() < (0.3 if filling else 0.8)
            taken = rng.choice(busy) if remove else rng.randrange(UNITS)
            tick = rng.random() < 0.1
            ripen = tick and rng.random() < 0.5
            for port, value in (
                (dut.append, append),
                (dut.append_unit, unit),
                (dut.append_request, request),
                (dut.append_key, key),
                (dut.append_write, write),
                (dut.remove, remove),
                (dut.remove_unit, taken),
                (dut.tick, tick),
                (dut.ripen, ripen),
            ):
                ctx.set(port, int(value))
            expected = any(entry.write and entry.key == key for entry in lists[unit])
            written, unwritten = written + expected, unwritten + (bool(lists[unit]) and not expected)
            assert ctx.get(dut.writes_key) == expected, f"cycle {cycle}: atom {key} of bank {unit}"
            assert ctx.get(dut.waiting_old) == any(entry.old for entries in lists for entry in entries)
            for entries in lists:
                for entry in entries:
                    entry.old |= ripen and entry.seen
                    entry.seen |= tick
            if remove:
                grown_while_last += len(lists[taken]) == 1 and append and unit == taken
                removed_last += len(lists[taken]) == 1 and not (append and unit == taken)
                entry = lists[taken].popleft()
                found = tuple(ctx.get(p) for p in (dut.removed_request, dut.removed_seen, dut.removed_old))
                assert found == (entry.request, entry.seen, entry.old), f"cycle {cycle}"
            if append:
                lists[unit].append(_Waiting(request, key, write))
            await ctx.tick()

    run(dut, bench)
    assert removed_last and grown_while_last, "the cases that the lists are made for did not come"
    assert written and unwritten
