"""What the design is on an FPGA and behind a serial line, one module a topic; `clew bench fpga` measures all.

* board: `fmax_mhz`, `luts`, `ffs`, `block_rams` of the configuration of `ulx3s_85f`, whole and by block;
* axi4: `luts`, `ffs`, `block_rams` of the memory end `axi4` on UltraScale+, by Yosys;
* netlist: `netlist_cycles_per_second` of the same as ECP5 cells, in a comparison that must be that of its
  RTL: `netlist_equal_walks` and `netlist_equal_cycles` say how much of it there was;
* uart: `uart_reads_per_second`, through a simulated board's pseudo-terminal.

A topic is a function that takes `announce` (told what is being built) and `progress` (name, done, of) and
returns its measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ...errors import InputError
from ..measures import Measure
from .axi4_area import axi4_area_measures
from .board import board_measures
from .netlist import netlist_measures
from .uart import uart_measures

__all__ = ["SCHEMA", "TOPICS", "Topic", "fpga_document", "fpga_measures", "require_topics"]

#: The `schema` of the document.
SCHEMA = "clew.bench.fpga/1"


class Topic(Protocol):
    """A function that measures one topic. Raises BuildError, and InternalError when a run is not clean."""

    def __call__(
        self, *, announce: Callable[[str], None], progress: Callable[[str, int, int], None]
    ) -> list[Measure]: ...


#: Every topic by name, in the order in which they are measured and shown.
TOPICS: Mapping[str, Topic] = {
    "board": board_measures,
    "axi4": axi4_area_measures,
    "netlist": netlist_measures,
    "uart": uart_measures,
}


def require_topics(names: Sequence[str]) -> Sequence[str]:
    """The topics asked for, all of them if none is. Raises InputError for one that is unknown."""
    for name in names:
        if name not in TOPICS:
            raise InputError(f"unknown topic {name!r}: expected one of {', '.join(TOPICS)}")
    return names or tuple(TOPICS)


def fpga_measures(
    *,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
    topics: Sequence[str] = (),
) -> list[Measure]:
    """The measures of the topics that `topics` names, of all by default. Raises what a topic raises."""
    return [
        measure for name in topics or TOPICS for measure in TOPICS[name](announce=announce, progress=progress)
    ]


def fpga_document(measures: Sequence[Measure]) -> dict[str, Any]:
    """The measures as plain JSON types."""
    return {"schema": SCHEMA, "measures": [measure.as_dict() for measure in measures]}
