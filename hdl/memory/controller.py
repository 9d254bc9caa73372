"""The channel controller: memory requests in, row and column commands out, responses back."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Const, EnableInserter, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig
from ..fabric.register_slice import RegisterSlice
from ..fabric.stream_buffer import StreamBuffer
from ..layouts import (
    AccessMonitor,
    ColumnBus,
    ColumnOp,
    ErrorMonitor,
    MemoryPort,
    MemoryRequest,
    MemoryResponse,
    MemoryStatus,
    RefreshMode,
    RowBus,
    RowClass,
    RowOp,
)
from .address import AddressMap
from .atomic import AtomicUnit
from .bank import BankQueues
from .correction import Correction
from .ecc import WORD_BYTES, AtomEncoder
from .page_policy import PagePredictor
from .refresher import Refresher
from .responses import Responses
from .scheduler import Scheduler
from .timers import Timers
from .timing import Command
from .write_buffer import WriteBuffer

__all__ = ["CONTROLLER_COMMANDS", "Controller"]

#: The commands that this controller issues, where the memory has them.
CONTROLLER_COMMANDS = frozenset(Command)


class Controller(wiring.Component):
    """A channel's controller. A request accepted in cycle 0 is on a bus in cycle 2 if nothing is in its way
    (each decision stage more, and boundary registers, add a cycle); a read's data leaves in the cycle it
    comes from the device, with ECC one cycle later.

    With a `clock_ratio` above 1 the front end, from the memory port to the bank queues, is slower: the port
    moves only where `enable` is high, a request has a slow cycle on its way into its queue, and a response is
    captured at the end of a slow cycle to leave at the end of the next.

    Members
    -------
    memory : In(MemoryPort())
    row : Out(RowBus())
    column : Out(ColumnBus(ecc=...))
    access : Out(AccessMonitor())
        The access whose column command is on the bus.
    errors : Out(ErrorMonitor())
        What ECC found; only with `config.controller.ecc`.
    enable : In(1)
        The last cycle of a slow cycle, see `ClockDivider`; only with a `clock_ratio` above 1.
    refresh : In(RefreshMode)
    restart : In(1)
        Accept nothing new, finish what is queued, close every row, stop refresh.
    restarted : Out(1)
        All that is done and every timing counter has run out. When `restart` falls, the refresh interval
        begins in that cycle, and what follows depends on nothing that was before.
    crowded : Out(1)
        Little room for writes is left, or a write waits in the overflow: another one may stop the port.
    press : In(1)
        Somebody waits for that to end: writes take turns with reads.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`. It sleeps with one decision stage, a `clock_ratio` of 1 and no ECC only, and while
        nothing is queued and every timing counter has run out.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        self._ecc = config.controller.ecc
        self._slow = config.clock_ratio > 1
        members = {
            "memory": In(MemoryPort()),
            "row": Out(RowBus()),
            "column": Out(ColumnBus(ecc=self._ecc)),
            "access": Out(AccessMonitor()),
            "refresh": In(RefreshMode),
            "restart": In(1),
            "restarted": Out(1),
            "crowded": Out(1),
            "press": In(1),
            "slept": In(SLEPT_BITS),
            "sleeps": Out(1),
        }
        if self._ecc:
            members["errors"] = Out(ErrorMonitor())
        if self._slow:
            members["enable"] = In(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        address_map = AddressMap(config.memory)
        organisation = config.memory.organisation
        bank_bits = organisation.banks.bit_length() - 1

        atomic = AtomicUnit(write_bytes=WORD_BYTES if self._ecc else 1)
        m.submodules.queues = queues = BankQueues(config)
        m.submodules.write_buffer = write_buffer = WriteBuffer(config.controller)
        m.submodules.responses = responses = Responses(config.controller)
        commands = CONTROLLER_COMMANDS & config.memory.timing.commands
        if not config.controller.per_bank_refresh:
            commands -= {Command.REFPB}
        m.submodules.timers = timers = Timers(config.memory, commands=commands)
        m.submodules.refresher = refresher = Refresher(config, commands=commands)
        scheduler = Scheduler(config)
        # Whose turn it is, how old requests are and what was learnt must not depend on what was before a
        # restart.
        m.submodules.scheduler = ResetInserter(self.restarted)(scheduler)
        if config.controller.page_policy == "adaptive":
            predictor = PagePredictor(units=len(queues.activated))
            m.submodules.predictor = ResetInserter(self.restarted)(predictor)
            m.d.comb += [
                predictor.arrival.eq(queues.alone),
                predictor.unit.eq(queues.unit),
                predictor.same_row.eq(queues.same_row),
                predictor.activated.eq(queues.activated),
                scheduler.close.eq(predictor.close),
            ]

        # -- Intake --
        connect(m, flipped(self.memory), atomic.port)
        enable: Value = Const(1)
        captured_none: Value = Const(1)
        if self._slow:
            enable = self.enable
            m.submodules.atomic = EnableInserter(enable)(atomic)
            m.submodules.captured = captured = RegisterSlice(MemoryResponse)
            connect(m, responses.response, captured.input)
            connect(m, captured.output, atomic.memory.response)
            m.d.comb += captured.enable.eq(enable)
            captured_none = captured.empty
        else:
            m.submodules.atomic = atomic
            connect(m, responses.response, atomic.memory.response)
        request = atomic.memory.request
        if config.boundary_registers:
            # What the atomic unit says of a request and where it goes take a cycle each.
            m.submodules.intake = intake = StreamBuffer(MemoryRequest)
            connect(m, request, intake.input)
            request = intake.output
            captured_none = captured_none & intake.empty
        place = address_map.wires(request.payload.address)
        queue_room = Signal()
        accepted = Signal()
        m.d.comb += [
            atomic.hold.eq(self.restart),
            queues.unit.eq(place.unit),
            queues.row.eq(place.row),
            queues.column.eq(place.column),
            queues.write.eq(request.payload.write),
            queues.priority.eq(request.payload.priority),
            queues.tag.eq(request.payload.tag),
            queues.entry.eq(write_buffer.entry),
            queues.tick.eq(scheduler.tick),
            queues.ripen.eq(scheduler.ripen),
            queues.begin_batch.eq(scheduler.begin_batch),
            write_buffer.data.eq(request.payload.data),
            write_buffer.mask.eq(request.payload.mask),
            queue_room.eq(queues.room & (~request.payload.write | write_buffer.room)),
            request.ready.eq(
                Mux(request.payload.write | place.out_of_range, responses.acknowledge_room, 1)
                & (queue_room | place.out_of_range)
            ),
            accepted.eq(request.valid & request.ready & enable),
            queues.enqueue.eq(accepted & ~place.out_of_range),
            write_buffer.take.eq(queues.enqueue & request.payload.write),
            responses.acknowledge.eq(accepted & (request.payload.write | place.out_of_range)),
            responses.acknowledgement.tag.eq(request.payload.tag),
            responses.acknowledgement.write.eq(request.payload.write),
            responses.acknowledgement.status.eq(
                Mux(place.out_of_range, MemoryStatus.OUT_OF_RANGE, MemoryStatus.OK)
            ),
        ]

        # -- Decision --
        connect(m, queues.state, scheduler.state)
        row_op = Signal(RowOp)
        row_unit = Signal.like(queues.row_unit)
        decides_column = Signal()
        reads = Signal()
        writes = Signal()
        closes = Signal()
        # What goes to the buses, in the cycle of the decision or, with three stages, in the next.
        later = config.controller.decision_stages >= 3

        def issued(value: Value, name: str) -> Value:
            if not later:
                return value
            register = Signal(value.shape(), name=f"{name}_issued")
            m.d.sync += register.eq(value)
            return register

        column_op, column_unit = (
            issued(scheduler.column_op, "column_op"),
            issued(scheduler.column_unit, "column_unit"),
        )
        bus_row_op, bus_row_unit = issued(row_op, "row_op"), issued(row_unit, "row_unit")
        issues_column = issued(decides_column, "column")
        m.d.comb += [
            scheduler.activate.eq(timers.activate),
            scheduler.precharge.eq(timers.precharge),
            scheduler.read.eq(timers.read),
            scheduler.write.eq(timers.write),
            scheduler.hold_activate.eq(refresher.hold_activate),
            scheduler.hold_read.eq(refresher.hold_read),
            scheduler.hold_write.eq(refresher.hold_write),
            # A read that was decided in the cycle before takes its place in this one.
            scheduler.read_room.eq(responses.room & ~reads if later else responses.room),
            scheduler.block.eq(refresher.block),
            scheduler.row_block.eq(refresher.row_block),
            # A restart waits for the writes.
            scheduler.drain.eq(write_buffer.drain | self.restart),
            scheduler.press.eq(self.press),
            row_op.eq(Mux(refresher.row_block, refresher.row_op, scheduler.row_op)),
            row_unit.eq(Mux(refresher.row_block, refresher.row_unit, scheduler.row_unit)),
            timers.row_op.eq(row_op),
            timers.row_unit.eq(row_unit),
            timers.column_op.eq(scheduler.column_op),
            timers.column_unit.eq(scheduler.column_unit),
            queues.row_op.eq(row_op),
            queues.row_unit.eq(row_unit),
            queues.row_slot.eq(scheduler.row_slot),
            queues.column_issue.eq(decides_column),
            queues.column_unit.eq(scheduler.column_unit),
            queues.column_slot.eq(scheduler.column_slot),
            queues.column_closes.eq(closes),
            decides_column.eq(scheduler.column_op != ColumnOp.NOP),
            reads.eq((column_op == ColumnOp.READ) | (column_op == ColumnOp.READ_AUTO)),
            writes.eq((column_op == ColumnOp.WRITE) | (column_op == ColumnOp.WRITE_AUTO)),
            closes.eq(
                (scheduler.column_op == ColumnOp.READ_AUTO) | (scheduler.column_op == ColumnOp.WRITE_AUTO)
            ),
            write_buffer.give.eq(writes),
            write_buffer.read_entry.eq(queues.column_entry),
            responses.issue.eq(reads),
            responses.issue_tag.eq(queues.column_tag),
        ]
        if self._ecc:
            m.submodules.encoder = encoder = AtomEncoder()
            m.d.comb += encoder.data.eq(write_buffer.read_data)
            with m.If(writes):
                m.d.sync += self.column.write_check.eq(encoder.check)
            m.submodules.correction = correction = Correction(config.controller)
            connect(m, correction.errors, flipped(self.errors))
            m.d.comb += [
                correction.issue.eq(reads),
                correction.issue_address.eq(
                    address_map.address_wires(
                        unit=column_unit, row=queues.column_row, column=queues.column_column
                    )
                ),
                correction.read_valid.eq(self.column.read_valid),
                correction.read_data.eq(self.column.read_data),
                correction.read_check.eq(self.column.read_check),
                responses.read_valid.eq(correction.valid),
                responses.read_data.eq(correction.data),
                responses.read_status.eq(correction.status),
            ]
        else:
            m.d.comb += [
                responses.read_valid.eq(self.column.read_valid),
                responses.read_data.eq(self.column.read_data),
            ]

        crowd = Signal()
        m.d.comb += crowd.eq(write_buffer.crowded | queues.overflow_writes)
        m.d.sync += self.crowded.eq(crowd)

        m.d.comb += [refresher.slept.eq(self.slept), scheduler.slept.eq(self.slept)]
        if config.controller.decision_stages == 1 and not (self._slow or self._ecc):
            m.d.comb += self.sleeps.eq(
                queues.empty
                & timers.idle
                & atomic.sleeps
                & responses.sleeps
                & write_buffer.sleeps
                & refresher.sleeps
                & scheduler.sleeps
                & ~self.restart
                & (self.row.op == RowOp.NOP)
                & (self.column.op == ColumnOp.NOP)
                & (self.access.row_class == RowClass.NONE)
                & (self.crowded == crowd)
            )

        # -- Refresh and restart --
        if later:
            # What has left its queue and is not among the responses yet.
            captured_none = captured_none & ~issues_column
        m.d.comb += [
            refresher.mode.eq(self.refresh),
            refresher.restart.eq(self.restart),
            self.restarted.eq(refresher.restarted),
            refresher.quiet.eq(queues.empty & responses.empty & atomic.idle & captured_none),
            refresher.settled.eq(timers.idle),
            refresher.busy.eq(queues.busy),
            refresher.reads.eq(
                reduce(or_, (v & ~w for v, w in zip(queues.state.valid, queues.state.write, strict=True)))
            ),
            refresher.open.eq(queues.state.open),
            refresher.walks.eq(queues.walks_waiting.any() | (queues.enqueue & queues.priority)),
            refresher.precharge_all.eq(timers.precharge_all),
            refresher.refresh_all.eq(timers.refresh_all),
        ]
        if refresher.per_bank:
            m.d.comb += [
                refresher.precharge.eq(timers.precharge),
                refresher.refresh_bank.eq(timers.refresh_bank),
                refresher.bank_rested.eq(timers.bank_rested),
            ]

        # -- The buses: out of registers, in the cycle after the decision --
        def split(unit: Value) -> tuple[Value, Value]:
            return Value.cast(unit[bank_bits:]), Value.cast(unit[:bank_bits])

        row_channel, row_bank = split(bus_row_unit)
        column_channel, column_bank = split(column_unit)
        m.d.sync += [
            self.row.op.eq(bus_row_op),
            self.column.op.eq(column_op),
            self.access.row_class.eq(Mux(issues_column, queues.column_class, RowClass.NONE)),
        ]
        with m.If(bus_row_op != RowOp.NOP):
            m.d.sync += [
                self.row.pseudo_channel.eq(row_channel),
                self.row.bank.eq(row_bank),
                self.row.row.eq(queues.row_row),
            ]
        with m.If(issues_column):
            m.d.sync += [
                self.column.pseudo_channel.eq(column_channel),
                self.column.bank.eq(column_bank),
                self.column.column.eq(queues.column_column),
                self.access.tag.eq(queues.column_tag),
                self.access.write.eq(writes),
            ]
        with m.If(writes):
            m.d.sync += [
                self.column.write_data.eq(write_buffer.read_data),
                self.column.write_mask.eq(write_buffer.read_mask),
            ]
        return m
