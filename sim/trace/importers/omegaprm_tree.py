"""OmegaPRM trees: reasoning steps with the share of rollouts below each that reached the right answer.

Each line of the file is a problem; `reasoning_steps` is its tree, each node with the `text` of its own
step, its Monte-Carlo value `mc_value` (0 to 1, a score here) and its `children`. The root's text is the
question.

The order in which steps were made is not recorded: the events follow the tree in preorder, and no backtrack
is checked. Dead is a node without children whose value is 0: the search goes on only where some rollout
succeeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import SCHEMA_VERSION, Begin, End, Event
from .recorded_tree import RecordedNode, recorded_events
from .registry import Importer
from .source import field, line_records, number, one_each, text_bytes
from .tree import preorder

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True if the first line is an object with a tree under `reasoning_steps`."""
    first = head.lstrip().split("\n", 1)[0]
    return first.startswith("{") and re.search(r'"reasoning_steps"\s*:\s*\{', first) is not None


def _nodes(root: Any) -> list[RecordedNode]:
    nodes: list[RecordedNode] = []
    for node, name, parent in preorder(root, "reasoning_steps"):
        text = field(node, "text", str, name)
        value = node.get("mc_value")
        score = None if value is None else number(value, f"{name}.mc_value")
        dead = score == 0 and not field(node, "children", list, name)
        nodes.append(
            RecordedNode(
                parents=() if parent is None else (parent,),
                kind="root" if parent is None else "thought",
                state_bytes=text_bytes(text),
                text=text,
                score=score,
                dead="mc_value 0" if dead else None,
            )
        )
    return nodes


def _events(record: Any, index: int) -> list[Event]:
    nodes = _nodes(field(record, "reasoning_steps", dict))
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"omegaprm_tree/{index}",
        algorithm="mcts",
        order_known=False,
        source="omegaprm_tree",
        meta={
            "order": "preorder",
            "question": record.get("question"),
            "final_answer": record.get("final_answer"),
            "question_id": record.get("question_id"),
        },
    )
    return [begin, *recorded_events(nodes, order_known=False), End(status="unknown")]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a line."""
    return one_each(path, line_records(path), _events)


IMPORTER = Importer(
    name="omegaprm_tree",
    description="OmegaPRM tree of reasoning steps, JSON lines",
    recognises=recognises,
    read=read,
    lacks=(
        "the order of visits: events follow the tree in preorder",
        "untried counts: taken from the children in the tree",
        "visits: a node has the mean of its rollouts only",
        "tokens of a step",
    ),
)
