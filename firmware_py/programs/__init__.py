"""The walk programs, one file each: the program, its calling convention, and what its answer must be.

`default_image` holds them all. Registers named in a calling convention are those of the launch; all
others start as 0. Every program assumes records as `firmware_py.records` declares them.
"""

from __future__ import annotations

from functools import cache

from ..assembler import Image, link
from . import backup, best_sibling, climb, common_ancestor, descend, select_k, visited

__all__ = ["default_image"]


@cache
def default_image() -> Image:
    """All walk programs in one program memory; entries are named like their files, and `select_k_live`."""
    return link(
        [
            program.build()
            for program in (climb, best_sibling, select_k, common_ancestor, visited, descend, backup)
        ]
    )
