"""visited: the node of a state in a hash chain, found by its full 128-bit key.

In: start at the first entry of the chain; r0..r3 = the key, r0 its lowest word.
Out: r0 = the node with DONE; 0 with DONE if no entry has the key. An empty chain (start 0) ends with
NULL_POINTER as every walk from null, and r0 still holds the key.
Reads: the position of the entry in the chain, from 1; the length of the chain if there is none.
2 to 5 instructions a hop: the first word that differs ends the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom, record_words

from ..assembler import Program, done, goto, load
from ..operands import field, r0, r1, r2, r3
from ..records import HASH_ENTRY, BitField
from .memory_view import linked, read

__all__ = ["build", "reference"]

_KEY = tuple(BitField(HASH_ENTRY["key"] + index) for index in range(4))
_NODE = BitField(HASH_ENTRY["node"])
_NEXT = BitField(HASH_ENTRY["next"])


def build() -> Program:
    """The walk program."""
    program = Program("visited")
    program.entry("visited")
    program.when(field(_KEY[0]) != r0, then=goto("next"))
    program.when(field(_KEY[1]) != r1, then=goto("next"))
    program.when(field(_KEY[2]) != r2, then=goto("next"))
    program.when(field(_KEY[3]) == r3, r0.mov(field(_NODE)), then=done())
    program.label("next")
    program.when(field(_NEXT) == 0, r0.mov(0), then=done(), otherwise=load(field(_NEXT), "visited"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int, key: tuple[int, int, int, int]) -> int:
    """The node of the first entry of the chain with this key (lowest word first), or 0."""
    for entry in linked(memory, start, _NEXT):
        if tuple(record_words(memory[entry])[: len(key)]) == key:
            return read(memory, entry, _NODE)
    return 0
