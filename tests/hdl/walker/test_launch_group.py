"""The launch group: walks in order, one a cycle, the first without a cycle, and nothing taken back."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

from hdl.layouts import LAUNCH_WALKS_MAX, Walk
from hdl.walker.launch_group import LaunchGroup
from tests.hdl.streams import bits, check_stream_rule, collect, drive, monitor, randomly, run


@dataclass(frozen=True)
class _Launch:
    """A launch, and the walks that it must become."""

    context: int
    entry: int
    tag: int
    addresses: tuple[int, ...]
    registers: tuple[int, ...] = ()

    @property
    def payload(self) -> dict[str, Any]:
        words = self.registers if len(self.addresses) == 1 else self.addresses[1:]
        return {
            "context": self.context,
            "entry": self.entry,
            "tag": self.tag,
            "count_minus_1": len(self.addresses) - 1,
            "address": self.addresses[0],
            # What no walk uses is not zero.
            "words": [*words, *[0xDEAD] * (6 - len(words))],
        }

    @property
    def walks(self) -> list[int]:
        alone = len(self.addresses) == 1
        return [
            bits(
                Walk.const(
                    {
                        "context": self.context + number,
                        "entry": self.entry,
                        "tag": self.tag,
                        "address": address,
                        "registers": self.payload["words"] if alone else [0] * 6,
                    }
                )
            )
            for number, address in enumerate(self.addresses)
        ]


def _random_launches(chance: random.Random, count: int) -> list[_Launch]:
    launches = []
    for tag in range(count):
        walks = chance.choice((1, 1, 2, 5, LAUNCH_WALKS_MAX))
        launches.append(
            _Launch(
                context=chance.randrange(64 - walks),
                entry=chance.randrange(64),
                tag=tag,
                addresses=tuple(chance.getrandbits(32) for _ in range(walks)),
                registers=tuple(chance.getrandbits(32) for _ in range(6)),
            )
        )
    return launches


@pytest.mark.parametrize("seed", range(4))
def test_every_walk_of_every_launch_comes_out_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    launches = _random_launches(chance, 40)
    expected = [walk for launch in launches for walk in launch.walks]
    dut, found = LaunchGroup(), []

    async def sender(ctx: Any) -> None:
        await drive(ctx, dut.input, [launch.payload for launch in launches], randomly(chance))

    async def taker(ctx: Any) -> None:
        await collect(ctx, dut.output, len(expected), found, randomly(chance))
        assert ctx.get(dut.idle)

    run(dut, sender, taker, processes=[check_stream_rule(dut.output, "output")])
    assert [bits(walk) for walk in found] == expected


def test_the_first_walk_comes_with_its_launch_and_the_others_one_a_cycle() -> None:
    dut = LaunchGroup()
    launches = [
        _Launch(context=1, entry=2, tag=3, addresses=(4,)),
        _Launch(context=5, entry=6, tag=7, addresses=tuple(range(10, 17))),
        _Launch(context=1, entry=2, tag=4, addresses=(5,)),
    ]
    entered: list[tuple[int, int]] = []
    left: list[tuple[int, int]] = []

    async def sender(ctx: Any) -> None:
        ctx.set(dut.output.ready, 1)
        await drive(ctx, dut.input, [launch.payload for launch in launches])

    run(dut, sender, processes=[monitor(dut.input, entered), monitor(dut.output, left)])
    assert [cycle for cycle, _ in entered] == [0, 1, 8]
    assert [cycle for cycle, _ in left] == list(range(9))
