"""The mutants' own tests: a short selection is caught, no error counts as caught, the page is up to date."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from .campaign import DESIGNS
from .catalogue import MUTANTS, SELECTION
from .mutant import EditError, Mutant, Replace, ShorterRule, scratch_copy
from .page import PAGE, SURVIVED, mutants_page
from .run import MutantError, Outcome, judge

_BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
_SLACK = Replace("hdl/memory/device.py", "timing.row_hit", "timing.row_hit + 0")


# -- What is caught --


@pytest.mark.parametrize("name", SELECTION)
def test_a_mutant_is_caught(name: str) -> None:
    outcome = judge(_BY_NAME[name])
    assert outcome.caught_by == SELECTION[name], outcome


def test_what_changes_nothing_survives() -> None:
    """The detectors do not call everything a defect."""
    tests = ("tests/hdl/memory/test_device.py",)
    harmless = Mutant(name="harmless", defect="none", edits=(_SLACK,), tests=tests)
    outcome = judge(harmless)
    assert (outcome.caught_by, outcome.cycles) == ((), None)
    assert SURVIVED in mutants_page([outcome])


# -- Errors are never catches --


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Replace("hdl/memory/device.py", "no such text", "x"), "found 0 times, expected 1: 'no such text'"),
        (Replace("hdl/memory/device.py", "m.d.comb", "m.d.sync"), r"times, expected 1: 'm\.d\.comb'"),
        (Replace("hdl/memory/device.py", "time + 1", "time + 1"), "found 1 times, expected 1: 'time"),
    ],
)
def test_an_edit_that_does_not_apply_is_an_error(tmp_path: Path, edit: Replace, message: str) -> None:
    with pytest.raises(EditError, match=message):
        scratch_copy(tmp_path, (edit,))


@pytest.mark.parametrize(
    ("mutant", "message"),
    [
        # In HBM2 tRRDL is tRRDS, and the pseudo channel's row holds it up anyway.
        (ShorterRule("tRRDL", ("ACT",)), "rule tRRDL does not bind in hbm2_2000"),
        (ShorterRule("tNONE", ("ACT",)), "rule tNONE does not bind in hbm2_2000"),
        (Replace("hdl/memory/device.py", "m = Module()", "m = Modul()"), "name 'Modul' is not defined"),
    ],
)
def test_a_mutant_that_does_not_run_is_an_error(mutant: ShorterRule | Replace, message: str) -> None:
    with pytest.raises(MutantError, match=message):
        judge(Mutant(name="broken", defect="none", edits=(mutant,), campaign="hbm2"))


def test_a_test_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(MutantError, match=r"tests/none\.py did not run"):
        judge(Mutant(name="broken", defect="none", edits=(_SLACK,), tests=("tests/none.py",)))


def test_a_mutant_needs_an_edit_and_a_detector() -> None:
    with pytest.raises(ValueError, match="mutant 'idle': expected at least an edit and a detector"):
        Mutant(name="idle", defect="none", edits=(_SLACK,))


# -- The catalogue and its page --


def test_every_mutant_still_applies(tmp_path: Path) -> None:
    """A refactoring that takes a mutant's text away is noticed here, not in the next run of all."""
    assert len(_BY_NAME) == len(MUTANTS)
    scratch_copy(tmp_path)
    for mutant in MUTANTS:
        assert mutant.campaign is None or mutant.campaign in DESIGNS
        files = {tmp_path / getattr(edit, "file", "hdl/memory/timers.py"): None for edit in mutant.edits}
        originals = {file: file.read_text(encoding="utf-8") for file in files}
        for edit in mutant.edits:
            edit.apply(tmp_path)
        for file, content in originals.items():
            file.write_text(content, encoding="utf-8")
        for test in mutant.tests:
            assert (tmp_path / test.partition("::")[0]).is_file(), test


def test_the_page_lists_these_mutants_and_all_are_caught() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert SURVIVED not in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    described = [(mutant.name, mutant.defect) for mutant in MUTANTS]
    assert [(row[0].removeprefix("| "), row[1]) for row in rows] == described
    assert f"{len(MUTANTS)} of {len(MUTANTS)} mutants are caught." in page


def test_a_row_of_the_page() -> None:
    mutant = dataclasses.replace(MUTANTS[0], edits=(Replace("hdl/a.py", "a | b", "a"),))
    outcome = Outcome(mutant=mutant, caught_by=("RTL checker: tX",), cycles=7, seconds=1)
    assert mutants_page([outcome]).splitlines()[-1] == (
        f"| {mutant.name} | {mutant.defect} | a.py: `a \\| b` becomes `a` | RTL checker: tX | 7 |"
    )
