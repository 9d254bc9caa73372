"""Numbers as reports print them."""

from __future__ import annotations

__all__ = ["number", "times"]


def number(value: float | None) -> str:
    """A value with as many digits as it deserves; a dash for none."""
    if value is None:
        return "-"
    if value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if value < 100 else f"{value:,.1f}"


def times(value: float | None) -> str:
    """A ratio; a dash for none."""
    return "-" if value is None else f"{value:.2f} x"
