"""A mutant: one deliberate defect as an edit of a scratch copy of the sources.

An edit that no longer applies is an error, never a mutant that passes for a caught one: a text must be
there exactly as often as stated, and a rule of the timing table must bind in the design that is simulated.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NOT_APPLICABLE", "Edit", "EditError", "Mutant", "Replace", "ShorterRule", "scratch_copy"]

#: What the output of a process must hold when an edit made it notice, while it ran, that it changed nothing.
NOT_APPLICABLE = "MUTANT DOES NOT APPLY"

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("hdl", "sim", "firmware_py", "tests")


class EditError(ValueError):
    """An edit that does not apply: its message says which text was expected how often, and where."""


class Edit(ABC):
    """A change of the sources under a folder that holds copies of hdl/, sim/, firmware_py/ and tests/."""

    @abstractmethod
    def apply(self, folder: Path) -> None:
        """Change the files. Raises EditError when the change does not apply."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What changes, in one line of Markdown."""


@dataclass(frozen=True)
class Replace(Edit):
    """`old` becomes `new` in `file`, in each of the `times` places where it is."""

    file: str
    old: str
    new: str
    times: int = 1

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        content = path.read_text(encoding="utf-8")
        found = content.count(self.old)
        if found != self.times or self.old == self.new:
            raise EditError(f"{self.file}: found {found} times, expected {self.times}: {self.old!r}")
        path.write_text(content.replace(self.old, self.new), encoding="utf-8")

    @property
    def text(self) -> str:
        old, new = (" ".join(part.split()) for part in (self.old, self.new))
        return f"{Path(self.file).name}: `{old}` becomes `{new or '(nothing)'}`"


#: Put behind the controller's reading of the table, which alone it changes: the checkers keep their own.
_SHORTER = '''


class _Shorter:
    """The preset with a rule one cycle shorter."""

    def __init__(self, timing):
        self._timing = timing

    def __getattr__(self, name):
        return getattr(self._timing, name)

    def rules(self):
        import dataclasses

        return tuple(
            dataclasses.replace(rule, cycles=rule.cycles - 1)
            if (rule.name, rule.window) == ({name!r}, {window}) and rule.after.value in {after!r}
            else rule
            for rule in self._timing.rules()
        )


_whole_waits = waits


def waits(timing, commands):
    shorter = _whole_waits(_Shorter(timing), commands)
    if shorter == _whole_waits(timing, commands):
        raise RuntimeError("{marker}: rule {name} does not bind in " + timing.name)
    return shorter
'''


@dataclass(frozen=True)
class ShorterRule(Edit):
    """The controller counts one cycle less for a rule of the timing table; the checkers do not."""

    rule: str
    after: tuple[str, ...]
    """The rule's rows to these commands (JEDEC spelling)."""
    window: int = 1

    def apply(self, folder: Path) -> None:
        path = folder / "hdl/memory/timers.py"
        content = path.read_text(encoding="utf-8")
        if "\ndef waits(" not in content:
            raise EditError("hdl/memory/timers.py: expected a function `waits`, which reads the timing table")
        added = _SHORTER.replace("{name!r}", repr(self.rule)).replace("{name}", self.rule)
        added = added.replace("{after!r}", repr(self.after)).replace("{window}", str(self.window))
        path.write_text(content + added.replace("{marker}", NOT_APPLICABLE), encoding="utf-8")

    @property
    def text(self) -> str:
        return f"timers.py: {self.rule} before {', '.join(self.after)} is one cycle shorter"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One defect, and where to look for it."""

    name: str
    """Lower case words, unique."""
    defect: str
    """What is wrong then, in a few words."""
    edits: tuple[Edit, ...]
    campaign: str | None = None
    """The design of `campaign.DESIGNS` in which random and directed traffic looks for it first."""
    tests: tuple[str, ...] = ()
    """Tests of the project (files, or files::names) that look for it next, cheapest first."""

    def __post_init__(self) -> None:
        if not self.edits or (self.campaign is None and not self.tests):
            raise ValueError(f"mutant {self.name!r}: expected at least an edit and a detector")


def scratch_copy(folder: Path, edits: tuple[Edit, ...] = ()) -> None:
    """Fills `folder` with the project's sources and applies `edits` to them. Raises EditError."""
    for package in _PACKAGES:
        shutil.copytree(
            _ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "build")
        )
    shutil.copy(_ROOT / "pyproject.toml", folder)
    for edit in edits:
        edit.apply(folder)
