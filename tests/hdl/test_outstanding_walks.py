"""OutstandingWalks against a golden model: room, times and what is left, under random traffic."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import Any

import pytest

from hdl.config import DesignConfig, MemoryConfig, WalkerConfig
from hdl.outstanding_walks import OutstandingWalks
from tests.hdl.streams import run


def component(*, contexts: int, outstanding: int, channels: int) -> OutstandingWalks:
    return OutstandingWalks(
        DesignConfig(
            walker=WalkerConfig(contexts=contexts, outstanding=outstanding),
            memory=MemoryConfig(channels=channels),
        )
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("contexts, outstanding, channels", [(1, 1, 1), (2, 8, 1), (5, 16, 2), (16, 64, 1)])
def test_room_times_and_rest_are_those_of_the_golden_model(
    contexts: int, outstanding: int, channels: int, seed: int
) -> None:
    chance = random.Random(seed)
    dut = component(contexts=contexts, outstanding=outstanding, channels=channels)
    each = {1: 1, 2: 4, 5: 2, 16: 4}[contexts]
    #: By place and context, the cycles of the launches whose walks have not ended, the oldest first.
    queues: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    launches = refused = 0

    async def bench(ctx: Any) -> None:
        nonlocal launches, refused
        noting: list[tuple[int, int]] = []
        for cycle in range(600):
            place, count = chance.randrange(channels + 1), chance.randint(1, min(7, contexts))
            context = chance.randrange(contexts - count + 1)
            group = [(place, context + number) for number in range(count)]
            room = not noting and all(len(queues[walk]) < each for walk in group)
            ctx.set(dut.place, place)
            ctx.set(dut.context, context)
            ctx.set(dut.count_minus_1, count - 1)
            assert ctx.get(dut.room) == room, f"cycle {cycle}, seed {seed}"
            assert ctx.get(dut.none) == (not noting and not any(queues.values()))

            # Walks whose times are noted by now may end; one that yields goes on.
            open_walks = [walk for walk, times in queues.items() if len(times) > noting.count(walk)]
            ends = False
            if open_walks and chance.random() < 0.4:
                ended = chance.choice(open_walks)
                ctx.set(dut.verdict_place, ended[0])
                ctx.set(dut.verdict_context, ended[1])
                assert ctx.get(dut.cycles) == cycle - queues[ended][0], f"cycle {cycle}, seed {seed}"
                ends = chance.random() < 0.8
                if ends:
                    queues[ended].popleft()
            ctx.set(dut.ends, ends)

            launch = room and chance.random() < 0.6
            ctx.set(dut.launch, launch)
            refused += not room
            noting = noting[1:]
            if launch:
                launches += 1
                noting = group[1:]
                for walk in group:
                    queues[walk].append(cycle)
            await ctx.tick()

    run(dut, bench)
    assert launches > 20 and refused > 20


@pytest.mark.parametrize("outstanding", [0, 3, 128])
def test_a_number_of_outstanding_walks_that_cannot_be_is_named(outstanding: int) -> None:
    with pytest.raises(ValueError, match=rf"walker.outstanding is {outstanding}: expected a power of two"):
        WalkerConfig(outstanding=outstanding)
