"""Files that go with the points of a sweep: a worker on another machine has none of them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.trace.errors import TraceError

from ..compare import TraceFile, read_files

__all__ = ["CarriedFile", "unpacked_traces"]


@dataclass(frozen=True, kw_only=True)
class CarriedFile:
    """The bytes of a file, and how the user calls it."""

    name: str
    content: bytes

    @classmethod
    def read(cls, path: Path) -> CarriedFile:
        """Reads a regular file that is a trace or a preset. Raises OSError."""
        return cls(name=str(path), content=path.read_bytes())

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    def unpack(self, folder: Path) -> Path:
        """Writes the file into a folder under the last part of its name."""
        path = folder / Path(self.name).name
        path.write_bytes(self.content)
        return path


def unpacked_traces(files: Sequence[CarriedFile], folder: Path) -> list[TraceFile]:
    """The traces of the files, unpacked into `folder`; they carry the names that the user knows.

    Raises TraceError naming the file.
    """
    read: list[TraceFile] = []
    for number, file in enumerate(files):
        place = folder / str(number)
        place.mkdir()
        path = file.unpack(place)
        try:
            (found,) = read_files([path])
        except TraceError as error:
            error.file = file.name
            raise
        traces = [dataclasses.replace(trace, file=file.name) for trace in found.traces]
        read.append(dataclasses.replace(found, file=file.name, traces=traces))
    return read
