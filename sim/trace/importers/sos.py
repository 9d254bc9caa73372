"""Stream-of-Search records: countdown games searched depth first or by beam, told line by line.

Each line of the file is a record whose `search_path` tells the search: `Generated Node` makes a node under
the id that its own id extends, `... unequal: No Solution` and `... equal: Goal Reached` make a terminal
under the current state (dead if it is no solution), `Moving to Node` moves.

Depth first (`dfs`): a move to the node just generated goes down, a move to an ancestor is a backtrack.
Untried counts come from the search's own rule applied again (keep every move whose heuristic is at most
the target), if that gives the recorded number of children at every node that the search had done with;
else from the children recorded later.

By beam (`bfs_k`): moves are no climbs. At the start of each level the search takes the k best of its open
set by heuristic, equals in no particular order: a `select`, scored with minus the heuristic that the record
names. Each move is a `jump`. The source numbers terminals without generating them, several alike, and moves
to them: such a target is no node that one id names, so the jump's `to` is null and it is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event
from .registry import Importer
from .sos_beam import beam_events
from .sos_depth_first import depth_first_events
from .sos_path import parse_path
from .source import field, items, line_records, number, one_each

__all__ = ["IMPORTER"]


def recognises(head: str) -> bool:
    """True if the first line is an object with a `search_path` and a `search_type`."""
    first = head.lstrip().split("\n", 1)[0]
    return (
        first.startswith("{")
        and re.search(r'"search_path"\s*:\s*"', first) is not None
        and re.search(r'"search_type"\s*:\s*"', first) is not None
    )


def _events(record: Any, index: int) -> list[Event]:
    search_type = field(record, "search_type", str)
    target = field(record, "target", int)
    heuristic = field(record, "heuristic", str)
    numbers = items(record, "nums", int)
    if target < 2:
        raise FieldError("target", "a whole number from 2", shorten(target))
    path = parse_path(field(record, "search_path", str), target=target, numbers=numbers)
    beam = re.fullmatch(r"bfs_([1-9]\d*)", search_type)
    if search_type == "dfs":
        algorithm, events = "dfs", depth_first_events(path, heuristic=heuristic)
    elif beam is not None:
        algorithm, events = "beam", beam_events(path, width=int(beam[1]), heuristic=heuristic)
    else:
        raise FieldError("search_type", "dfs or bfs_<width>", shorten(search_type))
    meta: dict[str, object] = {"target": target, "nums": numbers}
    meta |= {"search_type": search_type, "heuristic": heuristic}
    if "rating" in record:
        meta["rating"] = number(record["rating"], "rating")
    begin = Begin(version=SCHEMA_VERSION, trace=f"sos/{index}", algorithm=algorithm, source="sos", meta=meta)
    return [begin, *events, End(status="solved" if path.goal else "unsolved")]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a line."""
    return one_each(path, line_records(path), _events)


IMPORTER = Importer(
    name="sos",
    description="Stream-of-Search countdown paths, depth first and beam",
    recognises=recognises,
    read=read,
    lacks=(
        "moves that the beam cut off when it generated them",
        "ids of terminals: several share one, and it is never generated",
        "token counts",
    ),
)
