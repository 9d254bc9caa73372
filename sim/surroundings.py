"""What a simulation puts around a design whose memory is outside: devices, or memories behind AXI ports."""

from __future__ import annotations

import dataclasses
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from hdl.config import DesignConfig
from hdl.memory.address_bits import field_widths
from hdl.memory.device import Device
from hdl.memory.stack import StackMap
from hdl.top import Clew, top_members

__all__ = ["AXI_MEMORY_MODULE", "Surrounded", "simulated"]

#: The Verilog module of a memory behind an AXI port; its source is simulation only.
AXI_MEMORY_MODULE = "clew_axi_memory"

_TO_MEMORY = (
    *("awid", "awaddr", "awlen", "awvalid", "wdata", "wstrb", "wlast", "wvalid", "bready"),
    *("arid", "araddr", "arlen", "arvalid", "rready"),
)
_FROM_MEMORY = (
    *("awready", "wready", "bid", "bresp", "bvalid"),
    *("arready", "rid", "rdata", "rresp", "rlast", "rvalid"),
)


class Surrounded(wiring.Component):
    """A design with its memory outside, and that memory, as a component with the ports of one with it inside.

    With the end `bus` it is the device of the `model` end. With `axi4` it is a memory behind the port, on the
    design's clock, as `sim/native/axi_memory.cpp` describes; the monitors of a controller are silent.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        inside = dataclasses.replace(config, memory=dataclasses.replace(config.memory, end="model"))
        super().__init__(top_members(inside))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        m.submodules.design = design = Clew(config)
        ours = {path: value for path, _, value in self.signature.flatten(self)}
        for path, member, value in design.signature.flatten(design):
            if path in ours:
                m.d.comb += value.eq(ours[path]) if member.flow == In else ours[path].eq(value)
        for channel in range(config.memory.channels):

            def of_channel(name: str, channel: int = channel) -> Any:
                member = getattr(design, name)
                return member if config.memory.channels == 1 else member[channel]

            if config.memory.controlled:
                device = Device(config, channel=channel)
                m.submodules[f"device_{channel}"] = device
                connect(m, of_channel("row"), device.row)
                connect(m, of_channel("column"), device.column)
            else:
                m.submodules[f"memory_{channel}"] = self._axi_memory(
                    of_channel("m_axi"), channel, active=design.batch_active
                )
        if not config.memory.controlled:
            m.d.comb += [design.m_axi_aclk.eq(ClockSignal()), design.m_axi_aresetn.eq(~ResetSignal())]
        return m

    def _axi_memory(self, axi: Any, channel: int, *, active: Any) -> Instance:
        memory, widths = self._config.memory, field_widths(self._config.memory.organisation)
        return Instance(
            AXI_MEMORY_MODULE,
            p_ID_BITS=self._config.axi.id_bits,
            p_ADDRESS_BITS=self._config.axi.address_bits,
            p_FIRST=StackMap(memory).first(channel),
            p_PSEUDO_CHANNEL_BITS=widths["pseudo_channel"],
            p_BANK_GROUP_BITS=widths["bank_group"],
            p_COLUMN_BITS=widths["column"],
            p_BANK_BITS=widths["bank"],
            i_clk=ClockSignal(),
            i_rst=ResetSignal(),
            i_active=active,
            **{f"i_{name}": getattr(axi, name) for name in _TO_MEMORY},
            **{f"o_{name}": getattr(axi, name) for name in _FROM_MEMORY},
        )


def simulated(config: DesignConfig) -> wiring.Component:
    """The design as a simulation runs it: with its memory, wherever that is."""
    return Clew(config) if config.memory.end == "model" else Surrounded(config)
