"""The layers of the ledger: what each took in a run, and what refresh caused of it.

| layer | from | to | one of the sample |
| --- | --- | --- | --- |
| device | first command for the access on a bus | last data beat | a read of a walker |
| port | request accepted by the controller | response leaves it | a read of a walker |
| loop | a walker's request for a record | its next request, or the verdict | an iteration |
| walk | the walk's command leaves the compute side | its verdict arrives there | a walk |
| replay | first command of a batch | last completion, all batches together | the replay |

Reads that a cache answered are in the loop only, and walks that the far place answered by its help in the
walk only. What refresh caused is defined in `ledger/service.py`; that of a loop is its read's, that of a walk
the sum of its loops', and that of the replay the cycles in which it held or slowed down any read of a walker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .ledger import Ledger, Service, Statistics, statistics

__all__ = ["Layer", "LayerName", "make_layers"]

LayerName = Literal["device", "port", "loop", "walk", "replay"]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of one place, in cycles."""

    name: LayerName
    cycles: Statistics
    refresh: Statistics
    """What refresh caused, over the same sample: 0 of most. Empty where no device is seen."""


def make_layers(
    ledger: Ledger,
    served: Service,
    *,
    walk_cycles: NDArray[np.int64],
    numbers: NDArray[np.int64],
    replay_cycles: int,
    device: bool = True,
) -> tuple[Layer, ...]:
    """The five layers, inner ones first; the first only where a `device` is seen.

    `walk_cycles` are by number of the walk; `numbers` gives that of every walk of the ledger's loops, -1 for
    one that only marks a time.
    """
    loops = ledger.loops
    of_loop = np.zeros(len(loops.cycles), dtype=np.int64)
    of_loop[ledger.read] = served.refresh
    number = numbers[loops.walk]
    mine = number >= 0
    of_walk = np.bincount(number[mine], weights=of_loop[mine], minlength=len(walk_cycles))
    replay = _covered(
        np.concatenate([served.held_from, served.column - served.reopened]),
        np.concatenate([served.held_from + served.held, served.column]),
        np.concatenate([served.held, served.reopened]) > 0,
    )

    def layer(name: LayerName, cycles: ArrayLike, refresh: ArrayLike) -> Layer:
        # Where no device is seen, nobody knows what refresh did either.
        return Layer(name=name, cycles=statistics(cycles), refresh=statistics(refresh if device else ()))

    return (
        *((layer("device", served.device, served.reopened),) if device else ()),
        layer("port", served.port, served.refresh),
        layer("loop", loops.cycles, of_loop),
        layer("walk", walk_cycles, of_walk),
        layer("replay", [replay_cycles], [replay]),
    )


def _covered(begins: NDArray[np.int64], ends: NDArray[np.int64], kept: NDArray[np.bool_]) -> int:
    """The cycles that the kept intervals [begin, end) cover together."""
    begins, ends = begins[kept], ends[kept]
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    if not len(begins):
        return 0
    reached = np.maximum.accumulate(ends)
    before = np.concatenate([begins[:1], reached[:-1]])
    return int(np.maximum(reached - np.maximum(begins, before), 0).sum())
