"""The effect of one variant over another: local, of the loop alone, beside end to end, of walk and replay.

A loop that is ten times as short is worth little where a walk is one read between two crossings of the link,
and a walk that is three times as short is worth little where a replay is writes. So no comparison of two
variants says the one without the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from .place import ReplayFigures

__all__ = ["Effect", "effect", "ratio"]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """How many times as long the base takes as the variant: above 1 it is faster. None without a sample."""

    variant: str
    over: str
    """The base."""
    loop: float | None
    """Local: mean loop."""
    walk: float | None
    """End to end for the search: mean walk."""
    replay: float | None
    """End to end for the machine: cycles of all batches, the host's writes included."""

    def as_dict(self) -> dict[str, str | float | None]:
        """Plain JSON types under the field names."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def effect(variant: str, figures: ReplayFigures, *, over: str, base: ReplayFigures) -> Effect:
    """The effect of `figures`, called `variant`, over those of `base`, called `over`; of the same traces."""
    return Effect(
        variant=variant,
        over=over,
        loop=ratio(base.loop.mean, figures.loop.mean),
        walk=ratio(base.walk.mean, figures.walk.mean),
        replay=ratio(base.replay_cycles, figures.replay_cycles),
    )


def ratio(over: float | None, under: float | None) -> float | None:
    """`over` / `under`; None where there is none."""
    return None if over is None or not under else over / under
