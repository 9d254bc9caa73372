"""How long the states of recorded searches live: leases and returns, in the order of the traces.

A state is leased when its node comes to exist. It is given back when the search goes back above its node, or
ends; where a selection drops its node from the candidates; and where the trace says so (`free`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.trace.events import Backtrack, Free, Node, Select
from sim.trace.schema import Trace

from .allocators import Allocator

__all__ = ["waste"]

#: (node, bytes) for a lease, (node, 0) for a return.
_Step = tuple[int, int]


def waste(traces: Sequence[Trace], allocator: Allocator, *, concurrent: int) -> float | None:
    """The share of the arena that held no state when the states were at their most; None: no state at all.

    The traces are replayed `concurrent` at a time, an event of each in turn.
    """
    waiting = list(enumerate(traces))
    running: list[tuple[int, Iterator[_Step]]] = []
    handles: dict[tuple[int, int], tuple[int, int]] = {}
    live = most = 0
    while waiting or running:
        while waiting and len(running) < concurrent:
            number, trace = waiting.pop(0)
            running.append((number, _steps(trace)))
        for entry in list(running):
            number, steps = entry
            step = next(steps, None)
            if step is None:
                running.remove(entry)
                continue
            node, size = step
            if size:
                handles[number, node] = allocator.allocate(size), size
                live += size
                most = max(most, live)
            else:
                handle, given_back = handles.pop((number, node))
                allocator.release(handle)
                live -= given_back
    return 1 - most / allocator.extent if allocator.extent else None


def _steps(trace: Trace) -> Iterator[_Step]:
    parents: dict[int, int | None] = {}
    held: set[int] = set()
    for event in trace.events:
        gone: set[int] = set()
        match event:
            case Node():
                parents[event.id] = event.parents[0] if event.parents else None
                if event.state_bytes:
                    held.add(event.id)
                    yield event.id, event.state_bytes
            case Backtrack():
                gone = {node for node in held if _left(parents, node, event.from_, event.to)}
            case Select():
                gone = (set(event.candidates) - set(event.chosen)) & held
            case Free():
                gone = {event.id} & held
            case _:
                pass
        for node in sorted(gone):
            held.remove(node)
            yield node, 0
    for node in sorted(held):
        yield node, 0


def _left(parents: dict[int, int | None], node: int, failed: int, resumed: int | None) -> bool:
    """Whether a node is in the subtree that the search leaves: below `resumed`, on the side of `failed`."""
    top: int | None = failed
    while top is not None and parents[top] != resumed:
        top = parents[top]
    above: int | None = node
    while above is not None and above != top:
        above = parents[above]
    return above is not None
