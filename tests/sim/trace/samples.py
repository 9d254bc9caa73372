"""Traces for the tests: the public samples, and a short one whose lines can be spoilt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.trace.events import (
    Backtrack,
    Backup,
    Begin,
    End,
    Eval,
    Event,
    Expand,
    Jump,
    Node,
    Prune,
    Restore,
    Save,
    Select,
)

#: The public sample files, kept beside the repository.
SHARED = Path(__file__).parents[4] / "shared" / "traces"


def shared(name: str) -> Path:
    """A public sample file or folder; skips the test where they are not."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the public samples are not beside the repository: no {path}")
    return path


def short_trace(name: str = "short") -> list[Event]:
    """A valid trace with most kinds of events: a root with three children, one of which has a child."""
    return [
        Begin(version=1, trace=name, algorithm="dfs", meta={"seed": 1, "nested": [1.5, None, {"a": True}]}),
        Node(id=0, parents=(), depth=0, kind="root", state_bytes=64),
        Save(id=0, bytes=64),
        Expand(id=0, untried=3, untried_source="declared"),
        Expand(id=0, untried=2, untried_source="declared"),
        Node(id=1, parents=(0,), depth=1, text="left ≈ \U0001f9f5"),
        Eval(id=1, score=-2.5),
        Prune(id=1, reason="impossible"),
        Backtrack(from_=1, to=0, untried_source="declared"),
        Restore(id=0, bytes=64),
        Expand(id=0, untried=1, untried_source="declared"),
        Node(id=2, parents=(0,), depth=1),
        Eval(id=2, score=None),
        Node(id=3, parents=(2, 1), depth=2, ext_id="0,1", tokens=7),
        Expand(id=0, untried=0, untried_source="declared"),
        Node(id=4, parents=(0,), depth=1),
        Eval(id=4, score=-2.5),
        Jump(from_=3, to=4),
        Select(candidates=(1, 2, 4), chosen=(1, 4)),
        Backup(path=(3, 2, 0), value=0.5),
        Backtrack(from_=3, to=None, untried_source="declared"),
        End(status="exhausted"),
    ]


def write_json(path: Path, value: object) -> Path:
    """The value as a JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
