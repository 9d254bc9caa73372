"""Leases and returns of 64 contexts at once, near, far and in both places, on the RTL: nobody gets another's
block, none is lost, and no walk reads more than twice round the ring."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.assembler import Image
from firmware_py.driver import Accelerator
from firmware_py.pool import chain_blocks, pool_records
from firmware_py.programs import pool_image, pool_take
from firmware_py.programs.pool_take import EXHAUSTED
from firmware_py.records import CHILD, PARENT, SIBLING, STATE, STATE_BLOCK
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.layouts import VerdictKind, WalkStatus
from sim.compiled import CompiledModel

_SEED = 20261130
_CONTEXTS = 64
_BASE = 4096


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[CompiledModel, Accelerator]]:
    base = named_config("simulation")
    config = dataclasses.replace(base, walker=dataclasses.replace(base.walker, contexts=_CONTEXTS))
    with CompiledModel(config) as model:
        accelerator = Accelerator(InProcessTransport(model))
        accelerator.set_link(latency_up=20, latency_down=30)
        yield model, accelerator


class _Stress:
    """Rounds of one walk a context; after each, what everybody holds is checked against memory."""

    def __init__(self, machine: tuple[CompiledModel, Accelerator], image: Image, blocks: int) -> None:
        self.model, self.accelerator = machine
        self.image, self.blocks = image, blocks
        self.accelerator.load_program(image.words)
        self.accelerator.load_image(_BASE, pool_records(base=_BASE, count=blocks, block_bytes=32))
        for context in range(_CONTEXTS):
            self.accelerator.configure_context(
                context, base=_BASE, limit=_BASE + blocks, writable=True, budget=20 * blocks
            )
        self.leases: dict[int, list[list[int]]] = {}
        """By lessee, the chains it holds, each first block first."""
        self.exhausted = 0

    def round(self, chance: random.Random, places: tuple[int, ...], *, together: bool) -> None:
        """A walk in every context of every place; `together`: all takes look at the same block first."""
        before = self._held()
        hint = _BASE + chance.randrange(self.blocks)
        batch, asked = [], []
        for context in range(_CONTEXTS):
            for place in places:
                lessee = 1 + context + _CONTEXTS * place
                chains = self.leases.setdefault(lessee, [])
                if chains and chance.random() < 0.5:
                    entry, count = "pool_give", 0
                    start = chains[0][0]
                    registers: tuple[int, ...] = (lessee,)
                else:
                    entry, count = "pool_take", chance.randint(1, 6 // len(places))
                    start = hint if together else _BASE + chance.randrange(self.blocks)
                    registers = pool_take.launch_registers(start=start, owner=lessee, count=count)
                asked.append((entry, lessee, count))
                batch.append(
                    commands.walk(
                        place=place,
                        entry=self.image.entries[entry],
                        context=context,
                        address=start,
                        registers=registers,
                    )
                )
        done = self.accelerator.run_batch(np.concatenate(batch)).records
        taken: set[int] = set()
        given: set[int] = set()
        missing = False
        for tag, (entry, lessee, count) in enumerate(asked):
            mine = done[done["tag"] == tag]
            (end,) = mine[mine["kind"] == VerdictKind.DONE.value]
            assert end["status"] == WalkStatus.DONE.value, f"{entry} ended with status {end['status']}"
            assert end["hops"] <= 2 * self.blocks
            if entry == "pool_give":
                chain = self.leases[lessee].pop(0)
                given |= set(chain)
                assert (end["code"], end["registers"][1]) == (0, len(chain))
                continue
            got = [int(value) for value in mine[mine["kind"] == VerdictKind.YIELD.value]["value"]]
            assert not taken & set(got), "two lessees have the same block"
            taken |= set(got)
            assert end["registers"][1] == count - len(got)
            missing |= end["code"] == EXHAUSTED
            self.exhausted += int(end["code"] == EXHAUSTED)
            if got:
                assert end["registers"][2] == got[-1]
                self.leases[lessee].append(got[::-1])
        assert not taken & (before - given), "a block that was held all along was taken"
        if missing:
            # Every block was leased at some time of the round.
            assert before | taken == set(range(_BASE, _BASE + self.blocks))
        self._check()

    def _held(self) -> set[int]:
        return {block for chains in self.leases.values() for chain in chains for block in chain}

    def _check(self) -> None:
        memory = self.model.fetch(_BASE, self.blocks)
        owners = np.zeros(self.blocks, dtype=np.uint32)
        for lessee, chains in self.leases.items():
            for chain in chains:
                for block, following in zip(chain, [*chain[1:], 0], strict=True):
                    assert owners[block - _BASE] == 0, f"block {block} is held twice"
                    owners[block - _BASE] = lessee
                    assert memory[block - _BASE][STATE_BLOCK["next"]] == following
        assert np.array_equal(memory[:, STATE_BLOCK["owner"]], owners)


@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)], ids=["near", "far", "both"])
@pytest.mark.parametrize("blocks", [24, 200, 900])
def test_leases_of_64_contexts_at_once(machine, blocks: int, places: tuple[int, ...]) -> None:
    chance = random.Random(f"{_SEED} {blocks} {places}")  # printed with its parameters when a test fails
    stress = _Stress(machine, pool_image(), blocks)
    for number in range(12):
        stress.round(chance, places, together=number % 2 == 0)
    if blocks == 24:
        assert stress.exhausted, "the pool never ran out: the case tests less than it says"


def test_subtrees_are_reclaimed_while_others_take_what_becomes_free(machine) -> None:
    model, accelerator = machine
    chance = random.Random(_SEED)
    image = pool_image()
    accelerator.load_program(image.words)
    trees, states = _CONTEXTS // 2, 4
    blocks = trees * states * 2
    # Trees of a root and three children; every node has a state of two blocks; the pool is all leased.
    records = pool_records(base=_BASE, count=blocks, block_bytes=32)
    free = chance.sample(range(_BASE, _BASE + blocks), blocks)
    nodes = np.zeros((trees * states, 8), dtype=np.uint32)
    for tree in range(trees):
        root = 1 + tree * states
        for number in range(states):
            node = nodes[root - 1 + number]
            node[PARENT.word] = root if number else 0
            node[CHILD.word] = 0 if number else root + 1
            node[SIBLING.word] = root + number + 1 if 0 < number < states - 1 else 0
            node[STATE.word] = chain_blocks(records, base=_BASE, blocks=[free.pop(), free.pop()], owner=999)
    accelerator.load_image(1, nodes)
    accelerator.load_image(_BASE, records)
    batch = []
    for context in range(_CONTEXTS):
        accelerator.configure_context(
            context, base=1, limit=_BASE + blocks, writable=True, budget=1000 * blocks
        )
        start = 1 + context // 2 * states if context % 2 else _BASE + chance.randrange(blocks)
        registers: tuple[int, ...] = (start,)
        if not context % 2:
            registers = pool_take.launch_registers(start=start, owner=1 + context, count=3)
        batch.append(
            commands.walk(
                place=0,
                entry=image.entries["reclaim_release" if context % 2 else "pool_take"],
                context=context,
                address=start,
                registers=registers,
            )
        )
    done = accelerator.run_batch(np.concatenate(batch)).records
    assert (done["status"][done["kind"] == VerdictKind.DONE.value] == WalkStatus.DONE.value).all()
    ends = done[done["kind"] == VerdictKind.DONE.value]
    assert all(end["registers"][1] == 2 * states for end in ends[ends["tag"] % 2 == 1])
    yields = done[done["kind"] == VerdictKind.YIELD.value]
    assert len(np.unique(yields["value"])) == len(yields) > 0
    owners = np.zeros(blocks, dtype=np.uint32)
    owners[yields["value"].astype(np.int64) - _BASE] = 1 + yields["tag"]
    assert np.array_equal(model.fetch(_BASE, blocks)[:, STATE_BLOCK["owner"]], owners)
    assert not model.fetch(1, trees * states)[:, STATE.word].any()


def test_a_claim_that_is_not_conditional_is_caught(machine) -> None:
    image = pool_image()
    at = image.entries["pool_take"]
    broken = dataclasses.replace(image.instructions[at], store_conditional=False)
    instructions = (*image.instructions[:at], broken, *image.instructions[at + 1 :])
    stress = _Stress(machine, dataclasses.replace(image, instructions=instructions), 200)
    with pytest.raises(AssertionError, match="two lessees have the same block"):
        for _ in range(10):
            stress.round(random.Random(_SEED), (0,), together=True)
