"""The atomic unit: writes that depend on what is there, as an uninterrupted read and write."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ATOM_BYTES, ATOM_WIDTH, MemoryPort, MemoryStatus, Source, Tag

__all__ = ["AtomicUnit"]

_WORD_BYTES = 4


class AtomicUnit(wiring.Component):
    """A filter in front of a controller that replaces a write which depends on what is there by a read
    and, unless the read forbids it, a write.

    Two kinds of writes depend on what is there. A conditional write takes place if the word that the mask
    selects has its expected value, else it is answered with MISMATCH. A partial write, whose mask has some
    but not all bytes of a group of `write_bytes` which the memory writes only together, brings the group's
    other bytes along. A write may be both. One whose read failed is answered with the status of the read.
    Nothing is written when the answer is not OK.

    Other requests and all responses pass through in the same cycle. A dependent write is not accepted, and
    so keeps later requests out, until it is decided; earlier ones come first because the memory keeps the
    order of one atom. Its read carries the source CONTROLLER, which no requester may use.

    Members
    -------
    port : In(MemoryPort)
        The requesters' side.
    memory : Out(MemoryPort)
        The controller's side.
    hold : In(1)
        Begin nothing: no request passes unless it completes a dependent write that is under way.
    idle : Out(1)
        No dependent write is under way.
    """

    def __init__(self, *, write_bytes: int = 1) -> None:
        self._write_bytes = write_bytes
        super().__init__(
            {"port": In(MemoryPort()), "memory": Out(MemoryPort()), "hold": In(1), "idle": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        asked, answered = self.port.request, self.port.response
        request, response = self.memory.request, self.memory.response
        status = Signal(MemoryStatus)
        tag = Signal(Tag)

        # The mask selects one word: AND-OR instead of a shift.
        words = [
            response.payload.data.word_select(w, 32) & asked.payload.mask[_WORD_BYTES * w].replicate(32)
            for w in range(ATOM_BYTES // _WORD_BYTES)
        ]
        word = Signal(32)
        total: Value = words[0]
        for other in words[1:]:
            total = total | other
        m.d.comb += word.eq(total)

        # -- Partial writes: groups of bytes that are written together --
        size = self._write_bytes
        groups = [asked.payload.mask[low : low + size] for low in range(0, ATOM_BYTES, size)]
        dependent = Signal()
        partial = Cat(group.any() & ~group.all() for group in groups).any()
        m.d.comb += dependent.eq(asked.payload.write & (asked.payload.conditional | partial))
        kept = Signal(ATOM_WIDTH)
        if size > 1:
            # Where the mask needs no widening these are the request's own, or not written.
            m.d.comb += [
                request.payload.mask.eq(Cat(group.any().replicate(size) for group in groups)),
                request.payload.data.eq(
                    Cat(
                        Mux(enable, asked.payload.data.word_select(n, 8), kept.word_select(n, 8))
                        for n, enable in enumerate(asked.payload.mask)
                    )
                ),
            ]
        else:
            m.d.comb += [
                request.payload.mask.eq(asked.payload.mask),
                request.payload.data.eq(asked.payload.data),
            ]

        reading, refusing = Signal(), Signal()
        m.d.comb += [
            *(request.payload[name].eq(asked.payload[name]) for name in ("address", "expected", "priority")),
            request.payload.conditional.eq(0),
            request.payload.write.eq(asked.payload.write & ~reading),
            request.payload.tag.context.eq(asked.payload.tag.context),
            request.payload.tag.source.eq(Mux(reading, Source.CONTROLLER, asked.payload.tag.source)),
            answered.payload.data.eq(Mux(refusing, 0, response.payload.data)),
            answered.payload.tag.eq(Mux(refusing, tag, response.payload.tag)),
            answered.payload.write.eq(response.payload.write | refusing),
            answered.payload.status.eq(Mux(refusing, status, response.payload.status)),
        ]
        own, good = Signal(), Signal()
        found = response.payload.status
        m.d.comb += [
            own.eq(response.payload.tag.source == Source.CONTROLLER),
            good.eq((found == MemoryStatus.OK) | (found == MemoryStatus.CORRECTED)),
        ]

        def respond() -> None:
            m.d.comb += [answered.valid.eq(response.valid), response.ready.eq(answered.ready)]

        with m.FSM():
            with m.State("PASS"):
                respond()
                m.d.comb += [
                    self.idle.eq(1),
                    request.valid.eq(asked.valid & ~self.hold),
                ]
                with m.If(dependent):
                    m.d.comb += reading.eq(1)
                    with m.If(request.valid & request.ready):
                        m.next = "READ"
                with m.Else():
                    m.d.comb += asked.ready.eq(request.ready & ~self.hold)
            with m.State("READ"):
                with m.If(response.valid & own):
                    m.d.comb += response.ready.eq(1)
                    if size > 1:
                        m.d.sync += kept.eq(response.payload.data)
                    with m.If(good):
                        m.d.sync += status.eq(MemoryStatus.MISMATCH)
                        with m.If(~asked.payload.conditional | (word == asked.payload.expected)):
                            m.next = "WRITE"
                        with m.Else():
                            m.next = "REFUSE"
                    with m.Else():
                        m.d.sync += status.eq(found)
                        m.next = "REFUSE"
                with m.Else():
                    respond()
            with m.State("WRITE"):
                respond()
                m.d.comb += [request.valid.eq(1), asked.ready.eq(request.ready)]
                with m.If(request.ready):
                    m.next = "PASS"
            with m.State("REFUSE"):
                # Accept now and answer in the next cycle: no requester expects both at once.
                m.d.comb += asked.ready.eq(1)
                m.d.sync += tag.eq(asked.payload.tag)
                m.next = "ANSWER"
            with m.State("ANSWER"):
                # Nothing is on offer when this begins: no response passed in the cycles before.
                m.d.comb += [refusing.eq(1), answered.valid.eq(1)]
                with m.If(answered.ready):
                    m.next = "PASS"
        return m
