"""The lines of a Stream-of-Search text by a language model, read into nodes and moves as far as they can be.

Two things differ from the text of a program (`sos_path.py`). The model often goes on below a node that it has
just generated without saying that it moves there: an operation belongs to the state that it fits, that which
the model moved to or that which it generated last. And what it writes need not be true: numbers, ids and
results are kept as it gives them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["ToldMove", "ToldNode", "ToldSearch", "parse_completion"]

_LIST = r"\[([-\d., ]*)\]"
_ID = r"#(\d+(?:,\d+)*)"
_STATE = re.compile(rf"Current State: (-?\d+):{_LIST}, Operations: \[.*\]")
_EXPLORING = re.compile(rf"Exploring Operation: (.+), Resulting Numbers: {_LIST}")
_GENERATED = re.compile(rf"Generated Node {_ID}: -?\d+:{_LIST},? Operation: (.+)")
_MOVING = re.compile(rf"Moving to Node {_ID}")
_UNEQUAL = re.compile(r".* unequal: No Solution")
_EQUAL = re.compile(r".* equal: Goal Reached")
_OPERATION = re.compile(r"(-?[\d.]+)[-+*/](-?[\d.]+)=(-?[\d.]+)")

ORPHANS = "nodes below a state that was never given: roots of their own"
REUSED = "nodes with an id that another has already"
UNKNOWN = "moves to an id that was never given"
OTHER = "lines in other words, or cut off, left out"


@dataclass(frozen=True, kw_only=True)
class ToldNode:
    """A state that the text makes."""

    parent: int | None
    """None: the first, or one below a state that the text never gave."""
    numbers: tuple[str, ...]
    operation: str | None
    """None: the root, or a result of an operation that the text does not show."""
    ext_id: str | None
    """None: a result, which has no id."""
    goal: bool = False

    @property
    def terminal(self) -> bool:
        """Whether it is a result: nothing is below it."""
        return self.ext_id is None

    @property
    def text(self) -> str | None:
        """What it adds to its parent, in the words of the text."""
        if self.operation is None:
            return None
        return f"{self.operation}, Resulting Numbers: [{', '.join(self.numbers)}]"


@dataclass(frozen=True, kw_only=True)
class ToldMove:
    """The text moves to the node with this id; None: none has it."""

    to: int | None
    ext_id: str


@dataclass(kw_only=True)
class ToldSearch:
    """What one text tells, in order."""

    target: int
    nodes: list[ToldNode] = field(default_factory=list)
    steps: list[int | ToldMove] = field(default_factory=list)
    """An int is a node coming to exist, in order of `nodes`; the root is not among them."""
    orphans: int = 0
    reused: int = 0
    unknown: int = 0
    other_lines: int = 0

    def remarks(self) -> dict[str, int]:
        """What the text has wrong, by what it is."""
        return {
            ORPHANS: self.orphans,
            REUSED: self.reused,
            UNKNOWN: self.unknown,
            OTHER: self.other_lines,
        }


def _split(numbers: str) -> tuple[str, ...]:
    return tuple(number.strip() for number in numbers.split(",") if number.strip())


def _fits(before: Sequence[str], operation: str, after: Sequence[str]) -> bool:
    """Whether `operation` on the numbers `before` leaves `after`, whatever its result is worth."""
    match = _OPERATION.fullmatch(operation)
    if match is None:
        return False
    operands = Counter((match[1], match[2]))
    return operands <= Counter(before) and Counter(before) - operands + Counter([match[3]]) == Counter(after)


class _Parser:
    def __init__(self, target: int, numbers: Sequence[int]) -> None:
        self.search = ToldSearch(target=target)
        root = ToldNode(parent=None, numbers=tuple(map(str, numbers)), operation=None, ext_id="0")
        self.search.nodes.append(root)
        self._ids: dict[str, list[int]] = {"0": [0]}
        self._stand: int | None = 0
        self._generated: int | None = None
        self._operation: str | None = None
        self._numbers: tuple[str, ...] = ()

    def line(self, line: str) -> None:
        """Take one line, if it is in the words of the format."""
        if match := _STATE.fullmatch(line):
            self._state(_split(match[2]))
        elif match := _EXPLORING.fullmatch(line):
            self._operation, self._numbers = match[1], _split(match[2])
        elif match := _GENERATED.fullmatch(line):
            self._generate(match[1], _split(match[2]), match[3])
        elif match := _MOVING.fullmatch(line):
            self._move(match[1])
        elif _UNEQUAL.fullmatch(line):
            self._result(goal=False)
        elif _EQUAL.fullmatch(line):
            self._result(goal=True)
        elif line.strip():
            self.search.other_lines += 1

    def _state(self, numbers: tuple[str, ...]) -> None:
        """The state that the text shows tells which node of a reused id it just moved to."""
        steps = self.search.steps
        if not steps or not isinstance(steps[-1], ToldMove):
            return
        alike = [
            node for node in self._ids.get(steps[-1].ext_id, []) if self.search.nodes[node].numbers == numbers
        ]
        if alike and steps[-1].to not in alike:
            self._stand = alike[-1]
            steps[-1] = ToldMove(to=alike[-1], ext_id=steps[-1].ext_id)

    def _generate(self, ext_id: str, numbers: tuple[str, ...], operation: str) -> None:
        above = self._ids.get(ext_id.rpartition(",")[0])
        self.search.reused += ext_id in self._ids
        node = self._add(
            ToldNode(
                parent=None if above is None else self._of(above),
                numbers=numbers,
                operation=operation,
                ext_id=ext_id,
            )
        )
        self._ids.setdefault(ext_id, []).append(node)
        self._generated = node

    def _of(self, nodes: Sequence[int]) -> int:
        """Of nodes with one id, where the text stands, else the last."""
        return self._stand if self._stand is not None and self._stand in nodes else nodes[-1]

    def _result(self, *, goal: bool) -> None:
        places = [place for place in (self._stand, self._generated) if place is not None]
        fitting = (
            place
            for place in places
            if self._operation is not None
            and _fits(self.search.nodes[place].numbers, self._operation, self._numbers)
        )
        self._add(
            ToldNode(
                parent=next(fitting, self._stand),
                numbers=() if self._operation is None else self._numbers,
                operation=self._operation,
                ext_id=None,
                goal=goal,
            )
        )

    def _move(self, ext_id: str) -> None:
        nodes = self._ids.get(ext_id)
        self.search.unknown += nodes is None
        self._stand = None if nodes is None else nodes[-1]
        self._generated = None
        self._operation = None
        self.search.steps.append(ToldMove(to=self._stand, ext_id=ext_id))

    def _add(self, node: ToldNode) -> int:
        self._operation = None
        self.search.orphans += node.parent is None
        identifier = len(self.search.nodes)
        self.search.nodes.append(node)
        self.search.steps.append(identifier)
        return identifier


def parse_completion(text: str, *, target: int, numbers: Sequence[int]) -> ToldSearch:
    """The nodes and moves of a completion. No text is refused: what cannot be read is counted."""
    parser = _Parser(target, numbers)
    *lines, last = text.split("\n")
    for line in lines:
        parser.line(line)
    if _GENERATED.fullmatch(last) or _MOVING.fullmatch(last):
        # Without its line end nobody knows whether the id or the operation goes on.
        parser.search.other_lines += 1
    else:
        parser.line(last)
    return parser.search
