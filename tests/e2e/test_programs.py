"""Every walk program on the RTL, near and far, against the golden interpreter: results, reads and memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from firmware_py import commands
from firmware_py.assembler import Image
from firmware_py.driver import Accelerator
from firmware_py.programs import decision_image, default_image, pool_image, replay_image
from firmware_py.programs.climb_compressed import launch_registers, skip_word
from firmware_py.records import CANDIDATE, HASH_ENTRY, NO_SCORE, SCORE, SKIP, STATE, STATE_BLOCK
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import named_config
from hdl.layouts import WalkStatus
from sim.compiled import CompiledModel
from sim.model.interpreter import Atom, WalkResult, run_walk

_SEED = 20261130
_ATOMS = 600
_WINDOW = (1, _ATOMS)
_BUDGET = 20_000
_WALKS = 40
_STAMP = 3
_LESSEE = 5
#: Every set of programs that is loaded together.
_IMAGES: dict[str, Image] = {
    "default": default_image(),
    "replay": replay_image("climb_compressed"),
    "decision": decision_image(),
    "pool": pool_image(),
}
#: Entries whose walks store. They may share records, so they run one after another, in one context.
_STORING = {"backup", "climb_compressed", "decide", "reclaim_release", "pool_take", "pool_give"}


def _compressed(chance: random.Random, nodes: list[int], start: int) -> tuple[int, ...]:
    return launch_registers(start=start, stamp=_STAMP)


def _root(chance: random.Random, nodes: list[int], start: int) -> tuple[int, ...]:
    return (start,)


#: Entries, and the registers that a walk of each is launched with: a drawing for each.
_LAUNCHES = {
    "climb": lambda chance, nodes, start: (),
    "climb_compressed": _compressed,
    "decide": lambda chance, nodes, start: (0, 0, chance.choice((0, -4096)), 0, chance.choice((_STAMP, 16))),
    "blocks": lambda chance, nodes, start: (),
    "reclaim": _root,
    "reclaim_release": _root,
    "pool_take": lambda chance, nodes, start: (_LESSEE, chance.randint(1, 6), 0, 0, 0, start),
    "pool_give": lambda chance, nodes, start: (_LESSEE,),
    "best_sibling": lambda chance, nodes, start: (0, 0, chance.choice((0, -4096))),
    "select_k": lambda chance, nodes, start: (chance.randrange(6), chance.randrange(2)),
    "select_k_live": lambda chance, nodes, start: (chance.randrange(6),),
    "common_ancestor": lambda chance, nodes, start: (chance.choice(nodes),),
    "visited": lambda chance, nodes, start: tuple(chance.randrange(2) for _ in range(4)),
    "descend": lambda chance, nodes, start: (),
    "backup": lambda chance, nodes, start: (chance.getrandbits(32),),
}


class _Records:
    """A forest, candidate lists and hash chains at random addresses of one memory."""

    def __init__(self, chance: random.Random) -> None:
        free = chance.sample(range(1, _ATOMS), _ATOMS - 1)
        self.words = {address: [0] * 8 for address in free}
        self.nodes = [free.pop() for _ in range(200)]
        last_child: dict[int, int] = {}
        depth: dict[int, int] = {}
        for index, node in enumerate(self.nodes):
            words = self.words[node]
            # Two roots; some of the tree deep, some broad.
            parent = 0 if index < 2 else self.nodes[chance.randrange(max(0, index - 12), index)]
            depth[node] = depth[parent] + 1 if parent else 0
            words[0] = parent
            words[SCORE.word] = chance.choice((NO_SCORE, chance.randrange(-3, 3))) & 0xFFFFFFFF
            untried = chance.choice((0, 0, 0, 1, 4095))
            words[4] = depth[node] << 20 | chance.getrandbits(7) << 13 | chance.randrange(2) << 12 | untried
            words[SKIP.word] = self._skip(chance, parent)
            words[7] = chance.choice((0, 7, 65534, 65535)) << 16 | chance.getrandbits(16)
            if parent and parent in last_child:
                self.words[last_child[parent]][2] = node
            elif parent:
                self.words[parent][1] = node
            last_child[parent] = node
        self._states(free, chance)
        self.lists = [self._chain(free, chance, self._candidate) for _ in range(12)]
        self.chains = [self._chain(free, chance, self._entry) for _ in range(12)]

    def _skip(self, chance, parent) -> int:
        """None, a true one, or a stale one."""
        over = self.words[parent][0] if parent else 0
        if not over:
            return 0
        return chance.choice((0, skip_word(stamp=_STAMP, target=over), skip_word(stamp=7, target=parent)))

    def _states(self, free, chance) -> None:
        """A pool, and chains of its blocks as the states of some nodes."""
        self.pool = [free.pop() for _ in range(150)]
        self.chained: list[int] = []
        for block, after in zip(self.pool, [*self.pool[1:], self.pool[0]], strict=True):
            self.words[block][STATE_BLOCK["ring"]] = after
            self.words[block][STATE_BLOCK["owner"]] = chance.choice((0, 0, _LESSEE, 9))
        blocks = iter(chance.sample(self.pool, len(self.pool)))
        for node in chance.sample(self.nodes, 40):
            for _ in range(chance.randint(1, 3)):
                block = next(blocks)
                self.words[block][STATE_BLOCK["owner"]] = _LESSEE
                self.words[block][STATE_BLOCK["next"]] = self.words[node][STATE.word]
                self.words[node][STATE.word] = block
            self.chained.append(self.words[node][STATE.word])

    def _chain(self, free, chance, fill) -> int:
        addresses = [free.pop() for _ in range(chance.randint(1, 12))]
        for index, address in enumerate(addresses):
            following = addresses[index + 1] if index + 1 < len(addresses) else 0
            fill(chance, self.words[address], index, following)
        return addresses[0]

    def _candidate(self, chance, words, index, following) -> None:
        words[CANDIDATE["node"]] = chance.choice(self.nodes)
        words[CANDIDATE["score"]] = chance.choice((NO_SCORE, 0, 1, -1)) & 0xFFFFFFFF
        words[CANDIDATE["sequence"]] = index
        words[CANDIDATE["next"]] = following
        words[CANDIDATE["status"]] = chance.randrange(2) << 12

    def _entry(self, chance, words, index, following) -> None:
        for part in range(4):
            words[HASH_ENTRY["key"] + part] = chance.randrange(2)
        words[HASH_ENTRY["node"]] = chance.choice(self.nodes)
        words[HASH_ENTRY["next"]] = following

    def start(self, entry: str, chance: random.Random) -> int:
        if entry.startswith("select"):
            return chance.choice(self.lists)
        if entry in ("blocks", "pool_give"):
            return chance.choice(self.chained)
        if entry == "pool_take":
            return chance.choice(self.pool)
        return chance.choice(self.chains if entry == "visited" else self.nodes)

    def atoms(self) -> np.ndarray:
        return np.array([self.words[address] for address in range(1, _ATOMS)], dtype=np.uint32)


@pytest.fixture(scope="module")
def machine() -> Iterator[tuple[CompiledModel, Accelerator]]:
    with CompiledModel(named_config("simulation")) as model:
        accelerator = Accelerator(InProcessTransport(model))
        accelerator.set_link(latency_up=20, latency_down=30)
        yield model, accelerator


def _golden(
    image: Image, entry: str, memory: dict[int, Atom], address: int, registers: tuple[int, ...]
) -> WalkResult:
    return run_walk(
        image.instructions,
        memory,
        address=address,
        entry=image.entries[entry],
        registers=[value & 0xFFFFFFFF for value in registers],
        window=_WINDOW,
        writable=entry in _STORING,
        budget=_BUDGET,
    )


def test_every_entry_of_every_image_is_launched_here() -> None:
    assert set(_LAUNCHES) == {entry for image in _IMAGES.values() for entry in image.entries}


@pytest.mark.parametrize("place", (0, 1), ids=("near", "far"))
@pytest.mark.parametrize(
    ("name", "entry"), [(name, entry) for name, image in _IMAGES.items() for entry in image.entries]
)
def test_rtl_and_interpreter_agree(machine, name: str, entry: str, place: int) -> None:
    model, accelerator = machine
    image = _IMAGES[name]
    accelerator.load_program(image.words)
    chance = random.Random(f"{_SEED} {entry}")  # printed by pytest with the entry when a test fails
    records = _Records(chance)
    accelerator.load_image(1, records.atoms())
    memory: dict[int, Atom] = {address: tuple(words) for address, words in records.words.items()}
    contexts = 1 if entry in _STORING else accelerator.contexts
    for context in range(contexts):
        accelerator.configure_context(
            context, base=_WINDOW[0], limit=_WINDOW[1], writable=entry in _STORING, budget=_BUDGET
        )
    starts = [records.start(entry, chance) for _ in range(_WALKS)]
    launches = [(start, _LAUNCHES[entry](chance, records.nodes, start)) for start in starts]
    batch = np.concatenate(
        [
            commands.walk(
                place=place,
                entry=image.entries[entry],
                context=index % contexts,
                address=address,
                registers=[value & 0xFFFFFFFF for value in registers],
            )
            for index, (address, registers) in enumerate(launches)
        ]
    )
    done = accelerator.run_batch(batch).records
    results = [_golden(image, entry, memory, address, registers) for address, registers in launches]
    for index, expected in enumerate(results):
        mine = done[done["tag"] == index]
        *yields, end = mine
        assert [int(record["value"]) for record in yields] == list(expected.yields)
        assert all(record["kind"] == 1 for record in yields) and end["kind"] == 0
        assert (WalkStatus(int(end["status"])), end["code"]) == (expected.status, expected.code)
        assert end["hops"] == expected.hops
        assert end["value"] == expected.value
        assert [int(value) for value in end["registers"]] == [
            value & 0xFFFFFFFF for value in expected.registers[:3]
        ]
    assert len(done) == sum(1 + len(expected.yields) for expected in results)
    after = np.array([memory[address] for address in range(1, _ATOMS)], dtype=np.uint32)
    assert np.array_equal(model.fetch(1, _ATOMS - 1), after)
    assert len({expected.hops for expected in results}) > 1, "every walk was alike: the memory tests nothing"
