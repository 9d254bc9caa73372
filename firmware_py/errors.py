"""The error of the command line: something the user gave cannot be used."""

from __future__ import annotations

__all__ = ["InputError", "InternalError"]


class InputError(ValueError):
    """Bad input: one line that names file, line or record, field, and what was expected. Exit status 2."""


class InternalError(RuntimeError):
    """The run cannot be trusted: a check of the measurement itself failed. Exit status 1."""
