"""Hostile walks in the whole design: random and crafted programs of one tenant beside known walks of another.

`python -m tests.e2e.hostile --walks N --seed S` (or `make soak`) runs them. One batch after another: a new
program memory, a region of memory for each context, and several walks in each. Of every walk:

* its accesses, as the walker's monitor tells them and again as the DRAM commands do, are inside its window,
  and its stores only where it may write;
* it takes no more steps than its budget, reads, stores and yields no more than its steps allow, and no more
  cycles than `walk_bound`;
* verdicts, yields, registers, accesses and memory are what the golden interpreter says of it alone: so no
  walk has changed another's, and the known walks beside them are right.

Regions lie side by side, so what is one atom too far is somebody else's.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from firmware_py import commands
from firmware_py.assembler import link
from firmware_py.assembly_text import assemble_line
from firmware_py.driver import Accelerator
from firmware_py.ledger import access_addresses
from firmware_py.programs import climb, select_k
from firmware_py.transport.inprocess import InProcessTransport
from hdl.config import DesignConfig, named_config
from hdl.layouts import HopEvent, RefreshMode, Source, VerdictKind, WalkStatus
from hdl.memory.address import AddressMap
from hdl.walker.isa import AKind, BKind, Instruction, InstructionLayout
from hdl.walker.walk_bound import near_walk_bound
from sim.compiled import CompiledModel
from sim.model.interpreter import WalkResult, run_walk
from sim.model.random_programs import random_instruction, random_record

__all__ = ["CRAFTED", "Batch", "Hostile", "Launch", "Window", "golden_word"]

#: Atoms of a region, and walks of a context in a batch.
_REGION = 12
_WALKS = 12
#: Completion records that a batch has room for, with the `simulation` scratchpad.
_COMPLETIONS = 512
#: Cycles within which the Sequencer takes a verdict: it may wait for a place on the link and in the ring.
_VERDICT = 64
_LINK = (20, 30)
#: Walks from one line of progress to the next.
_REPORTED = 10_000
_WORD = 0xFFFFFFFF

#: What a hostile tenant would write, each from its first line; `@` is a line of its own, `$` a constant that
#: points where its region does not.
CRAFTED: dict[str, tuple[str, ...]] = {
    "runs upwards out of the window": ("load address + 1 -> @0",),
    "runs downwards out of the window": ("load address - 1 -> @0",),
    "a pointer from the program": ("r0 = $; load r0 -> @0",),
    "an offset that wraps": ("r0 = 0xffffffff; load r0 + 7 -> @0",),
    "a pointer planted in its record": ("r0 = $; store w3 = r0; load w3 -> @0",),
    "never ends": ("goto @0",),
    "never ends with the same record": ("load address -> @0",),
    "yields without end": ("r1 = r1 + address; yield r1 -> @0",),
    "stores without end": ("r1 = r1 + 1; store w5 = r1; goto @0",),
    "stores and reads its record without end": ("r1 = r1 + 1; store w6 = r1; load address -> @0",),
    "stores all over its window": (
        "r2 = 1; store w0 = r2; goto @1",
        "store w1 = r2; goto @2",
        "store w7 = r2; load address + 1 -> @0",
    ),
    "conditional stores against itself": (
        "r2 = r2 + 1; store w4 = r2; goto @1",
        "r3 = r2; store w4 = r3 if unchanged; load address + 1 -> @0",
    ),
    "hides its store behind a test": ("w4 != $ ? store w2 = r0; load w0 -> @0 : load w1 -> @0",),
    "jumps into the programs of others": ("load r0 -> 0", "load r1 -> 3"),
    "counts on a wrapped address": ("address >=u $ ? load address - 2048 -> @0 : load address + 2047 -> @0",),
}


def golden_word(word: int) -> Instruction:
    """The instruction that any 128 bits are to the hardware, as `hdl/walker/datapath.py` documents it."""
    places = dict(InstructionLayout)
    for name, undefined, means in (("a_kind", 3, AKind.ADDRESS), ("b_kind", 3, BKind.WORD)):
        offset = places[name].offset
        if word >> offset & 3 == undefined:
            word = word & ~(3 << offset) | means << offset
    return Instruction.decode(word & (1 << places["reserved"].offset) - 1)


@dataclass(frozen=True, kw_only=True)
class Window:
    """What the host gives a context, and the region of memory that lies there."""

    region: range
    base: int
    limit: int
    writable: bool
    budget: int
    tenant: int


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A walk, and what the golden interpreter says of it when it is alone."""

    context: int
    entry: int
    address: int
    registers: tuple[int, ...]
    result: WalkResult


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One program memory, the windows of all contexts, and the walks in the order of their launch."""

    seed: int
    words: tuple[int, ...]
    windows: tuple[Window, ...]
    launches: tuple[Launch, ...]
    before: NDArray[np.uint32]
    """Memory from atom 0, as loaded."""
    after: NDArray[np.uint32]


@cache
def _bound(config: DesignConfig, refresh: RefreshMode, steps: int) -> int:
    """`near_walk_bound` of so many steps; kept, for it goes through the whole timing table."""
    return near_walk_bound(config, refresh, steps=steps, verdict=_VERDICT)


def _victim_records(rng: random.Random, region: range) -> list[tuple[int, ...]]:
    """A path of nodes in the first half of a region, a candidate list in the other."""
    records = []
    half = len(region) // 2
    for number, address in enumerate(region):
        words = [rng.getrandbits(32) for _ in range(8)]
        if number < half:
            words[0] = address - 1 if number else 0
            words[4] = number << 20 | (rng.random() < 0.5) << 12 | rng.choice((0, 0, 3))
        else:
            last = number == len(region) - 1
            words[:5] = [region[0], rng.randrange(5), number, 0 if last else address + 1, 0]
        records.append(tuple(words))
    return records


class _Maker:
    """Makes the batch of a seed."""

    def __init__(self, seed: int, contexts: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.image = link([climb.build(), select_k.build()])
        self.regions = [
            range(1 + _REGION * context, 1 + _REGION * (context + 1)) for context in range(contexts)
        ]

    def batch(self) -> Batch:
        """Draws program, windows and walks; walks that would fill the completion ring are left out."""
        words, entries = self._program()
        golden = [golden_word(word) for word in words]
        windows = [self._window(context) for context in range(len(self.regions))]
        before = np.zeros((1 + _REGION * len(windows), 8), dtype=np.uint32)
        for context, region in enumerate(self.regions):
            records = (
                _victim_records(self.rng, region)
                if context == 0
                else [random_record(self.rng, self._somewhere(region)) for _ in region]
            )
            before[region.start : region.stop] = records
        # A context sees its region alone: that it does is what is tested.
        memories = [
            {address: tuple(before[address].tolist()) for address in region} for region in self.regions
        ]
        launches, room = [], _COMPLETIONS
        for turn in range(_WALKS * len(windows)):
            context = turn % len(windows)
            window, memory = windows[context], dict(memories[context])
            entry, address, registers = self._launch(context, entries)
            result = run_walk(
                golden,
                memory,
                address=address,
                entry=entry,
                registers=registers,
                window=(window.base, window.limit),
                writable=window.writable,
                budget=window.budget,
            )
            if room < 1 + len(result.yields):
                continue
            room -= 1 + len(result.yields)
            memories[context] = memory
            launches.append(
                Launch(context=context, entry=entry, address=address, registers=registers, result=result)
            )
        after = before.copy()
        for memory in memories:
            for address, record in memory.items():
                after[address] = record
        return Batch(
            seed=self.seed,
            words=tuple(words),
            windows=tuple(windows),
            launches=tuple(launches),
            before=before,
            after=after,
        )

    def _somewhere(self, region: range) -> Sequence[int]:
        """A region to point into: mostly one's own, sometimes the next one's."""
        return region if self.rng.random() < 0.9 else self.rng.choice(self.regions)

    def _program(self) -> tuple[list[int], list[int]]:
        """The words, the known programs first, and the first words of what hostile walks start at."""
        words = list(self.image.words)
        entries = [len(words) + n for n in range(64 - len(words))]
        for lines in self.rng.sample(list(CRAFTED.values()), 8):
            if len(words) + len(lines) > 60:
                break
            entries += [len(words)] * 4
            first = len(words)
            for line in lines:
                text = line.replace("$", str(self._address()))
                for number in range(len(lines)):
                    text = text.replace(f"@{number}", str(first + number))
                words.append(assemble_line(text).encode())
        while len(words) < 64:
            any_bits = self.rng.random() < 0.4
            words.append(self.rng.getrandbits(128) if any_bits else random_instruction(self.rng).encode())
        return words, entries

    def _address(self) -> int:
        edges = [edge for region in self.regions for edge in (region.start - 1, region.start, region.stop)]
        return self.rng.choice((*edges, _WORD, 1 << 31, self.rng.getrandbits(32)))

    def _window(self, context: int) -> Window:
        rng, region = self.rng, self.regions[context]
        whole = Window(
            region=region,
            base=region.start,
            limit=region.stop,
            writable=False,
            budget=1000,
            tenant=0,
        )
        if context == 0:
            return whole
        base, limit = whole.base, whole.limit
        if rng.random() < 0.2:
            # A part of it, which may be empty, upside down or begin at null.
            base, limit = rng.choice(region), rng.choice(region)
            base = 0 if region.start == 1 else base
        return replace(
            whole,
            base=base,
            limit=limit,
            writable=rng.random() < 0.6,
            budget=rng.choice((rng.randrange(4), rng.randrange(40), rng.randrange(200))),
            tenant=1,
        )

    def _launch(self, context: int, entries: list[int]) -> tuple[int, int, tuple[int, ...]]:
        rng, region = self.rng, self.regions[context]
        if context == 0:
            half = _REGION // 2
            if rng.random() < 0.7:
                return self.image.entries["climb"], rng.choice(region[:half]), (0,) * 6
            return self.image.entries["select_k"], region[half], (rng.randrange(4), 0, 0, 0, 0, 0)
        entry = rng.choice(entries) if rng.random() < 0.8 else rng.randrange(64)
        address = rng.choice(region) if rng.random() < 0.9 else self._address()
        registers = (rng.choice(region) if rng.random() < 0.6 else self._address() for _ in range(6))
        return entry, address, tuple(registers)


@dataclass
class Hostile:
    """Batches on one compiled design; counts what was seen."""

    model: CompiledModel
    statuses: Counter[WalkStatus] = field(default_factory=Counter)
    walks: int = 0
    reads: int = 0
    stores: int = 0
    yields: int = 0
    steps: int = 0
    cycles: int = 0
    longest: float = 0.0
    """The largest share of its bound that a near walk took."""

    def __post_init__(self) -> None:
        self.accelerator = Accelerator(InProcessTransport(self.model))
        self.accelerator.set_link(latency_up=_LINK[0], latency_down=_LINK[1])
        self.map = AddressMap(self.model.config.memory)

    def run(self, seed: int, walks: int) -> None:
        """Batches until `walks` walks have ended. Raises AssertionError that names the batch's seed."""
        rng = random.Random(seed)
        until = self.walks + walks
        while self.walks < until:
            batch = _Maker(rng.getrandbits(48), self.accelerator.contexts).batch()
            place = int(rng.random() < 0.3)
            refresh = rng.choice(list(RefreshMode))
            try:
                self.check(batch, place, refresh)
            except AssertionError as error:
                raise AssertionError(
                    f"batch of seed {batch.seed}, place {place}, refresh {refresh.name}: {error}"
                ) from error

    def check(self, batch: Batch, place: int, refresh: RefreshMode) -> None:
        """One batch in one place, every promise."""
        model, accelerator = self.model, self.accelerator
        accelerator.load_program(batch.words)
        for context, window in enumerate(batch.windows):
            accelerator.configure_context(
                context,
                base=window.base,
                limit=window.limit,
                writable=window.writable,
                budget=window.budget,
                tenant=window.tenant,
            )
        accelerator.load_image(0, batch.before)
        accelerator.set_refresh(refresh)
        model.clear_logs()
        done = accelerator.run_batch(
            np.concatenate(
                [
                    commands.walk(
                        place=place,
                        entry=launch.entry,
                        context=launch.context,
                        address=launch.address,
                        registers=launch.registers,
                    )
                    for launch in batch.launches
                ]
            ),
            timeout_cycles=20_000_000,
        )
        self._windows(batch, place)
        # A stray write may be anywhere: the whole of what is loaded, and as much behind it.
        after = model.fetch(0, 2 * len(batch.after))
        assert not after[len(batch.after) :].any(), "a write beyond every window"
        for context, window in enumerate(batch.windows):
            region = slice(window.region.start, window.region.stop)
            wrote = (after[region] != batch.before[region]).any()
            assert window.writable or not wrote, f"context {context} has written without permission"
        assert not (after[0] != batch.before[0]).any(), "a write to atom 0"
        self._verdicts(batch, done.records, place, refresh)
        assert (after[: len(batch.after)] == batch.after).all(), "memory is not what the walks alone leave"
        self.cycles += done.cycles

    def _windows(self, batch: Batch, place: int) -> None:
        """Every access: in the window, and with permission, by the walker's monitor and by the commands."""
        model = self.model
        hops, accesses = model.hops(), model.accesses()
        assert (hops["place"] == place).all()
        asked = hops[hops["event"] != HopEvent.VERDICT.value]
        # The controller reads for conditional stores, in the name of their context.
        sources = (Source.NEAR_WALKER, Source.FAR_WALKER)[place].value, Source.CONTROLLER.value
        assert np.isin(accesses["source"], sources).all(), "an access by nobody"
        addresses = access_addresses(accesses, model.commands(), self.map)
        base, limit, writable = (
            np.array([getattr(window, name) for window in batch.windows])
            for name in ("base", "limit", "writable")
        )
        for what, context, address, store in (
            ("a request", asked["context"], asked["address"], asked["event"] == HopEvent.STORE.value),
            ("a DRAM access", accesses["context"], addresses, accesses["write"] != 0),
        ):
            within = (address >= base[context]) & (address < limit[context]) & (address != 0)
            assert within.all(), f"{what} outside the window of context {context[~within][0]}"
            permitted = ~store | writable[context]
            assert permitted.all(), f"{what} without permission by context {context[~permitted][0]}"
        self.reads += int(np.count_nonzero(asked["event"] == HopEvent.REQUEST.value))
        self.stores += int(np.count_nonzero(asked["event"] == HopEvent.STORE.value))
        for context in range(len(batch.windows)):
            mine = asked[asked["context"] == context]
            results = [launch.result for launch in batch.launches if launch.context == context]
            reads = mine["address"][mine["event"] == HopEvent.REQUEST.value]
            expected = [address for result in results for address in result.addresses]
            assert reads.tolist() == expected, f"context {context} has read something else"

    def _verdicts(self, batch: Batch, records: NDArray[np.void], place: int, refresh: RefreshMode) -> None:
        order = np.argsort(records["tag"], kind="stable")
        bounds = np.searchsorted(records["tag"][order], np.arange(len(batch.launches) + 1))
        for tag, launch in enumerate(batch.launches):
            mine = records[order[bounds[tag] : bounds[tag + 1]]]
            result, budget = launch.result, batch.windows[launch.context].budget
            where = f"walk {tag} in context {launch.context}"
            assert (mine["kind"][:-1] == VerdictKind.YIELD.value).all(), where
            assert mine["kind"][-1] == VerdictKind.DONE.value, where
            # By the hardware's own account, before the interpreter is asked.
            assert mine["hops"][-1] <= budget + 1 and len(mine) - 1 <= budget, f"{where}: over its budget"
            assert result.steps <= budget and len(result.stores) <= budget, where
            for at, (value, hops, registers) in enumerate(
                zip(result.yields, result.yield_hops, result.yield_registers, strict=True)
            ):
                record = mine[at]
                seen = int(record["value"]), int(record["hops"]), tuple(record["registers"].tolist())
                assert seen == (value, hops, registers[:3]), f"{where}, yield {at}: {seen}"
            assert len(mine) == 1 + len(result.yields), f"{where}: {len(mine) - 1} yields"
            end = mine[-1]
            seen = WalkStatus(int(end["status"])), int(end["code"]), int(end["value"]), int(end["hops"])
            assert seen == (result.status, result.code, result.value, result.hops), f"{where}: {seen}"
            assert tuple(end["registers"].tolist()) == result.registers[:3], where
            self.statuses[result.status] += 1
            self.steps += result.steps
            if place == 0:
                bound = _bound(self.model.config, refresh, result.steps)
                share = int(end["walker_cycles"]) / bound
                assert share <= 1, f"{where}: {end['walker_cycles']} cycles, expected at most {bound}"
                self.longest = max(self.longest, share)
        self.walks += len(batch.launches)
        self.yields += len(records) - len(batch.launches)

    def __str__(self) -> str:
        statuses = ", ".join(f"{status.name} {count:,}" for status, count in self.statuses.most_common())
        return (
            f"{self.walks:,} walks, {self.steps:,} steps, {self.reads:,} reads, {self.stores:,} stores, "
            f"{self.yields:,} yields in {self.cycles:,} cycles; {statuses}; "
            f"at most {self.longest:.2%} of the bound"
        )


def main() -> int:
    """The soak of the command line: prints what it does and a seed that repeats it."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.hostile", description=__doc__)
    parser.add_argument("--walks", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    arguments = parser.parse_args()
    print(f"hostile walks, seed {arguments.seed} (repeat with --seed {arguments.seed})", flush=True)
    began, chance = time.monotonic(), random.Random(arguments.seed)
    with CompiledModel(named_config("simulation"), announce=print) as model:
        hostile = Hostile(model)
        while hostile.walks < arguments.walks:
            try:
                hostile.run(chance.getrandbits(48), min(_REPORTED, arguments.walks - hostile.walks))
            except AssertionError as error:
                print(f"seed {arguments.seed}: {error}", file=sys.stderr)
                return 1
            print(f"{hostile} after {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
