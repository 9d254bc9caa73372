"""The memory subsystem on its own: controller, device and protocol checker as one design under test."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.config import DesignConfig
from hdl.fabric.clock_divider import ClockDivider
from hdl.fabric.pass_queue import PassQueue
from hdl.layouts import AccessMonitor, ErrorMonitor, MemoryPort, MemoryResponse, RefreshMode, RowBus
from hdl.memory.checker import RULE_WIDTH, Checker, ColumnMonitor
from hdl.memory.controller import Controller
from hdl.memory.device import Device

__all__ = ["MemorySubsystem"]


class MemorySubsystem(wiring.Component):
    """A channel from its memory port down to the storage, with the checker listening to its buses.

    With a `clock_ratio` above 1 the port takes requests in the last cycle of a slow cycle, and an answer
    stays on offer until it is taken.

    Members
    -------
    memory : In(MemoryPort())
    refresh : In(RefreshMode)
    restart : In(1)
    restarted : Out(1)
    access : Out(AccessMonitor())
    errors : Out(ErrorMonitor())
        Only with `config.controller.ecc`.
    row : Out(RowBus()), column : Out(ColumnMonitor())
        The command buses.
    violation : Out(1), violation_rule : Out(6)
        The checker saw a rule of `published_rules` broken in the cycle before.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        members = {
            "memory": In(MemoryPort()),
            "refresh": In(RefreshMode),
            "restart": In(1),
            "restarted": Out(1),
            "access": Out(AccessMonitor()),
            "row": Out(RowBus()),
            "column": Out(ColumnMonitor()),
            "violation": Out(1),
            "violation_rule": Out(RULE_WIDTH),
        }
        if config.controller.ecc:
            members["errors"] = Out(ErrorMonitor())
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.controller = controller = Controller(self._config)
        m.submodules.device = device = Device(self._config)
        m.submodules.checker = checker = Checker(self._config)
        if self._config.clock_ratio == 1:
            connect(m, flipped(self.memory), controller.memory)
        else:
            self._on_slower_clock(m, controller)
        connect(m, controller.row, device.row)
        connect(m, controller.column, device.column)
        connect(m, controller.access, flipped(self.access))
        if self._config.controller.ecc:
            connect(m, controller.errors, flipped(self.errors))
        for name in ("op", "pseudo_channel", "bank", "row"):
            m.d.comb += [
                getattr(self.row, name).eq(getattr(controller.row, name)),
                getattr(checker.row, name).eq(getattr(controller.row, name)),
            ]
        for name in ("op", "pseudo_channel", "bank", "column"):
            m.d.comb += [
                getattr(self.column, name).eq(getattr(controller.column, name)),
                getattr(checker.column, name).eq(getattr(controller.column, name)),
            ]
        m.d.comb += [
            controller.refresh.eq(self.refresh),
            controller.restart.eq(self.restart),
            self.restarted.eq(controller.restarted),
            checker.refresh_enable.eq((self.refresh != RefreshMode.NONE) & ~self.restart),
            self.violation.eq(checker.violation),
            self.violation_rule.eq(checker.rule),
        ]
        return m

    def _on_slower_clock(self, m: Module, controller: Controller) -> None:
        m.submodules.divider = divider = ClockDivider(self._config.clock_ratio)
        m.submodules.answers = answers = PassQueue(MemoryResponse, depth=2)
        asked, answered = self.memory.request, controller.memory.response
        m.d.comb += [
            controller.enable.eq(divider.enable),
            divider.align.eq(self.restart & self.restarted),
            controller.memory.request.valid.eq(asked.valid),
            controller.memory.request.payload.eq(asked.payload),
            asked.ready.eq(controller.memory.request.ready & divider.enable),
            answers.input.valid.eq(answered.valid & divider.enable),
            answers.input.payload.eq(answered.payload),
            answered.ready.eq(answers.input.ready),
        ]
        connect(m, answers.output, flipped(self.memory.response))
