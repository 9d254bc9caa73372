"""The whole design: compute side, link and memory side, as one component."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .config import DesignConfig
from .counters import EventCounters
from .error_log import ErrorLog
from .fabric.arbiter import Arbiter
from .fabric.axi import AxiLite
from .fabric.link import Link
from .fabric.merge import BulkMerge
from .hostport import HostPort
from .layouts import AccessMonitor, ColumnOp, HopMonitor, RefreshMode, RowOp, Source
from .memory.checker import Checker
from .memory.controller import Controller
from .memory.device import Device
from .mover import DataMover
from .scratchpad import Scratchpad
from .sequencer import Sequencer
from .walker.walker import Walker

__all__ = ["Clew"]


class _RowMonitor(wiring.Signature):
    """The row bus as seen by a listener, as outputs of the design."""

    def __init__(self) -> None:
        super().__init__({"op": Out(RowOp), "pseudo_channel": Out(1), "bank": Out(6), "row": Out(16)})


class _ColumnMonitor(wiring.Signature):
    """The commands of the column bus as seen by a listener, as outputs of the design."""

    def __init__(self) -> None:
        super().__init__({"op": Out(ColumnOp), "pseudo_channel": Out(1), "bank": Out(6), "column": Out(6)})


class Clew(wiring.Component):
    """The accelerator with its memory: one channel, a near walker and a far walker over the same records.

    Members
    -------
    s_axil : In(AxiLite)
        The host, see `hdl/registers.py`.
    interrupt : Out(1)
        Level: a batch is done.
    row, column : Out
        Monitors: the command buses.
    access : Out(AccessMonitor)
        Monitor: the column access of this cycle.
    near_hop, far_hop : Out(HopMonitor)
        Monitors: progress of the walkers.
    batch_active : Out(1)
        Monitor: the cycles that count.
    violation : Out(1), violation_rule : Out
        The RTL checker's report of this cycle; only with `config.checker`.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        members = {
            "s_axil": In(AxiLite()),
            "interrupt": Out(1),
            "row": Out(_RowMonitor()),
            "column": Out(_ColumnMonitor()),
            "access": Out(AccessMonitor()),
            "near_hop": Out(HopMonitor()),
            "far_hop": Out(HopMonitor()),
            "batch_active": Out(1),
        }
        if config.checker:
            members |= {"violation": Out(1), "violation_rule": Out(8)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config

        # -- Compute side --
        m.submodules.host_port = host_port = HostPort(config)
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.scratchpad = scratchpad = Scratchpad(config)
        m.submodules.mover = mover = DataMover(config)
        m.submodules.far_walker = far_walker = Walker(config, source=Source.FAR_WALKER)
        bulk_merge = BulkMerge()
        # Whose turn it is must not depend on what was before a batch, here and in the arbiter; both are idle
        # during a restart.
        m.submodules.bulk_merge = ResetInserter(sequencer.restart)(bulk_merge)
        # -- The off-chip path --
        m.submodules.link = link = Link(config)
        # -- Memory side --
        m.submodules.near_walker = near_walker = Walker(config, source=Source.NEAR_WALKER)
        arbiter = Arbiter(config)
        m.submodules.arbiter = ResetInserter(sequencer.restart)(arbiter)
        m.submodules.controller = controller = Controller(config)
        m.submodules.device = device = Device(config)

        connect(m, flipped(self.s_axil), host_port.axi)
        connect(m, host_port.batch, sequencer.control)
        connect(m, host_port.scratchpad, scratchpad.host)
        connect(m, sequencer.scratchpad, scratchpad.sequencer)
        connect(m, mover.scratchpad, scratchpad.mover)
        connect(m, sequencer.copy, mover.command)
        connect(m, host_port.memory, bulk_merge.host)
        connect(m, sequencer.memory, bulk_merge.sequencer)
        connect(m, mover.memory, bulk_merge.mover)

        connect(m, bulk_merge.memory.request, link.bulk_request)
        connect(m, link.bulk_response, bulk_merge.memory.response)
        connect(m, sequencer.near_launch, link.launch)
        connect(m, link.verdict, sequencer.near_verdict)
        connect(m, sequencer.far_launch, far_walker.launch)
        connect(m, far_walker.verdict, sequencer.far_verdict)
        connect(m, far_walker.memory.request, link.walk_request)
        connect(m, link.walk_response, far_walker.memory.response)

        connect(m, link.memory_launch, near_walker.launch)
        connect(m, near_walker.verdict, link.memory_verdict)
        connect(m, near_walker.memory, arbiter.near)
        connect(m, link.memory_walk_request, arbiter.far.request)
        connect(m, arbiter.far.response, link.memory_walk_response)
        connect(m, link.memory_bulk_request, arbiter.bulk.request)
        connect(m, arbiter.bulk.response, link.memory_bulk_response)
        connect(m, arbiter.memory, controller.memory)
        connect(m, controller.row, device.row)
        connect(m, controller.column, device.column)

        settings = host_port.settings
        m.d.comb += [
            link.latency_up.eq(settings.latency_up),
            link.latency_down.eq(settings.latency_down),
            link.bytes_per_cycle.eq(settings.bytes_per_cycle),
            controller.refresh.eq(settings.refresh),
            controller.restart.eq(sequencer.restart),
            sequencer.restarted.eq(controller.restarted),
            sequencer.copy_idle.eq(mover.idle),
            sequencer.copy_failed.eq(mover.errors),
            mover.clear.eq(sequencer.copy_clear),
            sequencer.quiescent.eq(link.idle & near_walker.idle & far_walker.idle & mover.idle),
            self.interrupt.eq(host_port.interrupt),
        ]
        # Programs and windows are set up while idle, so they reach the memory side without the link.
        for walker in (near_walker, far_walker):
            connect(m, settings.program_write, walker.program_write)
            connect(m, settings.context_write, walker.context_write)

        # -- Monitors and counters --
        m.submodules.counters = counters = EventCounters()
        m.d.comb += [
            self.row.op.eq(controller.row.op),
            self.row.pseudo_channel.eq(controller.row.pseudo_channel),
            self.row.bank.eq(controller.row.bank),
            self.row.row.eq(controller.row.row),
            self.column.op.eq(controller.column.op),
            self.column.pseudo_channel.eq(controller.column.pseudo_channel),
            self.column.bank.eq(controller.column.bank),
            self.column.column.eq(controller.column.column),
            self.batch_active.eq(sequencer.control.active),
            counters.active.eq(sequencer.control.active),
            counters.clear.eq(settings.clear_counters),
            counters.row_op.eq(controller.row.op),
            host_port.cycles.eq(counters.cycles),
            host_port.count_reads.eq(counters.reads),
            host_port.count_writes.eq(counters.writes),
            host_port.count_row_hits.eq(counters.row_hits),
            host_port.count_row_closed.eq(counters.row_closed),
            host_port.count_row_conflicts.eq(counters.row_conflicts),
            host_port.count_refreshes.eq(counters.refreshes),
            host_port.count_violations.eq(counters.violations),
        ]
        for walker, monitor in ((near_walker, self.near_hop), (far_walker, self.far_hop)):
            connect(m, walker.hop, flipped(monitor))
        connect(m, controller.access, flipped(self.access))
        m.d.comb += [
            counters.access.row_class.eq(controller.access.row_class),
            counters.access.tag.eq(controller.access.tag),
            counters.access.write.eq(controller.access.write),
        ]
        if config.controller.ecc:
            m.submodules.error_log = error_log = ErrorLog()
            connect(m, controller.errors, error_log.errors)
            connect(m, settings.fault, device.fault)
            m.d.comb += [
                error_log.clear.eq(settings.clear_counters),
                host_port.count_corrected.eq(error_log.corrected),
                host_port.corrected_address.eq(error_log.corrected_address),
                host_port.count_uncorrectable.eq(error_log.uncorrectable),
                host_port.uncorrectable_address.eq(error_log.uncorrectable_address),
            ]
        if config.checker:
            m.submodules.checker = checker = Checker(config)
            m.d.comb += [
                checker.row.op.eq(controller.row.op),
                checker.row.pseudo_channel.eq(controller.row.pseudo_channel),
                checker.row.bank.eq(controller.row.bank),
                checker.row.row.eq(controller.row.row),
                checker.column.op.eq(controller.column.op),
                checker.column.pseudo_channel.eq(controller.column.pseudo_channel),
                checker.column.bank.eq(controller.column.bank),
                checker.column.column.eq(controller.column.column),
                checker.refresh_enable.eq((settings.refresh != RefreshMode.NONE) & ~sequencer.restart),
                self.violation.eq(checker.violation),
                self.violation_rule.eq(checker.rule),
                counters.violation.eq(checker.violation),
            ]
        return m
