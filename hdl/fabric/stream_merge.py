"""The stream merge: several streams of one shape become one."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..round_robin import RoundRobin

__all__ = ["StreamMerge"]


class StreamMerge(wiring.Component):
    """Merges streams into one, round robin and combinationally: it costs no cycle.

    Each input waits for at most one payload of each other one. A payload that was offered stays offered
    until it is taken. Reset it to begin again at input 0.

    Parameters
    ----------
    shape
        Of the payload.
    inputs : int
        How many, from 2.

    Members
    -------
    input : In(stream of shape), `inputs` times
    output : Out(stream of shape)
    """

    def __init__(self, shape: Any, *, inputs: int) -> None:
        if inputs < 2:
            raise ValueError(f"inputs is {inputs!r}: expected 2 or more")
        super().__init__(
            {
                "input": In(stream.Signature(shape)).array(inputs),
                "output": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = len(self.input)
        m.submodules.arbiter = arbiter = RoundRobin(count)
        waiting = Signal(count)
        #: The input whose payload was offered and not taken, as a bit; 0 without one.
        held = Signal(count)
        m.d.comb += [
            waiting.eq(Cat(source.valid for source in self.input)),
            arbiter.requests.eq(Mux(held.any(), held, waiting)),
            arbiter.used.eq(self.output.ready),
            self.output.valid.eq(arbiter.any),
        ]
        m.d.sync += held.eq(Mux(self.output.ready, 0, arbiter.one_hot))
        with m.Switch(arbiter.grant):
            for index, source in enumerate(self.input):
                with m.Case(index):
                    m.d.comb += self.output.payload.eq(source.payload)
        for index, source in enumerate(self.input):
            m.d.comb += source.ready.eq(self.output.ready & arbiter.one_hot[index])
        return m
