"""Trees of any search as nested JSON: the format to write when no other importer fits.

A file is one tree, a list of trees, or one tree a line. A tree is its root; a node is an object with

* `children`: the list of its nodes (needed, also if it is empty);
* `id`: a string or an integer, the source's own (need not be unique);
* `text`: what the node adds to its parent; `tokens`: how many tokens that is; `bytes`: the size of the node's
  state (the size of `text` if not given);
* `score`: a number, the higher the better, or null;
* `dead`: true if the search gave the node up for good.

The root may also have `trace` (a name that is unique in the file), `algorithm` (such as dfs), `status`
(solved, unsolved, budget, exhausted, error, empty or unknown) and `order`: "preorder" if the search visited
the nodes in that order, as depth first does. Without it the order counts as lost, and no backtrack is
checked. Any other key is an error. The file's first key must be one of these.

    {"id": "a", "order": "preorder", "children": [
        {"id": "b", "score": 0.5, "dead": true, "children": []},
        {"id": "c", "score": 0.7, "children": []}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event, Status
from .recorded_tree import RecordedNode, recorded_events
from .registry import Importer
from .source import check_kind, field, number, one_each, text_bytes, value_records
from .tree import preorder

__all__ = ["IMPORTER"]

_NODE_KEYS = ("id", "text", "tokens", "bytes", "score", "dead", "children")
_ROOT_KEYS = (*_NODE_KEYS, "trace", "algorithm", "status", "order")


def recognises(head: str) -> bool:
    """True for an object, or a list of them, whose first key is one of a root's and that has `children`."""
    keys = "|".join(_ROOT_KEYS)
    return (
        re.match(rf'\s*(\[\s*)?\{{\s*"({keys})"\s*:', head) is not None
        and re.search(r'[{,]\s*"children"\s*:\s*\[', head) is not None
    )


def _count(node: Any, key: str, name: str) -> int | None:
    if key not in node:
        return None
    value = field(node, key, int, name)
    if value < 0:
        raise FieldError(f"{name}.{key}", "a count from 0", shorten(value))
    return value


def _identifier(node: Any, name: str) -> str | None:
    value = node.get("id")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldError(f"{name}.id", "a string or an integer", shorten(value))
    return str(value)


def _node(node: Any, name: str, parent: int | None) -> RecordedNode:
    allowed = _ROOT_KEYS if parent is None else _NODE_KEYS
    for key in node:
        if key not in allowed:
            raise FieldError(f"{name}.{shorten(key)[1:-1]}", f"only {', '.join(allowed)}", "an unknown key")
    text = field(node, "text", str, name) if "text" in node else None
    size = _count(node, "bytes", name)
    if size is None:
        size = text_bytes(text or "")
    score = node.get("score")
    return RecordedNode(
        parents=() if parent is None else (parent,),
        kind="root" if parent is None else "thought",
        state_bytes=size,
        tokens=_count(node, "tokens", name),
        ext_id=_identifier(node, name),
        text=text,
        score=None if score is None else number(score, f"{name}.score"),
        dead="dead" if "dead" in node and field(node, "dead", bool, name) else None,
    )


def _one_of(root: Any, key: str, choices: tuple[str, ...]) -> str:
    if root[key] not in choices:
        raise FieldError(f"tree.{key}", f"one of {', '.join(choices)}", shorten(root[key]))
    return root[key]


def _events(root: Any, index: int) -> list[Event]:
    check_kind(root, dict, "tree")
    nodes = [_node(*place) for place in preorder(root, "tree")]
    order_known = "order" in root and _one_of(root, "order", ("preorder",)) == "preorder"
    status: Any = _one_of(root, "status", get_args(Status)) if "status" in root else "unknown"
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=field(root, "trace", str, "tree") if "trace" in root else f"tree/{index}",
        algorithm=field(root, "algorithm", str, "tree") if "algorithm" in root else "unknown",
        order_known=order_known,
        source="tree",
        meta={} if order_known else {"order": "preorder"},
    )
    return [begin, *recorded_events(nodes, order_known=order_known), End(status=status)]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a tree."""
    return one_each(path, value_records(path), _events)


IMPORTER = Importer(
    name="tree",
    description="nested tree of any search, JSON (sim/trace/importers/tree_json.py)",
    recognises=recognises,
    read=read,
    lacks=(
        "the order of visits, unless `order` says that it is preorder",
        "untried counts: taken from the children in the tree",
    ),
)
