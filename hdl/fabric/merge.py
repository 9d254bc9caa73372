"""The bulk merge: several requesters of the compute side share the bulk channel of the link."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import MemoryPort, Source

__all__ = ["BulkMerge"]


class BulkMerge(wiring.Component):
    """Merges Sequencer, DataMover and host port into one memory port, round robin.

    A request passes combinationally. Each requester waits for at most one request of each other one.
    Responses go back by `tag.source`.

    Members
    -------
    sequencer, mover, host : In(MemoryPort)
    memory : Out(MemoryPort)
    sleeps : Out(1)
        See `ClockGate`.
    """

    sequencer: In(MemoryPort())
    mover: In(MemoryPort())
    host: In(MemoryPort())
    memory: Out(MemoryPort())
    sleeps: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ports = {Source.SEQUENCER: self.sequencer, Source.MOVER: self.mover, Source.HOST: self.host}
        requests = [port.request for port in ports.values()]
        out = self.memory.request

        # `last` had the latest grant and comes last now; an offered request is held until it is taken.
        last = Signal(range(len(requests)))
        held = Signal()
        chosen = Signal.like(last)
        with m.If(held):
            m.d.comb += chosen.eq(last)
        with m.Else():
            with m.Switch(last):
                for index in range(len(requests)):
                    with m.Case(index):
                        first, second = ((index + step) % len(requests) for step in (1, 2))
                        m.d.comb += chosen.eq(
                            Mux(requests[first].valid, first, Mux(requests[second].valid, second, index))
                        )
        with m.Switch(chosen):
            for index, request in enumerate(requests):
                with m.Case(index):
                    m.d.comb += [
                        out.valid.eq(request.valid),
                        out.payload.eq(request.payload),
                        request.ready.eq(out.ready),
                    ]
        m.d.comb += self.sleeps.eq(~(out.valid | self.memory.response.valid))
        with m.If(out.valid):
            m.d.sync += [last.eq(chosen), held.eq(~out.ready)]

        response = self.memory.response
        for port in ports.values():
            m.d.comb += port.response.payload.eq(response.payload)
        with m.Switch(response.payload.tag.source):
            for source, port in ports.items():
                with m.Case(source):
                    m.d.comb += [
                        port.response.valid.eq(response.valid),
                        response.ready.eq(port.response.ready),
                    ]
            with m.Default():
                # No such requester: taken, so that a fault elsewhere cannot stop the channel.
                m.d.comb += response.ready.eq(1)
        return m
