"""What the walkers reach on `hbm2_2000`, one module a topic; `clew bench walker` measures all of them.

A topic is a function that takes `files` (trace files, perhaps none), `announce` (told what is being built)
and `progress` (name, done, of) and returns its measures, each with its bound and its target, if any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hdl.memory.timing import preset

from ...errors import InputError
from ..measures import Measure
from .area import area_measures
from .instructions import instructions_measures
from .latency import latency_measures
from .pools import pools_measures
from .programs import programs_measures
from .throughput import throughput_measures

__all__ = ["MEMORY", "SCHEMA", "TOPICS", "Topic", "require_topics", "walker_document", "walker_measures"]

#: The memory that every topic measures on.
MEMORY = preset("hbm2_2000")
#: The `schema` of the document.
SCHEMA = "clew.bench.walker/1"


class Topic(Protocol):
    """A function that measures one topic. Raises InternalError when a run is not clean."""

    def __call__(
        self,
        *,
        files: Sequence[Path],
        announce: Callable[[str], None],
        progress: Callable[[str, int, int], None],
    ) -> list[Measure]: ...


#: Every topic by name, in the order in which they are measured and shown.
TOPICS: Mapping[str, Topic] = {
    "latency": latency_measures,
    "throughput": throughput_measures,
    "area": area_measures,
    "instructions": instructions_measures,
    "programs": programs_measures,
    "pools": pools_measures,
}


def require_topics(names: Sequence[str]) -> Sequence[str]:
    """The topics asked for, all of them if none is. Raises InputError for one that is unknown."""
    for name in names:
        if name not in TOPICS:
            raise InputError(f"unknown topic {name!r}: expected one of {', '.join(TOPICS)}")
    return names or tuple(TOPICS)


def walker_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
    topics: Sequence[str] = tuple(TOPICS),
) -> list[Measure]:
    """The measures of the topics that `topics` names, measured now. Raises what a topic raises."""
    return [
        measure
        for name in topics
        for measure in TOPICS[name](files=files, announce=announce, progress=progress)
    ]


def walker_document(measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as plain JSON types."""
    return {"schema": SCHEMA, "measures": [measure.as_dict() for measure in measures]}
