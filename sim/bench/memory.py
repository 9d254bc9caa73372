"""The memory subsystem on its own: controller, device and protocol checker as one design under test."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.config import DesignConfig
from hdl.layouts import AccessMonitor, ErrorMonitor, MemoryPort, RefreshMode, RowBus
from hdl.memory.checker import RULE_WIDTH, Checker, ColumnMonitor
from hdl.memory.controller import Controller
from hdl.memory.device import Device

__all__ = ["MemorySubsystem"]


class MemorySubsystem(wiring.Component):
    """A channel from its memory port down to the storage, with the checker listening to its buses.

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
        connect(m, flipped(self.memory), controller.memory)
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
