"""The router: a stream whose payloads go to one of several takers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Router"]


class Router(wiring.Component):
    """Hands each payload to the output that `select` names, combinationally: it costs no cycle.

    Payloads stay in order: one whose output is not ready holds back those behind it.

    Parameters
    ----------
    shape
        Of the payload.
    outputs : int
        How many, from 2; a power of two.

    Members
    -------
    input : In(stream of shape)
    select : In(log2 outputs)
        The output for the payload that `input` offers now.
    output : Out(stream of shape), `outputs` times
    """

    def __init__(self, shape: Any, *, outputs: int) -> None:
        if outputs < 2 or outputs & (outputs - 1):
            raise ValueError(f"outputs is {outputs!r}: expected a power of two from 2")
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "select": In(ceil_log2(outputs)),
                "output": Out(stream.Signature(shape)).array(outputs),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ready = Signal(len(self.output))
        for index, output in enumerate(self.output):
            m.d.comb += [
                output.payload.eq(self.input.payload),
                output.valid.eq(self.input.valid & (self.select == index)),
                ready[index].eq(output.ready),
            ]
        m.d.comb += self.input.ready.eq(ready.bit_select(self.select, 1))
        return m
