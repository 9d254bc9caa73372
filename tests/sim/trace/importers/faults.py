"""What an import says of a file that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.trace.errors import TraceError
from sim.trace.importers import import_file

__all__ = ["fault"]


def fault(path: Path) -> str:
    """The one line of the error, without the file's name."""
    with pytest.raises(TraceError) as caught:
        list(import_file(path))
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text
    return text.removeprefix(f"{path}: ")
