"""Mutants of the compute side's cache."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["CACHE_MUTANTS"]

_CELLS = "hdl/fabric/cache_cells.py"
_CACHE = "hdl/fabric/cache.py"
_CELLS_TESTS = ("tests/hdl/fabric/test_cache_cells.py",)
_CACHE_TESTS = ("tests/hdl/fabric/test_cache.py",)

CACHE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="cache filled by a stranger",
        defect="a line takes the data of any response to its address, of an older read too",
        edits=(Replace(_CELLS, "takes.eq(awaited & mine)", "takes.eq(awaited)"),),
        tests=_CELLS_TESTS,
    ),
    Mutant(
        name="cache line of half a write",
        defect="a partial write makes an awaited line valid",
        edits=(Replace(_CELLS, "(found & ~awaited)),", "found),"),),
        tests=_CELLS_TESTS,
    ),
    Mutant(
        name="cache recency by fill",
        defect="the data of a read counts as a use of the line",
        edits=(Replace(_CELLS, "(takes & (self.op != CacheOp.FILL))", "takes"),),
        tests=_CELLS_TESTS,
    ),
    Mutant(
        name="cache blind to the other port",
        defect="lines are kept while the other port's writes are on their way",
        edits=(
            Replace(_CACHE, "Mux(take_bulk, writing[0], writing[1]).any()", "Mux(take_bulk, 0, 0).any()"),
        ),
        tests=_CACHE_TESTS,
    ),
    Mutant(
        name="cache looked up before filled",
        defect="a line is looked up while the data of an older read of it waits to be filled in",
        edits=(Replace(_CACHE, "(next_fill | (source.payload.address == fill_address))", "next_fill"),),
        tests=_CACHE_TESTS,
    ),
    Mutant(
        name="cache keeps what failed",
        defect="a write that failed leaves its line in the cache",
        edits=(
            Replace(_CACHE, "clearing.eq(self.clear | failed[0] | failed[1])", "clearing.eq(self.clear)"),
        ),
        tests=_CACHE_TESTS,
    ),
    Mutant(
        name="cache trusts conditions",
        defect="a conditional write changes its line whatever memory says",
        edits=(Replace(_CACHE, "taken_request.conditional | others_writing", "others_writing"),),
        tests=_CACHE_TESTS,
    ),
    Mutant(
        name="cache counts a request twice",
        defect="a hit in the cycle in which another request leaves is not taken off the count",
        edits=(Replace(_CACHE, "- sent - (hit & mine)", "- (sent | (hit & mine))"),),
        tests=_CACHE_TESTS,
    ),
    Mutant(
        name="cache hit a cycle late",
        defect="a hit takes a cycle more than the register says",
        edits=(
            Replace(_CACHE, "hits.latency.eq(self.hit_latency)", "hits.latency.eq(self.hit_latency + 1)"),
        ),
        tests=_CACHE_TESTS,
    ),
)
