"""A board as the machine of a comparison: a real design behind a port, without a simulation's logs.

Walks, reads and verdicts come from completion records, loops from the design's histograms where it has them,
and what the memory did from its counters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hdl.config import CONFIGS, DesignConfig
from hdl.layouts import RefreshMode

from .assembler import Image
from .batches import Batch
from .compare import ReplayComparison, TraceFile
from .driver import Accelerator, NotAnAccelerator
from .errors import InputError
from .ledger import Statistics, histogram_statistics, statistics, unmeasured
from .machine import OpenMeasuring
from .place import Place, ReplayFigures
from .plan import Plan
from .replay import replay
from .settings import ReplaySettings
from .transport.base import PortError, Transport, TransportError
from .transport.checked import CheckedTransport

__all__ = [
    "Board",
    "board_machine",
    "compare_on_board",
    "found_config",
    "not_measured",
    "open_accelerator",
]

#: The figures of a comparison that no board gives, and why.
_NOT_MEASURED: Mapping[str, str] = {
    "bound_ns, ratio_to_bound": "which row a read found follows from a log of commands",
    "row": "the design's counters are of all requesters, not of walks alone",
    "walks_per_second": "the time in which walks were in progress follows from a log of hops",
    "stores": "stores are in the log of hops only",
    "layers, time_parts, banks, link_bytes, energy": "all of them follow from logs",
}

#: Cycles for which a batch is waited for that an earlier program has left.
_LEFT_OVER_CYCLES = 10_000_000
#: Counters that are figures of a replay, by their names in `Accelerator.counters`.
_COUNTED = ("reads", "writes", "row_hits", "row_closed", "row_conflicts", "refreshes")


def not_measured(config: DesignConfig) -> dict[str, str]:
    """The figures of a comparison that a board with that design does not give, and why."""
    missing = dict(_NOT_MEASURED)
    if not config.histogram.built:
        missing["loop_cycles, loop_ns"] = "the design was built without histograms"
    if not config.checker:
        missing["violations"] = "the design was built without the RTL checker"
    return missing


def open_accelerator(transport: Transport, *, where: str) -> Accelerator:
    """The accelerator at `where`, behind a transport, every access checked.

    Raises NotAnAccelerator for anything else, also for a bus that refuses to be read, and PortError for a
    line that fails or a design that stays busy.
    """
    try:
        accelerator = Accelerator(CheckedTransport(transport))
    except NotAnAccelerator as error:
        raise NotAnAccelerator(f"{where}: {error}") from None
    except PortError:
        raise
    except TransportError as error:
        raise NotAnAccelerator(f"{where}: {error}: expected the registers of a Clew") from None
    # A program that was killed may have left a batch under way, which keeps the windows shut.
    if accelerator.read_register("STATUS") & 1 and not transport.wait_interrupt(_LEFT_OVER_CYCLES):
        raise PortError(f"{where}: a batch that is not ours has not ended: expected an idle design")
    return accelerator


def found_config(accelerator: Accelerator, name: str | None, *, where: str) -> DesignConfig:
    """The configuration of the design at `where`: the one called `name`, or by its hash a named one.

    Raises InputError when the design's CONFIG_HASH is another, or is that of no named one.
    """
    found = accelerator.config_hash
    if name is None:
        for config in CONFIGS.values():
            if config.hash == found:
                return config
        raise InputError(
            f"{where}: register CONFIG_HASH is {found:#010x}: expected that of one of {', '.join(CONFIGS)}"
        )
    config = CONFIGS[name]
    if config.hash != found:
        raise InputError(
            f"{where}: register CONFIG_HASH is {found:#010x}: expected {config.hash:#010x}, that of {name}"
        )
    return config


@dataclass(frozen=True, kw_only=True)
class Board:
    """A design on a board, or a simulated one behind its port, and its configuration."""

    accelerator: Accelerator
    config: DesignConfig

    def measure(
        self,
        plan: Plan,
        place: Place,
        *,
        name: str,
        program: Image,
        refresh: RefreshMode,
        progress: Callable[[str, int, int], None],
    ) -> ReplayFigures:
        """The figures of a plan in one place, called `name` in messages. Raises InternalError."""
        driver = self.accelerator
        place.set_up(driver, refresh)
        counters: dict[str, int] = {}
        loop: Statistics | None = None

        def batch_done(index: int, batch: Batch) -> Mapping[int, int]:
            nonlocal counters, loop
            progress(name, index + 1, len(plan.batches))
            if index + 1 == len(plan.batches):
                # What comes after the last batch is the negative control.
                counted = driver.counters()
                counters = {counter: counted[counter] for counter in _COUNTED}
                loop = self._loops(place)
            return {}

        run = replay(
            plan,
            program=program,
            place=place.walker,
            driver=driver,
            fetch=driver.fetch,
            batch_done=batch_done,
        )
        run.walk_cycles += place.crossing
        reads = [answer.hops for answer in run.answers]
        violations = None
        if self.config.checker:
            violations = Counter({"seen by the design's checker": driver.read_register("COUNT_VIOLATIONS")})
        lone = self.config.memory.channels == 1
        return ReplayFigures(
            walk=statistics(run.walk_cycles),
            reads_per_walk=statistics(reads),
            loop=loop or unmeasured(sum(reads)),
            bound_mean=None,
            ratio_to_bound=None,
            rows=None,
            channel_reads=[sum(reads)] if lone else None,
            violations=None if violations is None else +violations,
            channel_violations=[violations.total()] if lone and violations is not None else None,
            errors=driver.memory_errors() if self.config.controller.ecc else None,
            replay_cycles=int(run.batch_cycles.sum()),
            walks_per_second=None,
            cache=None,
            helped=Counter(),
            stores=None,
            counters=counters,
            run=run,
        )

    def _loops(self, place: Place) -> Statistics | None:
        """The loops of a place by the design's histograms; None when it has none."""
        if not self.config.histogram.built:
            return None
        channels = range(1 if place.walker else self.config.memory.channels)
        counts = [self.accelerator.loop_histogram(place.walker, channel) for channel in channels]
        return histogram_statistics(np.sum(counts, axis=0))


def board_machine(board: Board) -> OpenMeasuring[ReplayFigures]:
    """Opens the board, whose configuration is the one that is asked for."""

    @contextmanager
    def open_machine(config: DesignConfig, announce: Callable[[str], None]) -> Iterator[Board]:
        if config != board.config:
            raise InputError("a board has no other design: expected a far place without a cache")
        yield board

    return open_machine


def compare_on_board(
    traces: Sequence[TraceFile],
    transport: Transport,
    *,
    where: str,
    config: str | None,
    settings: ReplaySettings,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> ReplayComparison[ReplayFigures]:
    """The comparison of `clew drive`, on the design at `where`, behind a transport.

    `config` names the configuration that it must have; None: any named one. Raises what `open_accelerator`,
    `found_config` and `ReplaySettings.compare` raise.
    """
    accelerator = open_accelerator(transport, where=where)
    design = found_config(accelerator, config, where=where)
    return settings.compare(
        traces,
        config=design,
        open_machine=board_machine(Board(accelerator=accelerator, config=design)),
        announce=announce,
        progress=progress,
    )
