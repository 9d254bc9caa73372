"""Countdown numbers by Monte Carlo tree search: combine numbers, each used at most once, to hit a target.

UCT as it is usually written: go down by upper confidence bounds while every child has been tried, add one
child, play it out at random, add the reward to every node of the path.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..events import Status
from ..recorder import Recorder

__all__ = ["Countdown", "Hand", "monte_carlo"]

#: Weight of exploration in the upper confidence bound.
_EXPLORATION = 0.7


@dataclass(frozen=True, kw_only=True)
class Hand:
    """The numbers left, smallest first, how each was made, and the step that led here."""

    numbers: tuple[int, ...]
    expressions: tuple[str, ...]
    step: str = ""


class Countdown:
    """One round: numbers and a target. A hand is as good as the number in it that is nearest."""

    def __init__(self, numbers: Sequence[int], target: int) -> None:
        ordered = sorted(numbers)
        self.target = target
        self.root = Hand(numbers=tuple(ordered), expressions=tuple(map(str, ordered)))

    def moves(self, hand: Hand) -> list[Hand]:
        """The hands one step away, each set of numbers once; only whole positive results count."""
        held = list(zip(hand.numbers, hand.expressions, strict=True))
        found: dict[tuple[int, ...], Hand] = {}
        for left, right in itertools.combinations(range(len(held)), 2):
            (low, low_text), (high, high_text) = held[left], held[right]
            results = [(high + low, "+"), (high - low, "-"), (high * low, "*")]
            if high % low == 0:
                results.append((high // low, "/"))
            rest = [held[place] for place in range(len(held)) if place not in (left, right)]
            for value, sign in results:
                if value <= 0:
                    continue
                made = (value, f"({high_text} {sign} {low_text})")
                numbers, expressions = zip(*sorted([*rest, made]), strict=True)
                step = f"{high} {sign} {low} = {value}"
                found.setdefault(numbers, Hand(numbers=numbers, expressions=expressions, step=step))
        return list(found.values())

    def distance(self, hand: Hand) -> int:
        """How far the nearest number is from the target."""
        return min(abs(number - self.target) for number in hand.numbers)

    def reward(self, hand: Hand) -> float:
        """1 for the target, less the farther away, above 0."""
        return 1 / (1 + self.distance(hand))

    def size(self, hand: Hand) -> int:
        """Bytes of the numbers and expressions as text."""
        return len(", ".join((*map(str, hand.numbers), *hand.expressions)))


@dataclass(kw_only=True)
class _Node:
    identifier: int
    hand: Hand
    parent: _Node | None
    waiting: list[Hand]
    """Moves left to try, the next one last."""
    children: list[_Node] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0

    def priority(self, child: _Node) -> float:
        """Upper confidence bound of a visited child in steps of 0.0001, so that float32 keeps its order."""
        mean = child.value / child.visits
        return round(mean + _EXPLORATION * math.sqrt(math.log(self.visits) / child.visits), 4)


class _Search:
    def __init__(self, recorder: Recorder, game: Countdown, *, width: int, seed: int) -> None:
        self._recorder = recorder
        self._game = game
        self._width = width
        self._random = random.Random(seed)
        self._focus: _Node | None = None
        self._root = self._make(game.root, None)

    def _make(self, hand: Hand, parent: _Node | None) -> _Node:
        game, recorder = self._game, self._recorder
        above = () if parent is None else (parent.identifier,)
        kind = "root" if parent is None else "thought"
        identifier = recorder.node(
            *above, kind=kind, state_bytes=game.size(hand), text=hand.step if parent else None
        )
        moves = game.moves(hand) if len(hand.numbers) > 1 and game.distance(hand) else []
        # Only the moves that end nearest are worth a child: the tree would be all root otherwise.
        moves = sorted(moves, key=game.distance)[: self._width]
        node = _Node(identifier=identifier, hand=hand, parent=parent, waiting=moves[::-1])
        if moves:
            recorder.save(identifier, game.size(hand))
            recorder.expand(identifier, len(moves))
        return node

    def _descend(self) -> _Node:
        node = self._root
        while not node.waiting and node.children:
            for child in node.children:
                self._recorder.eval(child.identifier, node.priority(child))
            best = max(node.children, key=node.priority)
            self._recorder.select([child.identifier for child in node.children], [best.identifier])
            node = best
        return node

    def _restore(self, node: _Node) -> None:
        """The state of the node to expand is read back, unless the search stands there."""
        if self._focus is not node:
            self._recorder.restore(node.identifier, self._game.size(node.hand))

    def _play_out(self, hand: Hand) -> float:
        best = self._game.reward(hand)
        while len(hand.numbers) > 1:
            hand = self._random.choice(self._game.moves(hand))
            best = max(best, self._game.reward(hand))
        return best

    def iterate(self) -> Hand | None:
        """One iteration; the hand that holds the target if the tree has reached one."""
        node = self._descend()
        if node.waiting:
            self._restore(node)
            hand = node.waiting.pop()
            self._recorder.expand(node.identifier, len(node.waiting))
            child = self._make(hand, node)
            node.children.append(child)
            node = child
            self._focus = child
        reward = self._play_out(node.hand)
        path: list[_Node] = []
        above: _Node | None = node
        while above is not None:
            path.append(above)
            above.visits += 1
            above.value += reward
            above = above.parent
        self._recorder.backup([step.identifier for step in path], reward)
        return node.hand if self._game.distance(node.hand) == 0 else None


def monte_carlo(
    recorder: Recorder, game: Countdown, *, iterations: int, width: int = 6, seed: int = 0
) -> tuple[Status, Hand | None]:
    """Search for so many iterations or until the target is in a hand; records what is between begin and end.

    `width` is the most children of a node, `seed` that of the random play-outs.
    """
    search = _Search(recorder, game, width=width, seed=seed)
    for _ in range(iterations):
        solution = search.iterate()
        if solution is not None:
            return "solved", solution
    return "budget", None
