"""Batches of commands: cuts a stream of writes, walks and fences to the size of the command ring.

Where a batch ends depends on the commands and on the ring's size alone, never on time or on results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hdl.config import DesignConfig

from . import commands
from .commands import Atoms
from .image import WriteRun

__all__ = ["Batch", "BatchBuilder", "RingSize", "Stream", "WalkCommand", "Window", "ring_size"]


@dataclass(frozen=True, kw_only=True)
class RingSize:
    """The scratchpad's share of each ring, in atoms."""

    commands: int
    completions: int


def ring_size(config: DesignConfig) -> RingSize:
    """The rings of a design: three quarters of the scratchpad hold commands, the rest completions."""
    completions = config.scratchpad.atoms // 4
    return RingSize(commands=config.scratchpad.atoms - completions, completions=completions)


@dataclass(frozen=True, kw_only=True)
class WalkCommand:
    """One walk to launch; the place is chosen when the batch is run."""

    entry: int
    context: int
    address: int
    registers: tuple[int, ...] = ()
    completions: int = 1
    """Completion records that it writes at most: its yields and its end."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a context may touch while a batch runs: atoms [base, limit), stores included if `writable`."""

    context: int
    base: int
    limit: int
    writable: bool
    channel: int = 0
    """The channel that the window lies in: the near walker of that one is set."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A list that is copied into the scratchpad between two walks that read nothing, which mark its time."""

    number: int
    """The caller's number of the question."""
    verdict: int
    """Verdicts of the batch that come before that of the first mark; the next one is the second's."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Commands that the Sequencer executes alone, and the walks among them in order."""

    atoms: Atoms
    """The commands, with every walk in the near place."""
    walk_rows: tuple[int, ...]
    """Index in `atoms` of each WALK: its tag."""
    walk_numbers: tuple[int, ...]
    """The caller's number of each WALK."""
    completions: int
    """Completion records that the walks write at most."""
    windows: tuple[Window, ...]
    """Contexts to set before the batch starts; others stay as they were."""
    mark_rows: tuple[int, ...] = ()
    """Index in `atoms` of each WALK that only marks a time."""
    streams: tuple[Stream, ...] = ()

    def in_place(self, place: int) -> Atoms:
        """The commands with every walk in `place` (0 near, 1 far); no other bit differs."""
        return commands.with_place(self.atoms, [*self.walk_rows, *self.mark_rows], place)


class BatchBuilder:
    """Collects commands and closes a batch whenever the next command does not fit in the ring.

    With `stream` a third of the command ring is left free, for lists that are read as a stream.
    """

    def __init__(self, ring: RingSize, *, stream: bool = False) -> None:
        self.stream_atoms = ring.commands // 3 if stream else 0
        """Atoms of the longest list that can be read as a stream."""
        ring = RingSize(commands=ring.commands - self.stream_atoms, completions=ring.completions)
        if ring.commands < 2 or ring.completions < 1:
            raise ValueError(f"rings of {ring}: expected room for a WRITE with its data and one completion")
        self._ring = ring
        self.batches: list[Batch] = []
        self._atoms: list[Atoms] = []
        self._count = 0
        self._rows: list[int] = []
        self._numbers: list[int] = []
        self._completions = 0
        self._windows: list[Window] = []
        self._marks: list[int] = []
        self._streams: list[Stream] = []
        self._fenced = True

    def window(self, window: Window) -> None:
        """Set a context before anything that comes later: the batch so far is closed."""
        if self._count:
            self.close()
        self._windows.append(window)

    def write(self, run: WriteRun) -> None:
        """A WRITE of a run of atoms, cut into several where the ring or the command ends."""
        done = 0
        while done < len(run.data):
            if self._ring.commands - self._count < 2:
                self.close()
            count = min(len(run.data) - done, self._ring.commands - self._count - 1, commands.WRITE_MAX)
            self._add(
                commands.write(address=run.address + done, data=run.data[done : done + count], mask=run.mask)
            )
            done += count

    def walk(self, walk: WalkCommand, *, number: int) -> None:
        """A WALK that the caller knows as `number`.

        Raises ValueError when it may write more completion records than the ring holds.
        """
        if walk.completions > self._ring.completions:
            raise ValueError(
                f"walk writes {walk.completions} completion records: "
                f"expected at most {self._ring.completions}, the completion ring's size"
            )
        if (
            self._count == self._ring.commands
            or self._completions + walk.completions > self._ring.completions
        ):
            self.close()
        self._rows.append(self._count)
        self._numbers.append(number)
        self._completions += walk.completions
        self._add(_walk_atoms(walk))

    def stream(self, *, address: int, count: int, marker: WalkCommand, number: int) -> None:
        """A COPY of a list into the scratchpad, alone, between two `marker` walks that read nothing.

        Raises ValueError for a list that is longer than `stream_atoms`.
        """
        if not 1 <= count <= self.stream_atoms:
            raise ValueError(f"list of {count} atoms: expected 1 to {self.stream_atoms}")
        if self._ring.commands - self._count < 5 or self._ring.completions - self._completions < 2:
            self.close()
        self.fence()
        self._streams.append(Stream(number=number, verdict=len(self._rows) + len(self._marks)))
        self._mark(marker)
        self._add(
            commands.copy(
                to_memory=False, memory_address=address, scratchpad_address=self._ring.commands, count=count
            )
        )
        self._add(commands.fence())
        self._mark(marker)

    def fence(self) -> None:
        """A FENCE, unless nothing came after the last one; the end of a batch is one too."""
        if self._fenced:
            return
        if self._count == self._ring.commands:
            self.close()
            return
        self._add(commands.fence())
        self._fenced = True

    def close(self) -> None:
        """End the batch, if it holds commands: all of it is over before the next starts."""
        if not self._count:
            return
        self.batches.append(
            Batch(
                atoms=np.concatenate(self._atoms),
                walk_rows=tuple(self._rows),
                walk_numbers=tuple(self._numbers),
                completions=self._completions,
                windows=tuple(self._windows),
                mark_rows=tuple(self._marks),
                streams=tuple(self._streams),
            )
        )
        self._atoms, self._count, self._completions = [], 0, 0
        self._rows, self._numbers, self._windows = [], [], []
        self._marks, self._streams = [], []
        self._fenced = True

    def finish(self) -> Sequence[Batch]:
        """Close the last batch and return all of them."""
        self.close()
        return self.batches

    def _mark(self, marker: WalkCommand) -> None:
        self._marks.append(self._count)
        self._completions += 1
        self._add(_walk_atoms(marker))

    def _add(self, atoms: Atoms) -> None:
        self._atoms.append(atoms)
        self._count += len(atoms)
        self._fenced = False


def _walk_atoms(walk: WalkCommand) -> Atoms:
    return commands.walk(
        place=0,
        entry=walk.entry,
        context=walk.context,
        address=walk.address,
        registers=walk.registers,
    )
