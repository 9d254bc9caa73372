"""Every mutant, and the short selection that CI runs."""

from __future__ import annotations

from .axi_mutants import AXI_MUTANTS
from .bridge_mutants import BRIDGE_MUTANTS
from .cache_mutants import CACHE_MUTANTS
from .channel_mutants import CHANNEL_MUTANTS
from .design_mutants import DESIGN_MUTANTS
from .ecc_mutants import ECC_MUTANTS
from .port_mutants import PORT_MUTANTS
from .refresh_mutants import REFRESH_MUTANTS
from .timing_mutants import TIMING_MUTANTS
from .walker_mutants import WALKER_MUTANTS

__all__ = ["MUTANTS", "SELECTION"]

#: All of them, in the order of the page.
MUTANTS = (
    *TIMING_MUTANTS,
    *CHANNEL_MUTANTS,
    *PORT_MUTANTS,
    *REFRESH_MUTANTS,
    *ECC_MUTANTS,
    *CACHE_MUTANTS,
    *DESIGN_MUTANTS,
    *WALKER_MUTANTS,
    *BRIDGE_MUTANTS,
    *AXI_MUTANTS,
)


def _rule(name: str) -> tuple[str, str]:
    """Both checkers name the rule that was broken."""
    return f"RTL checker: {name}", f"command checker: {name}"


#: Mutants that are caught soon, of every kind and by every kind of detector, and what they are caught by.
SELECTION: dict[str, tuple[str, ...]] = {
    "tRCDRD to RD": _rule("tRCDRD"),
    "tRP to ACT": _rule("tRP"),
    "tRAS to PRE": _rule("tRAS"),
    "tWR to PRE": _rule("tWR"),
    "tRTW to WR": _rule("tRTW"),
    "tWTRL to RD": _rule("tWTRL"),
    "tCCDL to RD": _rule("tCCDL"),
    "wrong row": ("placement: row of a read",),
    "response slot not reserved": ("scoreboard: a response changed before it was taken",),
    "row-hit cap off": ("wait bound: 16 row hits passed an older request",),
    "device one cycle late": ("latency: closed in 34 cycles, expected closed in 33",),
    "bulk starves": (
        "test_arbiter.py: test_bulk_is_served_after_exactly_the_stated_number_of_walks[walkers0]",
    ),
    "write permission ignored": ("test_walker.py: test_a_store_without_permission[1]",),
}
