"""A small text file that a user wrote, as a walk program or a memory preset: never something endless."""

from __future__ import annotations

import stat
from pathlib import Path

from .errors import InputError

__all__ = ["TEXT_BYTES_MAX", "read_text_file", "require_text_file"]

#: Largest file: what a person writes takes a few kilobytes.
TEXT_BYTES_MAX = 1 << 20


def require_text_file(path: Path) -> None:
    """Check that `path` is no pipe, no device and no larger than `TEXT_BYTES_MAX` bytes.

    Raises InputError, or OSError for a file that is not there. A folder is left to whoever reads it.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: expected a regular file, found a pipe or a device")
    if found.st_size > TEXT_BYTES_MAX:
        raise InputError(f"{path}: expected at most {TEXT_BYTES_MAX >> 10} KiB, found {found.st_size} bytes")


def read_text_file(path: Path) -> str:
    """The text of a small file in UTF-8. Raises InputError and OSError."""
    require_text_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file: expected UTF-8") from None
