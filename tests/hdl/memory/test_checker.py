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


INTERVAL = 40
BANKS = 4


@pytest.fixture
def short_refresh(monkeypatch: pytest.MonkeyPatch) -> DesignConfig:
    """HBM2 with four banks and a tREFI of 40 cycles."""
    timing = variant("short_refresh", tREFI=INTERVAL, tRFC=30, tRFCpb=6, tRREFD=3)
    organisation = replace(timing.organisation, bank_groups=2, banks_per_group=2)
    timing = replace(timing, organisation=organisation)
    monkeypatch.setitem(PRESETS, timing.name, timing)
    return DesignConfig(memory=MemoryConfig(preset=timing.name))


def refreshes(*cycles: int, bank: int | None = None, pseudo_channel: int = 0) -> list[Issue]:
    """REFab in each cycle, or REFpb of `bank`."""
    command = C.REFAB if bank is None else C.REFPB
    return [Issue(time=at, command=command, pseudo_channel=pseudo_channel, bank=bank or 0) for at in cycles]


REFRESH_RULES = {"refresh overdue", "REFpb out of round"}
Broken = set[tuple[int, str]]


def both_checkers(config: DesignConfig, issues: list[Issue], window: tuple[int, int]) -> Broken:
    """(cycle, name) of the refresh rules broken, on which both checkers agree; with the bank if it is one."""
    timing = config.memory.timing
    issues = sorted(issues, key=lambda issue: issue.order)
    reports, _ = run_checker(config, to_bus(issues, timing), refresh=window)
    report = check(to_log(issues, timing), timing, refresh_windows=[window])
    found = {(violation.cycle, violation.rule) for violation in report if violation.rule in REFRESH_RULES}
    assert {both for both in names_by_time(reports) if both[1] in REFRESH_RULES} == found
    places = {
        (violation.cycle, violation.rule, violation.pseudo_channel, violation.bank) for violation in report
    }
    for shown in reports:
        if shown.rule in REFRESH_RULES:
            assert (shown.cycle, shown.rule, shown.pseudo_channel, shown.bank) in places
    return found


def test_a_bank_that_would_owe_a_ninth_refresh_is_overdue(short_refresh: DesignConfig) -> None:
    begin, limit = 7, POSTPONED_REFRESHES + 1
    deadline = begin + limit * INTERVAL
    window = begin, deadline + 6 * INTERVAL + 2
    late = {(deadline + 1, "refresh overdue")}
    other = refreshes(*range(begin + 17, window[1], INTERVAL), pseudo_channel=1)
    fill = range(deadline + 5, window[1], INTERVAL)  # One an interval from the deadline on.
    # One in time, one late, none at all; what was before the window does not count.
    assert both_checkers(short_refresh, [*other, *refreshes(deadline, *fill)], window) == set()
    assert both_checkers(short_refresh, [*other, *refreshes(deadline + 1, *fill[1:])], window) == late
    missing = {(deadline + 1 + n * INTERVAL, "refresh overdue") for n in range(7)}
    assert both_checkers(short_refresh, [*other, *refreshes(5)], window) == missing
    # The other pseudo channel's do not help, and one REFab is not enough if a bank of it lacks its REFpb.
    assert both_checkers(short_refresh, other, window) == missing
    some = [
        refresh for bank in range(BANKS - 1) for refresh in refreshes(deadline - 12 + 4 * bank, bank=bank)
    ]
    assert both_checkers(short_refresh, [*other, *some, *refreshes(*fill)], window) == late
    every = [*some, *refreshes(deadline, bank=BANKS - 1)]
    assert both_checkers(short_refresh, [*other, *every, *refreshes(*fill)], window) == set()


def test_refreshes_in_advance_count_up_to_a_limit(short_refresh: DesignConfig) -> None:
    begin = 7
    other = refreshes(*range(begin + 17, 2000, INTERVAL), pseudo_channel=1)
    for ahead in (POSTPONED_REFRESHES, POSTPONED_REFRESHES + 3):
        first = refreshes(*range(begin + 1, begin + 1 + ahead))
        deadline = begin + (2 * POSTPONED_REFRESHES + 1) * INTERVAL
        window = begin, deadline + 2
        assert both_checkers(short_refresh, [*other, *first], window) == {(deadline + 1, "refresh overdue")}
        assert both_checkers(short_refresh, [*other, *first], (begin, deadline + 1)) == set()


def test_a_bank_has_one_refresh_a_round(short_refresh: DesignConfig) -> None:
    window = 10, 370
    name = "REFpb out of round"

    def order(*banks: int | str, pseudo_channel: int = 0) -> list[Issue]:
        return [
            refresh
            for n, bank in enumerate(banks)
            for refresh in refreshes(
                20 + 10 * n, bank=None if isinstance(bank, str) else bank, pseudo_channel=pseudo_channel
            )
        ]

    assert both_checkers(short_refresh, order(3, 1, 0, 2, 2, 0, 1, 3, 1), window) == set()
    assert both_checkers(short_refresh, order(3, 1, 3, 0, 2, 3), window) == {(40, name)}
    # REFab begins a round, the window does, and the pseudo channels have rounds of their own.
    assert both_checkers(short_refresh, order(3, 1, "all", 3, 1, 1), window) == {(70, name)}
    assert both_checkers(short_refresh, order(3, 1, 3, 1), (35, 390)) == set()
    own = [replace(issue, time=issue.time + 5) for issue in order(1, 3, pseudo_channel=1)]
    assert both_checkers(short_refresh, [*order(3, 1), *own], window) == set()


def test_checkers_agree_on_random_refresh(short_refresh: DesignConfig) -> None:
    broken: set[str] = set()
    for seed in range(3):
        generator = random.Random(seed)
        begin = generator.randrange(1, 100)
        time, issues = 2, []
        while time < begin + 60 * INTERVAL:
            # Now and then a pause, and bursts in advance.
            pause = generator.random() < 0.01
            time += (
                generator.randrange(5, 12 * INTERVAL) if pause else generator.randrange(1, INTERVAL // BANKS)
            )
            bank = generator.choice([None, *range(BANKS)])
            issues += refreshes(time, bank=bank, pseudo_channel=generator.randrange(2))
        window = begin, begin + generator.randrange(40, 60) * INTERVAL + generator.randrange(4)
        found = both_checkers(short_refresh, issues, window)
        assert found == plain_refresh_rules(issues, window), f"seed {seed}"
        broken |= {name for _, name in found}
    assert broken == REFRESH_RULES


def plain_refresh_rules(issues: list[Issue], window: tuple[int, int]) -> Broken:
    """The two rules cycle by cycle, as their definition says them."""
    at = {issue.time: issue for issue in issues}
    broken: Broken = set()
    places = [(pseudo_channel, bank) for pseudo_channel in range(2) for bank in range(BANKS)]
    owed = dict.fromkeys(places, 0)
    had: dict[int, set[int]] = {0: set(), 1: set()}
    for cycle in range(*window):
        if cycle > window[0] + 1 and (cycle - window[0]) % INTERVAL == 1:
            for place in places:
                owed[place] += 1
                if owed[place] > 8:
                    broken.add((cycle, "refresh overdue"))
                    owed[place] = 8
        issue = at.get(cycle)
        if issue is None:
            continue
        for bank in range(BANKS) if issue.command is C.REFAB else [issue.bank]:
            place = issue.pseudo_channel, bank
            owed[place] = max(owed[place] - 1, -8)
        seen = had[issue.pseudo_channel]
        if issue.command is C.REFPB and issue.bank in seen:
            broken.add((cycle, "REFpb out of round"))
        seen.add(issue.bank)
        if issue.command is C.REFAB or len(seen) == BANKS:
            seen.clear()
    return broken


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
    assert missing <= {"column bus", "undefined command", "tFAW", *REFRESH_RULES}


@pytest.fixture(autouse=True)
def _no_leftover_presets() -> Iterator[None]:
    before = set(PRESETS)
    yield
    assert set(PRESETS) == before
