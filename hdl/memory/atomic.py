"""The atomic unit: writes that depend on what is there, as a read and a write with nothing between them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import ATOM_BYTES, MemoryPort, MemoryRequest, MemoryStatus, Source

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

    A dependent write is accepted with its read, and kept until it is decided and written. Meanwhile other
    requests pass in the same cycle, but for those of its atom and for further dependent writes, which wait
    at the port and keep what is behind them out: so nothing comes between the read and the write of an atom,
    and the memory, which keeps the order of one atom, has them in the order of the port. Responses pass in
    the same cycle. The read carries the source CONTROLLER, which no requester may use.

    Members
    -------
    port : In(MemoryPort)
        The requesters' side.
    memory : Out(MemoryPort)
        The controller's side.
    hold : In(1)
        Begin nothing: no request passes but the write that completes a dependent one.
    idle : Out(1)
        No dependent write is under way.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, *, write_bytes: int = 1) -> None:
        self._write_bytes = write_bytes
        super().__init__(
            {
                "port": In(MemoryPort()),
                "memory": Out(MemoryPort()),
                "hold": In(1),
                "idle": Out(1),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        asked, answered = self.port.request, self.port.response
        request, response = self.memory.request, self.memory.response
        kept = Signal(MemoryRequest)
        status = Signal(MemoryStatus)
        size = self._write_bytes

        def groups(mask: Value) -> list[Value]:
            """The bytes that are written together, for a mask."""
            return [mask[low : low + size] for low in range(0, ATOM_BYTES, size)]

        # -- Requests: the kept write, or what is asked --
        dependent = Signal()
        partial = Cat(group.any() & ~group.all() for group in groups(asked.payload.mask)).any()
        waits, standing = Signal(), Signal()
        reading, writing, completing, refusing = (
            Signal(name=name) for name in ("reading", "writing", "completing", "refusing")
        )
        m.d.comb += [
            dependent.eq(asked.payload.write & (asked.payload.conditional | partial)),
            waits.eq(self.hold | (~self.idle & (dependent | (asked.payload.address == kept.address)))),
            # What was offered stays on offer.
            completing.eq(writing & ~standing),
            request.payload.eq(asked.payload),
            request.payload.conditional.eq(0),
            request.valid.eq(asked.valid & ~waits),
            asked.ready.eq(request.ready & ~waits),
        ]
        with m.If(dependent):
            m.d.comb += [request.payload.write.eq(0), request.payload.tag.source.eq(Source.CONTROLLER)]
        with m.If(completing):
            m.d.comb += [
                request.payload.eq(kept),
                request.payload.conditional.eq(0),
                request.payload.mask.eq(Cat(group.any().replicate(size) for group in groups(kept.mask))),
                request.valid.eq(1),
                asked.ready.eq(0),
            ]
        m.d.sync += standing.eq(request.valid & ~request.ready & ~completing)
        m.d.comb += self.sleeps.eq(~(asked.valid | request.valid | standing | response.valid | refusing))

        # -- Responses: those of the memory but the read's, and the refusal --
        found = response.payload
        own, good, same = Signal(), Signal(), Signal()
        # The mask selects one word: AND-OR instead of a shift.
        words = [
            found.data.word_select(w, 32) & kept.mask[_WORD_BYTES * w].replicate(32)
            for w in range(ATOM_BYTES // _WORD_BYTES)
        ]
        word = Signal(32)
        total: Value = words[0]
        for other in words[1:]:
            total = total | other
        m.d.comb += [
            word.eq(total),
            same.eq(~kept.conditional | (word == kept.expected)),
            own.eq(reading & (found.tag.source == Source.CONTROLLER)),
            good.eq((found.status == MemoryStatus.OK) | (found.status == MemoryStatus.CORRECTED)),
            answered.valid.eq(refusing | (response.valid & ~own)),
            response.ready.eq(~refusing & (own | answered.ready)),
            answered.payload.data.eq(Mux(refusing, 0, found.data)),
            answered.payload.tag.eq(Mux(refusing, kept.tag, found.tag)),
            answered.payload.write.eq(refusing | found.write),
            answered.payload.status.eq(Mux(refusing, status, found.status)),
        ]

        # -- The dependent write --
        with m.FSM():
            with m.State("PASS"):
                m.d.comb += self.idle.eq(1)
                # Of no use before the first that depends, but this is a short way to so many registers.
                with m.If(asked.valid):
                    m.d.sync += kept.eq(asked.payload)
                with m.If(request.valid & request.ready & dependent):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += reading.eq(1)
                with m.If(response.valid & own):
                    # Nothing is on offer to the requesters in this cycle: a refusal may begin in the next.
                    m.d.sync += status.eq(Mux(good, MemoryStatus.MISMATCH, found.status))
                    if size > 1:
                        # Where the mask needs no widening these are the request's own, or not written.
                        m.d.sync += kept.data.eq(
                            Cat(
                                Mux(enable, kept.data.word_select(n, 8), found.data.word_select(n, 8))
                                for n, enable in enumerate(kept.mask)
                            )
                        )
                    with m.If(good & same):
                        m.next = "WRITE"
                    with m.Else():
                        m.next = "REFUSE"
            with m.State("WRITE"):
                m.d.comb += writing.eq(1)
                with m.If(completing & request.ready):
                    m.next = "PASS"
            with m.State("REFUSE"):
                m.d.comb += refusing.eq(1)
                with m.If(answered.ready):
                    m.next = "PASS"
        return m
