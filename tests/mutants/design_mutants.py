"""Mutants outside the memory subsystem: walker, arbiter, merge, link; and of the RTL checker itself."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["DESIGN_MUTANTS"]

DESIGN_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="walker loop one cycle longer",
        defect="a record is executed in the cycle after its arrival",
        edits=(
            Replace(
                "hdl/walker/selection.py", "self.direct.eq(self.taken & self.advance)", "self.direct.eq(0)"
            ),
        ),
        tests=("tests/hdl/walker/test_walker.py",),
    ),
    Mutant(
        name="bulk starves",
        defect="walks pass bulk requests for ever",
        edits=(Replace("hdl/fabric/arbiter.py", "(passed == self.BULK_WAIT) | ", ""),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="near walker starves",
        defect="the far walker goes first whenever it waits",
        edits=(Replace("hdl/fabric/arbiter.py", "(far_is_next | ~near.valid)", "1"),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="arbiter takes an offer back",
        defect="a walk replaces a bulk request that is on offer",
        edits=(Replace("hdl/fabric/arbiter.py", "held.eq(out.valid & ~out.ready)", "held.eq(0)"),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="link a cycle short",
        defect="messages cross the link in one cycle less than stated",
        edits=(
            Replace(
                "hdl/fabric/channel.py",
                "now + self.minimum_latency + self.latency + behind",
                "now + self.minimum_latency + self.latency + behind - 1",
            ),
        ),
        tests=("tests/hdl/fabric/test_link.py",),
    ),
    Mutant(
        name="link width ignored",
        defect="a message holds the link for one cycle, whatever its size",
        edits=(
            Replace(
                "hdl/fabric/channel.py",
                "m.d.sync += backlog.eq(behind)",
                "m.d.sync += backlog.eq(0)",
            ),
        ),
        tests=("tests/hdl/fabric/test_link.py",),
    ),
    Mutant(
        name="checker without windows",
        defect="the RTL checker counts tFAW from the last ACT instead of the fourth last",
        edits=(
            Replace(
                "hdl/memory/checker_rules.py",
                "stamp=Stamp(scope=scope, commands=frozenset(commands), window=window),",
                "stamp=Stamp(scope=scope, commands=frozenset(commands), window=1),",
            ),
        ),
        tests=("tests/hdl/memory/test_checker.py",),
    ),
)
