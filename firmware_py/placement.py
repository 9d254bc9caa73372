"""Which channel of the stack a tree lies in: policies by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .errors import InputError

__all__ = ["PLACEMENTS", "FewestSearches", "Placement", "RoundRobin", "placement_named"]


class Placement(Protocol):
    """A policy that says which channel a tree should lie in. A tree lies in one channel."""

    name: str

    def order(self, *, number: int, searches: Sequence[int]) -> list[int]:
        """Every channel, the most wanted first: the tree goes to the first with room.

        `number` counts the trees placed before; `searches` are those in progress, by channel.
        """
        ...


class RoundRobin:
    """Placement policy: trees go to the channels in turn."""

    name = "round_robin"

    def order(self, *, number: int, searches: Sequence[int]) -> list[int]:
        """From channel `number` modulo the channels on."""
        count = len(searches)
        return [(number + step) % count for step in range(count)]


class FewestSearches:
    """Placement policy: a tree goes where the fewest searches are in progress, among equals in turn."""

    name = "fewest_searches"

    def order(self, *, number: int, searches: Sequence[int]) -> list[int]:
        """By searches in progress."""
        in_turn = RoundRobin().order(number=number, searches=searches)
        return sorted(in_turn, key=lambda channel: searches[channel])


#: Every placement policy by name.
PLACEMENTS: dict[str, Placement] = {policy.name: policy for policy in (RoundRobin(), FewestSearches())}


def placement_named(name: str) -> Placement:
    """The placement policy called `name`. Raises InputError that lists the known names."""
    try:
        return PLACEMENTS[name]
    except KeyError:
        raise InputError(f"unknown placement {name!r}: expected one of {', '.join(PLACEMENTS)}") from None
