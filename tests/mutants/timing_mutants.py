"""Mutants of the timing table: the controller counts a rule one cycle short."""

from __future__ import annotations

from .mutant import Mutant, Replace, ShorterRule

__all__ = ["TIMING_MUTANTS"]

_CLOSING = ("PRE", "PREA")
_READS, _WRITES = ("RD", "RDA"), ("WR", "WRA")
_ROW = ("ACT", *_CLOSING, "REFab", "REFpb")

#: Rule, the commands it holds up, window, and a design in which it binds and is not implied by others.
_RULES = (
    ("tRCDRD", _READS, 1, "hbm2"),
    ("tRCDWR", _WRITES, 1, "hbm2"),
    ("tRAS", _CLOSING, 1, "hbm2"),
    # tRAS + tRP = tRC in HBM2.
    ("tRC", ("ACT",), 1, "hbm3"),
    ("tRP", ("ACT",), 1, "hbm2"),
    ("tRP", ("REFab",), 1, "hbm2"),
    ("tRTP", _CLOSING, 1, "hbm2"),
    ("tRTP+tRP", ("ACT",), 1, "hbm2"),
    ("tWR", _CLOSING, 1, "hbm2"),
    ("tWR+tRP", ("ACT",), 1, "hbm2"),
    # tRRDL = tRRDS, and four of them are longer than tFAW, in HBM2.
    ("tRRDL", ("ACT",), 1, "hbm3"),
    ("tRRDS", ("ACT",), 1, "hbm2"),
    ("tFAW", ("ACT",), 4, "hbm3"),
    ("tCCDL", _READS, 1, "hbm2"),
    ("tCCDL", _WRITES, 1, "hbm2"),
    ("tCCDS", _READS, 1, "hbm2"),
    ("tCCDS", _WRITES, 1, "hbm2"),
    ("tRTW", _WRITES, 1, "hbm2"),
    ("tWTRL", _READS, 1, "hbm2"),
    ("tWTRS", _READS, 1, "hbm2"),
    ("tRFC", ("ACT",), 1, "hbm2"),
    ("tRFCpb", ("ACT",), 1, "hbm2"),
    ("tRREFD", ("ACT",), 1, "hbm2"),
    ("tRREFD", ("REFpb",), 1, "hbm2"),
    ("tRP", ("REFpb",), 1, "hbm2"),
    ("tPPD", _CLOSING, 1, "hbm3"),
    ("row bus", _ROW, 1, "hbm2"),
)


def _timing_mutant(rule: str, after: tuple[str, ...], window: int, design: str) -> Mutant:
    return Mutant(
        name=f"{rule} to {after[0] if rule != 'row bus' else 'any'}",
        defect=f"{' and '.join(after)} may come a cycle early",
        edits=(ShorterRule(rule, after, window),),
        campaign=design,
    )


_SCHEDULER = "hdl/memory/scheduler.py"
_CHOICE = ("tests/hdl/memory/test_scheduler.py",)

TIMING_MUTANTS: tuple[Mutant, ...] = (
    *(_timing_mutant(*row) for row in _RULES),
    Mutant(
        name="counter's flag a cycle short",
        defect="what is computed a cycle early is computed as if it were of this cycle",
        edits=(
            Replace(
                "hdl/memory/timers.py",
                "self._above(self._cycles - cycles + 1)",
                "self._above(self._cycles - cycles + 2)",
            ),
        ),
        tests=("tests/hdl/memory/test_timers.py",),
    ),
    Mutant(
        name="picked in spite of the last command",
        defect="with four stages a column command is picked in the cycle after another, which it did not see",
        edits=(Replace(_SCHEDULER, "masked=acted | issues_column.replicate(units)", "masked=acted"),),
        tests=_CHOICE,
    ),
    Mutant(
        name="picked in spite of a claim",
        defect="with four stages a bank that the refresher claims in the cycle of the pick is picked",
        edits=(Replace(_SCHEDULER, "vector & still)", "vector)"),),
        tests=_CHOICE,
    ),
)
