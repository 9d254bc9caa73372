"""Completion records: the layout of the atoms that the Sequencer writes, parsed into a numpy record array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["COMPLETION", "Completions", "Records", "parse"]

#: Fields of a parsed completion record; `hdl.sequencer.Completion` is the hardware's declaration.
COMPLETION = np.dtype(
    [
        ("tag", "<u2"),
        ("context", "u1"),
        ("kind", "u1"),
        ("status", "u1"),
        ("place", "u1"),
        ("channel", "u1"),
        ("code", "u1"),
        ("hops", "<u4"),
        ("walk_cycles", "<u4"),
        ("walker_cycles", "<u4"),
        ("value", "<u4"),
        ("registers", "<u4", (3,)),
    ]
)

#: An array of COMPLETION records.
Records: TypeAlias = NDArray[np.void]


def parse(atoms: NDArray[np.uint32]) -> Records:
    """The records in `atoms` (uint32, [n, 8]).

    tag: index in the batch of the WALK's atom. kind: 0 the walk is over, 1 one yielded result. status:
    `WalkStatus`. place: 0 near, 1 far. channel: of a near walk; 0 of a far one. hops: records read so far.
    walk_cycles: launch leaves the Sequencer to verdict arrives there. walker_cycles: within the walker.
    registers: r0..r2.
    """
    if atoms.ndim != 2 or atoms.shape[1] != 8:
        raise ValueError(f"completion atoms have the shape {atoms.shape}: expected [n, 8]")
    w0, w1 = atoms[:, 0], atoms[:, 1]
    records = np.zeros(len(atoms), dtype=COMPLETION)
    records["tag"] = w0 & 0xFFFF
    records["context"] = w0 >> 16 & 0x3F
    records["kind"] = w0 >> 22 & 1
    records["status"] = w0 >> 23 & 0xF
    records["place"] = w0 >> 27 & 1
    records["channel"] = w0 >> 28
    records["hops"] = w1 & 0xFFFFFF
    records["code"] = w1 >> 24
    records["walk_cycles"] = atoms[:, 2]
    records["walker_cycles"] = atoms[:, 3]
    records["value"] = atoms[:, 4]
    records["registers"] = atoms[:, 5:8]
    return records


@dataclass(frozen=True, kw_only=True)
class Completions:
    """What a batch gave: its completion records in order of arrival and the cycles it took."""

    records: Records
    cycles: int
