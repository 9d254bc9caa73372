"""Events of a Stream-of-Search path by beam."""

from __future__ import annotations

from ..events import Eval, Event, Jump, Node, Prune, Restore, Select
from .countdown import HEURISTICS
from .sos_path import Move, SearchPath

__all__ = ["beam_events"]

UNNAMED = "the source moves to a terminal that no single id names"
UNSCORED = "the record's heuristic is not known, so the open set has no scores"
OTHER_RULE = "the heuristic that the record names does not give the recorded choice"


class _Levels:
    """The levels of a beam search: which nodes it took from which open set."""

    def __init__(self, path: SearchPath, width: int) -> None:
        self.selects: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        """By the index in `path.steps` of the level's first move: candidates and what was taken."""
        self._path = path
        self._by_operations: dict[tuple[str, ...], list[int]] = {}
        self._open: list[int] = []
        level: list[int] = []
        start, size = 0, 0
        candidates: tuple[int, ...] = ()
        for place, step in enumerate(path.steps):
            if not isinstance(step, Move):
                self._open.append(step)
                self._by_operations.setdefault(path.nodes[step].operations, []).append(step)
                continue
            if len(level) == size:
                if level:
                    self.selects[start] = (candidates, tuple(level))
                candidates, level, start = tuple(self._open), [], place
                size = min(width, len(candidates))
            node = self._take(step)
            if node is None:
                # What was taken is not known: this level and those after it cannot be told.
                return
            level.append(node)
        if level:
            self.selects[start] = (candidates, tuple(level))

    def _take(self, move: Move) -> int | None:
        """The open node that the search went to: by its operations, since ids of terminals are shared."""
        if move.operations is None:
            return None
        alike = self._by_operations.get(move.operations, [])
        node = move.to if move.to in alike else next((node for node in alike if node in self._open), None)
        if node is None or node not in self._open:
            return None
        self._open.remove(node)
        return node

    def agree(self, scores: list[float]) -> bool:
        """Whether every choice is one of the best scores of its open set, best first."""
        for candidates, taken in self.selects.values():
            best = sorted((scores[node] for node in candidates), reverse=True)[: len(taken)]
            if best != [scores[node] for node in taken]:
                return False
        return True


def beam_events(path: SearchPath, *, width: int, heuristic: str) -> list[Event]:
    """The events between `begin` and `end`."""
    distance = HEURISTICS.get(heuristic)
    scores = None if distance is None else [-distance(node.numbers, path.target) for node in path.nodes]
    levels = _Levels(path, width)
    reason = None
    if scores is None:
        reason = UNSCORED
    elif not levels.agree(scores):
        reason = OTHER_RULE
    events: list[Event] = []
    depths: list[int] = []
    focus = 0

    def make(identifier: int) -> None:
        node = path.nodes[identifier]
        depths.append(0 if node.parent is None else depths[node.parent] + 1)
        events.append(
            Node(
                id=identifier,
                parents=() if node.parent is None else (node.parent,),
                depth=depths[identifier],
                kind="root" if node.parent is None else "terminal" if node.terminal else "thought",
                state_bytes=len(node.state(path.target)),
                ext_id=node.ext_id,
                text=node.operations[-1] if node.operations else None,
            )
        )
        if scores is not None:
            events.append(Eval(id=identifier, score=scores[identifier]))
        if node.terminal and not node.goal:
            events.append(Prune(id=identifier, reason="no_solution"))

    make(0)
    for place, step in enumerate(path.steps):
        if not isinstance(step, Move):
            make(step)
            continue
        if place in levels.selects:
            candidates, taken = levels.selects[place]
            events.append(
                Select(
                    candidates=candidates,
                    chosen=taken,
                    order="score",
                    check="none" if reason else "select",
                    reason=reason,
                )
            )
        if step.to is None:
            events.append(Jump(from_=focus, to=None, check="none", reason=UNNAMED))
        elif step.to != focus:
            events.append(Jump(from_=focus, to=step.to))
            events.append(Restore(id=step.to, bytes=len(path.nodes[step.to].state(path.target))))
            focus = step.to
    return events
