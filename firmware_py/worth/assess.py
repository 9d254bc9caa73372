"""The assessment: how much of an inference step walks and restores are, and whether near memory matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..compare import Comparison
from ..energy import PlaceEnergy
from ..ledger import Statistics, statistics
from .segments import Segments
from .tables import Model, RestorePath

__all__ = ["MATTERS", "Assessment", "Inputs", "Restore", "Share", "assess", "percent"]

#: Near memory matters where it saves at least this share of the time: less is lost in the noise of a server.
MATTERS = 0.01


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is assumed and not measured."""

    model: Model
    ms_per_token: float
    prefill_tokens_per_second: float | None
    """The rate at which lost tokens are computed anew; None: as slowly as they were generated."""
    tokens_per_node: int | None
    watts: float | None
    """Power of the machine while it generates; None: not said, so no tokens a joule."""

    @property
    def recompute_seconds_per_token(self) -> float:
        """Time to compute one lost token anew."""
        rate = self.prefill_tokens_per_second
        return self.ms_per_token * 1e-3 if rate is None else 1 / rate


@dataclass(frozen=True, kw_only=True)
class Share:
    """The walks of one place against the generation that goes with them."""

    seconds: float
    """All walks."""
    share: float
    """Of walks and generation together, 0 to 1."""
    joules: float | None
    """All walks, typical; None where no energy of the path is published."""
    tokens_per_joule: float | None
    """Of generation and walks; None without a power, or where no energy of the path is published."""


@dataclass(frozen=True, kw_only=True)
class Restore:
    """What restoring the KV of one case costs over one path."""

    path: RestorePath
    case: str
    """kept or evicted, as `segments` defines them."""
    microseconds: Statistics
    """Of each backtrack's or jump's transfer."""
    share: float
    """Of restores and generation together, 0 to 1."""
    break_even_tokens: float | None
    """From this length on a reload is faster than to recompute; None: at no length."""
    reload_wins: int
    """Segments that are reloaded faster than recomputed."""
    saturating_searches: float | None
    """Concurrent searches whose restores fill the path; None: they need nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Everything that `clew worth` says."""

    inputs: Inputs
    comparison: Comparison
    segments: Segments
    generation_seconds: float
    near: Share
    far: Share
    restores: Sequence[Restore]

    @property
    def saved_share(self) -> float:
        """The share of the far place's time that near memory saves: its walks' time less, over all of it."""
        return (self.far.seconds - self.near.seconds) / (self.generation_seconds + self.far.seconds)

    @property
    def matters(self) -> bool:
        """It saves `MATTERS` at least."""
        return self.saved_share >= MATTERS

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        name, rate = self.inputs.model.name, self.inputs.ms_per_token
        walks = f"the far walks are {percent(self.far.share)} of the time at {rate:g} ms a token of {name}"
        if self.saved_share < 0:
            return f"No: {walks}, and near memory makes them longer."
        if not self.matters:
            return (
                f"No: {walks}, and near memory saves {percent(self.saved_share)}, "
                f"less than the {percent(MATTERS)} that would be noticed."
            )
        return f"Yes: {walks}, and near memory saves {percent(self.saved_share)}."


def percent(share: float) -> str:
    """A share as a percentage with three significant digits; in parts per million where it is tiny."""
    return f"{100 * share:.3g} %" if abs(share) >= 1e-5 or not share else f"{1e6 * share:.3g} ppm"


def assess(
    comparison: Comparison, segments: Segments, inputs: Inputs, paths: Sequence[RestorePath]
) -> Assessment:
    """The assessment of a comparison and the segments of its traces, each replayed once."""
    generation = segments.generated * inputs.ms_per_token * 1e-3
    return Assessment(
        inputs=inputs,
        comparison=comparison,
        segments=segments,
        generation_seconds=generation,
        near=_share(comparison, "near", segments, generation, inputs),
        far=_share(comparison, "far", segments, generation, inputs),
        restores=[
            _restore(path, case, tokens, segments, generation, inputs)
            for path in paths
            for case, tokens in (("kept", segments.kept), ("evicted", segments.evicted))
        ],
    )


def _share(
    comparison: Comparison, place: str, segments: Segments, generation: float, inputs: Inputs
) -> Share:
    figures = comparison.near if place == "near" else comparison.far
    energy: PlaceEnergy | None = comparison.energy["near" if place == "near" else "far"]
    seconds = float(figures.run.walk_cycles.sum()) * comparison.clock_ns * 1e-9
    total = seconds + generation
    walks = None if energy is None else energy.walk.typical * figures.walk.count * 1e-12
    joules = None if inputs.watts is None or walks is None else inputs.watts * total + walks
    return Share(
        seconds=seconds,
        share=seconds / total if total else 0.0,
        joules=walks,
        tokens_per_joule=segments.generated / joules if joules else None,
    )


def _restore(
    path: RestorePath,
    case: str,
    tokens: NDArray[np.int64],
    segments: Segments,
    generation: float,
    inputs: Inputs,
) -> Restore:
    size = inputs.model.token_bytes
    reload = np.array([path.seconds(int(count) * size) for count in tokens], dtype=np.float64)
    recompute = tokens * inputs.recompute_seconds_per_token
    saved_per_token = inputs.recompute_seconds_per_token - size / (path.gb_per_s * 1e9)
    moved = float(tokens.sum()) * size
    total = generation + float(reload.sum())
    # A search is busy for its generation and its restores; a path is full when all its bytes take as long.
    busy = moved / (path.gb_per_s * 1e9)
    return Restore(
        path=path,
        case=case,
        microseconds=statistics(reload * 1e6),
        share=float(reload.sum()) / total if total else 0.0,
        break_even_tokens=path.latency_ns * 1e-9 / saved_per_token if saved_per_token > 0 else None,
        reload_wins=int(np.count_nonzero(reload < recompute)),
        saturating_searches=total / busy if busy else None,
    )
