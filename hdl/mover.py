"""The DataMover: copies atoms between memory and scratchpad, many at a time."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from .config import DesignConfig
from .layouts import (
    ATOM_BYTES,
    ATOM_WIDTH,
    CONTEXT_WIDTH,
    CopyCommand,
    MemoryPort,
    MemoryStatus,
    ScratchpadPort,
    Source,
)

__all__ = ["DataMover"]


class DataMover(wiring.Component):
    """Copies atoms between memory and scratchpad: one command at a time, up to one atom a cycle.

    Up to 64 atoms are outstanding, one for each tag context, and may be answered in any order. A command
    is done when all of its atoms are answered. An atom that could not be read (status neither OK nor
    CORRECTED) is not written to the scratchpad. Addresses wrap.

    Members
    -------
    command : In(stream of CopyCommand)
    memory : Out(MemoryPort())
        Tagged `Source.MOVER`.
    scratchpad : Out(ScratchpadPort())
    idle : Out(1)
        No command is being executed.
    errors : Out(1)
        An atom failed since `clear`; sticky.
    error_count : Out(16)
        How many did; stops at 65,535.
    clear : In(1)
        Forgets the errors.
    sleeps : Out(1)
        See `ClockGate`.
    """

    #: Atoms read from the scratchpad that may wait for the memory: enough for one a cycle.
    BUFFER = 4

    command: In(stream.Signature(CopyCommand))
    memory: Out(MemoryPort())
    scratchpad: Out(ScratchpadPort())
    idle: Out(1)
    errors: Out(1)
    error_count: Out(16)
    clear: In(1)
    sleeps: Out(1)

    def __init__(self, config: DesignConfig) -> None:
        self.config = config
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.memory.request, self.memory.response
        pad = self.scratchpad.request

        command = Signal(CopyCommand)
        count = Signal(17)
        # Atoms of the command that were put to the memory; that were asked of the scratchpad, and came.
        issued, fetched, arrived = (Signal(17, name=name) for name in ("issued", "fetched", "arrived"))
        # One bit for each tag context: its atom is not answered. Atoms take the contexts in turn.
        busy = Signal(2**CONTEXT_WIDTH)
        context = issued[:CONTEXT_WIDTH]
        # The context is free: a register, for the request begins with it.
        free = Signal()
        # Among the last 64 atoms put to the memory, one has the context that the response names.
        behind = Signal(CONTEXT_WIDTH)
        answered = Signal(17)

        m.submodules.buffer = buffer = memory.Memory(shape=ATOM_WIDTH, depth=self.BUFFER, init=[])
        buffer_write, buffer_read = buffer.write_port(), buffer.read_port(domain="comb")

        failed = (response.p.status != MemoryStatus.OK) & (response.p.status != MemoryStatus.CORRECTED)
        m.d.comb += [
            behind.eq(issued - 1 - response.p.tag.context),
            answered.eq(issued - 1 - behind),
            request.p.address.eq(command.memory_address + issued),
            request.p.write.eq(command.to_memory),
            request.p.data.eq(buffer_read.data),
            request.p.mask.eq(Const(1).replicate(ATOM_BYTES)),
            request.p.tag.source.eq(Source.MOVER),
            request.p.tag.context.eq(context),
            pad.p.address.eq(command.scratchpad_address + Mux(command.to_memory, fetched, answered)),
            pad.p.write.eq(~command.to_memory),
            pad.p.mask.eq(Const(1).replicate(ATOM_BYTES)),
            buffer_write.addr.eq(arrived),
            buffer_write.data.eq(self.scratchpad.read_data),
            buffer_write.en.eq(self.scratchpad.read_valid),
            buffer_read.addr.eq(issued),
            # Nothing is answered while idle; if it is, it is a fault elsewhere and must not stop the port.
            response.ready.eq(1),
        ]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [
                    self.idle.eq(1),
                    self.command.ready.eq(1),
                    self.sleeps.eq(~(self.command.valid | response.valid | self.clear)),
                ]
                with m.If(self.command.valid):
                    m.d.sync += [
                        command.eq(self.command.payload),
                        count.eq(self.command.p.count_minus_1 + 1),
                        issued.eq(0),
                        free.eq(1),
                        fetched.eq(0),
                        arrived.eq(0),
                    ]
                    m.next = "COPY"

            with m.State("COPY"):
                with m.If(command.to_memory):
                    m.d.comb += [
                        # Scratchpad data cannot be stalled: it is asked for only with a place for it.
                        pad.valid.eq((fetched != count) & (fetched - issued < self.BUFFER)),
                        request.valid.eq((arrived != issued) & free),
                    ]
                    with m.If(pad.valid & pad.ready):
                        m.d.sync += fetched.eq(fetched + 1)
                    with m.If(self.scratchpad.read_valid):
                        m.d.sync += arrived.eq(arrived + 1)
                with m.Else():
                    m.d.comb += [
                        request.valid.eq((issued != count) & free),
                        pad.valid.eq(response.valid & ~failed),
                        # Only here: the answer to a write must not disturb a read that is being offered.
                        pad.p.data.eq(response.p.data),
                        response.ready.eq(pad.ready | failed),
                    ]
                with m.If(request.valid & request.ready):
                    m.d.sync += issued.eq(issued + 1)
                with m.If((issued == count) & (busy == 0)):
                    m.next = "IDLE"

        begins, ends = Signal(), Signal()
        m.d.comb += [begins.eq(request.valid & request.ready), ends.eq(response.valid & response.ready)]
        following = (context + 1)[:CONTEXT_WIDTH]
        with m.If(~self.idle):
            m.d.sync += free.eq(
                Mux(
                    begins,
                    (busy.bit_select(following, 1) == 0) | (ends & (response.p.tag.context == following)),
                    (busy.bit_select(context, 1) == 0) | (ends & (response.p.tag.context == context)),
                )
            )
        with m.If(begins | ends):
            m.d.sync += busy.eq((busy | begins << context) & ~(ends << response.p.tag.context))
        with m.If(self.clear):
            m.d.sync += [self.errors.eq(0), self.error_count.eq(0)]
        with m.Elif(ends & failed):
            m.d.sync += self.errors.eq(1)
            with m.If(~self.error_count.all()):
                m.d.sync += self.error_count.eq(self.error_count + 1)
        return m
