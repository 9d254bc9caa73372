"""The stream buffer: a register between two blocks, so that a path through both ends in it."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

__all__ = ["StreamBuffer", "joined"]


class StreamBuffer(wiring.Component):
    """Two registers on a stream: neither `valid` nor `ready` passes combinationally. It costs one cycle, and
    a payload passes in every cycle.

    Parameters
    ----------
    shape
        Of the payload.

    Members
    -------
    input : In(stream of shape)
    output : Out(stream of shape)
    empty : Out(1)
    """

    def __init__(self, shape: Any) -> None:
        self._shape = shape
        super().__init__(
            {
                "input": In(stream.Signature(shape)),
                "output": Out(stream.Signature(shape)),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        full, waiting = Signal(), Signal()
        # What came in a cycle in which the output was not taken.
        behind = Signal.like(Value.cast(self.input.payload))
        m.d.comb += [
            self.input.ready.eq(~waiting),
            self.output.valid.eq(full),
            self.empty.eq(~full),
        ]
        with m.If(self.output.ready | ~full):
            m.d.sync += [
                full.eq(self.input.valid | waiting),
                waiting.eq(0),
                Value.cast(self.output.payload).eq(Mux(waiting, behind, Value.cast(self.input.payload))),
            ]
        with m.Elif(~waiting):
            m.d.sync += [waiting.eq(self.input.valid), behind.eq(Value.cast(self.input.payload))]
        return m


def joined(m: Module, name: str, source: Any, sink: Any, *, shape: Any, registered: bool) -> Value:
    """Connects the stream `source` of one block to `sink` of another, through the submodule `name`_buffer if
    `registered`; returns whether nothing is on the way between them."""
    if not registered:
        connect(m, source, sink)
        return Const(1)
    m.submodules[f"{name}_buffer"] = buffer = StreamBuffer(shape)
    connect(m, source, buffer.input)
    connect(m, buffer.output, sink)
    return buffer.empty
