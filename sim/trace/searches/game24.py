"""The Game of 24: make 24 out of four numbers, each used once, with + - * and /."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..recorder import Recorder
from .depth_first import Outcome

__all__ = ["Game24", "Hand", "beam"]

TARGET = 24
#: Numbers from which 24 is one step away with some small partner.
_USEFUL = tuple(Fraction(number) for number in (1, 2, 3, 4, 6, 8, 12, 24))


@dataclass(frozen=True, kw_only=True)
class Hand:
    """The numbers left, smallest first, how each was made, and the step that led here."""

    numbers: tuple[Fraction, ...]
    expressions: tuple[str, ...]
    step: str = ""


def _results(left: tuple[Fraction, str], right: tuple[Fraction, str]) -> list[tuple[Fraction, str, str]]:
    """What two numbers make: value, expression, step. Negative differences are left out, as equal play."""
    (a, a_text), (b, b_text) = sorted((left, right), reverse=True)
    made = [(a + b, "+", a, b, a_text, b_text), (a - b, "-", a, b, a_text, b_text)]
    made.append((a * b, "*", a, b, a_text, b_text))
    if b:
        made.append((a / b, "/", a, b, a_text, b_text))
    if a and a != b:
        made.append((b / a, "/", b, a, b_text, a_text))
    return [
        (value, f"({first_text} {sign} {second_text})", f"{first} {sign} {second} = {value}")
        for value, sign, first, second, first_text, second_text in made
    ]


class Game24:
    """One hand of the game as a problem for a search."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = tuple(sorted(numbers))

    @property
    def root(self) -> Hand:
        """The hand as dealt."""
        return Hand(
            numbers=tuple(Fraction(number) for number in self.numbers),
            expressions=tuple(str(number) for number in self.numbers),
        )

    def moves(self, state: Hand) -> list[Hand]:
        """The hands one step away, each set of numbers once, in a fixed order."""
        held = list(zip(state.numbers, state.expressions, strict=True))
        found: dict[tuple[Fraction, ...], Hand] = {}
        for left, right in itertools.combinations(range(len(held)), 2):
            rest = [held[place] for place in range(len(held)) if place not in (left, right)]
            for value, expression, step in _results(held[left], held[right]):
                numbers, expressions = zip(*sorted([*rest, (value, expression)]), strict=True)
                found.setdefault(numbers, Hand(numbers=numbers, expressions=expressions, step=step))
        return list(found.values())

    def children(self, state: Hand) -> list[Hand]:
        """The hands one step away, the most promising first."""
        return sorted(self.moves(state), key=self.promise, reverse=True)

    def promise(self, state: Hand) -> float:
        """How promising a hand is; 0 is best. Exact for one and two numbers, else a guess."""
        if len(state.numbers) == 1:
            return -float(abs(state.numbers[0] - TARGET))
        if len(state.numbers) == 2:
            return max(self.promise(after) for after in self.moves(state))
        return -float(sum(min(abs(number - useful) for useful in _USEFUL) for number in state.numbers))

    def solved(self, state: Hand) -> bool:
        """Whether 24 is all that is left."""
        return state.numbers == (TARGET,)

    def dead(self, state: Hand) -> str | None:
        """One number that is not 24 ends the game."""
        return "not_24" if len(state.numbers) == 1 else None

    def describe(self, state: Hand) -> str:
        """The last step."""
        return state.step

    def size(self, state: Hand) -> int:
        """Bytes of the numbers and expressions as text."""
        return len(", ".join((*map(str, state.numbers), *state.expressions)))


def beam(recorder: Recorder, game: Game24, *, width: int) -> Outcome[Hand]:
    """Beam search: the `width` most promising hands of each step go on, equals in order of creation."""
    root = recorder.node(kind="root", state_bytes=game.size(game.root))
    kept: list[tuple[int, Hand]] = [(root, game.root)]
    parent_of: dict[int, int] = {}
    focus = root
    for _ in range(len(game.numbers) - 1):
        made: list[tuple[int, Hand, float]] = []
        for node, hand in kept:
            above = node
            while above != focus and above in parent_of:
                above = parent_of[above]
            if above != focus:
                recorder.jump(focus, node)
                recorder.restore(node, game.size(hand))
            focus = node
            for child in game.moves(hand):
                identifier = recorder.node(node, state_bytes=game.size(child), text=child.step)
                parent_of[identifier] = node
                made.append((identifier, child, game.promise(child)))
        for identifier, _, promise in made:
            recorder.eval(identifier, promise)
        best = sorted(made, key=lambda item: -item[2])[:width]
        recorder.select([identifier for identifier, _, _ in made], [identifier for identifier, _, _ in best])
        for identifier, hand, _ in best:
            recorder.save(identifier, game.size(hand))
        taken = {identifier for identifier, _, _ in best}
        for identifier, _, _ in made:
            if identifier not in taken:
                recorder.prune(identifier, "beam")
        kept = [(identifier, hand) for identifier, hand, _ in best]
    solution = next((hand for _, hand in kept if game.solved(hand)), None)
    return Outcome(status="unsolved" if solution is None else "solved", solution=solution)
