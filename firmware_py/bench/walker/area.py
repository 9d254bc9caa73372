"""What a walker costs by its contexts, counted by Yosys: look-up tables, flip-flops and memory bits.

Contexts share one datapath, so a context costs little but its state, which lies in memories.
`area_per_context` is what each context beyond the first adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from hdl.generate import verilog
from hdl.layouts import Source
from hdl.walker.walker import Walker
from sim.synthesis import synthesized_area

from ..measures import Measure
from .machine import walker_design

__all__ = ["area_measures"]

_CONTEXTS = (1, 4, 16, 64)
_UNITS = {"luts": "LUT4", "flip_flops": "flip-flops", "memory_bits": "bits"}


def area_measures(
    *,
    files: Sequence[Path],
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """The area of walkers of 1 to 64 contexts, and of a context. The files play no part in it."""
    measures, first = list[Measure](), dict[str, int]()
    for done, contexts in enumerate(_CONTEXTS):
        progress("area", done, len(_CONTEXTS))
        announce(f"synthesizing a walker of {contexts} contexts")
        walker = Walker(walker_design(contexts=contexts), source=Source.NEAR_WALKER)
        area = synthesized_area(verilog(walker, name="walker"), top="walker")
        for resource, count in asdict(area).items():
            where: dict[str, str | int] = {"contexts": contexts, "resource": resource}
            unit = _UNITS[resource]
            measures.append(Measure(name="walker_area", where=where, value=count, unit=unit))
            if contexts == 1:
                first[resource] = count
            else:
                added = (count - first[resource]) / (contexts - 1)
                measures.append(Measure(name="area_per_context", where=where, value=added, unit=unit))
    progress("area", len(_CONTEXTS), len(_CONTEXTS))
    return measures
