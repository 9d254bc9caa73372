"""Where a text reflects on itself: the words by which models begin to doubt what they just wrote."""

from __future__ import annotations

import re

from .chain import Chain

__all__ = ["MARKS", "grow", "segments"]

#: The words, in lower case. Counted where a sentence or a line begins, alone or behind one of `_BEFORE`:
#: elsewhere they are ordinary words.
MARKS = (
    "wait",
    "hmm",
    "hold on",
    "alternatively",
    "actually",
    "let me check",
    "let me double-check",
    "let me double check",
    "let me verify",
    "let me reconsider",
    "let me rethink",
    "let me think again",
    "let me try again",
)
_BEFORE = ("but", "oh", "no", "ok", "okay", "so", "and")

_MARK = re.compile(
    r"(?:\A|(?<=\n)|(?<=[.!?]\s))[^\S\n]*"
    rf"((?:(?:{'|'.join(_BEFORE)})[, ]+)?({'|'.join(MARKS)})\b)",
    re.IGNORECASE,
)


def segments(text: str) -> list[tuple[str, str | None]]:
    """The text cut before every mark: each piece with the mark that it begins with, the first with none.

    Put together the pieces are the text; the first may be empty.
    """
    found = list(_MARK.finditer(text))
    cuts = [0, *(match.start(1) for match in found), len(text)]
    marks = [None, *(match[2].lower() for match in found)]
    return [(text[first:last], mark) for first, last, mark in zip(cuts[:-1], cuts[1:], marks, strict=True)]


def grow(chain: Chain, text: str, *, kind: str) -> None:
    """A node that begins with the text before its first mark, and grows at every mark."""
    (first, _), *more = segments(text)
    chain.node(first, kind=kind)
    for piece, mark in more:
        chain.append(piece, mark)
