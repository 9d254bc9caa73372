"""Several short climbs, as when several searches resume: in one launch, with a launch for each, or in turn.

* ns_per_walk: the cycles of a batch that launches `walks` climbs and nothing else, over the climbs. By how
  they are launched (`one` launch for all, `each` its own, or each `in_turn`, when the verdict of the last has
  come), by place, and by the width of the link, whose latency is that of a published path. A batch begins
  with closed rows.
* link_bytes_per_walk: what crosses the link for it, both ways, by the sizes of `hdl/fabric/message.py`:
  launch and verdict of a near climb, the reads of a far one.

Climbs are of `_NODES` nodes at random places of one channel, the same for every way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hdl.fabric.message import LAUNCH_BYTES, READ_REQUEST_BYTES, READ_RESPONSE_BYTES, VERDICT_BYTES
from hdl.layouts import LAUNCH_WALKS_MAX, WalkStatus
from sim.compiled import CompiledModel

from ... import commands
from ...commands import Atoms
from ...driver import Accelerator
from ...errors import InternalError
from ...paths import far_path
from ...programs import default_image
from ...records import PARENT
from ...transport.inprocess import InProcessTransport
from ..measures import Measure

__all__ = ["launch_measures"]

_SEED = 2026
_BATCHES = 32
_NODES = 4
_WALKS = (4, LAUNCH_WALKS_MAX)
#: Bytes a cycle; 0: a message a cycle.
_WIDTHS = (0, 16, 4)
_PLACES = ("near", "far")
_WAYS = ("one", "each", "in_turn")


def launch_measures(
    model: CompiledModel, *, far: str, progress: Callable[[str, int, int], None]
) -> Iterator[Measure]:
    """Both measures, taken now over the path called `far`. Raises InternalError for a climb that is wrong."""
    accelerator = Accelerator(InProcessTransport(model))
    path = far_path(far, model.config)
    chains = _chains(accelerator)
    runs = list(product(_WIDTHS, _WALKS, enumerate(_PLACES), _WAYS))
    for done, (width, walks, (place, called), way) in enumerate(runs):
        progress("launches", done, len(runs))
        accelerator.set_link(
            latency_up=path.latency_up, latency_down=path.latency_down, bytes_per_cycle=width
        )
        cycles = [_batch(accelerator, starts[:walks], place, way) for starts in chains]
        where: dict[str, str | int] = {
            "launch": way,
            "walks": walks,
            "place": called,
            "bytes_per_cycle": width or "any",
        }
        yield Measure(
            name="ns_per_walk",
            where=where,
            value=float(np.mean(cycles)) / walks * accelerator.clock_ns,
            unit="ns",
        )
        if width == _WIDTHS[0]:
            del where["bytes_per_cycle"]
            launches = 1 if way == "one" else walks
            crossing = launches * LAUNCH_BYTES / walks + VERDICT_BYTES
            reads = _NODES * (READ_REQUEST_BYTES + READ_RESPONSE_BYTES)
            yield Measure(
                name="link_bytes_per_walk", where=where, value=reads if place else crossing, unit="bytes"
            )
    accelerator.set_link(latency_up=path.latency_up, latency_down=path.latency_down)


def _chains(accelerator: Accelerator) -> NDArray[np.int64]:
    """Start addresses, [batch, walk], of chains of nodes with nothing untried."""
    accelerator.load_program(default_image().words)
    atoms = accelerator.memory_atoms // accelerator.channels
    for context in range(LAUNCH_WALKS_MAX):
        accelerator.configure_context(context, base=1, limit=atoms, writable=False)
    places = (
        np.random.default_rng(_SEED).choice(atoms - 1, _BATCHES * LAUNCH_WALKS_MAX * _NODES, replace=False)
        + 1
    )
    nodes = places.reshape(-1, _NODES)
    for chain in nodes.tolist():
        for address, parent in zip(chain, [*chain[1:], 0], strict=True):
            atom = np.zeros((1, 8), dtype=np.uint32)
            atom[0, PARENT.word] = parent
            accelerator.load_image(address, atom)
    return nodes[:, 0].reshape(_BATCHES, LAUNCH_WALKS_MAX)


def _batch(accelerator: Accelerator, starts: NDArray[np.int64], place: int, way: str) -> int:
    """The cycles of the climbs from `starts`, in contexts from 0 on."""
    done = accelerator.run_batch(_atoms(starts.tolist(), place, way))
    records = done.records
    if (
        len(records) != len(starts)
        or (records["status"] != WalkStatus.NULL_POINTER.value).any()
        or (records["hops"] != _NODES).any()
    ):
        raise InternalError(f"climbs from {starts.tolist()} ended as {records}: expected {_NODES} hops each")
    return done.cycles


def _atoms(starts: Sequence[int], place: int, way: str) -> Atoms:
    entry = default_image().entries["climb"]
    if way == "one":
        return commands.walks(place=place, entry=entry, context=0, addresses=starts)
    atoms: list[Atoms] = []
    for context, address in enumerate(starts):
        atoms.append(commands.walk(place=place, entry=entry, context=context, address=address))
        if way == "in_turn":
            atoms.append(commands.fence())
    return np.concatenate(atoms)
