"""A memory channel: near walker, arbiter, controller and device, and the checker of its buses."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .config import DesignConfig
from .fabric.arbiter import Arbiter
from .layouts import (
    AccessMonitor,
    ContextWrite,
    HopMonitor,
    MemoryPort,
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
    violation : Out(1), violation_rule : Out(RULE_WIDTH)
        The RTL checker's report of this cycle; 0 without `config.checker`.
    """

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        super().__init__(
            {
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
                "violation": Out(1),
                "violation_rule": Out(RULE_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.near_walker = near_walker = Walker(config, source=Source.NEAR_WALKER)
        arbiter = Arbiter(config)
        m.submodules.arbiter = ResetInserter(self.restart)(arbiter)
        m.submodules.controller = controller = Controller(config)
        m.submodules.device = device = Device(config, channel=self._channel)

        connect(m, flipped(self.launch), near_walker.launch)
        connect(m, near_walker.verdict, flipped(self.verdict))
        connect(m, flipped(self.program_write), near_walker.program_write)
        connect(m, flipped(self.context_write), near_walker.context_write)
        connect(m, near_walker.memory, arbiter.near)
        connect(m, flipped(self.walk), arbiter.far)
        connect(m, flipped(self.bulk), arbiter.bulk)
        connect(m, controller.memory.response, arbiter.memory.response)
        connect(m, controller.row, device.row)
        connect(m, controller.column, device.column)
        connect(m, near_walker.hop, flipped(self.hop))
        connect(m, controller.access, flipped(self.access))

        # Within the channel addresses count from 0: its own number is taken off the top bits, and what is
        # left of another's is out of range.
        asked, request = arbiter.memory.request, controller.memory.request
        m.d.comb += [
            request.valid.eq(asked.valid),
            asked.ready.eq(request.ready),
            request.payload.eq(asked.payload),
        ]
        if self._channel:
            first = StackMap(config.memory).first(self._channel)
            m.d.comb += [
                request.payload.address.eq(asked.payload.address ^ first),
                self.verdict.payload.channel.eq(self._channel),
            ]

        m.d.comb += [
            controller.refresh.eq(self.refresh),
            controller.restart.eq(self.restart),
            self.restarted.eq(controller.restarted),
            self.idle.eq(near_walker.idle),
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
