"""The kept results of a sweep: one file for each task, by content, so that a stopped sweep goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim.verilator import cache_folder

from ..report.document import write_document

__all__ = ["Store"]


class Store:
    """Comparisons as documents by key, in the folder `sweep` of the builds' cache, or another."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "sweep"

    def get(self, key: str) -> dict[str, Any] | None:
        """The document kept under a key; None if there is none, or what is there is no document."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, document: dict[str, Any]) -> None:
        """Keep a document: it appears whole or not at all. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_document(self._path(key), document)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
