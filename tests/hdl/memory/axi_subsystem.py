"""An AXI memory, and beside it the width converter, as one design under test with its clocks as ports."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.config import AxiConfig, DesignConfig, MemoryConfig
from hdl.fabric.axi4 import Axi4
from hdl.fabric.axi_width import AxiWidthConverter
from hdl.layouts import MemoryPort
from hdl.memory.axi.axi_memory import AxiMemory

__all__ = ["CONFIG", "AxiSubsystem"]

#: Everything small, so that it fills up: 512 atoms, 7 IDs for single reads, 16 atoms on the way.
CONFIG = DesignConfig(
    memory=MemoryConfig(end="axi4", rows=2, columns=8),
    axi=AxiConfig(id_bits=3, address_bits=20, outstanding=16, hazard_buckets=16),
)
#: The second of two channels: its AXI addresses begin in the middle.
CHANNEL = 1


class AxiSubsystem(wiring.Component):
    """An `AxiMemory`, its memory port in `sync`; and an `AxiWidthConverter`, connected to nothing of it.

    Members
    -------
    memory : In(MemoryPort())
    restart : In(1), restarted : Out(1)
    m_axi : Out(Axi4), m_axi_aclk : In(1), m_axi_aresetn : In(1)
    s_axi : In(Axi4), m_axi_narrow : Out(Axi4)
        Both sides of the converter, on the clock of `m_axi`.
    """

    def __init__(self) -> None:
        widths = {"id_bits": CONFIG.axi.id_bits, "address_bits": CONFIG.axi.address_bits}
        super().__init__(
            {
                "memory": In(MemoryPort()),
                "restart": In(1),
                "restarted": Out(1),
                "m_axi": Out(Axi4(**widths)),
                "s_axi": In(Axi4(**widths)),
                "m_axi_narrow": Out(Axi4(**widths, data_bits=128)),
                "m_axi_aclk": In(1),
                "m_axi_aresetn": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.axi_memory = axi_memory = AxiMemory(CONFIG, channel=CHANNEL)
        converter = AxiWidthConverter(id_bits=CONFIG.axi.id_bits, address_bits=CONFIG.axi.address_bits)
        m.submodules.converter = DomainRenamer("axi")(converter)
        connect(m, flipped(self.s_axi), converter.s_axi)
        connect(m, converter.m_axi, flipped(self.m_axi_narrow))
        m.domains.axi = axi = ClockDomain("axi")
        connect(m, flipped(self.memory), axi_memory.memory)
        connect(m, axi_memory.m_axi, flipped(self.m_axi))
        m.d.comb += [
            ClockSignal("axi").eq(self.m_axi_aclk),
            axi.rst.eq(~self.m_axi_aresetn),
            axi_memory.restart.eq(self.restart),
            self.restarted.eq(axi_memory.restarted),
        ]
        return m
