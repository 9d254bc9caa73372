"""Mutants of refresh and of the restart that closes every row."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["REFRESH_MUTANTS"]

_ALL_BANKS = "hdl/memory/all_bank_refresher.py"
_BANKS = "hdl/memory/bank_refresher.py"
_CONTROLLER = "hdl/memory/controller.py"
_REFRESHER = "hdl/memory/refresher.py"

REFRESH_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="lost refresh",
        defect="an all-bank refresh that falls due while walks wait is forgotten",
        edits=(
            Replace(
                _ALL_BANKS,
                "owed.eq(owed + self.tick - begin)",
                "owed.eq(owed + (self.tick & ~self.walks) - begin)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="lost per-bank refresh",
        defect="a per-bank refresh that falls due while walks wait is forgotten",
        edits=(
            Replace(
                _BANKS,
                "owed.eq(owed + self.tick - claim[span].any())",
                "owed.eq(owed + (self.tick & ~self.walks) - claim[span].any())",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="refresh one interval late",
        defect="all-bank refresh begins only when two are owed",
        edits=(Replace(_ALL_BANKS, "((owed != 0) & ~self.walks", "((owed > 1) & ~self.walks"),),
        campaign="hbm2",
    ),
    Mutant(
        name="refresh postponed for ever",
        defect="walks that never pause hold refresh up without limit",
        edits=(Replace(_ALL_BANKS, "(owed > self._postpone) | ", ""),),
        tests=("tests/hdl/memory/test_refresher.py",),
    ),
    Mutant(
        name="bank skipped in a round",
        defect="the bank after the one refreshed counts as refreshed too",
        edits=(Replace(_BANKS, "after.eq(done | claim)", "after.eq(done | claim | (claim << 1))"),),
        campaign="hbm2",
    ),
    Mutant(
        name="bank twice in a round",
        defect="a bank that was refreshed may be chosen again",
        edits=(Replace(_BANKS, "candidate.eq(~(done | claimed)", "candidate.eq(~claimed"),),
        campaign="hbm2",
    ),
    Mutant(
        name="refresh of an open bank",
        defect="REFpb does not wait for the row to be closed",
        edits=(Replace(_BANKS, "closed.eq(claimed & first & ~self.open)", "closed.eq(claimed & first)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="claim ignored",
        defect="the scheduler goes on with a bank that is about to be refreshed",
        edits=(Replace(_CONTROLLER, "scheduler.block.eq(refresher.block)", "scheduler.block.eq(0)"),),
        tests=("tests/formal/test_refresh.py",),
    ),
    Mutant(
        name="PREA without a claim",
        defect="reads go on while an all-bank refresh closes the rows",
        edits=(
            Replace(
                _CONTROLLER,
                "scheduler.hold_read.eq(refresher.hold_read)",
                "scheduler.hold_read.eq(0)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="restart before the counters",
        defect="a restart ends while timing counters still run",
        edits=(Replace(_CONTROLLER, "refresher.settled.eq(timers.idle)", "refresher.settled.eq(1)"),),
        tests=("tests/hdl/memory/test_controller.py",),
        campaign="hbm2",
    ),
    Mutant(
        name="restart before the answers",
        defect="a restart does not wait for what is queued",
        edits=(
            Replace(
                _CONTROLLER,
                "refresher.quiet.eq(queues.empty & responses.empty & atomic.idle & captured_none)",
                "refresher.quiet.eq(responses.empty & atomic.idle & captured_none)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="interval survives a restart",
        defect="refresh falls due as if the restart had not been",
        edits=(
            Replace(
                _REFRESHER,
                "elapsed.eq(Mux(running, Mux(wraps, later - interval, later), beginning))",
                "elapsed.eq(Mux(wraps, later - interval, later))",
            ),
        ),
        campaign="hbm2",
    ),
)
