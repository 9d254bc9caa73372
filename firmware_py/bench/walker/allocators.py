"""Models of memory allocators, for the share of memory that each wastes on the same states.

Sizes are bytes, addresses byte addresses. `extent` is the highest byte that was ever in use: what an
arena must hold. What the allocator itself notes down is not counted: 32 bytes a block of the pool, and mostly
16 bytes a run of a general heap.
"""

from __future__ import annotations

from bisect import insort
from typing import Protocol

__all__ = ["Allocator", "BlockPool", "Buddy", "FirstFit"]


class Allocator(Protocol):
    """Something that leases runs of bytes."""

    extent: int

    def allocate(self, size: int) -> int:
        """A handle of `size` bytes, at least 1."""
        ...

    def release(self, handle: int) -> None:
        """Gives back what has this handle. Raises KeyError when nothing has."""
        ...


class FirstFit:
    """A general heap: the lowest hole that is long enough, in multiples of `unit` bytes; holes merge."""

    def __init__(self, *, unit: int = 16) -> None:
        self.extent = 0
        self._unit = unit
        self._live: dict[int, int] = {}
        self._order: list[int] = []

    def allocate(self, size: int) -> int:
        """The address of the run."""
        length = -(-size // self._unit) * self._unit
        base = 0
        for address in self._order:
            if address - base >= length:
                break
            base = address + self._live[address]
        self._live[base] = length
        insort(self._order, base)
        self.extent = max(self.extent, base + length)
        return base

    def release(self, handle: int) -> None:
        """Gives back the run at this address."""
        del self._live[handle]
        self._order.remove(handle)


class Buddy:
    """A buddy system: runs of powers of two from `least` bytes, halved and merged; it grows as needed."""

    def __init__(self, *, least: int = 16) -> None:
        self.extent = 0
        self._least = least
        self._free: dict[int, set[int]] = {}
        self._live: dict[int, int] = {}
        self._top = least
        self._free[least] = {0}

    def allocate(self, size: int) -> int:
        """The address of the run."""
        length = self._least
        while length < size:
            length *= 2
        while not any(self._free.get(order) for order in self._orders(length)):
            self._grow()
        order = next(order for order in self._orders(length) if self._free.get(order))
        address = min(self._free[order])
        self._free[order].remove(address)
        while order > length:
            order //= 2
            self._free.setdefault(order, set()).add(address + order)
        self._live[address] = length
        self.extent = max(self.extent, address + length)
        return address

    def release(self, handle: int) -> None:
        """Gives back the run at this address; free buddies merge."""
        length = self._live.pop(handle)
        while length < self._top and handle ^ length in self._free.get(length, ()):
            self._free[length].remove(handle ^ length)
            handle &= ~length
            length *= 2
        self._free.setdefault(length, set()).add(handle)

    def _orders(self, length: int) -> list[int]:
        orders = []
        while length <= self._top:
            orders.append(length)
            length *= 2
        return orders

    def _grow(self) -> None:
        """Twice the memory: the upper half is free, and merges if the lower half is."""
        upper = self._top
        self._top *= 2
        self._live[upper] = upper
        self.release(upper)


class BlockPool:
    """The pool of `pool_take`: any free blocks of `block` bytes, wherever they lie."""

    def __init__(self, *, block: int) -> None:
        self.extent = 0
        self._block = block
        self._free: list[int] = []
        self._live: dict[int, list[int]] = {}
        self._next = 0

    def allocate(self, size: int) -> int:
        """The number of the lease."""
        blocks = [self._free.pop() if self._free else self._fresh() for _ in range(-(-size // self._block))]
        self._live[self._next] = blocks
        self._next += 1
        return self._next - 1

    def release(self, handle: int) -> None:
        """Gives back every block of the lease."""
        self._free += self._live.pop(handle)

    def _fresh(self) -> int:
        self.extent += self._block
        return self.extent - self._block
