"""What the page's trees and replays show: chosen searches, their nodes, and their walks in time.

A page stays small whatever the traces are: the search of the walk with the most reads and the first few
others, of each so many nodes and walks. What is left out is counted, and the page says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.trace.events import Event, Expand, Node, Prune, Select

from ...compare import Comparison
from ...paths import FarPath, crossing_cycles
from ...place import PlaceFigures
from ...plan import PlannedTrace
from ...walk_log import LoggedWalk, walk_log

__all__ = ["SearchData", "search_data"]

#: Searches beside the one with the longest walk.
_OTHERS = 5
#: Most nodes and walks of one search.
_NODES, _WALKS = 1500, 200
#: Most bytes of all searches together.
_BYTES = 3_000_000
#: Most characters of a text of a trace.
_CHARACTERS = 80


@dataclass(frozen=True, kw_only=True)
class SearchData:
    """The searches of a page as plain JSON types, and how many there were."""

    searches: list[dict[str, Any]]
    of: int
    """Searches of the comparison."""
    walks_of: int
    """Walks of the comparison."""

    @property
    def walks(self) -> int:
        """Walks that the page can replay."""
        return sum(len(search["walks"]) for search in self.searches)


def search_data(comparison: Comparison) -> SearchData:
    """The searches that a page of this comparison shows."""
    plan = comparison.near.plan
    source = _Source(comparison)
    walks_of: dict[int, list[int]] = {}
    for number, walk in enumerate(plan.walks):
        walks_of.setdefault(walk.trace, []).append(number)
    # The first search of each file, then the others.
    first_of = {plan.traces[trace].trace.file: trace for trace in reversed(walks_of)}
    order = list(dict.fromkeys([*source.longest(), *sorted(first_of.values()), *walks_of]))[: _OTHERS + 1]
    found: list[dict[str, Any]] = []
    size = 0
    for trace in order:
        search = source.search(trace, walks_of[trace])
        size += len(json.dumps(search))
        if found and size > _BYTES:
            break
        found.append(search)
    return SearchData(searches=found, of=len(plan.traces), walks_of=len(plan.walks))


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """What a walk read in one place."""

    nodes: Sequence[int | None]
    """The node of every read; None: a record that belongs to none."""
    times: Sequence[float]
    """When each was asked for, in ns from the launch."""
    decided: float
    """When the walker had the verdict."""
    total: float
    """When the search had it."""
    helped: str | None
    """The help that answered instead of a walk."""


class _Source:
    """The walks of a comparison, by place and number."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._logged: dict[str, dict[int, LoggedWalk]] = {
            name: {
                walk.number: walk for walk in walk_log(figures.plan, figures.run, comparison.config.memory)
            }
            for name, figures in self._places()
        }

        self._wrong = {number for _, figures in self._places() for number in figures.run.wrong}

    def _places(self) -> Iterator[tuple[str, PlaceFigures]]:
        yield "near", self._comparison.near
        yield "far", self._comparison.far

    def longest(self) -> list[int]:
        """The trace of the walk with the most reads; empty without a walk."""
        walks = self._logged["near"].values()
        if not walks:
            return []
        longest = max(walks, key=lambda walk: len(walk.requested))
        return [self._comparison.near.plan.walks[longest.number].trace]

    def search(self, number: int, walks: Sequence[int]) -> dict[str, Any]:
        """One search: its nodes and walks, as many as the page shows."""
        planned = self._comparison.near.plan.traces[number]
        trace = planned.trace
        nodes = [event for event in trace.events if isinstance(event, Node)]
        steps = {walk: self._steps(planned, walk) for walk in walks}
        parents = [event.parents[0] if event.parents else None for event in nodes]
        kept, shown = _chosen(parents, steps)
        index = {node: place for place, node in enumerate(kept)}
        return {
            "name": _cut(trace.name),
            "file": trace.file,
            "algorithm": trace.begin.algorithm,
            "status": trace.end.status,
            "left_out": {"nodes": len(nodes) - len(kept), "walks": len(walks) - len(shown)},
            "nodes": _nodes(trace.events, index, parents),
            "walks": [self._walk(planned, walk, steps[walk], index) for walk in shown],
        }

    def _steps(self, planned: PlannedTrace, number: int) -> dict[str, _Steps]:
        """The steps of a walk in each place."""
        names = {int(address): node for node, address in enumerate(planned.addresses)}
        question = self._comparison.near.plan.walks[number].question
        event = planned.trace.events[question.event]
        if isinstance(event, Select):
            # Its candidate list: a record for each, from the start of the walk on.
            names |= {question.start + place: node for place, node in enumerate(event.candidates)}
        clock = self._comparison.clock_ns
        found: dict[str, _Steps] = {}
        for name, figures in self._places():
            local = figures.plan.walks[number].local
            total = float(figures.run.walk_cycles[number]) * clock
            walk = self._logged[name].get(number)
            if walk is None:
                help_ = None if local is None else local.help
                found[name] = _Steps(nodes=[], times=[], decided=total, total=total, helped=help_)
                continue
            first = int(walk.requested[0]) if len(walk.requested) else walk.verdict
            launch = first - self._before(walk.outside)
            found[name] = _Steps(
                nodes=[names.get(int(address)) for address in walk.address],
                times=[(float(cycle) - launch) * clock for cycle in walk.requested],
                decided=(walk.verdict - launch) * clock,
                total=total,
                helped=None,
            )
        return found

    def _before(self, outside: int) -> float:
        """Of the cycles that a walk takes outside its walker, those before its first request: its launch's
        share of the crossings, as the link is set, and what that waited for its context."""
        path: FarPath = self._comparison.far_path
        crossing = crossing_cycles(self._comparison.config)
        up, down = (latency + crossing for latency in (path.latency_up, path.latency_down))
        return outside - min(outside, up + down) * down / (up + down)

    def _walk(
        self, planned: PlannedTrace, number: int, steps: Mapping[str, _Steps], index: Mapping[int, int]
    ) -> dict[str, Any]:
        comparison = self._comparison
        question = comparison.near.plan.walks[number].question
        names = {int(address): node for node, address in enumerate(planned.addresses)}

        def name(address: int) -> str:
            if address == 0:
                return "null"
            return f"node {names[address]}" if address in names else f"record {address:#x}"

        return {
            "number": number,
            "event": question.event,
            "check": question.check,
            "program": question.program,
            "source": question.source,
            "reason": None if question.reason is None else _cut(question.reason),
            "start": index.get(names.get(question.start, -1)),
            "expected": question.expectation.describe(name),
            "right": number not in self._wrong,
            "places": {
                place: {
                    "found": figures.run.answers[number].describe(name),
                    "answer": index.get(names.get(figures.run.answers[number].value, -1)),
                    "nodes": [None if node is None else index[node] for node in steps[place].nodes],
                    "times": [round(time, 3) for time in steps[place].times],
                    "decided": round(steps[place].decided, 3),
                    "total": round(steps[place].total, 3),
                    "helped": steps[place].helped,
                }
                for place, figures in self._places()
            },
        }


def _chosen(
    parents: Sequence[int | None], steps: Mapping[int, Mapping[str, _Steps]]
) -> tuple[list[int], list[int]]:
    """The nodes and the walks that are shown, both in order.

    The walk with the most reads comes first, then the others in order, each with the nodes that it reads and
    their ancestors; then the first of the other nodes.
    """
    kept: set[int] = set()
    shown: list[int] = []
    longest = sorted(steps, key=lambda walk: -max(len(place.nodes) for place in steps[walk].values()))[:1]
    for walk in dict.fromkeys([*longest, *steps]):
        if len(shown) == _WALKS:
            break
        wanted: set[int] = set()
        for place in steps[walk].values():
            for node in place.nodes:
                while node is not None and node not in kept and node not in wanted:
                    wanted.add(node)
                    node = parents[node]
        if len(kept) + len(wanted) <= _NODES:
            kept |= wanted
            shown.append(walk)
    for node, parent in enumerate(parents):
        if len(kept) >= _NODES:
            break
        if parent is None or parent in kept:
            kept.add(node)
    return sorted(kept), sorted(shown)


def _nodes(
    events: Sequence[Event], index: Mapping[int, int], parents: Sequence[int | None]
) -> dict[str, Any]:
    """The nodes that `index` numbers anew: columns, and each change of what decides a climb by event."""
    created = [0] * len(index)
    label = [""] * len(index)
    dead: list[int | None] = [None] * len(index)
    reason: list[str | None] = [None] * len(index)
    untried: list[tuple[int, int, int]] = []
    for number, event in enumerate(events):
        if not isinstance(event, Node | Prune | Expand) or event.id not in index:
            continue
        place = index[event.id]
        if isinstance(event, Node):
            created[place] = number
            label[place] = _label(event)
        elif isinstance(event, Expand):
            untried.append((number, place, event.untried))
        elif event.abandoned:
            untried.append((number, place, 0))
        elif dead[place] is None:
            dead[place], reason[place] = number, _cut(event.reason)
    return {
        "id": list(index),
        "parent": [None if (parent := parents[node]) is None else index[parent] for node in index],
        "label": label,
        "created": created,
        "dead": dead,
        "reason": reason,
        "untried": untried,
    }


def _label(node: Node) -> str:
    """The node's own words, else the source's name of it, else its kind."""
    return _cut(node.text or node.ext_id or node.kind)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 1] + "…"
