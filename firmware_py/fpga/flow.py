"""From a named configuration to a bitstream for a board."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hdl.boards import Board, named_board
from hdl.boards.top import BoardTop
from hdl.config import DesignConfig, named_config
from hdl.generate import verilog
from sim.fpga.netlist import BlockArea, Netlist, area_by_block, synthesized_netlist
from sim.fpga.placement import PartTooSmall, Placement, placed

from ..errors import InputError

#: Of `Clew`, with `boundary_registers`.
_BUFFERS = (
    "near_launch",
    "near_verdict",
    "far_launch",
    "walk_response",
    "host_request",
    "sequencer_request",
    "mover_request",
    "bulk_request",
    "bulk_response",
    "memory_walk_request",
    "memory_bulk_request",
)

#: Of the scratchpad.
_REQUESTERS = ("host", "sequencer", "mover")

__all__ = [
    "Implementation",
    "blocks",
    "board_netlist",
    "implement",
    "require_folder",
    "require_synthesizable",
    "write_bitstream",
]

#: The name of the top module.
_TOP = "clew_board"


@dataclass(frozen=True, kw_only=True)
class Implementation:
    """A configuration placed and routed on a board."""

    board: Board
    configuration: str
    placement: Placement
    area: Mapping[str, BlockArea]
    """By block."""

    @property
    def total(self) -> BlockArea:
        """All blocks together."""
        return BlockArea(
            luts=sum(area.luts for area in self.area.values()),
            flip_flops=sum(area.flip_flops for area in self.area.values()),
            block_rams=sum(area.block_rams for area in self.area.values()),
        )


def blocks(config: DesignConfig, *, design: str = "design") -> dict[str, Sequence[str]]:
    """The instances of every block by its name, for a `SerialClew` that is the instance `design`."""
    clew = f"{design}.clew"
    channels = [f"{clew}.memory_side.channel_{number}" for number in range(config.memory.channels)]

    def in_channels(name: str) -> list[str]:
        return [f"{channel}.{name}" for channel in channels]

    found: dict[str, Sequence[str]] = {
        "near walker": in_channels("near_walker"),
        "far walker": [f"{clew}.far_walker", f"{clew}.far_launches"],
        "controller": in_channels("memory.controller"),
        "device": in_channels("memory.device"),
        "memory side, rest": [f"{clew}.memory_side"],
        "link": [
            f"{clew}.link",
            *(f"{clew}.{name}_buffer" for name in _BUFFERS if config.boundary_registers),
        ],
        "scratchpad": [
            f"{clew}.scratchpad",
            *(f"{clew}.{name}_registers" for name in _REQUESTERS if config.boundary_registers),
        ],
        "sequencer": [f"{clew}.sequencer"],
        "mover": [f"{clew}.mover", f"{clew}.bulk_merge"],
        "host port, counters": [f"{clew}.host_port", f"{clew}.counters"],
        "UART bridge": [f"{design}.{name}" for name in ("receiver", "transmitter", "bridge", "buffer")],
    }
    if config.histogram.built:
        found["histograms"] = [f"{clew}.histograms"]
    if config.cache.built:
        found["cache"] = [f"{clew}.cache"]
    return found


def require_synthesizable(name: str, config: DesignConfig) -> None:
    """Check that the configuration called `name` has its memory in block RAM. Raises InputError."""
    if config.memory.storage != "array":
        raise InputError(f"configuration {name}: storage is {config.memory.storage!r}: expected 'array'")


def board_netlist(
    board: Board, config: DesignConfig, *, announce: Callable[[str], None] | None = None
) -> Netlist:
    """The board's top module as ECP5 cells, made once for each text. Raises BuildError."""
    return synthesized_netlist(verilog(BoardTop(board, config), name=_TOP), top=_TOP, announce=announce)


def implement(
    board_name: str, configuration: str | None, *, seed: int, announce: Callable[[str], None] | None = None
) -> Implementation:
    """A configuration, by default the board's own, placed and routed; each step is done once.

    Raises InputError for an unknown board or configuration and for a part that is too small, and BuildError.
    """
    try:
        board = named_board(board_name)
        name = configuration or board.configuration
        config = named_config(name)
    except ValueError as error:
        raise InputError(str(error)) from None
    require_synthesizable(name, config)
    netlist = board_netlist(board, config, announce=announce)
    try:
        placement = placed(netlist, board, seed=seed, announce=announce)
    except PartTooSmall as error:
        raise InputError(str(error)) from None
    return Implementation(
        board=board, configuration=name, placement=placement, area=area_by_block(netlist, blocks(config))
    )


def require_folder(path: Path) -> None:
    """Check, before anything takes long, that `path` is a folder or can become one. Raises OSError."""
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "expected a folder", str(nearest))
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))


def write_bitstream(implementation: Implementation, out_dir: Path) -> Path:
    """Copies the bitstream to `clew.bit` in a folder, whole or not at all; gives its path."""
    out_dir.mkdir(parents=True, exist_ok=True)
    target = out_dir / "clew.bit"
    temporary = out_dir / ".clew.bit.partial"
    try:
        shutil.copyfile(implementation.placement.bitstream, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
