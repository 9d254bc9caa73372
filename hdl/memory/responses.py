"""The response side of a controller: read data, which cannot be stalled, and acknowledgements."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import ControllerConfig
from ..layouts import ATOM_WIDTH, MemoryResponse, MemoryStatus, Tag

__all__ = ["ACKNOWLEDGEMENTS", "Acknowledgement", "Responses"]

#: Answers without data that may wait for a cycle without read data. Each costs its requester one cycle of
#: the port, in which it brought no read, so they go out at the rate they come in.
ACKNOWLEDGEMENTS = 8


class Acknowledgement(data.Struct):
    """An answer without data: a write was accepted, or the address is out of range."""

    tag: Tag
    write: 1
    status: MemoryStatus


class Responses(wiring.Component):
    """Reads in command order and acknowledgements between them, as one stream.

    A read reserves its slot when its command is decided. Its data goes out in the cycle it comes in when
    nothing waits before it, else through a FIFO.

    Members
    -------
    issue : In(1)
        A read command with `issue_tag` is decided; needs `room`.
    issue_tag : In(Tag)
    room : Out(1)
        A read may be issued: one of `response_slots` is free.
    read_valid : In(1), read_data : In(256)
        Data from the device, in the order of `issue`.
    read_status : In(MemoryStatus)
        What ECC found of it; only with `ecc`, else OK.
    acknowledge : In(1)
        Queue `acknowledgement`; needs `acknowledge_room`.
    acknowledgement : In(Acknowledgement)
    acknowledge_room : Out(1)
    response : Out(stream of MemoryResponse)
    empty : Out(1)
        Every read issued and every acknowledgement has left.
    sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: ControllerConfig) -> None:
        self._slots = config.response_slots
        self._ecc = config.ecc
        members = {
            "issue": In(1),
            "issue_tag": In(Tag),
            "room": Out(1),
            "read_valid": In(1),
            "read_data": In(ATOM_WIDTH),
            "acknowledge": In(1),
            "acknowledgement": In(Acknowledgement),
            "acknowledge_room": Out(1),
            "response": Out(stream.Signature(MemoryResponse)),
            "empty": Out(1),
            "sleeps": Out(1),
        }
        if config.ecc:
            members["read_status"] = In(MemoryStatus)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slots = self._slots
        response = self.response
        sent = response.valid & response.ready

        # -- Reads: one ring of slots. A slot is reserved at `issued`, filled at `arrived`, freed at `left` --
        m.submodules.tags = tags = memory.Memory(shape=Tag, depth=slots, init=[])
        came = Cat(self.read_data, self.read_status) if self._ecc else Value.cast(self.read_data)
        m.submodules.atoms = atoms = memory.Memory(shape=unsigned(len(came)), depth=slots, init=[])
        issued = Signal(range(slots))
        arrived = Signal(range(slots))
        left = Signal(range(slots))
        reserved = Signal(range(slots + 1))
        waiting = Signal(range(slots + 1))
        read_leaves = Signal()
        tag_write, tag_read = tags.write_port(), tags.read_port(domain="comb")
        atom_write, atom_read = atoms.write_port(), atoms.read_port(domain="comb")
        m.d.comb += [
            self.room.eq(reserved != slots),
            tag_write.en.eq(self.issue),
            tag_write.addr.eq(issued),
            tag_write.data.eq(self.issue_tag),
            tag_read.addr.eq(left),
            atom_write.en.eq(self.read_valid & ~((waiting == 0) & read_leaves)),
            atom_write.addr.eq(arrived),
            atom_write.data.eq(came),
            atom_read.addr.eq(left),
        ]
        m.d.sync += [
            issued.eq(issued + self.issue),
            arrived.eq(arrived + self.read_valid),
            left.eq(left + read_leaves),
            reserved.eq(reserved + self.issue - read_leaves),
            waiting.eq(waiting + self.read_valid - read_leaves),
        ]

        # -- Acknowledgements --
        m.submodules.queue = queue = memory.Memory(shape=Acknowledgement, depth=ACKNOWLEDGEMENTS, init=[])
        queue_write, queue_read = queue.write_port(), queue.read_port(domain="comb")
        first = Signal(range(ACKNOWLEDGEMENTS))
        last = Signal(range(ACKNOWLEDGEMENTS))
        queued = Signal(range(ACKNOWLEDGEMENTS + 1))
        acknowledged = Signal()
        m.d.comb += [
            self.acknowledge_room.eq(queued != ACKNOWLEDGEMENTS),
            queue_write.en.eq(self.acknowledge),
            queue_write.addr.eq(last),
            queue_write.data.eq(self.acknowledgement),
            queue_read.addr.eq(first),
        ]
        m.d.sync += [
            last.eq(last + self.acknowledge),
            first.eq(first + acknowledged),
            queued.eq(queued + self.acknowledge - acknowledged),
        ]

        # -- One stream. What was offered once stays until it is taken --
        read_is_there = (waiting != 0) | self.read_valid
        offered = Signal()
        choose_read = Signal()
        read = Mux(waiting != 0, atom_read.data, came)
        m.d.comb += [
            choose_read.eq(read_is_there & ~offered),
            response.valid.eq(read_is_there | (queued != 0)),
            read_leaves.eq(sent & choose_read),
            acknowledged.eq(sent & ~choose_read),
            # An acknowledgement on offer must not change while read data comes in behind it.
            response.payload.data.eq(Mux(choose_read, read[:ATOM_WIDTH], 0)),
            self.empty.eq((reserved == 0) & (queued == 0)),
        ]
        m.d.sync += offered.eq(response.valid & ~response.ready & ~choose_read)
        m.d.comb += self.sleeps.eq(~(response.valid | offered | self.issue | self.acknowledge))
        with m.If(choose_read):
            m.d.comb += [
                response.payload.tag.eq(tag_read.data),
                response.payload.write.eq(0),
                response.payload.status.eq(read[ATOM_WIDTH:] if self._ecc else MemoryStatus.OK),
            ]
        with m.Else():
            m.d.comb += [
                response.payload.tag.eq(queue_read.data.tag),
                response.payload.write.eq(queue_read.data.write),
                response.payload.status.eq(queue_read.data.status),
            ]
        return m
