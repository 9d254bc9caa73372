"""The design that comparisons simulate, from what a command line says of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hdl.config import DesignConfig, named_config
from hdl.layouts import RefreshMode
from hdl.memory.timing import preset

from .errors import InputError
from .text_file import require_text_file

__all__ = [
    "CONTEXTS_MAX",
    "design_for",
    "refresh_named",
]

#: Contexts of walkers that serve more searches at a time than the usual ones have.
CONTEXTS_MAX = 64


def design_for(
    memory: str,
    *,
    channels: int = 1,
    ecc: bool = False,
    address_map: str | None = None,
    concurrent: int = 1,
    contexts: int | None = None,
    stages: int = 1,
    clock_ratio: int = 1,
) -> DesignConfig:
    """The design that comparisons simulate: a stack of `channels` of the memory preset `memory`.

    Its walkers have `contexts`, 1 to 64; by default 16, or 64 for more than 16 searches at a time.

    The preset is a name, or a file FILE.toml. `address_map` lists the entries of another map than the usual
    one, with commas between them (`hdl/memory/address_bits.py`). `stages` are the walkers' execute stages.
    Raises InputError, or OSError for a file that cannot be read.
    """
    if memory.endswith(".toml"):
        require_text_file(Path(memory))
    try:
        preset(memory)
    except ValueError as error:
        raise InputError(str(error)) from None
    base = named_config("simulation")
    if contexts is None:
        contexts = base.walker.contexts if concurrent <= base.walker.contexts else CONTEXTS_MAX
    try:
        entries = base.memory.address_map if address_map is None else tuple(address_map.split(","))
        return dataclasses.replace(
            base,
            walker=dataclasses.replace(base.walker, contexts=contexts, execute_stages=stages),
            controller=dataclasses.replace(base.controller, ecc=ecc),
            memory=dataclasses.replace(base.memory, preset=memory, channels=channels, address_map=entries),
            clock_ratio=clock_ratio,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def refresh_named(name: str) -> RefreshMode:
    """The refresh called `name`. Raises InputError that lists the known names."""
    modes = {mode.name.lower(): mode for mode in RefreshMode}
    if name not in modes:
        raise InputError(f"unknown refresh {name!r}: expected one of {', '.join(modes)}")
    return modes[name]
