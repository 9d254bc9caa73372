"""The soak of the memory subsystem: random rounds of mixed traffic, each held to everything that is promised.

`python -m tests.hdl.memory.soak --cycles N --seed S` (or `make soak`) runs it on several configurations.

* every request is answered exactly once, with the right data and status (the harness's scoreboard);
* the RTL checker sees no rule broken, nor does `sim.model.command_checker` in the recorded commands;
* reads and the column commands of writes wait no longer than the controller promises (`wait_bound`), where
  answers are always taken; every write that was answered OK comes to the device once;
* in the end the storage holds what the scoreboard says, atom by atom.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firmware_py.ledger import access_addresses
from hdl.config import CONFIGS, ControllerConfig, DesignConfig, MemoryConfig
from hdl.layouts import ATOM_BYTES, MemoryStatus, RefreshMode, RowOp, Source
from hdl.memory.address import AddressMap, Place
from hdl.memory.wait_bound import dependent_wait_bound, wait_bound
from sim.compiled_memory import EXPECT_HELD, NEVER, TAGS, CompiledMemory, Pauses, Run, requests
from sim.model.command_checker import ROW_BUS, check

__all__ = ["Round", "Soak", "Traffic", "Wait", "dependent_writes"]

#: Rows, drawn from all, that a soak's addresses lie in: the storage behind DPI stays small.
_ROWS = 64
_SOURCES = np.array([source.value for source in Source if source is not Source.CONTROLLER], dtype=np.uint8)
_FULL_MASK = (1 << ATOM_BYTES) - 1
#: Cycles of commands that the Python checker gets at once, at least.
_CHECKED_CYCLES = 500_000


@dataclass(frozen=True, kw_only=True)
class Round:
    """One run of the harness: its requests and how they are offered."""

    requests: NDArray[np.void]
    cycles: int
    outstanding: int
    refresh: RefreshMode
    restart: bool
    idle: Pauses
    stall: Pauses
    seed: int


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A wait and what is promised of it, in cycles."""

    cycles: int
    promised: int

    @property
    def share(self) -> float:
        """How much of what is promised it was."""
        return self.cycles / self.promised

    def __str__(self) -> str:
        return f"{self.cycles:,} of {self.promised:,} cycles ({self.share:.1%})"


#: The write requests of a soak that were answered OK.
_WRITE = np.dtype([("accepted", "<i8"), ("address", "<i8"), ("refresh", "u1"), ("dependent", "?")])


class Traffic:
    """Random rounds by seed: several agents in turn at the port, each with its own places and habits."""

    def __init__(self, seed: int, config: MemoryConfig) -> None:
        self.rng = np.random.default_rng(seed)
        self.map = AddressMap(config)
        shape = self.organisation = config.organisation
        # Rows that differ in one bit of their number, as well as unrelated ones.
        unrelated = self.rng.choice(shape.rows, size=min(_ROWS // 2, shape.rows), replace=False)
        bits = self.rng.integers(shape.rows.bit_length() - 1, size=len(unrelated))
        rows = np.unique(np.concatenate([unrelated, unrelated ^ 1 << bits]))
        grid = np.meshgrid(
            np.arange(shape.pseudo_channels), np.arange(shape.banks), rows, np.arange(shape.columns)
        )
        places = Place(*(axis.ravel().astype(np.int64) for axis in grid))
        self.universe = np.sort(np.asarray(self.map.encode(places), dtype=np.int64))
        """Every address of the soak, ascending."""
        self._rows = rows
        self._refresh = RefreshMode.NONE

    def _pick(self, *choices: float) -> float:
        return float(self.rng.choice(choices))

    def round(self, *, restart: bool) -> Round:
        """The next round; with `restart` in any case from a restart on."""
        rng = self.rng
        restart = restart or bool(rng.random() < 0.4)
        if restart:
            self._refresh = RefreshMode(int(rng.integers(len(RefreshMode))))
        cycles = int(rng.integers(500, 16_000))
        agents = int(rng.integers(1, 5))
        asked = [self._agent(cycles // agents + 1) for _ in range(agents)]
        requests = self._interleave(asked)
        tags = TAGS * len(np.unique(requests["source"]))
        return Round(
            requests=requests,
            cycles=cycles,
            outstanding=min(int(self._pick(1, 8, 64, 64, 200)), tags),
            refresh=self._refresh,
            restart=restart,
            idle=Pauses(share=self._pick(0, 0, 0, 0.3, 0.9), length=int(self._pick(1, 20, 400))),
            stall=Pauses(share=self._pick(0, 0, 0, 0, 0.3, 0.9), length=int(self._pick(1, 10, 200))),
            seed=int(rng.integers(1 << 63)),
        )

    def _agent(self, count: int) -> NDArray[np.void]:
        """`count` requests of one agent, `after` counted within them."""
        rng = self.rng
        kind = rng.random(count)
        conditional = kind < self._pick(0, 0, 0.02, 0.2)
        write = conditional | (kind > 1 - self._pick(0, 0.1, 0.4, 0.75))
        # Full masks, random ones, and some of so few bytes that there may be none.
        bits = rng.integers(1 << ATOM_BYTES, size=(3, count), dtype=np.uint32)
        partial = np.where(rng.random(count) < 0.8, bits[0], bits[0] & bits[1] & bits[2])
        mask = np.where(rng.random(count) < self._pick(0, 0.5, 1), partial, np.uint32(_FULL_MASK))
        word = np.uint32(0xF) << (4 * rng.integers(8, size=count)).astype(np.uint32)
        made = requests(
            self._addresses(count),
            write=write,
            # Half of them expect what is there, the others most likely not.
            conditional=np.where(conditional, rng.choice((1, EXPECT_HELD), size=count), 0),
            expected=rng.integers(1 << 32, size=count, dtype=np.uint32),
            mask=np.where(conditional, word, mask),
            data=rng.integers(1 << 32, size=(count, 8), dtype=np.uint32),
            priority=rng.random(count) < self._pick(0, 0.5, 1),
            source=rng.choice(_SOURCES, size=count),
        )
        if rng.random() < 0.4:
            # Walks: so many at a time, each waiting for its own answer.
            walks, index = int(self._pick(1, 4, 16)), np.arange(count)
            made["after"] = np.where(index >= walks, index - walks, -1)
            made["delay"] = int(self._pick(1, 2, 60))
        return made

    def _addresses(self, count: int) -> NDArray[np.int64]:
        rng, universe, shape = self.rng, self.universe, self.organisation
        match rng.choice(("anywhere", "banks", "rows", "atoms", "stream")):
            case "anywhere":
                addresses = rng.choice(universe, size=count)
            case "stream":
                addresses = universe[(rng.integers(len(universe)) + np.arange(count)) % len(universe)]
            case "atoms":
                addresses = rng.choice(rng.choice(universe, size=int(rng.integers(1, 20))), size=count)
            case places:
                hot = int(rng.integers(1, 4))
                chosen = rng.integers(hot, size=count)
                rows = rng.choice(self._rows, size=hot)[chosen] if places == "rows" else None
                addresses = self.map.encode(
                    Place(
                        rng.integers(shape.pseudo_channels, size=hot)[chosen],
                        rng.integers(shape.banks, size=hot)[chosen],
                        rng.choice(self._rows, size=count) if rows is None else rows,
                        rng.integers(shape.columns, size=count),
                    )
                )
        beyond = rng.random(count) < self._pick(0, 0, 0.05)
        outside = rng.integers(self.map.atoms, 1 << 32, size=count)
        return np.where(beyond, outside, addresses)

    def _interleave(self, asked: list[NDArray[np.void]]) -> NDArray[np.void]:
        """The agents' requests in a random order that keeps each agent's own."""
        whose = self.rng.permutation(np.repeat(np.arange(len(asked)), [len(each) for each in asked]))
        mixed = np.empty(len(whose), dtype=asked[0].dtype)
        for agent, each in enumerate(asked):
            at = np.flatnonzero(whose == agent)
            mixed[at] = each
            follows = each["after"] >= 0
            mixed["after"][at[follows]] = at[each["after"][follows]]
        return mixed


def dependent_writes(writes: NDArray[np.void], *, ecc: bool) -> NDArray[np.bool_]:
    """The writes that the memory reads for first: conditional ones, and with ECC those of parts of words."""
    conditional = writes["conditional"] != 0
    if not ecc:
        return conditional
    # A byte of the mask is an ECC word of the atom.
    words = np.ascontiguousarray(writes["mask"]).view(np.uint8).reshape(-1, writes["mask"].itemsize)
    return conditional | ((words != 0) & (words != 0xFF)).any(axis=1)


class Soak:
    """Rounds of `Traffic` on one memory, and what they amounted to. AssertionError: something is wrong."""

    def __init__(self, memory: CompiledMemory, seed: int) -> None:
        self.memory = memory
        self.traffic = Traffic(seed, memory.config.memory)
        self.rounds = 0
        self.cycles = 0
        self.statuses: Counter[MemoryStatus] = Counter()
        self.row_ops: Counter[RowOp] = Counter()
        self.reads: Wait | None = None
        """From acceptance to answer: the read that came nearest to what is promised."""
        self.writes: Wait | None = None
        """The same of writes, from acceptance to the column command; those that depend on what is there are
        held to their own bound."""
        self._promised = {mode.value: wait_bound(memory.config, mode) for mode in RefreshMode}
        self._promised_dependent = np.array(
            [dependent_wait_bound(memory.config, mode) for mode in RefreshMode], dtype=np.int64
        )
        self._unchecked: list[NDArray[np.void]] = []
        self._accesses: list[NDArray[np.void]] = []
        self._writes: list[NDArray[np.void]] = []
        self._stalled: list[tuple[int, int]] = []
        self._windows: dict[int, int] = {}
        self._violations: list[str] = []
        self._checked_from = memory.cycle

    def run(self, cycles: int) -> None:
        """Rounds for at least `cycles`, then the final check of the storage."""
        begin = self.memory.cycle
        while self.memory.cycle - begin < cycles:
            self._one()
        self._finish()
        self.cycles += self.memory.cycle - begin

    def _one(self) -> None:
        asked = self.traffic.round(restart=not self.rounds)
        run = self.memory.run(
            asked.requests,
            **{f.name: getattr(asked, f.name) for f in dataclasses.fields(asked) if f.name != "requests"},
        )
        self.rounds += 1
        try:
            self.record(run, restarted=asked.restart, stalled=asked.stall.share > 0)
        except AssertionError as error:
            raise AssertionError(f"round {self.rounds} ({_describe(asked)}): {error}") from None

    def record(self, run: Run, *, restarted: bool, stalled: bool) -> None:
        """Takes what a run did into the books. AssertionError: it was not answered right, or broke a rule.

        With `stalled` not every answer was taken at once, so that requests may wait longer than is promised.
        """
        # The restart belongs to the logs before; behind it every bank is closed, so that a check may begin.
        begin = run.begin if restarted else 0
        self._unchecked.append(run.commands[run.commands["cycle"] < begin])
        self._accesses.append(run.accesses[run.accesses["cycle"] < begin])
        if restarted and run.begin - self._checked_from >= _CHECKED_CYCLES:
            self.check()
            self._checked_from = run.begin
        self._unchecked.append(run.commands[run.commands["cycle"] >= begin])
        self._accesses.append(run.accesses[run.accesses["cycle"] >= begin])
        if run.refresh_window is not None:
            first, last = run.refresh_window
            self._windows[first] = last
        self._violations += run.violations
        if run.violations:
            self.check()  # says what the other checker found
        assert not run.faults, f"{len(run.faults)} faults, the first: {'; '.join(run.faults[:3])}"
        offered = run.answers["offered"] != NEVER
        assert np.array_equal(offered, run.answered), "offered requests without an answer"
        self.statuses.update(MemoryStatus(int(status)) for status in run.answers["status"][offered])
        write = run.requests["write"] == 1
        if stalled:
            self._stalled.append((run.begin, run.end))
        else:
            reads = run.answers[offered & ~write]
            waits = (reads["answered"] - reads["accepted"]).astype(np.int64)
            self.reads = self._longest("read", waits, np.full(len(waits), run.refresh.value), self.reads)
        written = offered & write & (run.answers["status"] == MemoryStatus.OK.value)
        writes = np.zeros(np.count_nonzero(written), dtype=_WRITE)
        writes["accepted"] = run.answers["accepted"][written]
        writes["address"] = run.requests["address"][written]
        writes["refresh"] = run.refresh.value
        writes["dependent"] = dependent_writes(run.requests[written], ecc=self.memory.config.controller.ecc)
        self._writes.append(writes)
        rows = run.commands["op"][run.commands["bus"] == ROW_BUS]
        self.row_ops.update({op: int(np.count_nonzero(rows == op.value)) for op in RowOp})

    def _longest(
        self, kind: str, waits: NDArray[np.int64], modes: NDArray[np.uint8], before: Wait | None
    ) -> Wait | None:
        """The wait nearest to what is promised in its mode of refresh, `before` included."""
        longest = before
        for mode, promised in self._promised.items():
            those = waits[modes == mode]
            if len(those):
                wait = Wait(cycles=int(those.max()), promised=promised)
                assert wait.cycles <= promised, f"a {kind} waited {wait.cycles} cycles: expected {promised}"
                longest = wait if longest is None or wait.share > longest.share else longest
        return longest

    def check(self) -> None:
        """Both checkers find nothing in what was recorded since the last check, and no write was late."""
        commands, accesses = np.concatenate(self._unchecked), np.concatenate(self._accesses)
        report = check(
            commands,
            self.memory.config.memory.timing,
            self.memory.config.memory.organisation,
            refresh_windows=np.array(list(self._windows.items()), dtype=np.int64).reshape(-1, 2),
        )
        first = next(iter(report), None)
        assert not self._violations and first is None, (
            f"the RTL checker reports {len(self._violations)} violations, the first: "
            f"{next(iter(self._violations), None)}; the Python checker {len(report)}: {report.by_rule()}, "
            f"the first: {first}"
        )
        self._check_writes(np.concatenate(self._writes), commands, accesses)
        for log in (self._unchecked, self._accesses, self._writes, self._stalled, self._windows):
            log.clear()

    def _check_writes(
        self, asked: NDArray[np.void], commands: NDArray[np.void], accesses: NDArray[np.void]
    ) -> None:
        """Every write has one column command, in time. Those of one atom keep their order."""
        written = accesses["write"] == 1
        addresses = access_addresses(accesses, commands, self.memory.map)[written]
        cycles = accesses["cycle"][written].astype(np.int64)
        served = np.lexsort((cycles, addresses))
        asked = asked[np.lexsort((asked["accepted"], asked["address"]))]
        assert np.array_equal(addresses[served], asked["address"]), (
            f"{len(served)} column commands of writes: expected those of {len(asked)} writes"
        )
        begin, end = np.array(self._stalled, dtype=np.int64).reshape(-1, 2).T
        # A write that saw no stalled run: none began before its command that did not end before the write.
        begun = np.searchsorted(begin, cycles[served], side="right")
        smooth = begun == np.searchsorted(end, asked["accepted"], side="right")
        waits = cycles[served] - asked["accepted"]
        plain = smooth & ~asked["dependent"]
        self.writes = self._longest("write", waits[plain], asked["refresh"][plain], self.writes)
        late = smooth & (waits > self._promised_dependent[asked["refresh"]])
        assert not late.any(), f"a dependent write waited {waits[late].max()} cycles"

    def _finish(self) -> None:
        """Drains what is buffered, checks the rest of the log and the storage."""
        self.record(self.memory.run(requests([])), restarted=True, stalled=False)
        self.check()
        for first, count in _stretches(self.traffic.universe):
            stored, expected = self.memory.fetch(first, count), self.memory.reference(first, count)
            wrong = np.flatnonzero((stored != expected).any(axis=1))
            assert not len(wrong), (
                f"atom {first + wrong[0]:#x} holds {stored[wrong[0]]}, expected {expected[wrong[0]]}"
            )


def _stretches(addresses: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive addresses: the first and how many."""
    cuts = np.flatnonzero(np.diff(addresses) != 1) + 1
    for stretch in np.split(addresses, cuts):
        yield int(stretch[0]), len(stretch)


def _describe(asked: Round) -> str:
    return (
        f"{len(asked.requests)} requests, {asked.outstanding} outstanding, refresh "
        f"{asked.refresh.name.lower()}, idle {asked.idle.share}, stall {asked.stall.share}"
    )


def _configurations() -> dict[str, DesignConfig]:
    """What `make soak` runs on: the default, then each policy, ECC, a memory with tPPD, slower decisions, and
    the board's memory."""

    def design(preset: str = "hbm2_2000", **controller: object) -> DesignConfig:
        return DesignConfig(
            memory=MemoryConfig(storage="dpi", preset=preset),
            controller=dataclasses.replace(ControllerConfig(), **controller),
        )

    board = CONFIGS["ulx3s"]
    return {
        "default": design(),
        "page policy open": design(page_policy="open"),
        "page policy closed": design(page_policy="closed"),
        "ECC": design(ecc=True),
        "hbm3_6400": design("hbm3_6400"),
        "two decision stages": design(decision_stages=2),
        "three decision stages, ECC": design(decision_stages=3, ecc=True),
        "hbm3_6400, five decision stages": design("hbm3_6400", decision_stages=5),
        "board": dataclasses.replace(board, memory=dataclasses.replace(board.memory, storage="dpi")),
    }


def main() -> None:
    """Soaks every configuration, the default one for as long as all others together."""
    parser = argparse.ArgumentParser(description="Soak of the memory subsystem.")
    parser.add_argument("--cycles", type=int, default=10_000_000, help="cycles on the default configuration")
    parser.add_argument("--seed", type=int, help="repeat this seed; else a new one")
    arguments = parser.parse_args()
    seed = random.SystemRandom().getrandbits(31) if arguments.seed is None else arguments.seed
    print(f"memory soak: seed {seed} (repeat with: make soak SEED={seed})", flush=True)
    for name, config in _configurations().items():
        with CompiledMemory(config, announce=lambda what: print(f"  {what}", flush=True)) as memory:
            soak, began = Soak(memory, seed), time.monotonic()
            try:
                soak.run(arguments.cycles if name == "default" else arguments.cycles // 4)
            except AssertionError as error:
                sys.exit(f"{name}, seed {seed}: {error}")
            seconds = time.monotonic() - began
            statuses = sorted(soak.statuses.items(), key=lambda item: item[0].value)
            counts = ", ".join(f"{count:,} {status.name}" for status, count in statuses)
            print(
                f"{name}: {soak.cycles:,} cycles, {soak.rounds} rounds, {counts}; a read waited for at most "
                f"{soak.reads} promised, a write's command for {soak.writes}; {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
