"""Whether traces ask the accelerator anything: a linear text and a block cache do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from sim.trace.events import Backtrack, Backup, Jump, Select
from sim.trace.schema import Trace

from .errors import InputError

__all__ = ["require_questions"]


class _Traces(Protocol):
    """The traces of one file, as `compare.TraceFile` has them."""

    @property
    def file(self) -> str: ...

    @property
    def format(self) -> str: ...

    @property
    def traces(self) -> Sequence[Trace]: ...


def require_questions(files: Sequence[_Traces]) -> None:
    """Check that some trace has an event that starts a walk. Raises InputError that says what there is.

    One file that asks is enough: the others are then reported with no walk.
    """
    events = (event for file in files for trace in file.traces for event in trace.events)
    if any(isinstance(event, Backtrack | Jump | Select | Backup) for event in events):
        return
    first, *others = files
    names = first.file if not others else f"{first.file} and {len(others)} more"
    kinds = ", ".join(sorted({file.format for file in files}))
    held = Counter(event.name for file in files for trace in file.traces for event in trace.events)
    what = ", ".join(f"{count:,} {name}" for name, count in sorted(held.items())) or "no event"
    count = sum(len(file.traces) for file in files)
    problems = f"{count:,} problem{'' if count == 1 else 's'}"
    raise InputError(
        f"{names}: {problems} ({kinds}: {what}) that start no walk, so there is nothing to compare: "
        "expected a backtrack, jump, select or backup; `clew trace info` says what the kind "
        "does not record"
    )
