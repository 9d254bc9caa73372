"""Clew behind a LiteDRAM AXI port: an ECP5 with 16-bit DDR3, whose user port has 128 bits.

    python docs/examples/litedram.py > clew_litedram.v

The top `clew_litedram` has the signals of a LiteDRAM user port, so that it can be wired to a core of
LiteDRAM's generator (`litedram_gen`, `user_ports: {axi_0: {type: axi, id_width: 6}}`) name by name:
`m_axi_awaddr` to `user_port_axi_0_awaddr`, and so on. LiteDRAM has no AxCACHE and AxPROT: leave them open.
`m_axi_aclk` is its `user_clk`. Reset is over, `rst` low and `m_axi_aresetn` high, once `init_done` is high.
"""

import dataclasses
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.config import AxiConfig, DesignConfig, MemoryConfig, named_config
from hdl.fabric.axi import AxiLite
from hdl.fabric.axi4 import Axi4
from hdl.fabric.axi_width import AxiWidthConverter
from hdl.generate import verilog
from hdl.top import Clew

__all__ = ["CONFIG", "LiteDramClew"]

#: 128 MiB (MT41K64M16): 4,096 rows of the preset's shape are as many atoms. The other sizes are an FPGA's.
CONFIG: DesignConfig = dataclasses.replace(
    named_config("small"),
    memory=MemoryConfig(end="axi4", rows=4096),
    axi=AxiConfig(address_bits=27, outstanding=16, hazard_buckets=64),
)


class LiteDramClew(wiring.Component):
    """The design, its manager behind the width converter.

    Members
    -------
    s_axil : In(AxiLite()), interrupt : Out(1)
        The host.
    m_axi : Out(Axi4(data_bits=128)), m_axi_aclk : In(1), m_axi_aresetn : In(1)
        LiteDRAM's user port, its clock and reset.
    """

    def __init__(self) -> None:
        self._widths = {"id_bits": CONFIG.axi.id_bits, "address_bits": CONFIG.axi.address_bits}
        super().__init__(
            {
                "s_axil": In(AxiLite()),
                "interrupt": Out(1),
                "m_axi": Out(Axi4(**self._widths, data_bits=128)),
                "m_axi_aclk": In(1),
                "m_axi_aresetn": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.clew = clew = Clew(CONFIG)
        converter: Any = AxiWidthConverter(**self._widths)
        m.submodules.converter = DomainRenamer("user")(converter)
        m.domains.user = ClockDomain("user")
        connect(m, flipped(self.s_axil), clew.s_axil)
        connect(m, clew.m_axi, converter.s_axi)
        connect(m, converter.m_axi, flipped(self.m_axi))
        m.d.comb += [
            self.interrupt.eq(clew.interrupt),
            ClockSignal("user").eq(self.m_axi_aclk),
            ResetSignal("user").eq(~self.m_axi_aresetn),
            clew.m_axi_aclk.eq(self.m_axi_aclk),
            clew.m_axi_aresetn.eq(self.m_axi_aresetn),
        ]
        return m


if __name__ == "__main__":
    print(verilog(LiteDramClew(), name="clew_litedram", registered_reset=True), end="")
