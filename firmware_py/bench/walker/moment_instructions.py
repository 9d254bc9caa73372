"""Instructions a hop of the programs for decisions, skips and blocks, counted by the golden interpreter.

The workload is the moments of searches (`moments`), each program started where such a search would: the climb
at the failed node's parent, the reclaim at the subtree that is given up, a lease of two blocks at the pool's
first block, a return at the state of the node that the search resumes at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from sim.model.interpreter import BUDGET_MAX, Atom, run_walk
from sim.trace.schema import Trace

from ...assembler import Image
from ...programs import decision_image, pool_image, pool_take
from ...programs.climb_compressed import launch_registers
from ...programs.memory_view import read
from ...records import PARENT, STATE
from ..measures import Measure
from .moments import LESSEE, STAMP, Moment, moments

__all__ = ["moment_instructions"]

#: Where a walk starts and its registers.
_Launch: TypeAlias = tuple[int, tuple[int, ...]]
_Memory: TypeAlias = Mapping[int, Atom]
_TAKEN = 2


def _climb(memory: _Memory, moment: Moment) -> _Launch:
    parent = read(memory, moment.failed, PARENT)
    return parent, launch_registers(start=parent, stamp=STAMP)


def _state(memory: _Memory, moment: Moment) -> int:
    return read(memory, moment.resumed, STATE)


def _take(memory: _Memory, moment: Moment) -> _Launch:
    return moment.pool, pool_take.launch_registers(start=moment.pool, owner=LESSEE + 1, count=_TAKEN)


_LAUNCHES: tuple[tuple[Callable[[], Image], str, Callable[[_Memory, Moment], _Launch]], ...] = (
    (decision_image, "climb_compressed", _climb),
    (decision_image, "decide", lambda memory, moment: (moment.failed, (0, 0, 1, 0, STAMP))),
    (decision_image, "blocks", lambda memory, moment: (_state(memory, moment), ())),
    (pool_image, "reclaim", lambda memory, moment: (moment.dead, (moment.dead,))),
    (pool_image, "reclaim_release", lambda memory, moment: (moment.dead, (moment.dead,))),
    (pool_image, "pool_take", _take),
    (pool_image, "pool_give", lambda memory, moment: (_state(memory, moment), (LESSEE,))),
)


def moment_instructions(traces: Sequence[Trace]) -> Iterator[Measure]:
    """instructions_per_hop of every program, over all moments of the traces. Every node must have a state."""
    found = [
        ({1 + index: tuple(atom.tolist()) for index, atom in enumerate(moment.atoms)}, moment)
        for trace in traces
        for moment in moments(trace)
    ]
    for image, entry, launch in _LAUNCHES:
        steps = hops = 0
        for memory, moment in found:
            start, registers = launch(memory, moment)
            result = run_walk(
                image().instructions,
                dict(memory),
                address=start,
                entry=image().entries[entry],
                registers=registers,
                window=(1, 1 + len(memory)),
                writable=True,
                budget=BUDGET_MAX,
            )
            steps += result.steps
            hops += result.hops
        yield Measure(
            name="instructions_per_hop", where={"program": entry}, value=steps / hops, unit="instructions"
        )
