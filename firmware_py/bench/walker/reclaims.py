"""What it takes to give back the states of a subtree that a search has left: `reclaim_release`, or the host.

Of every measured moment the whole subtree that the search gives up is reclaimed, in a batch of its own.

* near, far: one walk.
* host_scan: the host knows nothing. It copies the node records and the pool's records across the link, finds
  the dead subtree in them, and writes the owner word of each block and the state word of each node.
* host_mirror: the host knows every record, so it only writes.

Nodes and blocks lie one after another, so the host's writes merge to long runs; its own time is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from hdl.fabric.message import (
    LAUNCH_BYTES,
    READ_REQUEST_BYTES,
    READ_RESPONSE_BYTES,
    VERDICT_BYTES,
    WRITE_REQUEST_BYTES,
    WRITE_RESPONSE_BYTES,
)
from hdl.layouts import WalkStatus
from sim.compiled import CompiledModel
from sim.model.interpreter import Atom
from sim.trace.schema import Trace

from ... import commands
from ...commands import Atoms
from ...driver import Accelerator
from ...errors import InternalError
from ...programs import pool_image, reclaim
from ...programs.memory_view import children, read
from ...records import STATE, STATE_BLOCK, BitField
from ..measures import Measure
from .moments import Moment, moments

__all__ = ["reclaim_measures"]

_MOMENTS = 64
_READ_BYTES = READ_REQUEST_BYTES + READ_RESPONSE_BYTES
_WRITE_BYTES = WRITE_REQUEST_BYTES + WRITE_RESPONSE_BYTES
_OWNER = BitField(STATE_BLOCK["owner"])
#: Where copies go in the scratchpad, and how many atoms one brings: behind the commands of these batches.
_SCRATCHPAD, _COPY_ATOMS = 512, 1024


def reclaim_measures(
    model: CompiledModel,
    accelerator: Accelerator,
    name: str,
    traces: Sequence[Trace],
    *,
    progress: Callable[[str, int, int], None],
) -> Iterator[Measure]:
    """reclaim_ns_per_block and reclaim_bytes_per_block of the traces called `name`.

    Bytes are those of the link's messages. Raises InternalError when a block is not given back.
    """
    accelerator.load_program(pool_image().words)
    chosen = [moment for trace in traces for moment in moments(trace)]
    chosen = chosen[:: max(1, len(chosen) // _MOMENTS)]
    cycles: dict[str, int] = {}
    moved: dict[str, int] = {}
    blocks = 0
    for done, moment in enumerate(chosen):
        progress(f"reclaim, {name}", done, len(chosen))
        memory = {1 + index: tuple(atom.tolist()) for index, atom in enumerate(moment.atoms)}
        freed = reclaim.blocks_of(memory, start=moment.dead)
        blocks += len(freed)
        if not freed:
            continue
        stateful = [node for node in _subtree(memory, moment.dead) if read(memory, node, STATE)]
        ways: dict[str, Callable[[], tuple[int, int]]] = {
            "near": partial(_walk, accelerator, moment, place=0, stores=0),
            "far": partial(_walk, accelerator, moment, place=1, stores=len(freed) + len(stateful)),
            "host_scan": partial(_scan, accelerator, moment, freed, stateful),
            "host_mirror": partial(_write, accelerator, freed, stateful),
        }
        for place, way in ways.items():
            accelerator.load_image(1, moment.atoms)
            spent, size = way()
            cycles[place] = cycles.get(place, 0) + spent
            moved[place] = moved.get(place, 0) + size
            _require_freed(model, memory, moment, freed)
    clock = model.config.memory.timing.clock_ns
    for place in cycles:
        where: dict[str, str | int] = {"place": place, "trace": name}
        yield Measure(
            name="reclaim_ns_per_block", where=where, value=cycles[place] * clock / blocks, unit="ns"
        )
        yield Measure(name="reclaim_bytes_per_block", where=where, value=moved[place] / blocks, unit="bytes")


def _walk(accelerator: Accelerator, moment: Moment, *, place: int, stores: int) -> tuple[int, int]:
    """Cycles of the walk's batch and bytes across the link, which a far walk's `stores` cross."""
    accelerator.configure_context(0, base=1, limit=1 + len(moment.atoms), writable=True)
    done = accelerator.run_batch(
        commands.walk(
            place=place,
            entry=pool_image().entries["reclaim_release"],
            context=0,
            address=moment.dead,
            registers=(moment.dead,),
        )
    )
    (end,) = done.records
    if end["status"] != WalkStatus.DONE.value:
        raise InternalError(f"reclaim of node {moment.dead} ended with status {end['status']}: expected DONE")
    if place == 0:
        return done.cycles, LAUNCH_BYTES + VERDICT_BYTES
    return done.cycles, int(end["hops"]) * _READ_BYTES + stores * _WRITE_BYTES


def _scan(
    accelerator: Accelerator, moment: Moment, blocks: Sequence[int], nodes: Sequence[int]
) -> tuple[int, int]:
    atoms = len(moment.atoms)
    copies = accelerator.run_batch(
        np.concatenate(
            [
                commands.copy(
                    to_memory=False,
                    memory_address=first,
                    scratchpad_address=_SCRATCHPAD,
                    count=min(_COPY_ATOMS, 1 + atoms - first),
                )
                for first in range(1, 1 + atoms, _COPY_ATOMS)
            ]
        )
    )
    cycles, size = _write(accelerator, blocks, nodes)
    return copies.cycles + cycles, atoms * _READ_BYTES + size


def _write(accelerator: Accelerator, blocks: Sequence[int], nodes: Sequence[int]) -> tuple[int, int]:
    batch = [*_zeros(blocks, _OWNER.word), *_zeros(nodes, STATE.word)]
    done = accelerator.run_batch(np.concatenate(batch))
    return done.cycles, (len(blocks) + len(nodes)) * _WRITE_BYTES


def _zeros(addresses: Iterable[int], word: int) -> Iterator[Atoms]:
    """WRITEs of 0 to a word of every record at `addresses`, neighbours together."""
    run: list[int] = []
    for address in [*sorted(addresses), None]:
        if run and address != run[-1] + 1:
            data = np.zeros((len(run), 8), dtype=np.uint32)
            yield commands.write(address=run[0], data=data, mask=0xF << 4 * word)
            run = []
        if address is not None:
            run.append(address)


def _require_freed(
    model: CompiledModel, memory: Mapping[int, Atom], moment: Moment, freed: Sequence[int]
) -> None:
    before = [read(memory, moment.pool + index, _OWNER) for index in range(moment.pool_atoms)]
    expected = np.array(before, dtype=np.uint32)
    expected[np.array(freed) - moment.pool] = 0
    if not np.array_equal(model.fetch(moment.pool, moment.pool_atoms)[:, _OWNER.word], expected):
        raise InternalError(f"reclaim of node {moment.dead}: expected the blocks of its subtree to be free")


def _subtree(memory: Mapping[int, Atom], node: int) -> Iterator[int]:
    yield node
    for child in children(memory, node):
        yield from _subtree(memory, child)
