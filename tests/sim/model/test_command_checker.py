"""The command checker on its own: against brute force, on long logs, and on logs that it must refuse."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.memory.timing import PRESETS, Command
from sim.model.command_checker import COLUMN_BUS, COMMAND_DTYPE, ROW_BUS, check
from tests.protocol import ALL_BANKS, Issue, Reference, random_issues, to_log

TIMING = PRESETS["hbm2_2000"]
C = Command


@st.composite
def sequences(draw: st.DrawFn) -> list[Issue]:
    """A few commands at distances around those of the table, several in a cycle included."""
    issues = []
    time = TIMING.activate_slots
    for _ in range(draw(st.integers(1, 12))):
        time += draw(st.sampled_from((0, 0, 1, 1, 2, 3, 4, 5, 12, 13, 14, 15, 19, 22, 23, 33, 34, 37, 260)))
        command = draw(st.sampled_from(tuple(Command)))
        bank = 0 if command in ALL_BANKS else draw(st.sampled_from((0, 1, 4, 5)))
        issues.append(Issue(time=time, command=command, pseudo_channel=draw(st.integers(0, 1)), bank=bank))
    return sorted(issues, key=lambda issue: issue.order)


@settings(deadline=None, max_examples=400)
@given(sequences())
def test_it_agrees_with_brute_force(issues: list[Issue]) -> None:
    lag = TIMING.activate_lag
    found = {
        (violation.cycle + lag * (violation.command is C.ACT), violation.rule)
        for violation in check(to_log(issues, TIMING), TIMING)
    }
    assert found == Reference(TIMING).all_broken(issues)


def long_log(commands: int) -> np.ndarray:
    """Legal commands over and over: batches, between which all rows are closed and the memory rests."""
    issues = random_issues(random.Random(5), TIMING, count=2000, legal=True)
    end = issues[-1].time + TIMING["tRFC"]
    issues += [Issue(time=end + pc, command=C.PREA, pseudo_channel=pc) for pc in range(2)]
    batch = to_log(issues, TIMING)
    copies = -(-commands // len(batch))
    log = np.tile(batch, copies)
    log["cycle"] += np.repeat(np.arange(copies, dtype=np.uint64) * np.uint64(end + 400), len(batch))
    return log[:commands]


def test_one_violation_in_a_million_commands_is_found() -> None:
    log = long_log(1_000_000)
    assert len(check(log, TIMING)) == 0

    generator = np.random.default_rng(3)
    reads = np.flatnonzero((log["bus"] == COLUMN_BUS) & (log["op"] == 1))
    at = int(generator.choice(reads))
    spoilt = np.insert(log, at + 1, log[at])
    spoilt["cycle"][at + 1] += 1
    violations = {v.rule: v for v in check(spoilt, TIMING) if v.cycle == int(log["cycle"][at]) + 1}
    assert {"tCCDL", "tCCDS"} <= set(violations)
    assert violations["tCCDL"].earlier == int(log["cycle"][at])
    assert (violations["tCCDL"].required, violations["tCCDL"].actual) == (4, 1)


def test_a_batch_is_checked_against_the_one_before() -> None:
    first = [Issue(time=1, command=C.ACT), Issue(time=35, command=C.PRE)]
    second = [Issue(time=35 + 13, command=C.ACT)]
    report = check(to_log(first + second, TIMING), TIMING)
    assert [(v.rule, v.earlier, v.required, v.actual) for v in report] == [
        ("tRC", 0, 48, 47),
        ("tRP", 35, 14, 13),
    ]
    assert report.by_rule() == {"tRC": 1, "tRP": 1}


def test_an_all_bank_command_breaks_a_rule_for_each_bank() -> None:
    issues = [
        Issue(time=1, command=C.ACT, bank=2),
        Issue(time=5, command=C.ACT, bank=7),
        Issue(time=37, command=C.PREA),
    ]
    report = check(to_log(issues, TIMING), TIMING)
    assert [(v.rule, v.bank, v.earlier, v.actual) for v in report] == [("tRAS", 7, 4, 32)]


def test_idle_records_and_empty_logs_are_fine() -> None:
    assert len(check(np.empty(0, dtype=COMMAND_DTYPE), TIMING)) == 0
    assert len(check(np.empty(0, dtype=COMMAND_DTYPE), TIMING, refresh_windows=np.empty((0, 2)))) == 0
    idle = np.zeros(3, dtype=COMMAND_DTYPE)
    idle["bus"] = ROW_BUS, COLUMN_BUS, COLUMN_BUS
    idle["bank"] = 63
    assert list(check(idle, TIMING)) == []


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected .*row_or_column"):
        check(np.zeros(3), TIMING)
    backwards = np.zeros(2, dtype=COMMAND_DTYPE)
    backwards["cycle"] = 7, 6
    with pytest.raises(ValueError, match="backwards at record 1: cycle 6 after 7"):
        check(backwards, TIMING)
