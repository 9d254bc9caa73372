"""The whole design: compute side, link and memory side, as one component."""

from typing import Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Fragment,
    Module,
    ResetInserter,
    ResetSignal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .clock_gate import ClockGate
from .config import DesignConfig
from .counters import EventCounters
from .error_log import ErrorLog
from .fabric.axi import AxiLite
from .fabric.cache import Cache
from .fabric.link import Link
from .fabric.merge import BulkMerge
from .fabric.stream_buffer import joined
from .histogram import Histograms
from .hostport import HostPort
from .layouts import (
    HopMonitor,
    Launch,
    MemoryRequest,
    MemoryResponse,
    PortMonitor,
    RowClass,
    Source,
    Verdict,
    Walk,
)
from .memory.end import end_members
from .memory_side import MemorySide
from .mover import DataMover
from .scratchpad import Scratchpad, ScratchpadRegisters
from .sequencer import Sequencer
from .walker.launch_group import LaunchGroup
from .walker.walker import Walker

__all__ = ["Clew", "top_members"]


def _shown(config: DesignConfig) -> list[str]:
    """What the top shows of every channel's memory end."""
    names = ("m_axi", "row", "column", "access", "violation", "violation_rule")
    hidden = () if config.checker else ("violation", "violation_rule")
    return [name for name in names if name in end_members(config) and name not in hidden]


def top_members(config: DesignConfig) -> dict[str, Any]:
    """The members of `Clew`, by name."""
    channels = config.memory.channels

    def each(member: Out) -> Out:
        """A member of every channel."""
        return member if channels == 1 else member.array(channels)

    end = end_members(config)
    return {
        "s_axil": In(AxiLite()),
        "interrupt": Out(1),
        **({} if config.memory.controlled else {"m_axi_aclk": In(1), "m_axi_aresetn": In(1)}),
        **{name: each(end[name]) for name in _shown(config)},
        "port": each(Out(PortMonitor())),
        "near_hop": each(Out(HopMonitor())),
        "far_hop": Out(HopMonitor()),
        "batch_active": Out(1),
    }


class Clew(wiring.Component):
    """The accelerator with its memory: a stack of channels, each with a near walker, and one far walker.

    Members
    -------
    s_axil : In(AxiLite)
        The host, see `hdl/registers.py`.
    interrupt : Out(1)
        Level: a batch is done.
    row : Out(RowBus), column : Out(ColumnMonitor, or ColumnBus)
        The command buses of a channel: monitors, or with the memory end `bus` the buses to its device.
    access : Out(AccessMonitor)
        Monitor: the column access of this cycle.
    m_axi : Out(Axi4), m_axi_aclk : In(1), m_axi_aresetn : In(1)
        With the memory end `axi4`, instead of those: a channel's manager, and clock and reset (active low) of
        all of them. `m_axi_aresetn` and `rst` are asserted together, while no transaction is under way.
    port : Out(PortMonitor)
        Monitor: what passes a channel's memory port below the arbiter.
    near_hop, far_hop : Out(HopMonitor)
        Monitors: progress of the walkers.
    batch_active : Out(1)
        Monitor: the cycles that count.
    violation : Out(1), violation_rule : Out(8)
        The RTL checker's report of this cycle; only with `config.checker`.

    With more than one channel `row`, `column`, `access`, `m_axi`, `port`, `near_hop`, `violation` and
    `violation_rule` are arrays by channel.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        super().__init__(top_members(config))

    def _each(self, name: str) -> list[Any]:
        """The member `name` of every channel."""
        member = getattr(self, name)
        return [member] if self._config.memory.channels == 1 else list(member)

    def elaborate(self, platform: object) -> Module | Fragment:
        gate = ClockGate()
        m = self.on_one_clock(gate)
        return self._gated(m, gate) if self._config.sleeps else m

    def on_one_clock(self, gate: ClockGate) -> Module:
        """The design without its clock gate, but with all that `gate` is asked and tells: unless somebody
        drives its `slept`, no edge was ever left out.
        """
        m = Module()
        config = self._config

        # -- Compute side --
        m.submodules.host_port = host_port = HostPort(config)
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.scratchpad = scratchpad = Scratchpad(config)
        m.submodules.mover = mover = DataMover(config)
        m.submodules.far_walker = far_walker = Walker(config, source=Source.FAR_WALKER)
        m.submodules.far_launches = far_launches = LaunchGroup()
        bulk_merge = BulkMerge()
        # Whose turn it is must not depend on what was before a batch; the merge is idle during a restart.
        m.submodules.bulk_merge = ResetInserter(sequencer.restart)(bulk_merge)
        # -- The off-chip path --
        m.submodules.link = link = Link(config)
        # -- Memory side --
        m.submodules.memory_side = memory_side = MemorySide(config)

        connect(m, flipped(self.s_axil), host_port.axi)
        connect(m, host_port.batch, sequencer.control)
        connect(m, sequencer.copy, mover.command)

        def join(name: str, shape: Any, source: Any, sink: Any) -> Value:
            return joined(m, name, source, sink, shape=shape, registered=config.boundary_registers)

        passed = []
        for name, requester in (("host", host_port), ("sequencer", sequencer), ("mover", mover)):
            source, sink = requester.memory, getattr(bulk_merge, name)
            passed.append(join(f"{name}_request", MemoryRequest, source.request, sink.request))
            connect(m, sink.response, source.response)
            port = getattr(scratchpad, name)
            if config.boundary_registers:
                m.submodules[f"{name}_registers"] = registers = ScratchpadRegisters()
                connect(m, requester.scratchpad, registers.requester)
                connect(m, registers.scratchpad, port)
                passed.append(registers.empty)
            else:
                connect(m, requester.scratchpad, port)
        passed += [
            join("near_launch", Launch, sequencer.near_launch, link.launch),
            join("near_verdict", Verdict, link.verdict, sequencer.near_verdict),
            # Behind the group, whose first walk passes combinationally: it goes into all of its context.
            join("far_launch", Walk, far_launches.output, far_walker.launch),
        ]
        connect(m, sequencer.far_launch, far_launches.input)
        connect(m, far_walker.verdict, sequencer.far_verdict)

        walk_memory, bulk_memory = far_walker.memory, bulk_merge.memory
        quiescent = link.idle & memory_side.idle & far_launches.idle & far_walker.idle & mover.idle
        if config.histogram.built:
            m.submodules.histograms = histograms = Histograms(config)
            self._connect_histograms(m, histograms, host_port, sequencer, [*memory_side.hop, far_walker.hop])
            quiescent &= ~histograms.clearing
        if config.cache.built:
            m.submodules.cache = cache = Cache(config)
            connect(m, walk_memory, cache.walk)
            connect(m, bulk_memory, cache.bulk)
            self._control_cache(m, cache, host_port, sequencer)
            walk_memory, bulk_memory = cache.memory_walk, cache.memory_bulk
            quiescent &= cache.idle
        connect(m, walk_memory.request, link.walk_request)
        passed += [
            join("walk_response", MemoryResponse, link.walk_response, walk_memory.response),
            join("bulk_request", MemoryRequest, bulk_memory.request, link.bulk_request),
            join("bulk_response", MemoryResponse, link.bulk_response, bulk_memory.response),
            join("memory_walk_request", MemoryRequest, link.memory_walk_request, memory_side.walk.request),
            join("memory_bulk_request", MemoryRequest, link.memory_bulk_request, memory_side.bulk.request),
        ]
        connect(m, link.memory_launch, memory_side.launch)
        connect(m, memory_side.verdict, link.memory_verdict)
        connect(m, memory_side.walk.response, link.memory_walk_response)
        connect(m, memory_side.bulk.response, link.memory_bulk_response)
        if config.boundary_registers:
            quiescent &= Cat(passed).all()

        settings = host_port.settings
        m.d.comb += [
            link.latency_up.eq(settings.latency_up),
            link.latency_down.eq(settings.latency_down),
            link.bytes_per_cycle.eq(settings.bytes_per_cycle),
            memory_side.refresh.eq(settings.refresh),
            memory_side.restart.eq(sequencer.restart),
            sequencer.restarted.eq(memory_side.restarted),
            sequencer.copy_idle.eq(mover.idle),
            sequencer.copy_failed.eq(mover.errors),
            mover.clear.eq(sequencer.copy_clear),
            sequencer.quiescent.eq(quiescent),
            self.interrupt.eq(host_port.interrupt),
        ]
        # Programs and windows are set up while idle, so they reach the memory side without the link.
        for walkers in (memory_side, far_walker):
            connect(m, settings.program_write, walkers.program_write)
            connect(m, settings.context_write, walkers.context_write)
        m.d.comb += memory_side.context_channel.eq(settings.context_channel)

        # -- Monitors and counters --
        m.submodules.counters = counters = EventCounters(channels=config.memory.channels)
        m.d.comb += [
            self.batch_active.eq(sequencer.control.active),
            counters.active.eq(sequencer.control.active),
            counters.clear.eq(settings.clear_counters),
            counters.enabled.eq(settings.counted_channels[: config.memory.channels]),
            host_port.cycles.eq(counters.cycles),
            host_port.count_reads.eq(counters.reads),
            host_port.count_writes.eq(counters.writes),
            host_port.count_row_hits.eq(counters.row_hits),
            host_port.count_row_closed.eq(counters.row_closed),
            host_port.count_row_conflicts.eq(counters.row_conflicts),
            host_port.count_refreshes.eq(counters.refreshes),
            host_port.count_violations.eq(counters.violations),
        ]
        connect(m, far_walker.hop, flipped(self.far_hop))
        shown = {name: getattr(memory_side, name) for name in _shown(config)}
        for name, monitors in {**shown, "port": memory_side.port, "near_hop": memory_side.hop}.items():
            for seen, monitor in zip(monitors, self._each(name), strict=True):
                if name.startswith("violation"):
                    m.d.comb += monitor.eq(seen)
                else:
                    connect(m, seen, flipped(monitor))
        self._count(m, counters, memory_side)
        if config.controller.ecc:
            m.submodules.error_log = error_log = ErrorLog(channels=config.memory.channels)
            if config.memory.end == "model":
                connect(m, settings.fault, memory_side.fault)
            for found, listener in zip(memory_side.errors, error_log.errors, strict=True):
                connect(m, found, listener)
            m.d.comb += [
                error_log.clear.eq(settings.clear_counters),
                host_port.count_corrected.eq(error_log.corrected),
                host_port.corrected_address.eq(error_log.corrected_address),
                host_port.count_uncorrectable.eq(error_log.uncorrectable),
                host_port.uncorrectable_address.eq(error_log.uncorrectable_address),
            ]
        if not config.memory.controlled:
            # Registered: a reset may be released at any time before the edge.
            m.domains.axi = ClockDomain("axi")
            m.domains.axi_outside = ClockDomain("axi_outside", reset_less=True)
            m.d.comb += [ClockSignal(domain).eq(self.m_axi_aclk) for domain in ("axi", "axi_outside")]
            m.d.axi_outside += ResetSignal("axi").eq(~self.m_axi_aresetn)
        sleepers = (
            *(host_port, sequencer, scratchpad, mover, bulk_merge),
            *(far_launches, far_walker, link, memory_side),
        )
        m.d.comb += [
            gate.wake.eq(host_port.wake | ResetSignal()),
            gate.sleeps.eq(Cat(sleeper.sleeps for sleeper in sleepers).all()),
            *(
                sleeper.slept.eq(gate.slept)
                for sleeper in (sequencer, far_walker, link, memory_side, counters)
            ),
        ]
        return m

    @staticmethod
    def _gated(m: Module, gate: ClockGate) -> Fragment:
        """The design `m` on the clock of `gate`, without a level of hierarchy more.

        Its reset is registered on that clock, too: what depends on a register of the free clock, simulators
        would compute in every cycle.
        """
        design = Fragment.get(DomainRenamer("awake")(m), None)
        design.add_domains(ClockDomain("awake"), ClockDomain("awake_outside", reset_less=True))
        design.add_subfragment(Fragment.get(gate, None), "clock_gate")
        design.add_statements(
            "comb", *(ClockSignal(domain).eq(gate.clk) for domain in ("awake", "awake_outside"))
        )
        design.add_statements("awake_outside", ResetSignal("awake").eq(ResetSignal("sync")))
        return design

    def _count(self, m: Module, counters: EventCounters, memory_side: MemorySide) -> None:
        """What the counters listen to: accesses at the device, or where there is none at the memory port."""
        for channel in range(self._config.memory.channels):
            if not self._config.memory.controlled:
                port = memory_side.port[channel]
                m.d.comb += [
                    counters.read[channel].eq(port.accepted & ~port.request_write),
                    counters.write[channel].eq(port.accepted & port.request_write),
                ]
                continue
            access = memory_side.access[channel]
            accessed = access.row_class != RowClass.NONE
            m.d.comb += [
                counters.read[channel].eq(accessed & ~access.write),
                counters.write[channel].eq(accessed & access.write),
                counters.row_class[channel].eq(access.row_class),
                counters.row_op[channel].eq(memory_side.row[channel].op),
                counters.violation[channel].eq(memory_side.violation[channel]),
            ]

    @staticmethod
    def _control_cache(m: Module, cache: Cache, host_port: HostPort, sequencer: Sequencer) -> None:
        """The cache's settings, and its counts inside batches."""
        settings = host_port.settings
        m.d.comb += [
            cache.sets_log2.eq(settings.cache_sets_log2),
            cache.ways.eq(settings.cache_ways),
            cache.hit_latency.eq(settings.cache_hit_latency),
            cache.clear.eq(settings.cache_clear),
            cache.restart.eq(sequencer.restart),
            cache.counting.eq(sequencer.control.active),
            cache.clear_counts.eq(settings.clear_counters),
            host_port.count_cache_hits.eq(cache.hits),
            host_port.count_cache_misses.eq(cache.misses),
        ]

    @staticmethod
    def _connect_histograms(
        m: Module, histograms: Histograms, host_port: HostPort, sequencer: Sequencer, hops: list[Any]
    ) -> None:
        """The histograms listen to `hops`, of the near walkers and the far one, and to the Sequencer."""
        settings = host_port.settings
        for hop, listener in zip(hops, histograms.hop, strict=True):
            m.d.comb += [
                getattr(listener, name).eq(getattr(hop, name)) for name in ("event", "context", "address")
            ]
        connect(m, sequencer.walk, histograms.walk)
        m.d.comb += [
            histograms.active.eq(sequencer.control.active),
            histograms.clear.eq(settings.clear_counters),
            histograms.select.eq(settings.histogram_select),
            histograms.index.eq(settings.histogram_index),
            host_port.histogram_data.eq(histograms.data),
        ]
