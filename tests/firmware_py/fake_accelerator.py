"""A fake accelerator: the driver's and the monitor's side of a replay, walks by the golden interpreter.

Latencies are made up: a near hop takes 80 cycles, a far one 400, a launch and a verdict 150 each, a copied
atom 60. All are longer than the link of `v100_hbm2` that they cross. Its walks run one after another, on an
open-page memory without refresh that obeys the timing table by being slow.
`corrupt` may change what a walk did, `forget_write` loses writes, `bad_command` breaks a timing rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from firmware_py.completion import Completions, parse
from firmware_py.driver import MemoryErrors
from hdl.config import DesignConfig
from hdl.layouts import ColumnOp, HopEvent, RefreshMode, RowClass, RowOp, Source
from hdl.memory.stack import StackMap
from hdl.registers import CommandOp
from hdl.walker.isa import Instruction
from sim.compiled import ACCESS_RECORD, BATCH_RECORD, COMMAND_RECORD, HOP_RECORD, PORT_RECORD
from sim.model.command_checker import COLUMN_BUS, ROW_BUS
from sim.model.interpreter import BUDGET_MAX, WalkResult, run_walk

HOP_CYCLES = (80, 400)
CROSSING_CYCLES = 150
COPY_CYCLES = 60


class FakeAccelerator:
    def __init__(self, config: DesignConfig, *, slower: int = 1) -> None:
        # For clocks that are faster than a nanosecond.
        self._hop_cycles = [slower * cycles for cycles in HOP_CYCLES]
        self._crossing_cycles = slower * CROSSING_CYCLES
        self.memory_atoms = config.memory.atoms
        self.contexts = config.walker.contexts
        self.completion_atoms = config.scratchpad.atoms // 4
        self.command_atoms = config.scratchpad.atoms - self.completion_atoms
        self._stack = StackMap(config.memory)
        self._row_hit = config.memory.timing.row_hit
        self._open: dict[tuple[int, int, int], int] = {}
        self.memory: dict[int, tuple[int, ...]] = {}
        self.windows: dict[int, tuple[int, int, bool, int]] = {}
        self.program: list[Instruction] = []
        self.batches: list[np.ndarray] = []
        self.link: dict[str, int] = {}
        self.cycle = 0
        self.corrupt: Callable[[WalkResult, int], WalkResult] = lambda result, walk: result
        self.forget_write: Callable[[int], bool] = lambda address: False
        self.bad_command = False
        self._walks = 0
        self._all_hops: list[tuple] = []
        self.refresh = RefreshMode.ALL_BANK
        self.clear_logs()

    # -- The driver's side --------------------------------------------------------------------------

    def load_program(self, words, *, first=0):
        self.program = [Instruction.decode(word) for word in words]

    def reset_counters(self):
        self.errors = MemoryErrors(
            corrected=0, uncorrectable=0, corrected_address=None, uncorrectable_address=None
        )

    def memory_errors(self):
        return self.errors

    def set_cache(self, *, sets_log2, ways, hit_latency):
        self.cache = {"sets_log2": sets_log2, "ways": ways, "hit_latency": hit_latency}

    def cache_counts(self):
        """It has no cache: every read misses."""
        return 0, sum(event[2] == HopEvent.REQUEST.value for event in self._all_hops)

    def set_link(self, *, latency_up, latency_down, bytes_per_cycle=0):
        self.link = {"up": latency_up, "down": latency_down, "width": bytes_per_cycle}

    def set_refresh(self, mode):
        self.refresh = mode

    def configure_context(self, context, *, base, limit, writable, budget=BUDGET_MAX, channel=0):
        assert 0 <= context < self.contexts
        assert base // self._stack.channel_atoms == (limit - 1) // self._stack.channel_atoms == channel
        assert 0 < base <= limit <= self.memory_atoms
        self.windows[context] = (base, limit, writable, budget)

    def run_batch(self, command_atoms):
        assert command_atoms.dtype == np.uint32 and len(command_atoms) <= self.command_atoms
        self.batches.append(command_atoms.copy())
        self._close_rows()
        began = self.cycle
        records: list[list[int]] = []
        atoms = command_atoms.tolist()
        index = 0
        if self.bad_command:
            # Two ACT of one bank in neighbouring cycles.
            for at in (self.cycle, self.cycle + 2):
                self._commands[0].append((at, ROW_BUS, RowOp.ACTIVATE.value, 0, 0, 5))
            self.cycle += 100
        while index < len(atoms):
            words = atoms[index]
            op = words[0] & 15
            if op == CommandOp.WRITE:
                count = (words[0] >> 4 & 0xFFF) + 1
                for offset, data in enumerate(atoms[index + 1 : index + 1 + count]):
                    self._write(words[1] + offset, data, words[2])
                index += count
            elif op == CommandOp.WALK:
                self._walk(index, words, records)
            elif op == CommandOp.COPY:
                self._copy(words)
            else:
                assert op == CommandOp.FENCE, op
            index += 1
            self.cycle += 1
        assert len(records) <= self.completion_atoms
        completions = parse(np.array(records, dtype=np.uint32).reshape(-1, 8))
        return Completions(records=completions, cycles=self.cycle - began)

    def _write(self, address, data, mask):
        if self.forget_write(address):
            return
        old = self.memory.get(address, (0,) * 8)
        for word in range(8):
            assert mask >> 4 * word & 15 in (0, 15), "a replay writes whole words"
        self._access(address, Source.SEQUENCER.value, 0, write=1)
        self.cycle += 60
        self.memory[address] = tuple(
            new if mask >> 4 * word & 1 else before
            for word, (before, new) in enumerate(zip(old, data, strict=True))
        )

    def _copy(self, words):
        """Memory to scratchpad: one atom after another."""
        assert not words[0] >> 4 & 1, "a replay copies to the scratchpad only"
        count = (words[0] >> 16) + 1
        assert words[2] + count <= self.command_atoms
        for offset in range(count):
            self._access(words[1] + offset, Source.MOVER.value, 0)
            self.cycle += COPY_CYCLES

    def _access(self, address, source, context, *, write=0):
        """One access from `self.cycle` on: PRE, ACT and the column command, as its row needs them."""
        channel = int(self._stack.channel(address))
        arrived = self.cycle
        if source == Source.FAR_WALKER.value:
            # A cycle for the link, and one for a cache.
            arrived += self.link.get("up", 0) + 2
        self._ports.append((arrived, source, context, write, 0, channel))
        place = self._stack.channel_map.decode(self._stack.local(address))
        unit = (int(place.pseudo_channel), int(place.bank))
        log = self._commands[channel]
        at = arrived + 2
        row_class = RowClass.HIT
        if self._open.get((channel, *unit)) != place.row:
            row_class = RowClass.CLOSED
            if (channel, *unit) in self._open:
                row_class = RowClass.CONFLICT
                log.append((at, ROW_BUS, RowOp.PRECHARGE.value, *unit, 0))
                at += 20
            log.append((at, ROW_BUS, RowOp.ACTIVATE.value, *unit, place.row))
            self._open[channel, *unit] = place.row
            at += 20
        op = ColumnOp.WRITE if write else ColumnOp.READ
        log.append((at, COLUMN_BUS, op.value, *unit, place.column))
        self._accesses.append((at, source, context, row_class.value, write, channel))
        self._ports.append((at + self._row_hit, source, context, write, 1, channel))

    def _close_rows(self):
        self.cycle += 100
        for pseudo_channel in range(2):
            for log in self._commands:
                log.append((self.cycle, ROW_BUS, RowOp.PRECHARGE_ALL.value, pseudo_channel, 0, 0))
            self.cycle += 1
        self._open.clear()
        self.cycle += 100

    def _walk(self, tag, words, records):
        place, entry, context = words[0] >> 4 & 1, words[0] >> 6 & 63, words[0] >> 12 & 63
        base, limit, writable, budget = self.windows[context]
        result = run_walk(
            self.program,
            self.memory,
            address=words[1],
            entry=entry,
            registers=words[2:],
            window=(base, limit),
            writable=writable,
            budget=budget,
            memory_atoms=self.memory_atoms,
        )
        result = self.corrupt(result, self._walks)
        self._walks += 1
        launched = self.cycle
        self.cycle += self._crossing_cycles
        accepted = self.cycle
        source = (Source.NEAR_WALKER.value, Source.FAR_WALKER.value)[place]
        channel = 0 if place else int(self._stack.channel(words[1]))
        for address in result.addresses:
            self._hops.append((self.cycle, address, HopEvent.REQUEST.value, context, place, channel))
            self._access(address, source, context)
            self.cycle += self._hop_cycles[place]
        self._hops.append((self.cycle, result.value, HopEvent.VERDICT.value, context, place, channel))
        head = tag | context << 16 | place << 27 | channel << 28
        for value in result.yields:
            records.append([head | 1 << 22, result.hops, 0, 0, value, 0, 0, 0])
        walker_cycles = self.cycle - accepted
        self.cycle += self._crossing_cycles
        records.append(
            [
                head | result.status.value << 23,
                result.hops | result.code << 24,
                self.cycle - launched,
                walker_cycles,
                result.value,
                *result.registers[:3],
            ]
        )

    # -- The monitor's side -------------------------------------------------------------------------

    def hops(self):
        return np.array(self._hops, dtype=HOP_RECORD)

    def accesses(self):
        return np.array(self._accesses, dtype=ACCESS_RECORD)

    def ports(self):
        return np.array(self._ports, dtype=PORT_RECORD)

    def commands(self, channel=0):
        return np.array(self._commands[channel], dtype=COMMAND_RECORD)

    def batch_windows(self):
        return np.zeros(0, dtype=BATCH_RECORD)

    def clear_logs(self):
        self._all_hops += getattr(self, "_hops", [])
        self._hops, self._accesses, self._ports = [], [], []
        self._commands = [[] for _ in range(self._stack.channels)]

    def fetch(self, address, count):
        atoms = [self.memory.get(address + offset, (0,) * 8) for offset in range(count)]
        return np.array(atoms, dtype=np.uint32).reshape(-1, 8)
