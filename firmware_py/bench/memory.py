"""What a channel's memory system reaches: latencies, bandwidths, refresh, and the loop beside other traffic.

All but the last come from the memory subsystem alone (`sim.compiled_memory`), one run for each figure, from
a restart on. Addresses are drawn by a fixed seed, so a figure changes only with the design.

* read_latency: from acceptance at the memory port to the answer there, of a lone read that finds its row
  open, its bank closed, or another row open; same_bank is the distance of two dependent reads of different
  rows of one bank.
* random_read, random_mixed (every third request is a write), stream_read (pseudo channels and bank groups
  in turn, row by row), stream_linear (ascending addresses of the default map): GB/s with `outstanding`
  requests offered and not answered, from when the queues are full on.
* refresh_count: refreshes of each bank in a long run that ends in silence; its bound is cycles / tREFI.
* loop_p999: of a lone walk over random places, request to next request, with a pause of `gap` ns after each
  hundredth hop or without one; the pause is not part of a loop.
* near_loop_p99, near_loop_p999: the whole design, `near_loop`; p99 of the loops outside refresh, p99.9 of
  all. `traffic` is what the DataMover does: mover reads the memory, mover_writes writes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdl.config import DesignConfig
from hdl.layouts import RefreshMode, RowClass, RowOp, Source
from hdl.memory.address import Place
from sim.compiled import CompiledModel
from sim.compiled_memory import TAGS, CompiledMemory, Run, chain, requests
from sim.model.bounds import isolated_bound
from sim.model.command_checker import ROW_BUS, check
from sim.model.memory_bounds import Workload, bandwidth_bound, effective_mode, refreshes_due

from ..errors import InternalError
from ..ledger import statistics
from .measures import Measure
from .near_loop import LoadedLoop, loaded_loops
from .targets import target_of

__all__ = ["memory_measures", "outstanding_requests"]

_SEED = 2026
#: Cycles of a run, and those until its queues are full. Random places need more, because chance decides which
#: banks collide: 200,000 cycles differ by 0.2 % (standard deviation), a million by half of that.
_CYCLES = 200_000
_RANDOM_CYCLES = 1_000_000
_WARM_UP = 2_000
#: Rows that random writes stay in, so that the storage behind DPI stays small.
_WRITTEN_ROWS = 1_024
#: Lone reads of a row of each of so many banks, and dependent reads of rows of one bank.
_LONE_BANKS, _LONE_READS = 8, 8
_SAME_BANK_READS = 64
#: So many that 160 loops lie beyond p99.9.
_HOPS = 160_000
_HOPS_PER_GAP = 100
_GAPS_NS = (0, 400)
#: One request in so many cycles until refresh is counted in silence, and the share of the run until then.
_SPARSE, _BUSY = 4, 0.75
_ON = (RefreshMode.ALL_BANK, RefreshMode.PER_BANK)
_MODES = (RefreshMode.NONE, *_ON)


def outstanding_requests(config: DesignConfig) -> int:
    """Requests offered at once: more for clocks above 1 GHz, whose latencies are longer in cycles."""
    return 64 if config.memory.timing.clock_ns >= 1 else 96


def memory_measures(
    config: DesignConfig,
    *,
    announce: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> list[Measure]:
    """Every figure of the memory in `config`, measured now. Raises InternalError when a run is not clean.

    `announce` is told what is being built, `progress` (name, done, of) how far the measuring is.
    """
    steps: list[Callable[[], Iterator[Measure]]] = []
    with_ecc = dataclasses.replace(config, controller=dataclasses.replace(config.controller, ecc=True))
    with (
        CompiledMemory(config, announce=announce) as memory,
        CompiledMemory(with_ecc, announce=announce) as corrected,
        CompiledModel(config, announce=announce) as model,
    ):
        figures = _Figures(memory)
        steps.append(lambda: figures.read_latency({}))
        steps.append(lambda: _Figures(corrected).read_latency({"ecc": "on"}))
        for mode in _MODES:
            for workload in (
                figures.random_read,
                figures.random_mixed,
                figures.stream_read,
                figures.stream_linear,
            ):
                steps.append(lambda workload=workload, mode=mode: workload(mode))
        for mode in _ON:
            steps.append(lambda mode=mode: figures.refresh_count(mode))
        for mode in _ON:
            steps.append(lambda mode=mode: figures.loop(mode))
        for mode in _ON:
            steps.append(lambda mode=mode: _near_loops(model, mode))
        name, measures = config.memory.timing.name, list[Measure]()
        for done, step in enumerate(steps):
            progress(name, done, len(steps))
            measures += step()
        progress(name, len(steps), len(steps))
    return measures


def _bulk(addresses: ArrayLike, **fields: ArrayLike) -> NDArray[np.void]:
    """REQUEST_RECORD of bulk accesses by the host and the mover in turn: one alone has too few tags."""
    sources = np.resize([Source.HOST.value, Source.MOVER.value], np.shape(addresses))
    return requests(addresses, source=sources, **fields)


class _Figures:
    """The figures of one memory subsystem."""

    def __init__(self, memory: CompiledMemory) -> None:
        self.memory = memory
        self.config = memory.config
        self.timing = memory.config.memory.timing
        self.organisation = memory.config.memory.organisation
        self.outstanding = outstanding_requests(memory.config)

    # -- Runs --

    def _run(
        self,
        asked: NDArray[np.void],
        refresh: RefreshMode,
        cycles: int | None = None,
        *,
        outstanding: int = TAGS,
    ) -> Run:
        """A run that broke no rule and answered everything right."""
        run = self.memory.run(asked, refresh=refresh, cycles=cycles, outstanding=outstanding)
        windows = [] if run.refresh_window is None else [run.refresh_window]
        # After a restart every bank is closed and every timer has run out, as a check begins.
        broken = check(
            run.commands[run.commands["cycle"] >= run.begin],
            self.timing,
            self.organisation,
            refresh_windows=np.array(windows, dtype=np.int64).reshape(-1, 2),
        )
        if run.faults or run.violations or len(broken):
            first = [*run.faults, *run.violations, *broken.by_rule()][0]
            raise InternalError(f"the memory is at fault, so its figures mean nothing: {first}")
        return run

    def _measure(
        self, name: str, where: dict[str, str | int], value: float, unit: str, bound: float | None
    ) -> Measure:
        return Measure(
            name=name,
            where=where,
            value=value,
            unit=unit,
            bound=bound,
            target=target_of(self.timing, name, where, bound),
        )

    # -- Latency --

    def read_latency(self, where: dict[str, str | int]) -> Iterator[Measure]:
        """Lone reads by what they find, and dependent ones of one bank; `where` goes with each."""
        quiet = self.timing["tRC"] + self.timing["tRP"]
        places = [
            (bank % self.organisation.pseudo_channels, bank, row, column)
            for bank in range(min(_LONE_BANKS, self.organisation.banks))
            for row in (1, 2)
            for column in range(min(_LONE_READS, self.organisation.columns))
        ]
        run = self._run(chain(self._encode(np.array(places)), think=quiet), RefreshMode.NONE)
        found = run.accesses["row_class"][run.accesses["cycle"] >= run.begin]
        for row in (RowClass.HIT, RowClass.CLOSED, RowClass.CONFLICT):
            latencies = run.latencies[found == row.value]
            if not len(latencies):
                raise InternalError(f"no lone read found its row {row.name.lower()}: expected some to")
            yield self._measure(
                "read_latency",
                {"row": row.name.lower(), **where},
                int(latencies.max()),
                "cycles",
                isolated_bound(row, self.timing),
            )
        rows = np.arange(_SAME_BANK_READS) % self.organisation.rows
        places = np.stack([0 * rows, 0 * rows + 1, rows, 0 * rows], axis=1)
        run = self._run(chain(self._encode(places)), RefreshMode.NONE)
        distances = np.diff(run.answers["answered"].astype(np.int64))
        yield self._measure(
            "read_latency",
            {"row": "same_bank", **where},
            float(distances[1:].mean()),
            "cycles",
            self.timing.same_bank,
        )

    def _encode(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Addresses of rows (pseudo channel, bank, row, column)."""
        return np.asarray(self.memory.map.encode(Place(*places.T)), dtype=np.int64)

    def _anywhere(self, count: int) -> NDArray[np.int64]:
        """Random addresses, the same for every figure."""
        return np.random.default_rng(_SEED).integers(self.memory.map.atoms, size=count)

    # -- Bandwidth --

    def random_read(self, refresh: RefreshMode) -> Iterator[Measure]:
        """Reads of random atoms."""
        addresses = self._anywhere(_RANDOM_CYCLES)
        yield self._bandwidth("random_read", _bulk(addresses), refresh, Workload(new_rows=True))

    def random_mixed(self, refresh: RefreshMode) -> Iterator[Measure]:
        """Two reads, then a write, of random atoms."""
        shape, rng = self.organisation, np.random.default_rng(_SEED)
        places = np.stack(
            [
                rng.integers(limit, size=_RANDOM_CYCLES)
                for limit in (
                    shape.pseudo_channels,
                    shape.banks,
                    min(shape.rows, _WRITTEN_ROWS),
                    shape.columns,
                )
            ],
            axis=1,
        )
        data = rng.integers(1 << 32, size=(_RANDOM_CYCLES, 8), dtype=np.uint32)
        writes = np.arange(_RANDOM_CYCLES) % 3 == 2
        asked = _bulk(self._encode(places), write=writes, data=data)
        yield self._bandwidth("random_mixed", asked, refresh, Workload(new_rows=True, writes=1 / 3))

    def stream_read(self, refresh: RefreshMode) -> Iterator[Measure]:
        """Whole rows, pseudo channels and bank groups in turn."""
        shape, n = self.organisation, np.arange(_CYCLES)
        n, pseudo_channel = np.divmod(n, shape.pseudo_channels)
        n, group = np.divmod(n, shape.bank_groups)
        n, column = np.divmod(n, shape.columns)
        row, bank = np.divmod(n, shape.banks_per_group)
        places = np.stack(
            [pseudo_channel, group + shape.bank_groups * bank, row % shape.rows, column], axis=1
        )
        yield self._bandwidth("stream_read", _bulk(self._encode(places)), refresh, Workload(new_rows=False))

    def stream_linear(self, refresh: RefreshMode) -> Iterator[Measure]:
        """Ascending addresses."""
        addresses = np.arange(_CYCLES) % self.memory.map.atoms
        yield self._bandwidth("stream_linear", _bulk(addresses), refresh, Workload(new_rows=False))

    def _bandwidth(
        self, name: str, asked: NDArray[np.void], refresh: RefreshMode, workload: Workload
    ) -> Measure:
        # As many requests as cycles: the port takes no more.
        run = self._run(asked, refresh, len(asked), outstanding=self.outstanding)
        controller = self.config.controller
        bound = bandwidth_bound(
            workload,
            self.timing,
            refresh,
            postpone=controller.refresh_postpone,
            write_buffer=controller.write_buffer,
        )
        where: dict[str, str | int] = {"refresh": refresh.name.lower(), "outstanding": self.outstanding}
        return self._measure(name, where, run.bandwidth(self.timing, after=_WARM_UP), "GB/s", bound)

    # -- Refresh --

    def refresh_count(self, refresh: RefreshMode) -> Iterator[Measure]:
        """Refreshes of each bank in a run of walks that ends in silence, so that no refresh is owed."""
        busy = np.arange(0, int(_BUSY * _CYCLES), _SPARSE)
        addresses = self._anywhere(len(busy))
        run = self._run(requests(addresses, priority=1, delay=busy), refresh, _CYCLES)
        per_bank = effective_mode(self.timing, refresh) is RefreshMode.PER_BANK
        op = RowOp.REFRESH_BANK if per_bank else RowOp.REFRESH_ALL
        banks = self.organisation.pseudo_channels * (self.organisation.banks if per_bank else 1)
        log = run.commands[(run.commands["bus"] == ROW_BUS) & (run.commands["op"] == op.value)]
        inside = (log["cycle"] >= run.begin) & (log["cycle"] < run.begin + _CYCLES)
        yield self._measure(
            "refresh_count",
            {"refresh": refresh.name.lower()},
            np.count_nonzero(inside) / banks,
            "refreshes",
            refreshes_due(_CYCLES, self.timing, refresh),
        )

    def loop(self, refresh: RefreshMode) -> Iterator[Measure]:
        """The loop of one walk, without and with time between stretches of it."""
        for gap in _GAPS_NS:
            pause = round(gap / self.timing.clock_ns)
            run = self._run(chain(self._anywhere(_HOPS), gap=pause, every=_HOPS_PER_GAP), refresh)
            # The next request goes out in the cycle after the answer.
            p999 = statistics(run.waits + 1).p999
            assert p999 is not None
            yield self._measure(
                "loop_p999",
                {"refresh": refresh.name.lower(), "gap": gap},
                p999 * self.timing.clock_ns,
                "ns",
                None,
            )


def _near_loops(model: CompiledModel, refresh: RefreshMode) -> Iterator[Measure]:
    """One walk beside the DataMover, reading and writing, and as many walks as there are contexts."""
    timing = model.config.memory.timing
    contexts = model.config.walker.contexts
    for traffic, writes, walks in (
        ("mover", False, 1),
        ("mover_writes", True, 1),
        ("mover", False, contexts),
    ):
        found = loaded_loops(model, walks=walks, writes=writes, refresh=refresh, seed=_SEED)
        where: dict[str, str | int] = {"traffic": traffic, "refresh": refresh.name.lower()}
        if walks > 1:
            where["walks"] = walks
        for name, value, unit in _loaded(found, timing.clock_ns):
            yield Measure(
                name=name,
                where=where,
                value=value,
                unit=unit,
                target=target_of(timing, name, where, None),
            )


def _loaded(found: LoadedLoop, clock_ns: float) -> Iterator[tuple[str, float, str]]:
    outside = statistics(found.loops.cycles[~found.refreshed]).p99
    everything = statistics(found.loops.cycles).p999
    if outside is None or everything is None:
        raise InternalError("walks beside the DataMover: expected loops outside refresh")
    yield "near_loop_p99", outside * clock_ns, "ns"
    yield "near_loop_p999", everything * clock_ns, "ns"
    yield "mover_bandwidth", found.mover_bandwidth, "GB/s"
