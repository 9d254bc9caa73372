"""The small designs that proofs are made of: the table of `tiny.toml` with any geometry."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import ClassVar

from hdl.config import ControllerConfig, DesignConfig, MemoryConfig
from hdl.memory.timing import Organisation, TimingPreset, Value, preset

__all__ = ["SmallMemory", "small_design"]

_FILE = str(Path(__file__).with_name("tiny.toml"))


@dataclass(frozen=True, kw_only=True)
class SmallController(ControllerConfig):
    """A controller whose age cap may be shorter than a design's."""

    shortest_age_cap: ClassVar[int] = 8

    def __post_init__(self) -> None:
        if self.age_cap < self.shortest_age_cap or self.age_cap & (self.age_cap - 1):
            raise ValueError(
                f"age_cap is {self.age_cap}: expected a power of two from {self.shortest_age_cap}"
            )
        lengthened = {f.name: getattr(self, f.name) for f in fields(self)} | {"age_cap": 64}
        ControllerConfig(**lengthened)


#: The smallest controller: three slots a bank, one of them for walks, two requests beside them, and caps that
#: are reached within a few cycles.
_SMALLEST = SmallController(
    bank_queue=3,
    overflow=2,
    write_buffer=4,
    drain_high=2,
    drain_low=1,
    drain_idle=2,
    drain_burst=4,
    row_hit_cap=1,
    age_cap=64,
    response_slots=8,
    refresh_postpone=1,
)


@dataclass(frozen=True, kw_only=True)
class SmallMemory(MemoryConfig):
    """The memory of `tiny.toml`, with an organisation that a preset file may not have (one bank), and with
    some parameters changed."""

    preset: str = _FILE
    shape: tuple[int, int, int] = (2, 2, 2)
    """Pseudo channels, bank groups of each, banks of each group."""
    cycles: dict[str, int] = field(default_factory=dict)
    """Parameters other than those of the file."""

    @property
    def timing(self) -> TimingPreset:
        base = preset(self.preset)
        pseudo_channels, bank_groups, banks_per_group = self.shape
        return dataclasses.replace(
            base,
            organisation=Organisation(
                pseudo_channels=pseudo_channels,
                bank_groups=bank_groups,
                banks_per_group=banks_per_group,
                rows=base.organisation.rows,
                columns=base.organisation.columns,
            ),
            values=base.values
            | {name: Value(cycles=cycles, source="formal") for name, cycles in self.cycles.items()},
        )


def small_design(memory: SmallMemory | None = None, /, **controller: object) -> DesignConfig:
    """The smallest design around `memory`; `controller` are fields of `ControllerConfig`."""
    return DesignConfig(
        memory=memory or SmallMemory(), controller=dataclasses.replace(_SMALLEST, **controller)
    )
