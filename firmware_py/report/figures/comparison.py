"""The pictures of a comparison, in the order of a report."""

from __future__ import annotations

from ...compare import Comparison
from .banks import bank_picture
from .latency import reads_picture, walk_latency_picture
from .picture import Picture
from .time_parts import time_picture

__all__ = ["comparison_pictures"]


def comparison_pictures(comparison: Comparison) -> list[Picture]:
    """Those that the comparison has something for."""
    pictures = [
        walk_latency_picture(comparison),
        reads_picture(comparison),
        time_picture(comparison),
        bank_picture(comparison),
    ]
    return [picture for picture in pictures if picture is not None]
