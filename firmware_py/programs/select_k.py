"""select_k: the k best of a candidate list, by score descending, then by sequence number ascending.

Dead candidates count, unless asked otherwise; one without a score comes after all that have one. The list
may be in any order and may name a node more than once: the sequence number tells candidates apart.
Sequence numbers are distinct and below 0xFFFFFFFF.

In: start at the first candidate record; r0 = k; r1 = 0, or 1 to leave dead candidates out (the entry
`select_k_live` sets it).
Out: the k nodes as yields, best first, fewer if the list is shorter; then DONE with r0 = k minus the
number of yields.
Reads, n being the length of the list and m the number of candidates that count: n for each yield, and n
more if k > m to find that there is no further one; 1 if k = 0.
2 instructions on a candidate that does not count, 3 on one that is worse than the best so far, 11 at most;
2 more where a pass starts, 5 more where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from sim.model.interpreter import Atom

from ..assembler import Program, done, goto, load, yield_value
from ..operands import address, field, r0, r1, r2, r3, r4, r5, r6, r7
from ..records import CANDIDATE, DEAD_BIT, NO_SCORE, BitField
from .memory_view import linked, read

__all__ = ["build", "reference"]

_NODE = BitField(CANDIDATE["node"])
_SCORE = BitField(CANDIDATE["score"], signed=True)
_SEQUENCE = BitField(CANDIDATE["sequence"])
_NEXT = BitField(CANDIDATE["next"])
_DEAD = BitField(CANDIDATE["status"], DEAD_BIT.low, DEAD_BIT.width)
#: Better than every candidate: the bound before the first yield.
_BEST_SCORE = (1 << 31) - 1
#: With NO_SCORE worse than every candidate: what the first candidate of a pass is compared with.
_WORST_SEQUENCE = 0xFFFFFFFF


def build() -> Program:
    """The walk program: a pass over the list for each yield.

    r2, r3 = score and sequence of the last yield; r4, r5, r6 = score, sequence and node of the best
    candidate of this pass that comes after it; r7 = the first record.
    """
    program = Program("select_k")
    program.entry("select_k_live")
    program.always(r1.mov(1))
    program.entry("select_k")
    program.when(r0 != 0, r7.mov(address), otherwise=done())
    program.always(r2.mov(_BEST_SCORE))
    program.label("pass")
    program.always(r4.mov(NO_SCORE))
    program.always(r5.mov(_WORST_SEQUENCE))
    program.label("candidate")
    program.when(field(_DEAD) & r1, then=goto("next"))
    program.when(field(_SCORE) < r4, then=goto("next"))
    program.when(r2 < field(_SCORE), then=goto("next"))
    program.when(field(_SCORE) != r4, then=goto("bound"))
    program.when(field(_SEQUENCE) >= r5, then=goto("next"))
    program.label("bound")
    program.when(field(_SCORE) != r2, then=goto("take"))
    program.when(r3 >= field(_SEQUENCE), then=goto("next"))
    program.label("take")
    program.always(r4.mov(field(_SCORE)))
    program.always(r5.mov(field(_SEQUENCE)))
    program.always(r6.mov(field(_NODE)))
    program.label("next")
    program.when(field(_NEXT) != 0, then=load(field(_NEXT), "candidate"))
    program.when(r5 == _WORST_SEQUENCE, then=done(), otherwise=yield_value(r6))
    program.always(r2.mov(r4))
    program.always(r3.mov(r5))
    program.always(r0.sub(1))
    program.when(r0 == 0, then=done(), otherwise=load(r7, "pass"))
    return program


def reference(memory: Mapping[int, Atom], *, start: int, k: int, live_only: bool = False) -> list[int]:
    """The nodes of the k first candidates, sorted by (score descending, sequence ascending)."""
    candidates = [
        candidate
        for candidate in linked(memory, start, _NEXT)
        if not (live_only and read(memory, candidate, _DEAD))
    ]
    candidates.sort(key=lambda one: (-read(memory, one, _SCORE), read(memory, one, _SEQUENCE)))
    return [read(memory, candidate, _NODE) for candidate in candidates[:k]]
