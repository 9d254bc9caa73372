"""The pass queue: a queue that costs no cycle while it is empty."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PassQueue"]


class PassQueue(wiring.Component):
    """A queue of `depth` payloads in order; while it is empty a payload passes combinationally.

    `input.ready` does not depend on `output.ready`: whoever has at most `depth` payloads on the way is
    never made to wait.

    Parameters
    ----------
    shape
        Of the payload.
    depth : int
        A power of two from 2.

    Members
    -------
    input : In(stream of shape)
    output : Out(stream of shape)
    """

    def __init__(self, shape: Any, *, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"depth is {depth!r}: expected a power of two from 2")
        self._shape = shape
        self._depth = depth
        super().__init__({"input": In(stream.Signature(shape)), "output": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.payloads = payloads = memory.Memory(shape=self._shape, depth=self._depth, init=[])
        write, read = payloads.write_port(), payloads.read_port(domain="comb")
        first, last = Signal(range(self._depth)), Signal(range(self._depth))
        level = Signal(range(self._depth + 1))
        empty, put, take = Signal(), Signal(), Signal()
        m.d.comb += [
            empty.eq(level == 0),
            self.input.ready.eq(level != self._depth),
            self.output.valid.eq(self.input.valid | ~empty),
            self.output.payload.eq(Mux(empty, self.input.payload, read.data)),
            put.eq(self.input.valid & self.input.ready & ~(empty & self.output.ready)),
            take.eq(~empty & self.output.ready),
            write.addr.eq(last),
            write.data.eq(self.input.payload),
            write.en.eq(put),
            read.addr.eq(first),
        ]
        m.d.sync += [last.eq(last + put), first.eq(first + take), level.eq(level + put - take)]
        return m
