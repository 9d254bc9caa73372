"""What is wrong with a trace, said in one line: where, which field, what was expected, what was found."""

from __future__ import annotations

__all__ = ["FieldError", "TraceError", "printable", "shorten"]

#: Longest value that a message shows.
_SHOWN_CHARACTERS = 60


def printable(text: str) -> str:
    """`text` on one line that steers no terminal: line ends are spaces, the unprintable is escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in " ".join(text.splitlines())
    )


def shorten(value: object) -> str:
    """`value` as it appears in a message: its repr on one line, cut to 60 characters; NaN is NaN."""
    if isinstance(value, float) and value != value:
        return "NaN"
    text = repr(value).replace("\n", " ")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


class FieldError(ValueError):
    """A field that does not hold what it must; `TraceError` adds where it is."""

    def __init__(self, field: str, expected: str, shown: str) -> None:
        super().__init__(f"{field}: expected {expected}, found {shown}")
        self.field = field
        self.expected = expected
        self.shown = shown


class TraceError(ValueError):
    """A file that is no valid trace; its text is one line.

    `location` is a line number (int), the name of a record (str) or None for the file as a whole.
    """

    def __init__(
        self, file: object, location: int | str | None, field: str, expected: str, shown: str
    ) -> None:
        self.file = str(file)
        self.location = location
        self.field = field
        self.expected = expected
        self.shown = shown
        super().__init__(str(self))

    @classmethod
    def at(cls, file: object, location: int | str | None, error: FieldError) -> TraceError:
        """The error of a field with its place added."""
        return cls(file, location, error.field, error.expected, error.shown)

    def __str__(self) -> str:
        where = f"line {self.location}" if isinstance(self.location, int) else self.location
        parts = [self.file, *([where] if where else []), self.field]
        text = ": ".join(parts) + f": expected {self.expected}, found {self.shown}"
        return printable(text)
