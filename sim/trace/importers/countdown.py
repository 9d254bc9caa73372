"""The countdown game's rules as Stream-of-Search applies them: moves from a state and their heuristics.

A state is a list of whole numbers; a move puts two of them together by +, *, the difference, or a division
without remainder.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

__all__ = ["HEURISTICS", "children", "distance_to_factors", "distance_to_target"]


def distance_to_target(numbers: Sequence[int], target: int) -> float:
    """Mean distance of the numbers from the target (`sum_heuristic`)."""
    return sum(abs(number - target) for number in numbers) / len(numbers)


def distance_to_factors(numbers: Sequence[int], target: int) -> float:
    """Sum over the numbers of the distance from the nearest factor of the target (`mult_heuristic`)."""
    factors = [factor for factor in range(2, target + 1) if target % factor == 0]
    return sum(min(abs(number - factor) for factor in factors) for number in numbers)


#: By the name that a Stream-of-Search record gives. Lower is better.
HEURISTICS: dict[str, Callable[[Sequence[int], int], float]] = {
    "sum_heuristic": distance_to_target,
    "mult_heuristic": distance_to_factors,
}


def children(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Every state one move away; equal ones as often as they can be reached."""
    for left, right in itertools.combinations(range(len(numbers)), 2):
        rest = [number for place, number in enumerate(numbers) if place not in (left, right)]
        low, high = sorted((numbers[left], numbers[right]))
        results = [low + high, low * high, high - low]
        if low != 0 and high % low == 0:
            results.append(high // low)
        for result in results:
            yield [*rest, result]
