"""Tree-of-Thoughts logs of a beam search: the steps of one problem, as each task of that program writes them.

A step has the texts expanded (`ys`), the texts proposed (`new_ys`), their values and the texts kept
(`select_new_ys`). A text's parent is the entry of `ys` that it begins with; proposals stand parent by parent.
Equal texts in `ys` are not told apart: their proposals go to the first of them. Kept texts name candidates
in order of rank, (value descending, creation ascending); of equal texts the best ranked one that is still
free is meant.

A kept candidate may have the value of a dead end, since the beam is always filled: values are scores here and
nothing else. Dead is what was not kept (reason `beam`), or was expanded to nothing (`no_children`).
"""

from __future__ import annotations

from typing import Any

from ..errors import FieldError, shorten
from ..events import Eval, Event, Jump, Node, Prune, Restore, Save, Select
from .source import field, items, number, text_bytes

__all__ = ["beam_events"]


class _Beam:
    """The events of one problem, and what is needed to make them."""

    def __init__(self) -> None:
        self.events: list[Event] = [Node(id=0, parents=(), depth=0, kind="root", text="")]
        self._texts = [""]
        self._parents: list[int | None] = [None]
        self._depths = [0]
        self._focus = 0
        self._beam = [0]

    def step(self, step: Any, name: str) -> None:
        """One step: proposals, their values, the choice. `name` is what an error calls the step."""
        ys = items(step, "ys", str, name)
        proposals = items(step, "new_ys", str, name)
        values = [
            number(value, f"{name}.values[{position}]")
            for position, value in enumerate(field(step, "values", list, name))
        ]
        kept = items(step, "select_new_ys", str, name)
        if ys != [self._texts[node] for node in self._beam]:
            expected = "the select_new_ys of the step before" if len(self._texts) > 1 else "one empty text"
            raise FieldError(f"{name}.ys", expected, shorten(ys))
        if len(values) != len(proposals):
            raise FieldError(f"{name}.values", f"{len(proposals)} values, as new_ys", str(len(values)))
        candidates = self._propose(proposals, name)
        for node, value in zip(candidates, values, strict=True):
            self.events.append(Eval(id=node, score=value))
        ranked = sorted(zip(candidates, values, strict=True), key=lambda pair: -pair[1])
        self._choose(candidates, [node for node, _ in ranked], kept, name)

    def _propose(self, proposals: list[str], name: str) -> list[int]:
        """Make the proposals' nodes, moving from parent to parent; returns their ids."""
        candidates = []
        member = 0
        for position, text in enumerate(proposals):
            parent = next(
                (
                    place
                    # From the current parent on; earlier ones only if none of these fits.
                    for place in [*range(member, len(self._beam)), *range(member)]
                    if text.startswith(self._texts[self._beam[place]])
                ),
                None,
            )
            if parent is None:
                expected = "a text that begins with one of `ys`"
                raise FieldError(f"{name}.new_ys[{position}]", expected, shorten(text))
            while member != parent:
                self._move(self._beam[member])
                member = member + 1 if member < parent else parent
            self._move(self._beam[parent])
            candidates.append(self._node(self._beam[parent], text))
        for node in self._beam[member:]:
            self._move(node)
        expanded = {self._parents[node] for node in candidates}
        beam_texts = [self._texts[node] for node in self._beam]
        for place, node in enumerate(self._beam):
            if node not in expanded and beam_texts.index(beam_texts[place]) == place:
                self.events.append(Prune(id=node, reason="no_children"))
        return candidates

    def _node(self, parent: int, text: str) -> int:
        identifier = len(self._texts)
        depth = self._depths[parent] + 1
        self.events.append(
            Node(
                id=identifier,
                parents=(parent,),
                depth=depth,
                state_bytes=text_bytes(text),
                text=text[len(self._texts[parent]) :],
            )
        )
        self._texts.append(text)
        self._parents.append(parent)
        self._depths.append(depth)
        return identifier

    def _move(self, to: int) -> None:
        """The search goes on at `to`: a jump unless that is where it is, or below."""
        above: int | None = to
        while above is not None and above != self._focus:
            above = self._parents[above]
        if above is None:
            self.events.append(Jump(from_=self._focus, to=to))
            self.events.append(Restore(id=to, bytes=text_bytes(self._texts[to])))
        self._focus = to

    def _choose(self, candidates: list[int], ranked: list[int], kept: list[str], name: str) -> None:
        free = list(ranked)
        chosen = []
        for position, text in enumerate(kept):
            node = next((node for node in free if self._texts[node] == text), None)
            if node is None:
                expected = "one of the texts of `new_ys`, each as often as there"
                raise FieldError(f"{name}.select_new_ys[{position}]", expected, shorten(text))
            free.remove(node)
            chosen.append(node)
        if chosen:
            self.events.append(Select(candidates=tuple(candidates), chosen=tuple(chosen)))
        for node in chosen:
            self.events.append(Save(id=node, bytes=text_bytes(self._texts[node])))
        for node in candidates:
            if node not in chosen:
                self.events.append(Prune(id=node, reason="beam"))
        self._beam = chosen


def beam_events(record: Any) -> list[Event]:
    """The events of one problem between `begin` and `end`, from its `steps`. Raises FieldError."""
    beam = _Beam()
    for position, step in enumerate(field(record, "steps", list)):
        beam.step(step, f"steps[{position}]")
    return beam.events
