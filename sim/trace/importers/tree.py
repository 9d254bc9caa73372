"""Nested trees in JSON, walked without recursion: a file's depth is not Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .source import items

__all__ = ["preorder"]


def preorder(root: Any, name: str) -> Iterator[tuple[Any, str, int | None]]:
    """Every node of a tree with what an error calls it and its parent's place in this order (None: the root).

    A node is an object with the list of its `children`. Raises FieldError.
    """
    waiting: list[tuple[Any, str, int | None]] = [(root, name, None)]
    place = 0
    while waiting:
        node, called, parent = waiting.pop()
        yield node, called, parent
        children = items(node, "children", dict, called)
        for position in reversed(range(len(children))):
            waiting.append((children[position], f"{called}.children[{position}]", place))
        place += 1
