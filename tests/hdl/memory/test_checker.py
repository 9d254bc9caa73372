"""Both checkers against planted violations, random legal and random illegal commands."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from hdl.config import DesignConfig, MemoryConfig
from hdl.layouts import ColumnOp, RowOp
from hdl.memory.checker import published_rules
from hdl.memory.timing import PRESETS, Command, TimingPreset, Value
from sim.model.command_checker import COMMAND_DTYPE, POSTPONED_REFRESHES, check
from tests.protocol import (
    BusCycle,
    Issue,
    Planted,
    Reference,
    plant,
    random_issues,
    run_checker,
    shadowed,
    to_bus,
    to_log,
)

C = Command


def variant(name: str, **cycles: int) -> TimingPreset:
    """HBM2 under another name with some of its parameters changed."""
    base = PRESETS["hbm2_2000"]
    changed = {key: Value(cycles=value, source="test") for key, value in cycles.items()}
    return dataclasses.replace(base, name=name, values=base.values | changed)


@pytest.fixture(params=["hbm2_2000", "distinct"])
def config(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> DesignConfig:
    """The real preset, and one in which no rule hides another and tRFC is short."""
    monkeypatch.setitem(PRESETS, "distinct", variant("distinct", tRRDL=6, tFAW=20, tRC=50, tRFC=100))
    return DesignConfig(memory=MemoryConfig(preset=request.param))


def names_by_time(reports: list) -> set[tuple[int, str]]:
    return {(report.time, name) for report in reports for name in report.names}


def model_by_time(issues: list[Issue], timing: TimingPreset) -> set[tuple[int, str]]:
    lag = timing.activate_lag
    return {
        (violation.cycle + lag * (violation.command is C.ACT), violation.rule)
        for violation in check(to_log(issues, timing), timing)
    }


def shift(issues: tuple[Issue, ...], cycles: int) -> list[Issue]:
    return [replace(issue, time=issue.time + cycles) for issue in issues]


def fits_a_bus(issues: tuple[Issue, ...], timing: TimingPreset) -> bool:
    """Whether no bus carries two commands in one cycle."""
    slots = [(issue.on_bus(timing), issue.command in (C.RD, C.RDA, C.WR, C.WRA)) for issue in issues]
    return len(set(slots)) == len(slots)


def test_every_row_of_the_table_is_seen_to_break_by_one_cycle(config: DesignConfig) -> None:
    timing = config.memory.timing
    planted = [plant(timing, rule) for rule in timing.rules()]
    assert all(p.broken == {p.rule.name} or shadowed(timing, p.rule) for p in planted)
    hidden = {p.rule.name for p in planted if len(p.broken) > 1}
    assert hidden == ({"tRRDL"} if timing.name == "hbm2_2000" else set())

    # The log checker, one sequence at a time: two commands of one bus slot can be written down.
    for p in planted:
        last = p.issues[-1]
        # An all-bank command breaks a rule once for each bank that it comes too early for.
        violation = next(
            v
            for v in check(to_log(p.issues, timing), timing)
            if v.rule == p.rule.name and (v.command, v.bank) == (last.command, last.bank)
        )
        assert (violation.cycle, violation.pseudo_channel) == (last.on_bus(timing), last.pseudo_channel)
        assert violation.required == p.rule.cycles
        assert violation.actual == p.rule.cycles - 1
        assert (last.time, p.rule.name) in model_by_time(list(p.issues), timing)
        assert not [time for time, _ in model_by_time(list(p.late), timing) if time >= last.time]

    # The RTL checker, all that a bus can carry, one after the other.
    whole, expected = chain(planted, timing)
    assert {rule.name for rule, _, _ in expected} == {rule.name for rule in timing.rules()} - {"column bus"}
    reports, seen = run_checker(config, to_bus(whole, timing))
    found = {report.time: report for report in reports}
    for rule, last, is_late in expected:
        if is_late:
            assert last.time not in found
            continue
        report = found[last.time]
        assert rule.name in report.names
        assert report.rule in report.names
        assert (report.rule == rule.name) or shadowed(timing, rule)
        assert (report.pseudo_channel, report.bank) == (last.pseudo_channel, last.bank)
        assert report.cycle == last.on_bus(timing)
    reference = Reference(timing).all_broken(whole)
    assert names_by_time(reports) == reference == model_by_time(whole, timing)
    assert seen == {name for _, name in reference}


def chain(
    planted: list[Planted], timing: TimingPreset
) -> tuple[list[Issue], list[tuple[object, Issue, bool]]]:
    """All sequences that fit a bus, each also one cycle late, far enough apart; and where each ends."""
    whole: list[Issue] = []
    ends = []
    begin = 1
    for p in planted:
        if not fits_a_bus(p.issues, timing):
            assert p.rule.name in ("row bus", "column bus")
            continue
        for issues, is_late in ((p.issues, False), (p.late, True)):
            placed = shift(issues, begin)
            ends.append((p.rule, placed[-1], is_late))
            refreshes = {C.REFAB: timing["tRFC"], C.REFPB: timing["tRFCpb"]}
            gap = 40 + max(refreshes.get(issue.command, 0) for issue in issues)
            end = placed[-1].time + gap
            whole += [
                *placed,
                Issue(time=end, command=C.PREA, pseudo_channel=0),
                Issue(time=end + 1, command=C.PREA, pseudo_channel=1),
            ]
            begin = end + 16
    return whole, ends


OPEN = Issue(time=10, command=C.ACT, bank=3)
STATE = [
    ("ACT to an open bank", [OPEN, replace(OPEN, time=100)], Issue(time=70, command=C.PRE, bank=3)),
    ("RD or WR to a closed bank", [Issue(time=40, command=C.RD, bank=3)], OPEN),
    ("RD or WR to a closed bank", [Issue(time=40, command=C.WRA, bank=3)], OPEN),
    ("REFab with an open bank", [OPEN, Issue(time=100, command=C.REFAB)], Issue(time=70, command=C.PREA)),
    (
        "REFab with an open bank",
        [OPEN, Issue(time=100, command=C.REFAB)],
        Issue(time=50, command=C.WRA, bank=3),
    ),
    (
        "REFpb to an open bank",
        [OPEN, Issue(time=100, command=C.REFPB, bank=3)],
        Issue(time=70, command=C.PRE, bank=3),
    ),
]


@pytest.mark.parametrize(("name", "issues", "cure"), STATE)
def test_every_state_rule_is_seen_to_break(name: str, issues: list[Issue], cure: Issue) -> None:
    config = DesignConfig()
    timing = config.memory.timing
    for sequence, expected in (
        (issues, {(issues[-1].time, name)}),
        (sorted([*issues, cure], key=lambda issue: issue.order), set()),
    ):
        reports, seen = run_checker(config, to_bus(sequence, timing))
        assert names_by_time(reports) == model_by_time(sequence, timing) == expected
        assert seen == {name for _, name in expected}


@pytest.mark.parametrize("closing", [C.PRE, C.PREA, C.RDA, C.WRA])
def test_each_closing_command_closes(closing: Command) -> None:
    config = DesignConfig()
    bank = 0 if closing is C.PREA else 3
    sequence = [OPEN, Issue(time=50, command=closing, bank=bank), Issue(time=80, command=C.RD, bank=3)]
    reports, _ = run_checker(config, to_bus(sequence, config.memory.timing))
    assert names_by_time(reports) == {(80, "RD or WR to a closed bank")}
    assert model_by_time(sequence, config.memory.timing) == {(80, "RD or WR to a closed bank")}


UNDEFINED = {
    2: BusCycle(row_op=RowOp.REFRESH_BANK.value, row_bank=16),
    3: BusCycle(row_op=6),
    5: BusCycle(row_op=7),
    7: BusCycle(column_op=5),
    9: BusCycle(column_op=7),
    11: BusCycle(row_op=RowOp.ACTIVATE.value, row_bank=16),
    14: BusCycle(row_op=RowOp.PRECHARGE.value, row_bank=63),
    16: BusCycle(row_op=RowOp.ACTIVATE.value, row=4),
    18: BusCycle(column_op=ColumnOp.READ.value, column_bank=17),
    20: BusCycle(column_op=ColumnOp.WRITE.value, column=8),
}
DEFINED = {
    2: BusCycle(row_op=RowOp.ACTIVATE.value, row_bank=15, row=3, row_pseudo_channel=1),
    20: BusCycle(column_op=ColumnOp.READ.value, column_bank=15, column=7, column_pseudo_channel=1),
    60: BusCycle(row_op=RowOp.PRECHARGE_ALL.value, row_bank=63, row=0xFFFF, row_pseudo_channel=1),
}


@pytest.mark.parametrize(("cycles", "broken"), [(UNDEFINED, True), (DEFINED, False)])
def test_what_the_memory_does_not_have_is_an_undefined_command(
    cycles: dict[int, BusCycle], broken: bool
) -> None:
    config = DesignConfig(memory=MemoryConfig(rows=4, columns=8))
    reports, _ = run_checker(config, cycles)
    expected = {(cycle, "undefined command") for cycle in cycles} if broken else set()
    assert names_by_time(reports) == expected

    log = np_log(cycles)
    report = check(log, config.memory.timing, config.memory.organisation)
    assert {(violation.cycle, violation.rule) for violation in report} == expected
    assert all(violation.command is None for violation in report)


def np_log(cycles: dict[int, BusCycle]) -> np.ndarray:
    records = []
    for cycle, bus in cycles.items():
        if bus.row_op:
            records.append((cycle, 0, bus.row_op, bus.row_pseudo_channel, bus.row_bank, bus.row))
        if bus.column_op:
            records.append((cycle, 1, bus.column_op, bus.column_pseudo_channel, bus.column_bank, bus.column))
    return np.array(records, dtype=COMMAND_DTYPE)


def test_refresh_is_overdue_one_cycle_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = variant("short_refresh", tREFI=40, tRFC=30)
    monkeypatch.setitem(PRESETS, timing.name, timing)
    config = DesignConfig(memory=MemoryConfig(preset=timing.name))
    limit = POSTPONED_REFRESHES * 40
    begin, end = 7, 7 + 5 * limit
    name = "refresh overdue"
    sequence = [
        # Pseudo channel 0 in time, at the limit and twice at it; then one cycle late; then never again.
        Issue(time=begin + limit, command=C.REFAB),
        Issue(time=begin + 2 * limit, command=C.REFAB),
        Issue(time=begin + 3 * limit + 1, command=C.REFAB),
        # Pseudo channel 1: one before the window, which does not count, then none for twice the limit.
        Issue(time=5, command=C.REFAB, pseudo_channel=1),
        Issue(time=begin + 2 * limit + 9, command=C.REFAB, pseudo_channel=1),
        Issue(time=begin + 3 * limit + 9, command=C.REFAB, pseudo_channel=1),
        Issue(time=begin + 4 * limit + 9, command=C.REFAB, pseudo_channel=1),
        Issue(time=begin + 5 * limit - 1, command=C.REFAB, pseudo_channel=1),
    ]
    expected = {
        (begin + 3 * limit + 1, 0),
        (begin + 4 * limit + 2, 0),
        (begin + limit + 1, 1),
        (begin + 2 * limit + 2, 1),
    }
    reports, seen = run_checker(config, to_bus(sequence, timing), refresh=(begin, end))
    assert {(report.cycle, report.pseudo_channel) for report in reports} == expected
    assert {report.rule for report in reports} == seen == {name}

    log = to_log(sequence, timing)
    report = check(log, timing, refresh_windows=[(begin, end)])
    assert {(violation.cycle, violation.pseudo_channel) for violation in report} == expected
    assert report.by_rule() == {name: 4}
    assert len(check(log, timing)) == 0


def test_legal_commands_are_met_with_silence() -> None:
    config = DesignConfig()
    timing = config.memory.timing
    for seed in range(2):
        issues = random_issues(random.Random(seed), timing, count=500, legal=True)
        assert {issue.command for issue in issues} == set(Command), f"seed {seed} lacks a command"
        assert not Reference(timing).all_broken(issues)
        assert not model_by_time(issues, timing), f"seed {seed}"
        reports, _ = run_checker(config, to_bus(issues, timing))
        assert not reports, f"seed {seed}: {reports[0]}"


def test_checkers_agree_on_illegal_commands() -> None:
    config = DesignConfig()
    timing = config.memory.timing
    broken: set[str] = set()
    for seed in range(3):
        issues = random_issues(random.Random(100 + seed), timing, count=400, legal=False, banks=5 + 5 * seed)
        expected = Reference(timing).all_broken(issues)
        reports, seen = run_checker(config, to_bus(issues, timing))
        assert names_by_time(reports) == expected, f"seed {seed}"
        assert model_by_time(issues, timing) == expected, f"seed {seed}"
        assert seen == {name for _, name in expected}
        # What the RTL names first is among what the model finds, with its bank and its cycle on the bus.
        found = {(v.rule, v.cycle, v.pseudo_channel): v for v in check(to_log(issues, timing), timing)}
        for report in reports:
            violation = found[report.rule, report.cycle, report.pseudo_channel]
            assert violation.command in (C.PREA, C.REFAB) or violation.bank == report.bank
        broken |= seen
    missing = set(published_rules(timing)) - broken
    assert missing <= {"column bus", "refresh overdue", "undefined command", "tFAW"}


@pytest.fixture(autouse=True)
def _no_leftover_presets() -> Iterator[None]:
    before = set(PRESETS)
    yield
    assert set(PRESETS) == before
