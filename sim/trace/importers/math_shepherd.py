"""Math-Shepherd: solutions whose every step has a label that was found by completing it many times.

A record is {input, label, task}. `input` is the question and the steps, a marker (the Cyrillic word in
`_MARKER`) behind each step; `label` is the same text with `+` or `-` in the marker's place. The question, up
to the first `Step 1:`, is the root, every step a node below the one before, with score 1 for `+` (some
completion of it was right) and -1 for `-`. The texts are kept without markers, their spaces included. A
solution whose last step has `+` is solved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import Event, Status
from .chain import Chain
from .registry import Importer
from .source import field, one_each, records

__all__ = ["IMPORTER"]

_MARKER = "\u043a\u0438"
_FIRST = "Step 1:"


def recognises(head: str) -> bool:
    """True for records with `input`, `label` and `task` whose texts hold the marker."""
    return (
        re.match(r"\s*\[?\s*\{", head) is not None
        and all(re.search(rf'"{key}"\s*:\s*"', head) for key in ("input", "label"))
        and (_MARKER in head or r"\u043a\u0438" in head.lower())
    )


def _labels(label: str, parts: list[str]) -> list[str]:
    """The sign behind each part but the last, which ends the text."""
    signs: list[str] = []
    place = 0
    for part in parts[:-1]:
        sign = place + len(part)
        if label[place:sign] != part or label[sign : sign + 1] not in ("+", "-"):
            step = f"the text of `input`, + or - behind step {len(signs) + 1}"
            raise FieldError("label", step, shorten(label[place : sign + 1]))
        signs.append(label[sign])
        place = sign + 1
    if label[place:] != parts[-1]:
        raise FieldError("label", "to end as `input` does", shorten(label[place:]))
    return signs


def _events(record: Any, index: int) -> list[Event]:
    parts = field(record, "input", str).split(_MARKER)
    signs = _labels(field(record, "label", str), parts)
    begin = parts[0].find(_FIRST)
    chain = Chain(parts[0][: max(begin, 0)])
    steps = [parts[0][max(begin, 0) :], *parts[1:]]
    for step, sign in zip(steps, signs, strict=False):
        chain.score(chain.node(step), 1.0 if sign == "+" else -1.0)
    if steps[-1]:
        chain.node(steps[-1])  # behind the last marker: no label is there for it
    status: Status = "unknown" if not signs else "solved" if signs[-1] == "+" else "unsolved"
    return chain.trace(
        f"math_shepherd/{index}",
        source="math_shepherd",
        meta={"task": field(record, "task", str)} if "task" in record else {},
        status=status,
    )


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a solution."""
    return one_each(path, records(path), _events)


IMPORTER = Importer(
    name="math_shepherd",
    description="Math-Shepherd solutions with a label for each step",
    recognises=recognises,
    read=read,
    lacks=(
        "a search: each solution is one line of steps, so nothing is asked of the accelerator",
        "the completions that the labels come from",
        "token counts",
    ),
)
