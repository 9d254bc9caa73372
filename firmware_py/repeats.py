"""Golden answers of traces that are replayed again elsewhere in memory, without interpreting them again.

A tree that lies as before, but from another base, asks the same questions: every number of an answer is
either an address, and moves with the tree, or is not, and stays. Two interpreted answers from different bases
tell which, number by number. A walk that stores must change the host's mirror, so it is always interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .walks import Answer

__all__ = ["Interpreted", "RepeatedAnswers"]

_MASK = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Interpreted:
    """What the golden interpreter said of one walk."""

    answer: Answer
    stores: bool
    """It stored something."""


@dataclass
class _Known:
    """One question of a trace: its first answer, and, once there are two, what moves with the tree."""

    base: int
    first: Interpreted
    moves: tuple[bool, ...] | None = None
    fixed: bool = False
    """It must be interpreted each time."""


class RepeatedAnswers:
    """Answers by question of a trace and layout of its tree, for trees at any base."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, int], _Known] = {}

    def answer(self, tree: object, event: int, base: int, interpret: Callable[[], Interpreted]) -> Answer:
        """The answer to the question of `event` for the tree at `base`; `interpret` is called if need be.

        `tree` is equal for trees of one trace that lie alike.
        """
        known = self._known.get((tree, event))
        if known is not None and known.moves is not None:
            return _moved(known, base)
        found = interpret()
        if known is None:
            self._known[tree, event] = _Known(base=base, first=found, fixed=found.stores)
        elif not known.fixed and base != known.base:
            known.moves = _moves(known, found, base)
            known.fixed = known.moves is None
        return found.answer


def _numbers(answer: Answer) -> tuple[int, ...]:
    return (answer.value, *answer.registers, *answer.yields)


def _moves(known: _Known, second: Interpreted, base: int) -> tuple[bool, ...] | None:
    """For each number of the answer whether it is an address; None: the answers differ in more."""
    one, two = known.first.answer, second.answer
    if second.stores or (one.status, one.code, one.hops) != (two.status, two.code, two.hops):
        return None
    before, after = _numbers(one), _numbers(two)
    if len(before) != len(after):
        return None
    shift = base - known.base
    moves: list[bool] = []
    for old, new in zip(before, after, strict=True):
        if new not in (old, (old + shift) & _MASK):
            return None
        moves.append(new != old)
    return tuple(moves)


def _moved(known: _Known, base: int) -> Answer:
    assert known.moves is not None
    shift = base - known.base
    answer = known.first.answer
    value, r0, r1, r2, *yields = (
        (number + shift) & _MASK if moves else number
        for number, moves in zip(_numbers(answer), known.moves, strict=True)
    )
    return Answer(
        status=answer.status,
        code=answer.code,
        value=value,
        registers=(r0, r1, r2),
        hops=answer.hops,
        yields=tuple(yields),
    )
