"""The adaptive page policy: whether a bank's last rows would rather have been closed after their last hit."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PagePredictor"]


class PagePredictor(wiring.Component):
    """A saturating counter of two bits a bank: up when a row would better have been closed, else down.

    It learns only from what the policy could have changed: a request that comes to a bank where nothing is
    queued. It says `close` from the second miss in a row on; at first every row is to stay open.

    Members
    -------
    arrival : In(1)
        A request comes to the bank `unit`, where nothing is queued.
    unit : In(unit)
    same_row : In(1)
        It wants the row that was opened there last.
    activated : In(units)
        The bank where a row is opened.
    close : Out(units)
        The banks whose row is probably not wanted again.
    """

    def __init__(self, *, units: int) -> None:
        self._units = units
        super().__init__(
            {
                "arrival": In(1),
                "unit": In(range(units)),
                "same_row": In(1),
                "activated": In(units),
                "close": Out(units),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        units = self._units
        # A bank in which no row was opened yet has no last row.
        known = Signal(units)
        arrives, hit, missed = Signal(units), Signal(units), Signal(units)
        high, low = Signal(units), Signal(units)
        m.d.comb += [
            arrives.eq((self.arrival << self.unit)[:units] & known),
            hit.eq(arrives & self.same_row.replicate(units)),
            missed.eq(arrives & ~self.same_row.replicate(units)),
            self.close.eq(high),
        ]
        m.d.sync += [
            known.eq(known | self.activated),
            high.eq((high & ~hit) | (high & low) | (low & missed)),
            low.eq((low & ~arrives) | (missed & (high | ~low)) | (hit & high & ~low)),
        ]
        return m
