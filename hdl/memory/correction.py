"""The correction stage: ECC between the device's read data and the responses."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from ..config import ControllerConfig
from ..layouts import ADDRESS_WIDTH, ATOM_CHECK_WIDTH, ATOM_WIDTH, ErrorMonitor, MemoryStatus
from .ecc import AtomDecoder

__all__ = ["Correction"]


class Correction(wiring.Component):
    """Read data with check bits in, good data with its status one cycle later; every error is reported.

    Members
    -------
    issue : In(1), issue_address : In(32)
        A read of that atom is decided. At most `response_slots` are between here and their data.
    read_valid : In(1), read_data : In(256), read_check : In(32)
        From the device, in the order of `issue`.
    valid : Out(1), data : Out(256)
        The same, one cycle later; zero if it is uncorrectable.
    status : Out(MemoryStatus)
        OK, CORRECTED or POISONED.
    errors : Out(ErrorMonitor())
        In the cycle of `valid`.
    """

    def __init__(self, config: ControllerConfig) -> None:
        self._slots = config.response_slots
        super().__init__(
            {
                "issue": In(1),
                "issue_address": In(ADDRESS_WIDTH),
                "read_valid": In(1),
                "read_data": In(ATOM_WIDTH),
                "read_check": In(ATOM_CHECK_WIDTH),
                "valid": Out(1),
                "data": Out(ATOM_WIDTH),
                "status": Out(MemoryStatus),
                "errors": Out(ErrorMonitor()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._slots

        # -- The addresses of the reads under way --
        m.submodules.addresses = addresses = memory.Memory(
            shape=unsigned(ADDRESS_WIDTH), depth=slots, init=[]
        )
        issued, arrived = Signal(range(slots)), Signal(range(slots))
        write, read = addresses.write_port(), addresses.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.issue),
            write.addr.eq(issued),
            write.data.eq(self.issue_address),
            read.addr.eq(arrived),
        ]
        m.d.sync += [issued.eq(issued + self.issue), arrived.eq(arrived + self.read_valid)]

        # -- The stage: decoded before the register, because what follows the responses is the longer path --
        m.submodules.decoder = decoder = AtomDecoder()
        m.d.comb += [decoder.data.eq(self.read_data), decoder.check.eq(self.read_check)]
        m.d.sync += [
            self.valid.eq(self.read_valid),
            self.errors.corrected.eq(self.read_valid & decoder.corrected),
            self.errors.uncorrectable.eq(self.read_valid & decoder.uncorrectable),
        ]
        with m.If(self.read_valid):
            m.d.sync += [self.data.eq(decoder.corrected_data), self.errors.address.eq(read.data)]
        m.d.comb += self.status.eq(
            Mux(
                self.errors.uncorrectable,
                MemoryStatus.POISONED,
                Mux(self.errors.corrected, MemoryStatus.CORRECTED, MemoryStatus.OK),
            )
        )
        return m
