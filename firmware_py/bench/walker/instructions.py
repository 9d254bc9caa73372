"""Instructions a hop of the walk programs over trees and lists, counted by the golden interpreter.

The workload, drawn by a fixed seed: a tree of 1,000 nodes, each a child of one of the 12 created before it,
half of them dead, one in four with something untried, scores of 0 to 99; 200 candidate lists and 200 hash
chains of 1 to 16 records. 1,000 walks of each program start anywhere in it: the 3 best of a list, the
ancestor of two nodes, a key that is in its chain for half of the walks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from sim.model.interpreter import BUDGET_MAX, Atom, run_walk

from ...programs import default_image
from ...programs.best_sibling import LIVE_CHILDREN
from ...records import CANDIDATE, CHILD, DEPTH, HASH_ENTRY, PARENT, SCORE, SIBLING
from ..measures import Measure

__all__ = ["LAUNCHES", "instructions_measures"]

_SEED = 2026
_NODES, _RECENT, _LISTS, _LONGEST = 1_000, 12, 200, 16
_WALKS = 1_000
_KEY_WORDS = 4

#: Where a walk starts and its registers.
Launch: TypeAlias = tuple[int, tuple[int, ...]]


class _Workload:
    """A tree, candidate lists and hash chains in one memory."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.words: dict[int, list[int]] = {}
        self.nodes = [self._record() for _ in range(_NODES)]
        last_child: dict[int, int] = {}
        for index, node in enumerate(self.nodes):
            words = self.words[node]
            words[SCORE.word] = chance.randrange(100)
            dead, untried = chance.randrange(2), int(chance.randrange(4) == 0)
            words[DEPTH.word] = dead << 12 | untried
            if index:
                parent = self.nodes[chance.randrange(max(0, index - _RECENT), index)]
                words[PARENT.word] = parent
                words[DEPTH.word] |= (self.words[parent][DEPTH.word] >> DEPTH.low) + 1 << DEPTH.low
                before, link = (last_child[parent], SIBLING) if parent in last_child else (parent, CHILD)
                self.words[before][link.word] = node
                last_child[parent] = node
        self.lists = [self._linked(CANDIDATE["next"], self._candidate) for _ in range(_LISTS)]
        self.chains = [self._linked(HASH_ENTRY["next"], self._entry) for _ in range(_LISTS)]

    def _record(self) -> int:
        address = 1 + len(self.words)
        self.words[address] = [0] * 8
        return address

    def _linked(self, link: int, fill: Callable[[list[int], int], None]) -> list[int]:
        addresses = [self._record() for _ in range(self.chance.randint(1, _LONGEST))]
        for position, (address, following) in enumerate(zip(addresses, [*addresses[1:], 0], strict=True)):
            self.words[address][link] = following
            fill(self.words[address], position)
        return addresses

    def _candidate(self, words: list[int], position: int) -> None:
        words[CANDIDATE["node"]] = self.chance.choice(self.nodes)
        words[CANDIDATE["score"]] = self.chance.randrange(100)
        words[CANDIDATE["sequence"]] = position
        words[CANDIDATE["status"]] = self.chance.randrange(2) << 12

    def _entry(self, words: list[int], position: int) -> None:
        words[:_KEY_WORDS] = [self.chance.getrandbits(32) for _ in range(_KEY_WORDS)]
        words[HASH_ENTRY["node"]] = self.chance.choice(self.nodes)

    def node(self, *registers: int) -> Launch:
        """A walk from any node."""
        return self.chance.choice(self.nodes), registers

    def candidates(self, *registers: int) -> Launch:
        """A walk along any candidate list."""
        return self.chance.choice(self.lists)[0], registers

    def lookup(self) -> Launch:
        """A walk along any hash chain, for a key of it or for another."""
        chain = self.chance.choice(self.chains)
        key = self.words[self.chance.choice(chain)][:_KEY_WORDS]
        if self.chance.randrange(2):
            key[-1] ^= 1
        return chain[0], tuple(key)


#: A walk of every entry of the default image.
LAUNCHES: Mapping[str, Callable[[_Workload], Launch]] = {
    "climb": lambda work: work.node(),
    "best_sibling": lambda work: work.node(0, 0, LIVE_CHILDREN),
    "select_k": lambda work: work.candidates(3, 0),
    "select_k_live": lambda work: work.candidates(3),
    "common_ancestor": lambda work: work.node(work.chance.choice(work.nodes)),
    "visited": lambda work: work.lookup(),
    "descend": lambda work: work.node(),
    "backup": lambda work: work.node(1 << 16),
}


def instructions_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """The mean instructions a hop of every program. The files play no part in it, nothing is simulated."""
    image = default_image()
    measures = list[Measure]()
    for done, (entry, launch) in enumerate(LAUNCHES.items()):
        progress("instructions a hop", done, len(LAUNCHES))
        work = _Workload(random.Random(_SEED))
        memory: dict[int, Atom] = {address: tuple(words) for address, words in work.words.items()}
        steps = hops = 0
        for _ in range(_WALKS):
            start, registers = launch(work)
            result = run_walk(
                image.instructions,
                memory,
                address=start,
                entry=image.entries[entry],
                registers=registers,
                window=(1, 1 + len(memory)),
                writable=True,
                budget=BUDGET_MAX,
            )
            steps += result.steps
            hops += result.hops
        measures.append(
            Measure(
                name="instructions_per_hop",
                where={"program": entry},
                value=steps / hops,
                unit="instructions",
            )
        )
    progress("instructions a hop", len(LAUNCHES), len(LAUNCHES))
    return measures
