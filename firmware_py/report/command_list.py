"""The DRAM commands of a comparison as a CSV table: one row a command, place by place, in order of cycles.

| column | what it holds |
|---|---|
| place | near, far, or far without help |
| channel | channel of the stack, from 0 |
| cycle | cycle of the command clock in which the command is on its bus (ACT: its first slot) |
| command | JEDEC's short name: ACT, PRE, PREA, REFab, REFpb, RD, RDA, WR, WRA |
| pseudo_channel | pseudo channel, from 0 |
| bank | bank in the pseudo channel, from 0; empty for a command to all banks |
| row | row of an ACT; empty for any other command |
| column | column of a read or write, in atoms of 32 bytes; empty for any other command |

Cycles count from the model's reset; what the negative controls did after the replay is included.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdl.memory.timing import Command
from sim.model.command_checker import COLUMN_BUS, COMMANDS
from sim.trace.output import whole_file

from ..compare import Comparison

__all__ = ["ALL_BANKS", "COLUMNS", "write_commands"]

#: The header.
COLUMNS = ("place", "channel", "cycle", "command", "pseudo_channel", "bank", "row", "column")
#: Commands that address every bank of their pseudo channel.
ALL_BANKS = (Command.PREA, Command.REFAB)


def write_commands(path: Path, comparison: Comparison) -> None:
    """Write the table so that it appears whole or not at all. Raises OSError naming `path`."""
    with whole_file(path) as temporary, temporary.open("w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, figures in comparison.places.items():
            for channel, log in enumerate(figures.run.logs.commands):
                writer.writerows((name, channel, *row) for row in _rows(log))


def _rows(log: NDArray[np.void]) -> Iterator[tuple[int, str, int, int | str, int | str, int | str]]:
    for cycle, bus, op, pseudo_channel, bank, row_or_column in log.tolist():
        command = COMMANDS[bus, op]
        yield (
            cycle,
            command.value,
            pseudo_channel,
            "" if command in ALL_BANKS else bank,
            row_or_column if command is Command.ACT else "",
            row_or_column if bus == COLUMN_BUS else "",
        )
