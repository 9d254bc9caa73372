"""The error log: how many errors ECC has found, and where the last ones were."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import ADDRESS_WIDTH, ErrorMonitor

__all__ = ["ErrorLog"]


class ErrorLog(wiring.Component):
    """Counts corrected and uncorrectable reads, inside and outside of batches; 32 bits, stopping at the top.

    Members
    -------
    errors : In(ErrorMonitor, as outputs of the controller)
    clear : In(1)
        Zeroes the counts; the addresses stay.
    corrected, uncorrectable : Out(32)
        Reads that were answered CORRECTED, and POISONED.
    corrected_address, uncorrectable_address : Out(32)
        The atom of the last of each.
    """

    errors: In(ErrorMonitor())
    clear: In(1)
    corrected: Out(32)
    uncorrectable: Out(32)
    corrected_address: Out(ADDRESS_WIDTH)
    uncorrectable_address: Out(ADDRESS_WIDTH)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for found, count, address in (
            (self.errors.corrected, self.corrected, self.corrected_address),
            (self.errors.uncorrectable, self.uncorrectable, self.uncorrectable_address),
        ):
            with m.If(found):
                m.d.sync += address.eq(self.errors.address)
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(found & ~count.all()):
                m.d.sync += count.eq(count + 1)
        return m
