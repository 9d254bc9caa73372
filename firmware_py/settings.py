"""The settings of a comparison as a user names them; names and defaults are those of `clew compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode

from .axi_port import AXI_PORT
from .compare import F, ReplayComparison, TraceFile, compare, require_help
from .design import design_for, refresh_named
from .errors import InputError
from .far_help import parse_help
from .image import layout_named
from .place import AT_THE_MEMORY, Place
from .placement import placement_named
from .plan import require_concurrent
from .programs import replay_image

if TYPE_CHECKING:
    from .machine import OpenMeasuring

__all__ = ["DesignSettings", "ReplaySettings"]


@dataclass(frozen=True, kw_only=True)
class DesignSettings:
    """What the simulated design is."""

    memory: str = "hbm2_2000"
    """Memory preset: a name, or a file FILE.toml."""
    channels: int = 1
    """Channels of the stack: 1, 2, 4, 8 or 16."""
    ecc: bool = False
    """Correct memory errors (SECDED); a read takes a cycle more."""
    address_map: str | None = None
    """Entries of another address map than the usual one, with commas."""
    contexts: int | None = None
    """Contexts of each walker, 1 to 64; None: 16, or 64 for more than 16 searches at a time."""
    stages: int = 1
    """Execute stages of every walker: 1 to 6."""
    clock_ratio: int = 1
    """Command clock over the clock of the logic at the memory: 1, 2 or 4."""

    def config(self, *, concurrent: int = 1) -> DesignConfig:
        """The design, for so many searches at a time. Raises InputError, or OSError for a preset file."""
        return design_for(
            self.memory,
            channels=self.channels,
            ecc=self.ecc,
            address_map=self.address_map,
            concurrent=concurrent,
            contexts=self.contexts,
            stages=self.stages,
            clock_ratio=self.clock_ratio,
        )


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """How traces are replayed near and far on a design."""

    far: str = "v100_hbm2"
    """Far path: a published latency of `data/off_chip_paths.csv`."""
    near: str = AT_THE_MEMORY
    """`memory`, `axi4`, or a host controller's port of `data/off_chip_paths.csv`."""
    far_help: str = ""
    """Help of the far place, with commas: `cache=NAME[:SIZE]`, `stack`, `stream`."""
    concurrent: int = 1
    """Searches replayed at a time, 1 to 10,000; beyond the contexts they queue."""
    layout: str = "creation"
    """Where nodes lie in memory: creation, siblings or path."""
    program: str = "climb"
    """What finds where a search resumes: climb or climb_compressed."""
    placement: str = "round_robin"
    """Which channel a tree lies in: round_robin or fewest_searches."""
    refresh: str = "all_bank"
    """Refresh of the memory: none, all_bank or per_bank."""

    def require_usable(self, config: DesignConfig) -> None:
        """Check every setting, and that they fit each other and the design. Raises InputError."""
        require_concurrent(self.concurrent)
        far_help = parse_help(self.far_help)
        replay_image(self.program)
        require_help(far_help, climbing=self.program)
        Place.far(self.far, far_help.built_into(config), far_help=far_help)
        Place.near(self.near, self.far, config)
        layout_named(self.layout, config.memory)
        placement_named(self.placement)
        if refresh_named(self.refresh) is RefreshMode.PER_BANK and self.near == AXI_PORT:
            raise InputError(
                f"near {AXI_PORT!r} has no per-bank refresh: expected --refresh all_bank or none"
            )

    def compare(
        self,
        files: Sequence[TraceFile],
        *,
        config: DesignConfig,
        bare_far: bool = False,
        open_machine: OpenMeasuring[F],
        announce: Callable[[str], None],
        progress: Callable[[str, int, int], None],
    ) -> ReplayComparison[F]:
        """The comparison of the traces of `files` on `config`; see `firmware_py.compare.compare`."""
        self.require_usable(config)
        return compare(
            files,
            config=config,
            far=self.far,
            near=self.near,
            far_help=parse_help(self.far_help),
            concurrent=self.concurrent,
            program=replay_image(self.program),
            climbing=self.program,
            layout=layout_named(self.layout, config.memory),
            placement=placement_named(self.placement),
            refresh=refresh_named(self.refresh),
            bare_far=bare_far,
            open_machine=open_machine,
            announce=announce,
            progress=progress,
        )
