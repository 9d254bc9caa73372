"""One whole decision of a depth-first search: `decide` in one walk, or the same in parts.

`program` is how it climbs: `climb`, or `climb_compressed` along the skips that the nodes began with.
ns_per_decision is the cycles of the batches that one decision takes, from the failed node to the resume
point, its best open child and the blocks of its state (`moments`). In parts, the host writes the dead flag
and climbs in one batch; from the answer it launches `best_sibling` and `blocks` at once in another (it knows
each node's first block). Every batch begins with closed rows. What the host itself takes between batches is
not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from hdl.layouts import VerdictKind, WalkStatus
from sim.compiled import CompiledModel
from sim.model.interpreter import Atom
from sim.trace.schema import Trace

from ... import commands
from ...commands import Atoms
from ...completion import Records
from ...driver import Accelerator
from ...errors import InternalError
from ...paths import far_path
from ...programs import CLIMBS, decide, decision_image
from ...programs.climb_compressed import launch_registers
from ...programs.memory_view import read
from ...records import DEAD_BIT, PARENT, STATE, STATUS
from ...transport.inprocess import InProcessTransport
from ..measures import Measure
from .moments import STAMP, Moment, moments

__all__ = ["decision_measures"]

_DECISIONS = 64
_LEAST_LIVE = 1
_PLACES = ("near", "far")


def decision_measures(
    model: CompiledModel,
    name: str,
    traces: Sequence[Trace],
    *,
    far: str,
    progress: Callable[[str, int, int], None],
) -> Iterator[Measure]:
    """ns_per_decision of the traces called `name`. Raises InternalError for an answer that is wrong."""
    accelerator = Accelerator(InProcessTransport(model))
    path = far_path(far, model.config)
    accelerator.set_link(latency_up=path.latency_up, latency_down=path.latency_down)
    accelerator.load_program(decision_image().words)
    taken: dict[tuple[str, str, str], list[int]] = {}
    chosen = [moment for trace in traces for moment in moments(trace)]
    chosen = chosen[:: max(1, len(chosen) // _DECISIONS)]
    for done, moment in enumerate(chosen):
        progress(f"decisions, {name}", done, len(chosen))
        for (place, called), program in product(enumerate(_PLACES), CLIMBS):
            for fused, way in (("yes", _fused), ("no", _in_parts)):
                cycles = way(accelerator, moment, place, program)
                taken.setdefault((fused, called, program), []).append(cycles)
    for (fused, place, program), cycles in taken.items():
        yield Measure(
            name="ns_per_decision",
            where={"fused": fused, "place": place, "program": program, "trace": name},
            value=float(np.mean(cycles)) * model.config.memory.timing.clock_ns,
            unit="ns",
        )


def _prepare(accelerator: Accelerator, moment: Moment) -> Mapping[int, Atom]:
    """Puts the moment into the machine; what memory is once the failed node is dead."""
    accelerator.load_image(1, moment.atoms)
    for context in (0, 1):
        accelerator.configure_context(context, base=1, limit=1 + len(moment.atoms), writable=True)
    after = moment.atoms.copy()
    after[moment.failed - 1, STATUS.word] |= 1 << DEAD_BIT.low
    return {1 + index: tuple(atom.tolist()) for index, atom in enumerate(after)}


def _walk(entry: str, place: int, address: int, registers: Sequence[int] = (), *, context: int = 0) -> Atoms:
    return commands.walk(
        place=place,
        entry=decision_image().entries[entry],
        context=context,
        address=address,
        registers=registers,
    )


def _fused(accelerator: Accelerator, moment: Moment, place: int, program: str) -> int:
    memory = _prepare(accelerator, moment)
    stamp = STAMP if program == "climb_compressed" else decide.NO_SKIPS
    done = accelerator.run_batch(_walk("decide", place, moment.failed, (0, 0, _LEAST_LIVE, 0, stamp)))
    end, yields = _ended(done.records, tag=0)
    _require(memory, moment, (int(end["registers"][0]), int(end["registers"][1]), yields))
    return done.cycles


def _in_parts(accelerator: Accelerator, moment: Moment, place: int, program: str) -> int:
    memory = _prepare(accelerator, moment)
    status = np.array([memory[moment.failed]], dtype=np.uint32)
    kill = np.concatenate(
        [
            commands.write(address=moment.failed, data=status, mask=0xF << 4 * STATUS.word),
            commands.fence(),
        ]
    )
    parent = read(memory, moment.failed, PARENT)
    registers = launch_registers(start=parent, stamp=STAMP) if program == "climb_compressed" else ()
    first = accelerator.run_batch(np.concatenate([kill, _walk(program, place, parent, registers)]))
    end, _ = _ended(first.records, tag=len(kill))
    point = int(end["registers"][0])
    parts = [_walk("best_sibling", place, point, (0, 0, _LEAST_LIVE))]
    state = read(memory, point, STATE)
    if state:
        parts.append(_walk("blocks", place, state, context=1))
    second = accelerator.run_batch(np.concatenate(parts))
    sibling, _ = _ended(second.records, tag=0)
    yields = _ended(second.records, tag=1)[1] if state else []
    _require(memory, moment, (point, int(sibling["registers"][0]), yields))
    return first.cycles + second.cycles


def _ended(records: Records, *, tag: int) -> tuple[np.void, list[int]]:
    """The end of a walk, and what it yielded."""
    mine = records[records["tag"] == tag]
    (end,) = mine[mine["kind"] == VerdictKind.DONE.value]
    if end["status"] != WalkStatus.DONE.value:
        raise InternalError(f"walk {tag} of a decision ended with status {end['status']}: expected DONE")
    return end, [int(value) for value in mine[mine["kind"] == VerdictKind.YIELD.value]["value"]]


def _require(memory: Mapping[int, Atom], moment: Moment, found: tuple[int, int, list[int]]) -> None:
    expected = decide.reference(memory, start=moment.failed, least_live=_LEAST_LIVE)
    if found != expected or found[0] != moment.resumed:
        raise InternalError(
            f"decision from node {moment.failed}: found {found}, expected {expected}, "
            f"which resumes at {moment.resumed}"
        )
