"""Tree-of-Thoughts crosswords logs: depth first with at most three children a node, budget 100 records.

A file is a list of problems, each a list of records in order of visit. A record's node is the last of its
`actions`; its parent is the last earlier record whose actions are all but the last one. The root, which
the log does not record, is the empty board. The search went back whenever a record's parent is not the
record before it. The same words filled in another order are nodes of their own, as in the search.

Dead: the search with pruning does not go on below a record with `impossible` of 1 or more. The file does
not say which search wrote it; one without pruning shows by some such record that has children.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event, Jump, Status
from .depth_first import DepthFirstEvents
from .registry import Importer
from .source import array_records, check_kind, field, items, located, number, one_each

__all__ = ["IMPORTER", "STATE_BYTES"]

#: What the search copies for every node it expands: 25 cells, the status of 10 words, a step count.
STATE_BYTES = 25 + 10 + 1
#: Records after which the search gives a puzzle up.
BUDGET = 100


def recognises(head: str) -> bool:
    """True for a list of lists with `actions` and `env_step` in its records."""
    return (
        re.match(r"\s*\[\s*\[", head) is not None
        and re.search(r'"actions"\s*:\s*\[', head) is not None
        and re.search(r'"env_step"\s*:', head) is not None
    )


def _parents(records: list[Any]) -> list[int]:
    """The node id of each record's parent: 0 the root, n + 1 the node of record n."""
    last: dict[tuple[str, ...], int] = {(): 0}
    parents = []
    for position, record in enumerate(records):
        name = f"[{position}]"
        actions = tuple(items(record, "actions", str, name))
        if not actions:
            raise FieldError(f"{name}.actions", "at least one action", "none")
        if actions[:-1] not in last:
            expected = "the actions of an earlier record and one more"
            raise FieldError(f"{name}.actions", expected, shorten(list(actions)))
        parents.append(last[actions[:-1]])
        last[actions] = position + 1
    return parents


def _impossible(record: Any, position: int) -> bool:
    name = f"[{position}]"
    count = field(record, "count", dict, name)
    value = field(count, "impossible", int, f"{name}.count")
    if value < 0:
        raise FieldError(f"{name}.count.impossible", "a count from 0", shorten(value))
    return value >= 1


def _pruning(path: Path) -> bool:
    """Whether the search that wrote the file stopped at impossible records."""
    for place, records in array_records(path):
        with located(path, place):
            parents = _parents(check_kind(records, list, "problem"))
            expanded = set(parents)
            for position, record in enumerate(records):
                if _impossible(record, position) and position + 1 in expanded:
                    return False
    return True


def _status(records: list[Any]) -> Status:
    if not records:
        return "empty"
    for position, record in enumerate(records):
        name = f"[{position}].info"
        info = field(record, "info", dict, f"[{position}]")
        if "r_word" not in info:
            raise FieldError(f"{name}.r_word", "a number", "no such key")
        if number(info["r_word"], f"{name}.r_word") == 1:
            return "solved"
    return "budget" if len(records) >= BUDGET else "exhausted"


def _events(records: Any, index: int, *, pruning: bool) -> list[Event]:
    check_kind(records, list, "problem")
    parents = _parents(records)
    children = [0] * (len(records) + 1)
    for parent in parents:
        children[parent] += 1
    search = DepthFirstEvents(children=children, untried_source="lookahead")
    search.node(None, kind="root", state_bytes=STATE_BYTES)
    for position, (record, parent) in enumerate(zip(records, parents, strict=True)):
        if parent != search.focus:
            if search.is_ancestor(parent, search.focus):
                search.back(parent)
            else:
                search.events.append(Jump(from_=search.focus, to=parent))
        node = search.node(
            parent,
            kind="thought",
            state_bytes=STATE_BYTES,
            ext_id=str(position),
            text=record["actions"][-1],
        )
        if pruning and _impossible(record, position):
            search.prune(node, "impossible")
    begin = Begin(
        version=SCHEMA_VERSION,
        trace=f"tot_crosswords/{index}",
        algorithm="dfs",
        source="tot_crosswords",
        meta={"index": index, "pruning": pruning},
    )
    return [begin, *search.events, End(status=_status(records))]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a puzzle."""
    pruning = _pruning(path)
    return one_each(
        path, array_records(path), lambda records, index: _events(records, index, pruning=pruning)
    )


IMPORTER = Importer(
    name="tot_crosswords",
    description="Tree-of-Thoughts crosswords log, depth first",
    recognises=recognises,
    read=read,
    lacks=(
        "untried counts: taken from the children recorded later",
        "scores: the log has counts of sure, maybe and impossible words only",
        "candidates that violate a constraint: tried and undone but not logged",
        "token counts",
    ),
)
