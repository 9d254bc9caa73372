"""The points of a sweep: the cross product, without the combinations that cannot be."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputError
from ..settings import DesignSettings, ReplaySettings
from .definition import SweepDefinition, Value

__all__ = ["Point", "Points", "Skipped", "sweep_points"]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One comparison of a sweep."""

    traces: str
    """The set of traces."""
    design: DesignSettings
    replay: ReplaySettings

    @property
    def settings(self) -> dict[str, Value | None]:
        """Every setting by name, the set of traces first."""
        design, replay = dataclasses.asdict(self.design), dataclasses.asdict(self.replay)
        return {"traces": self.traces, **design, **replay}

    def label(self, names: tuple[str, ...]) -> str:
        """The settings called `names` as one line."""
        return ", ".join(f"{name} {_shown(self.settings[name])}" for name in names)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A combination that was left out, and why `clew compare` would refuse it."""

    point: Point
    reason: str


@dataclass(frozen=True, kw_only=True)
class Points:
    """The points of a sweep in the order of the cross product, the last axis fastest."""

    points: tuple[Point, ...]
    skipped: tuple[Skipped, ...]
    varying: tuple[str, ...]
    """The axes with more than one value."""


def sweep_points(definition: SweepDefinition) -> Points:
    """The points of a definition.

    Raises InputError for a combination that cannot be, unless the definition skips those, and when nothing
    is left.
    """
    axes: Mapping[str, tuple[Value, ...]] = {"traces": tuple(definition.traces), **definition.axes}
    varying = tuple(name for name, values in axes.items() if len(values) > 1)
    points: list[Point] = []
    skipped: list[Skipped] = []
    for values in itertools.product(*axes.values()):
        point = _point(dict(zip(axes, values, strict=True)))
        try:
            point.replay.require_usable(point.design.config(concurrent=point.replay.concurrent))
        except InputError as error:
            if definition.invalid == "error":
                where = point.label(varying) or "the only point"
                raise InputError(
                    f"{definition.file}: {where}: {error}; "
                    'invalid = "skip" at the top of the file leaves such points out'
                ) from None
            skipped.append(Skipped(point=point, reason=str(error)))
        else:
            points.append(point)
    if not points:
        raise InputError(
            f"{definition.file}: axes: every combination is invalid: expected a point; "
            f"the first: {skipped[0].reason}"
        )
    return Points(points=tuple(points), skipped=tuple(skipped), varying=varying)


def _point(values: Mapping[str, Value]) -> Point:
    def of(settings: type[DesignSettings] | type[ReplaySettings]) -> dict[str, Value]:
        names = {field.name for field in dataclasses.fields(settings)}
        return {name: value for name, value in values.items() if name in names}

    return Point(
        traces=str(values["traces"]),
        design=DesignSettings(**of(DesignSettings)),  # pyright: ignore[reportArgumentType]
        replay=ReplaySettings(**of(ReplaySettings)),  # pyright: ignore[reportArgumentType]
    )


def _shown(value: Value | None) -> str:
    return "none" if value == "" or value is None else str(value)
