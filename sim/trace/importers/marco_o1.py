"""Marco-o1: a question and one long response, a thought between `<Thought>` tags and then the output.

A record is {instruction, response}. The instruction is the root; below it is the thought, which grows by an
`append` at every mark of reflection (`reflection`), and below that the output (from `<Output>` on). A
response without an output tag is all thought: it was cut off. Tags stay in the texts, so that put together
they are the response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import Event
from .chain import Chain
from .reflection import grow
from .registry import Importer
from .source import field, one_each, records

__all__ = ["IMPORTER"]

_OUTPUT = "<Output>"


def recognises(head: str) -> bool:
    """True for records with an `instruction` and a `response` that begins with `<Thought>`."""
    return (
        re.match(r"\s*\[?\s*\{", head) is not None
        and re.search(r'"instruction"\s*:\s*"', head) is not None
        and re.search(r'"response"\s*:\s*"\s*<Thought>', head) is not None
    )


def _events(record: Any, index: int) -> list[Event]:
    chain = Chain(field(record, "instruction", str))
    response = field(record, "response", str)
    output = response.find(_OUTPUT)
    grow(chain, response if output < 0 else response[:output], kind="thought")
    if output >= 0:
        chain.node(response[output:], kind="output")
    return chain.trace(f"marco_o1/{index}", source="marco_o1", meta={}, status="unknown")


def read(path: Path) -> Iterator[tuple[int | str, list[Event]]]:
    """One trace a response."""
    return one_each(path, records(path), _events)


IMPORTER = Importer(
    name="marco_o1",
    description="Marco-o1 responses, cut at marks of reflection",
    recognises=recognises,
    read=read,
    lacks=(
        "a tree: the text is linear, so nothing is asked of the accelerator",
        "what a reflection goes back to",
        "whether the answer is right",
        "token counts",
    ),
)
