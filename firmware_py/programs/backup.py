"""backup: add a value and one visit to every node from a leaf up to its root.

The value sum is the SKIP word (32-bit, wraps; Q16.16 by convention). The visits saturate at 65,535 and
leave the state length beside them alone.

In: start at the leaf; r0 = the value. The context needs write permission (else WRITE_DENIED).
Out, with DONE: the verdict's value = the root's address.
Reads: one for each node of the path. Writes: two for each, one where the visits are saturated.
5 instructions a hop, 4 where the visits are saturated.

The stores are plain: two walks on paths that meet must not run at once, or a sum is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom, record_words

from ..assembler import Program, done, goto, load, store
from ..operands import field, r0, r1, r2
from ..records import PARENT, SKIP, VISITS, BitField
from .memory_view import ancestors, read

__all__ = ["build", "reference"]

_VALUE_SUM = SKIP
_VISITS_WORD = BitField(VISITS.word)
_VISITS_MAX = (1 << VISITS.width) - 1


def build() -> Program:
    """The walk program."""
    program = Program("backup")
    program.entry("backup")
    program.always(r1.mov(r0))
    program.always(r1.add(field(_VALUE_SUM)), store(field(_VALUE_SUM), r1))
    program.when(field(VISITS) != _VISITS_MAX, r2.mov(field(_VISITS_WORD)), otherwise=goto("up"))
    program.always(r2.add(1 << VISITS.low), store(field(_VISITS_WORD), r2))
    program.label("up")
    program.when(field(PARENT) == 0, then=done(), otherwise=load(field(PARENT), "backup"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int, value: int) -> dict[int, tuple[int, ...]]:
    """The records of the path as they must be afterwards, by address."""
    after = {}
    for node in ancestors(memory, start):
        words = record_words(memory[node])
        words[_VALUE_SUM.word] = words[_VALUE_SUM.word] + value & 0xFFFFFFFF
        visits = min(read(memory, node, VISITS) + 1, _VISITS_MAX)
        words[VISITS.word] = words[VISITS.word] % (1 << VISITS.low) | visits << VISITS.low
        after[node] = tuple(words)
    return after
