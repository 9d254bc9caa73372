"""Trees and graphs of any search as a CSV edge list: the format to write when no other importer fits.

The first line names the columns, in any order; an unknown column is an error. Each other line is a node:

* `id`: the source's own, unique in its trace;
* `parent`: the id of a node above in the file; empty: a root. Several are parted by `;`, the first is the one
  that the node counts as a child of;
* `score`: a number, the higher the better; empty: none;
* `dead`: true or false (1 or 0; empty: false): the search gave the node up for good;
* `text`: what the node adds to its parent; `tokens`: how many tokens that is; `bytes`: the size of the node's
  state (empty: the size of `text`);
* `trace`: the name of the problem; the lines of one stand together. Without it the file is one problem.

Only `id` and `parent` are needed. Lines stand in the order in which the search made the nodes: it stands at
the node that it made until it makes one elsewhere.

    id,parent,score,dead
    a,,,
    b,a,0.5,true
    c,a,0.7,
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import FieldError, shorten
from ..events import SCHEMA_VERSION, Begin, End, Event
from ..limits import bounded_lines
from ..text_file import check_encoding, open_text
from .recorded_tree import RecordedNode, recorded_events
from .registry import Importer
from .source import located, number, text_bytes

__all__ = ["IMPORTER"]

_NEEDED = ("id", "parent")
_COLUMNS = (*_NEEDED, "score", "dead", "text", "tokens", "bytes", "trace")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False, "": False}

#: A line of the file by column, with its number.
_Row = tuple[int, Mapping[str, str]]


def recognises(head: str) -> bool:
    """True if the first line is names parted by commas, `id` and `parent` among them."""
    names = _names(head.split("\n", 1)[0].split(","))
    return all(name in names for name in _NEEDED)


def _names(cells: list[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


def _cells(lines: Iterator[list[str]]) -> list[str] | None:
    """The next line; None at the end."""
    try:
        return next(lines, None)
    except csv.Error as error:
        raise FieldError("CSV", "a line of comma-separated values", str(error)) from None


def _rows(path: Path) -> Iterator[_Row]:
    """The lines after the first. Raises TraceError."""
    with open_text(path) as file:
        lines = (check_encoding(line) for _, line in bounded_lines(file, path))
        reader = csv.reader(lines, strict=True)
        lines = iter(reader)
        with located(path, 1):
            names = _names(_cells(lines) or [])
            for name in names:
                if name not in _COLUMNS:
                    raise FieldError("header", f"only {', '.join(_COLUMNS)}", f"the column {shorten(name)}")
                if names.count(name) > 1:
                    raise FieldError("header", "each column once", f"{name} twice")
        while True:
            number_of_line = reader.line_num + 1
            with located(path, number_of_line):
                cells = _cells(lines)
                if cells is None:
                    return
                if not cells:
                    continue  # an empty line
                if len(cells) != len(names):
                    raise FieldError("CSV", f"{len(names)} values, as the header", str(len(cells)))
            yield number_of_line, dict(zip(names, cells, strict=True))


def _number(text: str, name: str) -> float:
    try:
        return number(float(text), name)
    except ValueError:
        raise FieldError(name, "a finite number", shorten(text)) from None


def _count(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise FieldError(name, "a count from 0", shorten(text))
    return int(text)


def _node(row: Mapping[str, str], known: dict[str, int]) -> RecordedNode:
    """The node of a line; `known` are those above it in the trace, by id."""
    identifier = row["id"].strip()
    if not identifier:
        raise FieldError("id", "an id", "none")
    if identifier in known:
        raise FieldError("id", "an id that no line above has", shorten(identifier))
    parents = [parent.strip() for parent in row["parent"].split(";")] if row["parent"].strip() else []
    for parent in parents:
        if parent not in known:
            raise FieldError("parent", "an id of a line above", shorten(parent))
    text = row.get("text") or None
    tokens, size, score = (row.get(key, "").strip() for key in ("tokens", "bytes", "score"))
    dead = row.get("dead", "").strip().lower()
    if dead not in _TRUTHS:
        raise FieldError("dead", "true, false, 1, 0 or nothing", shorten(row["dead"]))
    return RecordedNode(
        parents=tuple(known[parent] for parent in parents),
        kind="thought" if parents else "root",
        state_bytes=_count(size, "bytes") if size else text_bytes(text or ""),
        tokens=_count(tokens, "tokens") if tokens else None,
        ext_id=identifier,
        text=text,
        score=_number(score, "score") if score else None,
        dead="dead" if _TRUTHS[dead] else None,
    )


def _events(path: Path, rows: Iterator[_Row], *, trace: str) -> list[Event]:
    known: dict[str, int] = {}
    nodes: list[RecordedNode] = []
    for number_of_line, row in rows:
        with located(path, number_of_line):
            node = _node(row, known)
        assert node.ext_id is not None
        known[node.ext_id] = len(nodes)
        nodes.append(node)
    begin = Begin(version=SCHEMA_VERSION, trace=trace, algorithm="unknown", source="edge_list")
    return [begin, *recorded_events(nodes, order_known=True), End(status="unknown")]


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace for the lines of one name."""
    problems = itertools.groupby(_rows(path), key=lambda row: row[1].get("trace", "edge_list/0"))
    for name, rows in problems:
        first = next(rows)
        events = _events(path, itertools.chain([first], rows), trace=name)
        yield first[0], events


IMPORTER = Importer(
    name="edge_list",
    description="edge list of any search, CSV (sim/trace/importers/edge_list.py)",
    recognises=recognises,
    read=read,
    lacks=(
        "untried counts: taken from the nodes made later",
        "how the search ended",
    ),
)
