"""A file of bytes that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sim.trace.output import output_target, temporary_name

__all__ = ["write_bytes"]


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all. Raises OSError naming `path`."""
    target = output_target(path)
    temporary = temporary_name(target)
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    except OSError as error:
        # The user knows the file by its own name.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
