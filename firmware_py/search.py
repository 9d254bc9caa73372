"""One search of a trace, replayed on the host: its records as its events change them, and what it asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sim.trace.events import Backtrack, Backup, Eval, Event, Expand, Jump, Node, Prune, Select

from .errors import InputError
from .image import Layout, TreeImage
from .programs import climb_compressed
from .records import SCORE
from .skips import Skips
from .walks import (
    Expectation,
    ExpectList,
    ExpectNode,
    ExpectNothing,
    ExpectPath,
    ExpectRegister,
    ExpectScores,
    Question,
)

__all__ = ["Search", "Unasked"]

#: Fraction bits of the value sum that `backup` adds to (Q16.16).
_VALUE_FRACTION_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Unasked:
    """An event that asks for an answer but starts no walk."""

    event: int
    reason: str


class Search:
    """The replay of one trace's events: `advance` goes on to the next walk.

    Needs the events of one trace, from `begin` to `end`, valid as `sim.trace.schema` checks them. Errors
    are InputError with the event's index in `event`. `climbing` is the program of `programs.CLIMBS` that
    finds where a search resumes; a trace that needs its nodes' SKIP words for sums (`backup`) cannot have
    skips as well, and is an InputError when it climbs. `turn` counts the trees placed before.
    """

    def __init__(
        self, events: Sequence[Event], *, layout: Layout, climbing: str = "climb", turn: int = 0
    ) -> None:
        self.events = events
        self._climbing = climbing
        nodes = [event for event in events if isinstance(event, Node)]
        lists = [len(event.candidates) for event in events if isinstance(event, Select)]
        self.nodes = len(nodes)
        self.image = TreeImage(nodes, layout=layout, list_atoms=max(lists, default=0), turn=turn)
        self.unasked: list[Unasked] = []
        self.event = 0
        """Index of the event that `advance` is at."""
        self._parent: dict[int, int | None] = {}
        self.skips: Skips | None = None
        if climbing == "climb_compressed" and any(isinstance(event, Backtrack) for event in events):
            self.skips = Skips(self.image)

    def advance(self) -> Question | None:
        """The next walk, with every record change before it in `image`; None at the trace's end."""
        while self.event < len(self.events):
            event = self.events[self.event]
            question: Question | None = None
            match event:
                case Node():
                    self.image.make_node(event)
                    self._parent[event.id] = event.parents[0] if event.parents else None
                    if self.skips is not None:
                        self.skips.made(event.id, self._parent[event.id])
                case Expand():
                    self._expand(event)
                case Eval():
                    self._score(event)
                case Prune():
                    if event.abandoned:
                        self.image.set_untried(event.id, 0)
                    else:
                        self.image.set_dead(event.id)
                case Backtrack():
                    question = self._climb(event)
                case Jump():
                    question = self._common_ancestor(event)
                case Select():
                    question = self._select(event)
                case Backup():
                    question = self._backup(event)
                case _:
                    pass  # the other events change no record and ask nothing
            self.event += 1
            if question is not None:
                if self.skips is not None:
                    self.skips.settle()
                return question
        return None

    def parent(self, node: int) -> int | None:
        """The first parent of a node that was made; None: it has none."""
        return self._parent[node]

    # -- One question per kind of event -------------------------------------------------------------

    def _climb(self, event: Backtrack) -> Question | None:
        start = self._parent[event.from_]
        if start is None:
            return self._no_walk("backtrack from a node without a parent: there is nowhere to climb")
        target = None if event.to is None else self.image.address(event.to)
        checked = event.check != "none"
        expectation: Expectation = ExpectNode(address=target)
        if self.skips is not None and target is not None:
            # The walk that leaves skips behind does not end where it found its answer.
            expectation = ExpectRegister(value=target)
        return Question(
            event=self.event,
            check=event.check,
            reason=event.reason,
            source=event.untried_source if checked else None,
            program=self._climbing,
            start=self.image.address(start),
            registers=self._climb_registers(self.image.address(start)),
            yields=0,
            expectation=expectation if checked else ExpectNothing(),
        )

    def _common_ancestor(self, event: Jump) -> Question | None:
        if event.to is None:
            return self._no_walk(event.reason or "jump to a node that no id names")
        expectation: Expectation = ExpectNothing()
        if event.check != "none":
            ancestor = self._lowest_common_ancestor(event.from_, event.to)
            expectation = ExpectRegister(value=0 if ancestor is None else self.image.address(ancestor))
        return Question(
            event=self.event,
            check=event.check,
            reason=event.reason,
            source=None,
            program="common_ancestor",
            start=self.image.address(event.from_),
            registers=(self.image.address(event.to),),
            yields=0,
            expectation=expectation,
        )

    def _select(self, event: Select) -> Question | None:
        count = len(event.chosen)
        if not event.candidates or not count:
            return self._no_walk("select of nothing: the list of candidates or of chosen ones is empty")
        expectation: Expectation = ExpectNothing()
        chosen = tuple(self.image.address(node) for node in event.chosen)
        if event.check != "none" and event.order == "exact":
            expectation = ExpectList(values=chosen)
        elif event.check != "none":
            occurrences = Counter(event.candidates)
            expectation = ExpectScores(
                scores=tuple(self.image.word(node, SCORE.word) for node in event.chosen),
                members={
                    self.image.address(node): (self.image.word(node, SCORE.word), times)
                    for node, times in occurrences.items()
                },
            )
        return Question(
            event=self.event,
            check=event.check,
            reason=event.reason,
            source=None,
            program="select_k_live" if event.live_only else "select_k",
            start=self.image.put_candidates(event.candidates),
            registers=(count,),
            yields=count,
            expectation=expectation,
            records=len(event.candidates),
        )

    def _climb_registers(self, start: int) -> tuple[int, ...]:
        if self.skips is None:
            return ()
        return climb_compressed.launch_registers(start=start, stamp=self.skips.stamp)

    def _backup(self, event: Backup) -> Question | None:
        if self.skips is not None:
            raise InputError("backup adds to the word that holds the skips: expected --program climb")
        value = round(event.value * (1 << _VALUE_FRACTION_BITS))
        if self._parent[event.path[-1]] is not None:
            for node in event.path:
                self.image.add_visit(node, value)
            return self._no_walk("backup along a path that ends below its root: the host writes the sums")
        return Question(
            event=self.event,
            check="backup",
            reason=None,
            source=None,
            program="backup",
            start=self.image.address(event.path[0]),
            registers=(value,),
            yields=0,
            expectation=ExpectPath(end=self.image.address(event.path[-1]), hops=len(event.path)),
        )

    # -- Inside -------------------------------------------------------------------------------------

    def _score(self, event: Eval) -> None:
        try:
            self.image.set_score(event.id, event.score)
        except ValueError as error:
            raise InputError(f"field {error}") from None

    def _expand(self, event: Expand) -> None:
        before = self.image.is_open(event.id)
        self.image.set_untried(event.id, event.untried)
        if self.skips is not None and not before and self.image.is_open(event.id):
            self.skips.opened(event.id)

    def _no_walk(self, reason: str) -> None:
        self.unasked.append(Unasked(event=self.event, reason=reason))

    def _lowest_common_ancestor(self, first: int, second: int) -> int | None:
        """By the sets of ancestors, itself included: no depth, no record and no walk program is used."""
        above: set[int] = set()
        node: int | None = first
        while node is not None:
            above.add(node)
            node = self._parent[node]
        node = second
        while node is not None and node not in above:
            node = self._parent[node]
        return node
