"""The ledger: what each layer took, from the logs of a run.

Every array function here is vectorised: a run has millions of hops.
"""

from .accesses import RowShares, access_addresses, row_shares
from .loops import Log, Loops, context_numbers, loops
from .place_ledger import Ledger, make_ledger, make_port_ledger
from .service import Service, port_service, service
from .statistics import Statistics, histogram_statistics, statistics, unmeasured
from .time_parts import PARTS, Crossings, Part, TimeParts, loop_time, walk_time

__all__ = [
    "PARTS",
    "Crossings",
    "Ledger",
    "Log",
    "Loops",
    "Part",
    "RowShares",
    "Service",
    "Statistics",
    "TimeParts",
    "access_addresses",
    "context_numbers",
    "histogram_statistics",
    "loop_time",
    "loops",
    "make_ledger",
    "make_port_ledger",
    "port_service",
    "row_shares",
    "service",
    "statistics",
    "unmeasured",
    "walk_time",
]
