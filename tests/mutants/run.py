"""Runs mutants: applies each to a scratch copy of the sources and asks the detectors, cheapest first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sim.verilator import cache_folder

from .mutant import NOT_APPLICABLE, Mutant, scratch_copy

__all__ = ["MutantError", "Outcome", "judge", "judge_all", "sources_run"]

#: Seconds after which a detector is stopped; that is an error, not a catch.
_TIMEOUT = 1800

_FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)


class MutantError(RuntimeError):
    """A mutant that says nothing: it does not apply, does not elaborate, or its detector does not run."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    caught_by: tuple[str, ...]
    """The detectors that saw it and what they saw, one text each; empty when it survived."""
    cycles: int | None
    """Simulated cycles until then; None when a test of the project caught it."""
    seconds: float


def _run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        # Builds of broken designs are nobody else's.
        "XDG_CACHE_HOME": str(folder / "cache"),
        # The formal tools translate themselves once, which takes minutes.
        "YOWASP_CACHE_DIR": os.environ.get("YOWASP_CACHE_DIR") or str(cache_folder().parent / "YoWASP"),
    }
    try:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MutantError(f"{' '.join(arguments)}: expected an end within {_TIMEOUT} s") from None


def _campaign(folder: Path, design: str) -> tuple[tuple[str, ...], int]:
    process = _run(folder, ["-m", "tests.mutants.campaign", design])
    if process.returncode:
        raise MutantError(f"the campaign did not run to its end:\n{process.stderr[-2000:]}")
    found = json.loads(process.stdout)
    return tuple(found["seen"]), found["cycles"]


def _tests(folder: Path, name: str) -> tuple[str, ...]:
    process = _run(folder, ["-m", "pytest", "-x", "-q", "-rf", "-p", "no:cacheprovider", name])
    output = process.stdout + process.stderr
    if NOT_APPLICABLE in output or process.returncode not in (0, 1):
        raise MutantError(f"{name} did not run:\n{output[-2000:]}")
    if process.returncode == 0:
        return ()
    failed = _FAILED.search(output)
    if failed is None:
        raise MutantError(f"{name} failed before a test did:\n{output[-2000:]}")
    path, _, test = failed[1].partition("::")
    return (f"{Path(path).name}: {test}",)


def judge(mutant: Mutant) -> Outcome:
    """Runs `mutant` until a detector sees it. Raises EditError or MutantError when it says nothing."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="clew-mutant-") as work:
        folder = Path(work)
        scratch_copy(folder, mutant.edits)
        if mutant.campaign is not None:
            caught, cycles = _campaign(folder, mutant.campaign)
            if caught:
                seconds = time.monotonic() - began
                return Outcome(mutant=mutant, caught_by=caught, cycles=cycles, seconds=seconds)
        for name in mutant.tests:
            if caught := _tests(folder, name):
                seconds = time.monotonic() - began
                return Outcome(mutant=mutant, caught_by=caught, cycles=None, seconds=seconds)
    return Outcome(mutant=mutant, caught_by=(), cycles=None, seconds=time.monotonic() - began)


def judge_all(mutants: Iterable[Mutant], *, jobs: int) -> Iterator[Outcome | tuple[Mutant, Exception]]:
    """The outcome of each mutant, in order, `jobs` at once; or the error that its run ended with."""

    def one(mutant: Mutant) -> Outcome | tuple[Mutant, Exception]:
        try:
            return judge(mutant)
        except (MutantError, ValueError) as error:
            return mutant, error

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, mutants)


def sources_run(designs: Sequence[str], *, jobs: int) -> Iterator[tuple[str, tuple[tuple[str, ...], int]]]:
    """What the campaign of each design sees in the sources as they are, and its cycles; or MutantError."""

    def one(design: str) -> tuple[tuple[str, ...], int]:
        with tempfile.TemporaryDirectory(prefix="clew-mutant-") as work:
            scratch_copy(Path(work))
            return _campaign(Path(work), design)

    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(designs, pool.map(one, designs), strict=True)
