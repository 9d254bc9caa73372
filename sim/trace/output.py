"""Where an output goes: a regular file, existing or new, that is to appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["output_target", "remove_temporaries", "temporary_name", "whole_file"]

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


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name under which to write what becomes `path` when the block ends, and is removed if it fails.

    Raises OSError naming `path`.
    """
    target = output_target(path)
    temporary = temporary_name(target)
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        # The user knows the file by its own name.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def remove_temporaries() -> None:
    """Remove what is left under any `temporary_name`: a signal may come before its writer can clean up."""
    while _given:
        with contextlib.suppress(OSError):
            _given.pop().unlink()
