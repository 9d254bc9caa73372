"""The register slice: what logic on a slower clock takes from the memory's command clock."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RegisterSlice"]


class RegisterSlice(wiring.Component):
    """One register on a stream, between a source at the command clock and a sink on an enable of it.

    A payload is taken at the end of a slow cycle and is there for the whole of the next, at least. One passes
    in every slow cycle.

    Parameters
    ----------
    shape
        Of the payload.

    Members
    -------
    enable : In(1)
        The last cycle of a slow cycle, see `ClockDivider`: both sides move only then.
    input : In(stream of shape)
    output : Out(stream of shape)
        For a sink whose registers change with `enable`; `ready` counts only then.
    empty : Out(1)
    """

    def __init__(self, shape: Any) -> None:
        self._shape = shape
        super().__init__(
            {
                "enable": In(1),
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        full = Signal()
        m.d.comb += [
            self.empty.eq(~full),
            self.output.valid.eq(full),
            self.input.ready.eq(self.enable & (self.output.ready | ~full)),
        ]
        with m.If(self.input.ready):
            m.d.sync += [full.eq(self.input.valid), self.output.payload.eq(self.input.payload)]
        return m
