"""A memory image as a search sees it: nodes, their children and ancestors, the records of a list.

The reference functions of the walk programs are written with these. They follow the definitions of
`firmware_py.records` and know nothing of instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sim.model.interpreter import Atom, record_words

from ..records import CHILD, DEAD_BIT, PARENT, SIBLING, UNTRIED, BitField

__all__ = ["ancestors", "children", "is_dead", "linked", "read", "untried"]


def read(memory: Mapping[int, Atom], address: int, field: BitField) -> int:
    """The value of a field of the record at `address`; a signed field may be negative."""
    value = record_words(memory[address])[field.word] >> field.low & (1 << field.width) - 1
    return value - (1 << field.width) if field.signed and value >> field.width - 1 else value


def linked(memory: Mapping[int, Atom], first: int, link: BitField) -> Iterator[int]:
    """Addresses from `first` along `link` up to the null pointer. Raises ValueError for a ring."""
    seen: set[int] = set()
    address = first
    while address:
        if address in seen:
            raise ValueError(f"record {address:#x} is linked to itself: expected a chain that ends in 0")
        seen.add(address)
        yield address
        address = read(memory, address, link)


def children(memory: Mapping[int, Atom], node: int) -> Iterator[int]:
    """The children of a node, first created first."""
    return linked(memory, read(memory, node, CHILD), SIBLING)


def ancestors(memory: Mapping[int, Atom], node: int) -> Iterator[int]:
    """The node itself, its first parent, and so on up to the root."""
    return linked(memory, node, PARENT)


def is_dead(memory: Mapping[int, Atom], node: int) -> bool:
    """Whether the search stopped at the node for good."""
    return read(memory, node, DEAD_BIT) == 1


def untried(memory: Mapping[int, Atom], node: int) -> int:
    """Children of the node that were not tried yet."""
    return read(memory, node, UNTRIED)
