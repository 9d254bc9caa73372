"""Lets a search program write its trace while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType

from .events import (
    SCHEMA_VERSION,
    Append,
    Backtrack,
    Backup,
    Begin,
    CacheOperation,
    End,
    Eval,
    Event,
    Expand,
    Free,
    Join,
    Jump,
    Kv,
    Node,
    Prune,
    Restore,
    Save,
    Select,
    Spawn,
    Status,
    UntriedSource,
)
from .schema import TraceWriter

__all__ = ["Recorder"]


class Recorder:
    """Writes a trace file event by event: a context manager that leaves a whole valid file, or none.

        with Recorder("search.jsonl") as trace:
            trace.begin("puzzle 1", algorithm="dfs")
            root = trace.node()
            trace.expand(root, 2)
            ...
            trace.end("solved")

    Every method is one event of `sim.trace.events` and raises TraceError when the event may not stand there.
    A `begin` after an `end` starts the next trace of the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._writer = TraceWriter(path)
        self._depths: list[int] = []

    def __enter__(self) -> Recorder:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    @property
    def nodes(self) -> int:
        """Nodes of the current trace so far."""
        return len(self._depths)

    def write(self, event: Event) -> None:
        """Write an event that is at hand as one."""
        self._writer.write(event)
        if isinstance(event, Begin):
            self._depths = []
        elif isinstance(event, Node):
            self._depths.append(event.depth)

    def begin(
        self,
        trace: str,
        *,
        algorithm: str,
        order_known: bool = True,
        source: str = "",
        meta: Mapping[str, object] | None = None,
    ) -> None:
        """Start a trace; its name is unique in the file."""
        self.write(
            Begin(
                version=SCHEMA_VERSION,
                trace=trace,
                algorithm=algorithm,
                order_known=order_known,
                source=source,
                meta=dict(meta or {}),
            )
        )

    def node(
        self,
        *parents: int,
        kind: str = "thought",
        state_bytes: int = 0,
        tokens: int | None = None,
        ext_id: str | None = None,
        text: str | None = None,
    ) -> int:
        """Make a node below `parents` (none: a root) and return its id. The first parent gives the depth."""
        identifier = len(self._depths)
        known = bool(parents) and 0 <= parents[0] < identifier
        self.write(
            Node(
                id=identifier,
                parents=parents,
                depth=self._depths[parents[0]] + 1 if known else 0,
                kind=kind,
                state_bytes=state_bytes,
                tokens=tokens,
                ext_id=ext_id,
                text=text,
            )
        )
        return identifier

    def expand(self, node: int, untried: int, *, untried_source: UntriedSource = "declared") -> None:
        """The node has exactly `untried` children left to try."""
        self.write(Expand(id=node, untried=untried, untried_source=untried_source))

    def eval(self, node: int, score: float | None) -> None:
        """The node's score; None takes it away."""
        self.write(Eval(id=node, score=score))

    def select(self, candidates: Iterable[int], chosen: Iterable[int], *, live_only: bool = False) -> None:
        """`chosen`, best first, out of `candidates` by (score descending, place ascending)."""
        self.write(Select(candidates=tuple(candidates), chosen=tuple(chosen), live_only=live_only))

    def select_by_score(self, candidates: Iterable[int], chosen: Iterable[int]) -> None:
        """Like `select`, by a search that leaves candidates of equal score in no particular order."""
        self.write(Select(candidates=tuple(candidates), chosen=tuple(chosen), order="score"))

    def prune(self, node: int, reason: str, *, abandoned: bool = False) -> None:
        """The node is dead, or (`abandoned`) what it had left to try is given up."""
        self.write(Prune(id=node, reason=reason, abandoned=abandoned))

    def backtrack(self, origin: int, to: int | None, *, untried_source: UntriedSource = "declared") -> None:
        """The search went from `origin` back up to `to`; None: nothing was left to try."""
        self.write(Backtrack(from_=origin, to=to, untried_source=untried_source))

    def jump(self, origin: int, to: int) -> None:
        """The search went from `origin` to `to`, which is no ancestor of it."""
        self.write(Jump(from_=origin, to=to))

    def save(self, node: int, size: int) -> None:
        """`size` bytes of the node's state were written."""
        self.write(Save(id=node, bytes=size))

    def restore(self, node: int, size: int) -> None:
        """`size` bytes of the node's state were read back."""
        self.write(Restore(id=node, bytes=size))

    def spawn(self, node: int, branches: Iterable[int]) -> None:
        """Parallel branches start at the node."""
        self.write(Spawn(id=node, ids=tuple(branches)))

    def join(self, branches: Iterable[int], to: int) -> None:
        """Parallel branches merge into `to`."""
        self.write(Join(ids=tuple(branches), to=to))

    def append(
        self,
        node: int,
        tokens: int | None = None,
        *,
        mark: str | None = None,
        size: int = 0,
        text: str | None = None,
    ) -> None:
        """The open node grows by `tokens` tokens, of `size` bytes."""
        self.write(Append(id=node, tokens=tokens, mark=mark, bytes=size, text=text))

    def backup(self, path: Iterable[int], value: float) -> None:
        """`value` and a visit are added to every node of `path`, leaf first."""
        self.write(Backup(path=tuple(path), value=value))

    def free(self, node: int) -> None:
        """The node's state was released."""
        self.write(Free(id=node))

    def kv(
        self,
        operation: CacheOperation,
        blocks: Iterable[int] = (),
        *,
        block_tokens: int | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        parent: int | None = None,
        time_ns: int | None = None,
    ) -> None:
        """A serving request on a block cache, or what the cache itself did."""
        self.write(
            Kv(
                operation=operation,
                blocks=tuple(blocks),
                block_tokens=block_tokens,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                parent=parent,
                time_ns=time_ns,
            )
        )

    def end(self, status: Status) -> None:
        """End the trace."""
        self.write(End(status=status))
