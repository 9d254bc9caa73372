"""The host's part of `climb_compressed`: the stamp of a tree, and the skips that new nodes begin with.

The rules, and why they make every skip with the tree's stamp right, are in `programs/climb_compressed.py`.
"""

from __future__ import annotations

from .image import TreeImage
from .programs.climb_compressed import STAMPS, skip_word

__all__ = ["Skips"]


class Skips:
    """The skips of one search: told what changes in its tree, it sets SKIP words in the tree's image.

    `stamp` (1 to STAMPS) goes with every launch. `settle` must be called before the image is flushed.
    """

    def __init__(self, image: TreeImage) -> None:
        self._image = image
        self.stamp = 1
        self.stamps_taken = 0
        """How often a new stamp was needed."""
        self.words_cleared = 0
        """Skips that were overwritten because the stamps had run out, a write of a word each."""
        self._parent: dict[int, int | None] = {}
        self._with_child: set[int] = set()
        self._new: list[int] = []
        self._targets: dict[int, int] = {}
        """What the host knows of the skips with this stamp: by node, the node that it skips to."""

    def made(self, node: int, parent: int | None) -> None:
        """A node exists from now on."""
        self._parent[node] = parent
        self._new.append(node)
        if parent is not None:
            self._with_child.add(parent)

    def opened(self, node: int) -> None:
        """A node that had nothing to try, or was dead, has something to try now: no skip may pass it."""
        if node not in self._with_child:
            return
        self.stamps_taken += 1
        self._targets.clear()
        if self.stamp < STAMPS:
            self.stamp += 1
            return
        self.stamp = 1
        for other in self._parent:
            if self._image.skip(other):
                self._image.set_skip(other, 0)
                self.words_cleared += 1

    def settle(self) -> None:
        """Give the nodes made since the last call their first skips, as the tree is now."""
        for node in self._new:
            parent = self._parent[node]
            if parent is None or self._image.is_open(parent):
                continue
            target = self._nearest_open(parent)
            if target is not None:
                self._targets[node] = target
                word = skip_word(stamp=self.stamp, target=self._image.address(target))
                self._image.set_skip(node, word)
        self._new.clear()

    def _nearest_open(self, node: int | None) -> int | None:
        while node is not None and not self._image.is_open(node):
            node = self._targets[node] if node in self._targets else self._parent[node]
        return node
