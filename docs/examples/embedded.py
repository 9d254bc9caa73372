"""A Clew as a component of somebody's own Amaranth design: after reset it reads the ID register.

Every port of the Verilog is a member of `Clew`; the monitors may be left alone. Run as a program it prints
the whole as one Verilog file.
"""

from amaranth import Module
from amaranth.back import verilog
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hdl.config import named_config
from hdl.registers import ID_VALUE, REGISTER_BY_NAME
from hdl.top import Clew


class Embedded(wiring.Component):
    """Says by `found` that the accelerator beside it is a Clew."""

    found: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.clew = clew = Clew(named_config("small"))
        m.d.comb += [
            clew.s_axil.araddr.eq(REGISTER_BY_NAME["ID"].offset),
            clew.s_axil.rready.eq(1),
        ]
        with m.FSM():
            with m.State("ASK"):
                m.d.comb += clew.s_axil.arvalid.eq(1)
                with m.If(clew.s_axil.arready):
                    m.next = "WAIT"
            with m.State("WAIT"), m.If(clew.s_axil.rvalid & (clew.s_axil.rdata == ID_VALUE)):
                m.d.sync += self.found.eq(1)
        return m


if __name__ == "__main__":
    print(verilog.convert(Embedded(), name="embedded", strip_internal_attrs=True))
