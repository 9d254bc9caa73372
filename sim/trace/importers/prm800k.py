"""PRM800K: solutions that a person steered, step by step, rating what the model proposed.

A record's `label.steps` are, in order, {completions: [{text, rating, flagged}], human_completion,
chosen_completion}. The problem is the root; the completions of a step are its candidates, nodes below the one
that the solution stood on, each with its rating (-1, 0, 1 or none) as score. `chosen_completion` is a
`select` of one of them, and the others were given up. A step that the person wrote is a node of kind `human`:
it takes the place of all the candidates.

The person was free to choose: a choice is checked (by score, as equals are in no order) where no candidate
has a higher rating, and not checked elsewhere. Nobody went back, so there are no backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import FieldError, shorten
from ..events import Event, Prune, Select, Status
from .chain import Chain
from .registry import Importer
from .source import check_kind, field, items, one_each, records

__all__ = ["IMPORTER"]

_STATUSES: dict[object, Status] = {
    "solution": "solved",
    "found_error": "unsolved",
    "give_up": "unsolved",
    "bad_problem": "error",
    None: "unknown",
}
#: Kept as they are: they say who labelled what, when, and for how long.
_META = (
    "labeler",
    "timestamp",
    "generation",
    "is_quality_control_question",
    "is_initial_screening_question",
)
_FREE_CHOICE = "the person went on with a step that another one is rated above"


def recognises(head: str) -> bool:
    """True for records whose `label` has `steps` with `completions`."""
    return (
        re.match(r"\s*\[?\s*\{", head) is not None
        and re.search(r'"label"\s*:\s*\{\s*"steps"\s*:\s*\[', head) is not None
        and re.search(r'"completions"\s*:', head) is not None
    )


def _rating(completion: Any, name: str) -> float | None:
    check_kind(completion, dict, name)
    rating = completion.get("rating")
    if rating not in (-1, 0, 1, None) or isinstance(rating, bool):
        raise FieldError(f"{name}.rating", "-1, 0, 1 or null", shorten(rating))
    return None if rating is None else float(rating)


def _chosen(step: Any, name: str, count: int) -> int | None:
    chosen = step.get("chosen_completion")
    if chosen is not None and (
        isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < count
    ):
        expected = f"null or the index of a completion ({count} there)"
        raise FieldError(f"{name}.chosen_completion", expected, shorten(chosen))
    return chosen


class _Steps:
    """The steps of one record, in order."""

    def __init__(self, question: str) -> None:
        self.chain = Chain(question)
        self.flagged: list[int] = []
        """Nodes that the person flagged."""
        self._open = True

    def take(self, step: Any, name: str) -> None:
        """The next step: its candidates, what was chosen, and what the person wrote instead."""
        check_kind(step, dict, name)
        if not self._open:
            raise FieldError(name, "no step after one that nothing was chosen in", "one more step")
        completions = [] if step.get("completions") is None else items(step, "completions", dict, name)
        chosen = _chosen(step, name, len(completions))
        nodes: list[int] = []
        ratings: list[float | None] = []
        for position, completion in enumerate(completions):
            here = f"{name}.completions[{position}]"
            nodes.append(self.chain.node(field(completion, "text", str, here), follow=False))
            ratings.append(_rating(completion, here))
            self.chain.score(nodes[-1], ratings[-1])
            if completion.get("flagged"):
                self.flagged.append(nodes[-1])
        human = step.get("human_completion")
        if human is None and chosen is None:
            self._open = False
            return
        if chosen is not None:
            self._select(nodes, ratings, chosen)
        for position, node in enumerate(nodes):
            if human is not None or position != chosen:
                self.chain.events.append(Prune(id=node, reason="not_chosen"))
        if human is not None:
            self.chain.node(field(human, "text", str, f"{name}.human_completion"), kind="human")
        elif chosen is not None:
            self.chain.last = nodes[chosen]

    def _select(self, nodes: list[int], ratings: list[float | None], chosen: int) -> None:
        ranks = [-2.0 if rating is None else rating for rating in ratings]
        best = ranks[chosen] == max(ranks)
        self.chain.events.append(
            Select(
                candidates=tuple(nodes),
                chosen=(nodes[chosen],),
                order="score",
                check="select" if best else "none",
                reason=None if best else _FREE_CHOICE,
            )
        )


def _events(record: Any, index: int) -> list[Event]:
    question = field(record, "question", dict)
    label = field(record, "label", dict)
    steps = _Steps(field(question, "problem", str, "question"))
    for position, step in enumerate(field(label, "steps", list, "label")):
        steps.take(step, f"label.steps[{position}]")
    reason = label.get("finish_reason")
    if reason is not None and reason not in _STATUSES:
        known = ", ".join(str(status) for status in _STATUSES if status)
        raise FieldError("label.finish_reason", f"one of {known}", shorten(reason))
    meta: dict[str, object] = {key: record[key] for key in _META if record.get(key) is not None}
    meta |= {key: label[key] for key in ("total_time", "finish_reason") if label.get(key) is not None}
    if question.get("ground_truth_answer") is not None:
        meta["ground_truth_answer"] = question["ground_truth_answer"]
    if steps.flagged:
        meta["flagged_nodes"] = steps.flagged
    return steps.chain.trace(f"prm800k/{index}", source="prm800k", meta=meta, status=_STATUSES[reason])


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a labelled solution."""
    return one_each(path, records(path), _events)


IMPORTER = Importer(
    name="prm800k",
    description="PRM800K solutions, steered and rated step by step",
    recognises=recognises,
    read=read,
    lacks=(
        "backtracks: every step goes on from the one chosen before it",
        "the solution as it was before labelling (`pre_generated_steps`)",
        "token counts",
    ),
)
