"""Where an output goes: a regular file, existing or new, that is to appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

__all__ = ["output_target", "remove_temporaries", "temporary_name"]

_given: set[Path] = set()


def output_target(path: str | os.PathLike[str]) -> Path:
    """The file that `path` names, links followed: a file renamed onto it must replace no link and no device.

    Raises OSError naming `path` if that is a folder, a device or a pipe, or lies in no folder.
    """
    shown = str(path)
    if not shown or os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "expected a file to write, found a folder", shown or ".")
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "expected a regular file or a new one, found a device or a pipe", shown)
    if not os.path.isdir(target.parent):
        raise FileNotFoundError(errno.ENOENT, "expected its folder to exist", shown)
    return target


def temporary_name(target: Path) -> Path:
    """The name beside `target` under which this process writes it; `remove_temporaries` knows it."""
    name = target.with_name(f".{target.name}.{os.getpid()}.part")
    _given.add(name)
    return name


def remove_temporaries() -> None:
    """Remove what is left under a `temporary_name`: a signal may come before the one who writes can clean up."""
    while _given:
        with contextlib.suppress(OSError):
            _given.pop().unlink()
