"""What a replay asks of the accelerator: one walk with its start, registers and the answer that is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hdl.layouts import WalkStatus

__all__ = [
    "Answer",
    "Check",
    "ExpectList",
    "ExpectNode",
    "ExpectNothing",
    "ExpectPath",
    "ExpectRegister",
    "ExpectScores",
    "Expectation",
    "Name",
    "Question",
]

#: What a report calls the record at an address.
Name = Callable[[int], str]
#: Records of a list that a report names.
_SHOWN = 8

Check = Literal["climb", "select", "ancestor", "backup", "none"]


def _list(addresses: Sequence[int], name: Name) -> str:
    more = f", ... ({len(addresses)})" if len(addresses) > _SHOWN else ""
    return ", ".join(map(name, addresses[:_SHOWN])) + more


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How a walk ended and what it yielded, as the completion ring or the golden interpreter says it."""

    status: int
    """`WalkStatus`."""
    code: int
    value: int
    """Address of the current record at the end; 0 after a null pointer."""
    registers: tuple[int, int, int]
    """r0..r2 at the end."""
    hops: int
    yields: tuple[int, ...]

    def describe(self, name: Name) -> str:
        """What the walk did, records called by `name`."""
        known = {status.value: status.name for status in WalkStatus}
        end = f"{known.get(self.status, f'status {self.status}')} at {name(self.value)}"
        text = f"{end} after {self.hops} reads, r0 {self.registers[0]:#x}"
        return f"{text}, yielded {_list(self.yields, name)}" if self.yields else text


class Expectation(Protocol):
    """The answer that the trace says is right."""

    def right(self, answer: Answer) -> bool:
        """Whether `answer` is that answer."""
        ...

    def describe(self, name: Name) -> str:
        """That answer in words, records called by `name`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExpectNothing:
    """No answer can be derived from the trace."""

    def right(self, answer: Answer) -> bool:
        """Any answer will do."""
        return True

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return "any answer"


@dataclass(frozen=True, kw_only=True)
class ExpectNode:
    """The walk ends on the record at `address`; None: at a null pointer."""

    address: int | None

    def right(self, answer: Answer) -> bool:
        """Whether the walk ended there."""
        if self.address is None:
            return answer.status == WalkStatus.NULL_POINTER.value
        return answer.status == WalkStatus.DONE.value and answer.value == self.address

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return "an end at a null pointer" if self.address is None else f"an end at {name(self.address)}"


@dataclass(frozen=True, kw_only=True)
class ExpectRegister:
    """The walk says `done` with this value in r0."""

    value: int

    def right(self, answer: Answer) -> bool:
        """Whether it did."""
        return answer.status == WalkStatus.DONE.value and answer.registers[0] == self.value

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return f"r0 {self.value:#x}: {name(self.value)}"


@dataclass(frozen=True, kw_only=True)
class ExpectPath:
    """The walk reads exactly `hops` records and ends on the one at `end`."""

    end: int
    hops: int

    def right(self, answer: Answer) -> bool:
        """Whether it did."""
        return answer.status == WalkStatus.DONE.value and (answer.value, answer.hops) == (self.end, self.hops)

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return f"an end at {name(self.end)} after {self.hops} reads"


@dataclass(frozen=True, kw_only=True)
class ExpectList:
    """The walk yields exactly these values, in this order."""

    values: tuple[int, ...]

    def right(self, answer: Answer) -> bool:
        """Whether it did."""
        return answer.status == WalkStatus.DONE.value and answer.yields == self.values

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return f"the list {_list(self.values, name)}"


@dataclass(frozen=True, kw_only=True)
class ExpectScores:
    """The walk yields members of a list with these score words in this order; equals may change places."""

    scores: tuple[int, ...]
    members: Mapping[int, tuple[int, int]]
    """Score word, and how often it may occur, by value."""

    def right(self, answer: Answer) -> bool:
        """Whether it did."""
        if answer.status != WalkStatus.DONE.value or not all(
            value in self.members for value in answer.yields
        ):
            return False
        if any(answer.yields.count(value) > self.members[value][1] for value in set(answer.yields)):
            return False
        return tuple(self.members[value][0] for value in answer.yields) == self.scores

    def describe(self, name: Name) -> str:
        """The answer in words."""
        return f"{len(self.scores)} records of the list with the scores of those chosen"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One walk that an event of a trace asks for."""

    event: int
    """Index of the event in its trace."""
    check: Check
    reason: str | None
    """Why `check` is none."""
    source: str | None
    """Where the untried counts that decide it come from."""
    program: str
    start: int
    registers: tuple[int, ...]
    yields: int
    """Values that it yields at most."""
    expectation: Expectation
    records: int = 0
    """Records of the contiguous list that it selects from."""
