"""A channel's memory under the controller of this design: controller, checker, and device or device buses."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig
from ..layouts import MemoryPort, RefreshMode
from .checker import Checker
from .controller import Controller
from .device import Device
from .end import end_members
from .stack import StackMap

__all__ = ["ControlledMemory"]


class ControlledMemory(wiring.Component):
    """What is below a channel's arbiter with the memory ends `model` and `bus`.

    Parameters
    ----------
    channel : int
        Its number in the stack.

    Members
    -------
    memory : In(MemoryPort())
        Addresses count from 0 within the channel.
    enable : In(1)
        Only with a `clock_ratio` above 1: moves the port, see `Controller`.
    refresh : In(RefreshMode), restart : In(1), restarted : Out(1), crowded : Out(1), press : In(1)
        See `Controller`.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`. It sleeps with a device and without a checker only.
    row, column, access, violation, violation_rule, errors, fault
        See `end_members`. An injector that is armed for an atom of one channel is disarmed in the others.
    """

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        members: dict[str, Any] = {
            "memory": In(MemoryPort()),
            "refresh": In(RefreshMode),
            "restart": In(1),
            "restarted": Out(1),
            "crowded": Out(1),
            "press": In(1),
            "slept": In(SLEPT_BITS),
            "sleeps": Out(1),
            **end_members(config),
        }
        if config.clock_ratio > 1:
            members["enable"] = In(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.controller = controller = Controller(config)
        connect(m, flipped(self.memory), controller.memory)
        connect(m, controller.access, flipped(self.access))
        m.d.comb += [
            controller.refresh.eq(self.refresh),
            controller.restart.eq(self.restart),
            controller.press.eq(self.press),
            controller.slept.eq(self.slept),
            self.restarted.eq(controller.restarted),
            self.crowded.eq(controller.crowded),
        ]
        if config.clock_ratio > 1:
            m.d.comb += controller.enable.eq(self.enable)

        listeners: list[tuple[Any, Any]] = []
        if config.memory.end == "model":
            m.submodules.device = device = Device(config, channel=self._channel)
            connect(m, controller.row, device.row)
            connect(m, controller.column, device.column)
            listeners.append((self.row, self.column))
            if not config.checker:
                m.d.comb += self.sleeps.eq(controller.sleeps & device.sleeps)
            if config.controller.ecc:
                self._connect_fault(m, device)
        else:
            connect(m, controller.row, flipped(self.row))
            connect(m, controller.column, flipped(self.column))
        if config.controller.ecc:
            first = StackMap(config.memory).first(self._channel)
            m.d.comb += [
                self.errors.corrected.eq(controller.errors.corrected),
                self.errors.uncorrectable.eq(controller.errors.uncorrectable),
                self.errors.address.eq(controller.errors.address | first),
            ]
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

    def _connect_fault(self, m: Module, device: Device) -> None:
        stack, fault = StackMap(self._config.memory), self.fault
        mine = stack.channel_wires(fault.address) == self._channel
        m.d.comb += [
            device.fault.address.eq(fault.address ^ stack.first(self._channel)),
            device.fault.lane.eq(fault.lane),
            device.fault.flips.eq(fault.flips),
            device.fault.set_flips.eq(fault.set_flips),
            device.fault.set_armed.eq(fault.set_armed),
            device.fault.arm.eq(fault.arm & mine),
            device.fault.sticky.eq(fault.sticky),
            fault.armed.eq(device.fault.armed),
        ]
