"""The error log: how many errors ECC has found, and where the last ones were."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import ADDRESS_WIDTH, ErrorMonitor

__all__ = ["ErrorLog"]


class ErrorLog(wiring.Component):
    """Counts corrected and uncorrectable reads, inside and outside of batches; 32 bits, stopping at the top.

    Parameters
    ----------
    channels : int
        How many are listened to; each counts.

    Members
    -------
    errors : In(ErrorMonitor, as outputs of the controller), `channels` times
    clear : In(1)
        Zeroes the counts; the addresses stay.
    corrected, uncorrectable : Out(32)
        Reads that were answered CORRECTED, and POISONED.
    corrected_address, uncorrectable_address : Out(32)
        The atom of the last of each; in one cycle that of the highest channel.
    """

    def __init__(self, *, channels: int) -> None:
        super().__init__(
            {
                "errors": In(ErrorMonitor()).array(channels),
                "clear": In(1),
                "corrected": Out(32),
                "uncorrectable": Out(32),
                "corrected_address": Out(ADDRESS_WIDTH),
                "uncorrectable_address": Out(ADDRESS_WIDTH),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for kind in ("corrected", "uncorrectable"):
            count, address = getattr(self, kind), getattr(self, f"{kind}_address")
            found = Cat(getattr(errors, kind) for errors in self.errors)
            total = Signal(len(count) + 1, name=f"{kind}_total")
            m.d.comb += total.eq(count + sum(found))
            for errors in self.errors:
                with m.If(getattr(errors, kind)):
                    m.d.sync += address.eq(errors.address)
            with m.If(self.clear):
                m.d.sync += count.eq(0)
            with m.Elif(found.any()):
                m.d.sync += count.eq(Mux(total[-1], ~0, total))
        return m
