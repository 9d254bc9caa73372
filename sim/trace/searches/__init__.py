"""Real searches that the project runs itself, recorded while they run."""

from __future__ import annotations

from .demonstration import demonstration_traces

__all__ = ["demonstration_traces"]
