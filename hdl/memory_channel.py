"""A memory channel: near walker, arbiter, controller and device, and the checker of its buses."""

from typing import Any

from amaranth.hdl import Const, EnableInserter, Module, Mux, ResetInserter, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .config import DesignConfig
from .fabric.arbiter import Arbiter
from .fabric.clock_divider import ClockDivider
from .fabric.pass_queue import PassQueue
from .fabric.register_slice import RegisterSlice
from .layouts import (
    AccessMonitor,
    ContextWrite,
    ErrorMonitor,
    FaultInjection,
    HopEvent,
    HopMonitor,
    MemoryPort,
    MemoryRequest,
    MemoryResponse,
    PortMonitor,
    ProgramWrite,
    RefreshMode,
    RowBus,
    Source,
    Verdict,
    Walk,
)
from .memory.checker import RULE_WIDTH, Checker, ColumnMonitor
from .memory.controller import Controller
from .memory.device import Device
from .memory.stack import StackMap
from .walker.walker import Walker

__all__ = ["MemoryChannel"]


class MemoryChannel(wiring.Component):
    """One channel of the stack from its ports down to the storage; it shares nothing with other channels.

    Addresses at its ports are those of the stack. One that lies in another channel is answered with
    OUT_OF_RANGE, so a near walk that leaves its channel ends with OUT_OF_WINDOW.

    With a `clock_ratio` above 1 the near walker, the arbiter and the controller's front end are on a clock so
    much slower than the ports: what comes in through a port is captured at the end of a slow cycle, what goes
    out leaves at the end of one. A restart begins a slow cycle.

    Parameters
    ----------
    channel : int
        Its number in the stack.

    Members
    -------
    walk, bulk : In(MemoryPort)
        The far walker's requests and all others, from the link.
    launch : In(stream of Walk), verdict : Out(stream of Verdict)
        Of the near walker.
    program_write : In(ProgramWrite), context_write : In(ContextWrite)
        To the near walker.
    refresh : In(RefreshMode)
    restart : In(1), restarted : Out(1)
        See `Controller`. During a restart the arbiter begins with its reset turn.
    idle : Out(1)
        The near walker is.
    row : Out(RowBus), column : Out(ColumnMonitor), access : Out(AccessMonitor), hop : Out(HopMonitor)
        Monitors: the command buses, the column access of this cycle, the near walker.
    port : Out(PortMonitor)
        Monitor: what passes the controller's memory port.
    violation : Out(1), violation_rule : Out(RULE_WIDTH)
        The RTL checker's report of this cycle; 0 without `config.checker`.
    errors : Out(ErrorMonitor()), fault : In(FaultInjection())
        What ECC found, and the control of the device's fault injector; only with `config.controller.ecc`.
    """

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        members: dict[str, Any] = {
            "walk": In(MemoryPort()),
            "bulk": In(MemoryPort()),
            "launch": In(stream.Signature(Walk)),
            "verdict": Out(stream.Signature(Verdict)),
            "program_write": In(ProgramWrite()),
            "context_write": In(ContextWrite()),
            "refresh": In(RefreshMode),
            "restart": In(1),
            "restarted": Out(1),
            "idle": Out(1),
            "row": Out(RowBus()),
            "column": Out(ColumnMonitor()),
            "access": Out(AccessMonitor()),
            "hop": Out(HopMonitor()),
            "port": Out(PortMonitor()),
            "violation": Out(1),
            "violation_rule": Out(RULE_WIDTH),
        }
        if config.controller.ecc:
            members |= {"errors": Out(ErrorMonitor()), "fault": In(FaultInjection())}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        near_walker = Walker(config, source=Source.NEAR_WALKER)
        arbiter = Arbiter(config)
        m.submodules.controller = controller = Controller(config)
        m.submodules.device = device = Device(config, channel=self._channel)

        if config.clock_ratio == 1:
            m.submodules.near_walker = near_walker
            m.submodules.arbiter = ResetInserter(self.restart)(arbiter)
            connect(m, flipped(self.launch), near_walker.launch)
            connect(m, near_walker.verdict, flipped(self.verdict))
            connect(m, near_walker.hop, flipped(self.hop))
            connect(m, flipped(self.walk), arbiter.far)
            connect(m, flipped(self.bulk), arbiter.bulk)
            m.d.comb += self.idle.eq(near_walker.idle)
        else:
            self._on_slower_clock(m, near_walker, arbiter, controller)
        connect(m, flipped(self.program_write), near_walker.program_write)
        connect(m, flipped(self.context_write), near_walker.context_write)
        connect(m, near_walker.memory, arbiter.near)
        connect(m, controller.memory.response, arbiter.memory.response)
        connect(m, controller.row, device.row)
        connect(m, controller.column, device.column)
        connect(m, controller.access, flipped(self.access))

        moves: Value = controller.enable if config.clock_ratio > 1 else Const(1)
        passing, answer = arbiter.memory.request, controller.memory.response
        m.d.comb += [
            self.port.accepted.eq(passing.valid & passing.ready & moves),
            self.port.request_tag.eq(passing.payload.tag),
            self.port.request_write.eq(passing.payload.write),
            self.port.request_conditional.eq(passing.payload.conditional),
            self.port.answered.eq(answer.valid & answer.ready & moves),
            self.port.response_tag.eq(answer.payload.tag),
            self.port.response_write.eq(answer.payload.write),
        ]

        # Within the channel addresses count from 0: its own number is taken off the top bits, and what is
        # left of another's is out of range.
        stack = StackMap(config.memory)
        first = stack.first(self._channel)
        asked, request = arbiter.memory.request, controller.memory.request
        m.d.comb += [
            request.valid.eq(asked.valid),
            asked.ready.eq(request.ready),
            request.payload.eq(asked.payload),
        ]
        if self._channel:
            m.d.comb += [
                request.payload.address.eq(asked.payload.address ^ first),
                self.verdict.payload.channel.eq(self._channel),
            ]

        m.d.comb += [
            controller.refresh.eq(self.refresh),
            controller.restart.eq(self.restart),
            near_walker.crowded.eq(controller.crowded),
            controller.press.eq(near_walker.presses),
            self.restarted.eq(controller.restarted),
        ]
        if config.controller.ecc:
            # An injector that is armed for an atom of one channel is disarmed in the others.
            fault = self.fault
            mine = stack.channel_wires(fault.address) == self._channel
            m.d.comb += [
                device.fault.address.eq(fault.address ^ first),
                device.fault.lane.eq(fault.lane),
                device.fault.flips.eq(fault.flips),
                device.fault.set_flips.eq(fault.set_flips),
                device.fault.set_armed.eq(fault.set_armed),
                device.fault.arm.eq(fault.arm & mine),
                device.fault.sticky.eq(fault.sticky),
                fault.armed.eq(device.fault.armed),
                self.errors.corrected.eq(controller.errors.corrected),
                self.errors.uncorrectable.eq(controller.errors.uncorrectable),
                self.errors.address.eq(controller.errors.address | first),
            ]
        listeners = [(self.row, self.column)]
        if config.checker:
            m.submodules.checker = checker = Checker(config)
            listeners.append((checker.row, checker.column))
            m.d.comb += [
                checker.refresh_enable.eq((self.refresh != RefreshMode.NONE) & ~self.restart),
                self.violation.eq(checker.violation),
                self.violation_rule.eq(checker.rule),
            ]
        for row, column in listeners:
            m.d.comb += [
                getattr(row, name).eq(getattr(controller.row, name))
                for name in ("op", "pseudo_channel", "bank", "row")
            ]
            m.d.comb += [
                getattr(column, name).eq(getattr(controller.column, name))
                for name in ("op", "pseudo_channel", "bank", "column")
            ]
        return m

    def _on_slower_clock(self, m: Module, near_walker: Walker, arbiter: Arbiter, controller: Any) -> None:
        """Walker, arbiter and the controller's port on an enable, and what converts at the ports."""
        ratio = self._config.clock_ratio
        m.submodules.divider = divider = ClockDivider(ratio)
        enable = divider.enable
        # The host sets up programs and windows at the command clock, while the walker is idle.
        set_up = self.program_write.enable | self.context_write.enable
        m.submodules.near_walker = EnableInserter(enable | set_up)(near_walker)
        m.submodules.arbiter = ResetInserter(self.restart)(EnableInserter(enable)(arbiter))
        m.d.comb += [controller.enable.eq(enable), divider.align.eq(self.restart & self.restarted)]

        def captured(name: str, shape: Any, source: Any, sink: Any) -> RegisterSlice:
            m.submodules[f"{name}_slice"] = register = RegisterSlice(shape)
            connect(m, flipped(source), register.input)
            connect(m, register.output, sink)
            m.d.comb += register.enable.eq(enable)
            return register

        def released(name: str, shape: Any, source: Any, sink: Any) -> PassQueue:
            # What leaves at the end of a slow cycle stays on offer at the port until it is taken.
            m.submodules[f"{name}_queue"] = queue = PassQueue(shape, depth=2)
            m.d.comb += [
                queue.input.valid.eq(source.valid & enable),
                queue.input.payload.eq(source.payload),
                source.ready.eq(queue.input.ready),
            ]
            connect(m, queue.output, flipped(sink))
            return queue

        launches = captured("launch", Walk, self.launch, near_walker.launch)
        for name in ("walk", "bulk"):
            port, side = getattr(self, name), arbiter.far if name == "walk" else arbiter.bulk
            captured(name, MemoryRequest, port.request, side.request)
            released(name, MemoryResponse, side.response, port.response)
        verdicts = released("verdict", Verdict, near_walker.verdict, self.verdict)
        m.d.comb += [
            self.idle.eq(near_walker.idle & launches.empty),
            # The walker counts slow cycles.
            verdicts.input.payload.cycles.eq(near_walker.verdict.payload.cycles << (ratio - 1).bit_length()),
            # A walker's event is there for a whole slow cycle.
            self.hop.event.eq(Mux(divider.first, near_walker.hop.event, HopEvent.NONE)),
            self.hop.context.eq(near_walker.hop.context),
            self.hop.address.eq(near_walker.hop.address),
        ]
