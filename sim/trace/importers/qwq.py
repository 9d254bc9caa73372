"""QwQ answers as PRMBench keeps them: one long response, already cut into steps.

A record has `question`, `modified_process` (the steps of the response) and `original_response` (the same
text in one piece). The question is the root, every step a node below the one before, which grows by an
`append` at every mark of reflection within it (`reflection`). Put together the texts of a step's node and of
what it grew by are the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import Event
from .chain import Chain
from .reflection import grow
from .registry import Importer
from .source import field, items, one_each, records

__all__ = ["IMPORTER"]

_META = ("idx", "ground_truth", "classification")


def recognises(head: str) -> bool:
    """True for records with `modified_process` and `original_question`."""
    return re.match(r"\s*\[?\s*\{", head) is not None and all(
        re.search(rf'"{key}"\s*:', head) for key in ("original_question", "modified_process")
    )


def _events(record: Any, index: int) -> list[Event]:
    chain = Chain(field(record, "original_question", str))
    for step in items(record, "modified_process", str):
        grow(chain, step, kind="step")
    meta: dict[str, object] = {key: record[key] for key in _META if record.get(key) is not None}
    return chain.trace(f"qwq/{index}", source="qwq", meta=meta, status="unknown")


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a response."""
    return one_each(path, records(path), _events)


IMPORTER = Importer(
    name="qwq",
    description="QwQ responses of PRMBench, in steps, cut at marks of reflection",
    recognises=recognises,
    read=read,
    lacks=(
        "a tree: the text is linear, so nothing is asked of the accelerator",
        "what a reflection goes back to",
        "whether the answer is right",
        "token counts",
    ),
)
