"""The design on `ulx3s_85f`: its clock, and its area whole and by block."""

from __future__ import annotations

from collections.abc import Callable

from hdl.config import named_config

from ...fpga.flow import implement
from ..measures import Measure, Target

__all__ = ["board_measures"]

_BOARD = "ulx3s_85f"
#: What issue 6 of the project asks for.
_FMAX = Target(at_least=50)
#: Of nextpnr's placement: `clew fpga` has the same one.
_SEED = 1


def board_measures(
    *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
) -> list[Measure]:
    """The clock with its target, and the area; `where` has the board, the memory, and the block or `all`."""
    progress("board", 0, 1)
    found = implement(_BOARD, None, seed=_SEED, announce=announce)
    progress("board", 1, 1)
    memory = named_config(found.configuration).memory.timing.name
    where: dict[str, str | int] = {"board": _BOARD, "memory": memory}
    measures = [
        Measure(
            name="fmax_mhz",
            where={**where, "block": "all"},
            value=found.placement.fmax_mhz,
            unit="MHz",
            target=_FMAX,
        )
    ]
    for block, area in {"all": found.total, **found.area}.items():
        here = {**where, "block": block}
        measures += [
            Measure(name="luts", where=here, value=area.luts, unit="LUT4"),
            Measure(name="ffs", where=here, value=area.flip_flops, unit="flip-flops"),
            Measure(name="block_rams", where=here, value=area.block_rams, unit="DP16KD"),
        ]
    return measures
