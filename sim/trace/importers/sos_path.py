"""The lines of a Stream-of-Search path, parsed into nodes and moves."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import FieldError, shorten

__all__ = ["Move", "PathNode", "SearchPath", "parse_path"]

_STATE = re.compile(r"Current State: (\d+):(\[[-\d, ]*\]), Operations: (\[.*\])")
_EXPLORING = re.compile(r"Exploring Operation: (\S+), Resulting Numbers: (\[[-\d, ]*\])")
_GENERATED = re.compile(r"Generated Node #(\d+(?:,\d+)*): \d+:(\[[-\d, ]*\]) Operation: (\S+)")
_MOVING = re.compile(r"Moving to Node #(\d+(?:,\d+)*)")
_UNEQUAL = re.compile(r"-?\d+,\d+ unequal: No Solution")
_EQUAL = re.compile(r"-?\d+,\d+ equal: Goal Reached")


@dataclass(frozen=True, kw_only=True)
class PathNode:
    """A state that came to exist."""

    parent: int | None
    numbers: tuple[int, ...]
    operations: tuple[str, ...]
    """From the root; the last one made this state."""
    ext_id: str | None
    """The source's id; None for a terminal, which has none of its own."""
    terminal: bool = False
    goal: bool = False

    def state(self, target: int) -> str:
        """The state as the source writes it."""
        return f"{target}:{list(self.numbers)}, Operations: {list(self.operations)}"


@dataclass(frozen=True, kw_only=True)
class Move:
    """The search went on at the node with this source id; None: no node has it."""

    to: int | None
    ext_id: str
    operations: tuple[str, ...] | None = None
    """Those of the state that the source then shows; None if the path ends there."""


@dataclass(kw_only=True)
class SearchPath:
    """What one search did, in order."""

    target: int
    nodes: list[PathNode] = field(default_factory=list)
    steps: list[int | Move] = field(default_factory=list)
    """An int is a node coming to exist, in order of `nodes`; the root is not among them."""
    goal: bool = False


class _Parser:
    def __init__(self, target: int, numbers: Sequence[int]) -> None:
        self.path = SearchPath(target=target)
        self.path.nodes.append(PathNode(parent=None, numbers=tuple(numbers), operations=(), ext_id="0"))
        self._ids = {"0": 0}
        self._current: int | None = 0
        self._operation: str | None = None
        self._numbers: tuple[int, ...] = ()

    def line(self, line: str) -> None:
        """Take one line. Raises FieldError without a field name."""
        if match := _STATE.fullmatch(line):
            self._state(match)
        elif match := _EXPLORING.fullmatch(line):
            self._operation, self._numbers = match[1], tuple(json.loads(match[2]))
        elif match := _GENERATED.fullmatch(line):
            self._generated(match[1])
        elif match := _MOVING.fullmatch(line):
            self._current = self._ids.get(match[1])
            self.path.steps.append(Move(to=self._current, ext_id=match[1]))
        elif _UNEQUAL.fullmatch(line):
            self._terminal(goal=False)
        elif _EQUAL.fullmatch(line):
            self._terminal(goal=True)
            self.path.goal = True
        elif line and line != "No solution found.":
            raise FieldError("", "a whole line of a Stream-of-Search path", shorten(line))

    def _state(self, match: re.Match[str]) -> None:
        if int(match[1]) != self.path.target:
            raise FieldError("", f"the target {self.path.target}", match[1])
        # Operations are quoted the way Python does it; none of them holds a quote.
        operations = tuple(re.findall(r"'([^']*)'", match[3]))
        steps = self.path.steps
        if steps and isinstance(steps[-1], Move):
            move = steps[-1]
            steps[-1] = Move(to=move.to, ext_id=move.ext_id, operations=operations)
        elif operations or steps:
            raise FieldError("", "`Moving to Node` before another state", shorten(match[0]))

    def _generated(self, ext_id: str) -> None:
        parent = self._ids.get(ext_id.rpartition(",")[0])
        if parent is None:
            raise FieldError("", "an id that extends a generated node's", f"#{ext_id}")
        self._ids[ext_id] = self._add(parent, ext_id=ext_id)

    def _terminal(self, *, goal: bool) -> None:
        if self._current is None:
            raise FieldError("", "an operation on a state that an id names", "one on an unknown node")
        self._add(self._current, ext_id=None, terminal=True, goal=goal)

    def _add(self, parent: int, *, ext_id: str | None, terminal: bool = False, goal: bool = False) -> int:
        if self._operation is None:
            raise FieldError("", "`Exploring Operation` before its result", "none")
        node = PathNode(
            parent=parent,
            numbers=self._numbers,
            operations=(*self.path.nodes[parent].operations, self._operation),
            ext_id=ext_id,
            terminal=terminal,
            goal=goal,
        )
        self._operation = None
        self.path.nodes.append(node)
        self.path.steps.append(len(self.path.nodes) - 1)
        return len(self.path.nodes) - 1


def parse_path(text: str, *, target: int, numbers: Sequence[int]) -> SearchPath:
    """The nodes and moves of a `search_path`. Raises FieldError that names the line within it, from 0."""
    parser = _Parser(target, numbers)
    for position, line in enumerate(text.split("\n")):
        try:
            parser.line(line)
        except FieldError as error:
            raise FieldError(f"search_path[{position}]", error.expected, error.shown) from None
    return parser.path
