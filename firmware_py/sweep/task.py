"""What a worker does for one point of a sweep; it needs nothing but what it is given, and the code."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sim.verilator import source_key

from ..machine import compiled_machine
from ..report.document import document
from ..settings import DesignSettings, ReplaySettings
from .carried import CarriedFile, unpacked_traces

__all__ = ["Outcome", "Task", "code_digest", "run_task", "task_key"]

#: What of the sources decides a figure: Python, what the compiled model is made of, and cited values.
_SOURCES = (".py", ".cpp", ".h", ".v", ".vlt", ".csv", ".toml")


@cache
def code_digest() -> str:
    """A digest of every source of hardware, simulation and host, 64 hexadecimal digits."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(source_key().encode())
    for package in ("firmware_py", "sim"):
        for path in sorted((root / package).rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@dataclass(frozen=True, kw_only=True)
class Task:
    """One comparison, to be made anywhere."""

    design: DesignSettings
    replay: ReplaySettings
    preset: CarriedFile | None
    """The memory preset's file; None for one of the project's own."""
    code: str
    """The `code_digest` of whoever asks."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a task: a comparison as a document (`report.document`), or why there is none."""

    document: dict[str, Any] | None
    error: str | None = None


def task_key(task: Task, files: Sequence[CarriedFile]) -> str:
    """A name made of all that decides a task's figures: the design with its preset's content, how it is
    replayed, the bytes of the traces, the code. Not of names and places of files."""
    config = task.design.config(concurrent=task.replay.concurrent)
    parts = [config.content, dataclasses.asdict(task.replay), [file.digest for file in files], task.code]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def run_task(task: Task, files: Sequence[CarriedFile], *, folder: Path | None = None) -> Outcome:
    """The outcome of a task on the compiled design, in this process.

    `folder` is where it makes a folder of its own for as long as it runs; by default the system's.
    """
    from amaranth.hdl import UnusedElaboratable

    if task.code != code_digest():
        return Outcome(
            document=None,
            error="the worker runs other code than this process: expected the same checkout on both",
        )
    try:
        with tempfile.TemporaryDirectory(prefix="clew-", dir=folder) as work, warnings.catch_warnings():
            # A conversion that is interrupted leaves components unused.
            warnings.simplefilter("ignore", UnusedElaboratable)
            design = task.design
            if task.preset is not None:
                design = dataclasses.replace(design, memory=str(task.preset.unpack(Path(work))))
            comparison = task.replay.compare(
                unpacked_traces(files, Path(work)),
                config=design.config(concurrent=task.replay.concurrent),
                open_machine=compiled_machine,
                announce=lambda text: None,
                progress=lambda name, done, total: None,
            )
            return Outcome(document=document(comparison))
    except Exception as error:
        # Whatever it is, it concerns this point alone: the sweep goes on and reports it.
        return Outcome(document=None, error=str(error) or type(error).__name__)
