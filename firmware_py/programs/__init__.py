"""The walk programs, one file each: the program, its calling convention, and what its answer must be.

Program memory holds 64 instructions, not all programs at once: each `*_image` is a set that is loaded
together. Registers named in a calling convention are those of the launch; all others start as 0. Every
program assumes records as `firmware_py.records` declares them.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from ..assembler import Image, link
from ..errors import InputError
from . import (
    backup,
    best_sibling,
    blocks,
    climb,
    climb_compressed,
    common_ancestor,
    decide,
    descend,
    pool_give,
    pool_take,
    reclaim,
    select_k,
    visited,
)

__all__ = ["CLIMBS", "decision_image", "default_image", "pool_image", "replay_image"]

#: The programs that can find where a depth-first search resumes, by name.
CLIMBS: dict[str, ModuleType] = {"climb": climb, "climb_compressed": climb_compressed}


@cache
def default_image() -> Image:
    """The walk programs over trees and lists; entries are named like their files, and `select_k_live`."""
    return _linked(climb, best_sibling, select_k, common_ancestor, visited, descend, backup)


@cache
def replay_image(climbing: str) -> Image:
    """What the replay of a trace asks for, with the program `climbing` of `CLIMBS`.

    Raises InputError that lists the known ones.
    """
    if climbing not in CLIMBS:
        raise InputError(f"unknown program {climbing!r}: expected one of {', '.join(CLIMBS)}")
    return _linked(CLIMBS[climbing], select_k, common_ancestor, backup)


@cache
def decision_image() -> Image:
    """`decide`, and the programs that do the same in parts."""
    return _linked(decide, climb, climb_compressed, best_sibling, blocks)


@cache
def pool_image() -> Image:
    """Leases, returns and reclaim of state blocks."""
    return _linked(pool_take, pool_give, reclaim, blocks)


def _linked(*programs: ModuleType) -> Image:
    return link([program.build() for program in programs])
