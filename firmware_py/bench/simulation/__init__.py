"""How fast the simulators are, on the machine that runs them; `clew bench simulation` measures all of it.

Seconds are processor time of this process (of the process that replays, for the large replay), so that other
load on the machine counts less. The processor's own state still moves a figure by some percent.

* compiled_cycles_per_second: load replay, a depth-first search replayed near and far on the whole design,
  the time that it waits for batches; load random, reads of random atoms on the memory subsystem of one
  channel with 64 outstanding, commands logged; load walks, 64 contexts that climb at random places.
* cocotb_cycles_per_second: the same depth-first search, smaller, by the same driver under cocotb.
* walks_per_second: walks of the depth-first replay over all the time that it takes, the host's part included.
* replay_100k_nodes_seconds, replay_100k_nodes_peak_bytes: import, near and far replay, checks and report of
  100,000 nodes, in many problems and in one (`large_replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import InternalError
from ..large_replay import Shape, large_replay
from ..measures import Measure, Target
from .cocotb_speed import cocotb_speed
from .compiled_speed import random_speed, replay_speed, walks_speed

__all__ = ["SCHEMA", "simulation_document", "simulation_measures"]

#: The `schema` of the document.
SCHEMA = "clew.bench.simulation/1"
#: What issue 5 of the project asks for.
_REPLAY_SPEED = Target(at_least=1_000_000)
_RANDOM_SPEED = Target(at_least=500_000)
_LARGE_SECONDS = Target(at_most=180)
_LARGE_BYTES = Target(at_most=2e9)
_SHAPES: tuple[Shape, ...] = ("many", "one")


def simulation_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """Every figure, measured now. `announce` is told what is being built, `progress` (name, done, of) how far
    it is. Raises InternalError when a run is not clean.
    """
    steps: list[Callable[[], Iterator[Measure]]] = [
        lambda: _compiled(announce),
        lambda: _cocotb(announce),
        *(lambda shape=shape: _large(shape, announce) for shape in _SHAPES),
    ]
    measures: list[Measure] = []
    for done, step in enumerate(steps):
        progress("simulation", done, len(steps))
        measures += step()
    progress("simulation", len(steps), len(steps))
    return measures


def simulation_document(measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as plain JSON types."""
    return {"schema": SCHEMA, "measures": [measure.as_dict() for measure in measures]}


def _compiled(announce: Callable[[str], None]) -> Iterator[Measure]:
    replay = replay_speed(announce)
    for load, speed, target in (
        ("replay", replay.cycles_per_second, _REPLAY_SPEED),
        ("random", random_speed(announce), _RANDOM_SPEED),
        ("walks", walks_speed(announce), None),
    ):
        yield Measure(
            name="compiled_cycles_per_second",
            where={"load": load},
            value=speed,
            unit="cycles/s",
            target=target,
        )
    yield Measure(name="walks_per_second", where={}, value=replay.walks_per_second, unit="walks/s")


def _cocotb(announce: Callable[[str], None]) -> Iterator[Measure]:
    yield Measure(name="cocotb_cycles_per_second", where={}, value=cocotb_speed(announce), unit="cycles/s")


def _large(shape: Shape, announce: Callable[[str], None]) -> Iterator[Measure]:
    found = large_replay(shape=shape, announce=announce)
    if found.failures:
        raise InternalError(f"the large replay is not good: {found.failures[0]}")
    where = {"problems": found.problems, "nodes": found.nodes}
    for name, value, unit, target in (
        ("replay_100k_nodes_seconds", found.seconds, "s", _LARGE_SECONDS),
        ("replay_100k_nodes_peak_bytes", found.peak_bytes, "bytes", _LARGE_BYTES),
    ):
        yield Measure(name=name, where=where, value=value, unit=unit, target=target)
