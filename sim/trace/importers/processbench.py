"""ProcessBench: solutions in steps, each solution labelled with its first wrong step.

A record is {id, generator, problem, steps, final_answer_correct, label}. The problem is the root, every step
a node below the one before. `label` is the index of the earliest wrong step, -1 for none: steps before it
have score 1, it has score -1, and what the label says nothing about (the steps after it) has no score. The
solution was written to its end whatever the label says, so no step is dead and nothing was gone back on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import Event
from .chain import Chain
from .registry import Importer
from .source import field, items, one_each, records

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True for records with `steps`, `final_answer_correct` and `generator`."""
    return re.match(r"\s*\[?\s*\{", head) is not None and all(
        re.search(rf'"{key}"\s*:', head) for key in ("steps", "final_answer_correct", "generator")
    )


def _events(record: Any, index: int) -> list[Event]:
    steps = items(record, "steps", str)
    label = field(record, "label", int)
    if not -1 <= label < len(steps):
        expected = f"-1 or the index of a step (0 to {len(steps) - 1})" if steps else "-1 (there is no step)"
        raise FieldError("label", expected, shorten(label))
    chain = Chain(field(record, "problem", str))
    for position, text in enumerate(steps):
        node = chain.node(text)
        if label < 0 or position <= label:
            chain.score(node, -1.0 if position == label else 1.0)
    meta: dict[str, object] = {key: field(record, key, str) for key in ("id", "generator")}
    return chain.trace(
        f"processbench/{index}",
        source="processbench",
        meta=meta,
        status="solved" if field(record, "final_answer_correct", bool) else "unsolved",
    )


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a solution."""
    return one_each(path, records(path), _events)


IMPORTER = Importer(
    name="processbench",
    description="ProcessBench solutions with the first wrong step",
    recognises=recognises,
    read=read,
    lacks=(
        "a search: each solution is one line of steps, so nothing is asked of the accelerator",
        "labels of the steps after the first wrong one",
        "token counts",
    ),
)
