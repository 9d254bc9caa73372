"""A channel's memory behind an AXI4 port: memory requests in, AXI transactions out, responses back."""

from typing import Any

from amaranth.hdl import EnableInserter, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...config import DesignConfig
from ...fabric.stream_merge import StreamMerge
from ...layouts import MemoryPort, MemoryResponse, MemoryStatus, Source, Tag
from ..address import AddressMap
from ..atomic import AtomicUnit
from ..end import end_members
from .crossing import AxiCrossing
from .hazards import HazardTable
from .reads import AxiReads
from .writes import AxiWrites

__all__ = ["AxiMemory"]

#: Requests beyond the memory whose answer may wait for its turn.
_REFUSALS = 4


class AxiMemory(wiring.Component):
    """What is below a channel's arbiter with the memory end `axi4`: an AXI4 manager, and what keeps the
    contract of `MemoryPort` on a bus that promises no order between reads and writes.

    A request passes the atomic unit (conditional stores: a read, a comparison, a write, with nothing of that
    atom between them) and the hazard table (it waits while one that it must not pass is under way for its
    atom), and is then put out. A walk's read is put out in that cycle; other reads, and writes, wait for the
    next of their burst. Responses come as the memory sends them. A write is answered when the memory has
    answered it, so that an error is not lost: BUS_ERROR.

    With a `clock_ratio` above 1 all but the domain `axi` is on the slower clock.

    Parameters
    ----------
    channel : int
        Its number in the stack.

    Members
    -------
    memory : In(MemoryPort())
        Addresses count from 0 within the channel.
    enable : In(1)
        The last cycle of a slow cycle; only with a `clock_ratio` above 1.
    restart : In(1)
        Take nothing new, put out what is collected.
    restarted : Out(1)
        All that is answered. What follows depends on nothing here that was before.
    crowded : Out(1)
        More than half of the writes that may be unanswered are.
    press : In(1)
        Ignored: the order of reads and writes is the memory's.
    m_axi : Out(Axi4)
        In the domain `axi`.
    """

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        members: dict[str, Any] = {
            "memory": In(MemoryPort()),
            "restart": In(1),
            "restarted": Out(1),
            "crowded": Out(1),
            "press": In(1),
            **end_members(config),
        }
        if config.clock_ratio > 1:
            members["enable"] = In(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        front = _FrontEnd(self._config, channel=self._channel)
        m.submodules.front = EnableInserter(self.enable)(front) if self._config.clock_ratio > 1 else front
        for name in ("memory", "m_axi"):
            ours, its = getattr(self, name), getattr(front, name)
            connect(m, flipped(ours), its)
        m.d.comb += [
            front.restart.eq(self.restart),
            self.restarted.eq(front.restarted),
            self.crowded.eq(front.crowded),
        ]
        return m


class _FrontEnd(wiring.Component):
    """All of `AxiMemory` but its clock: the members are the same."""

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        super().__init__(
            {
                "memory": In(MemoryPort()),
                "restart": In(1),
                "restarted": Out(1),
                "crowded": Out(1),
                **end_members(config),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, channel = self._config, self._channel
        address_map = AddressMap(config.memory)
        m.submodules.atomic = atomic = AtomicUnit()
        m.submodules.hazards = hazards = HazardTable(
            address_bits=address_map.width,
            buckets=config.axi.hazard_buckets,
            outstanding=config.axi.outstanding,
        )
        bucket_bits = len(hazards.bucket)
        m.submodules.reads = reads = AxiReads(config, channel=channel, bucket_bits=bucket_bits)
        m.submodules.writes = writes = AxiWrites(config, channel=channel, bucket_bits=bucket_bits)
        m.submodules.refusals = refusals = _Refusals()
        m.submodules.crossing = crossing = AxiCrossing(config.axi)
        merge = StreamMerge(MemoryResponse, inputs=3)
        # Whose turn it is must not depend on what was before a restart.
        m.submodules.merge = ResetInserter(self.restarted)(merge)

        connect(m, flipped(self.memory), atomic.port)
        connect(m, reads.read_address, crossing.read_address)
        connect(m, crossing.read_beat, reads.read_beat)
        connect(m, writes.write_address, crossing.write_address)
        connect(m, writes.write_beat, crossing.write_beat)
        connect(m, crossing.reply, writes.reply)
        connect(m, crossing.m_axi, flipped(self.m_axi))
        for source, sink in zip((reads, writes, refusals), merge.input, strict=True):
            connect(m, source.response, sink)
        connect(m, merge.output, atomic.memory.response)

        request = atomic.memory.request
        asked = request.payload
        single = Value.cast(asked.tag.source).matches(
            *(source.value for source in (Source.NEAR_WALKER, Source.FAR_WALKER, Source.CONTROLLER))
        )
        beyond = address_map.wires(asked.address).out_of_range
        read, write, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            atomic.hold.eq(self.restart),
            hazards.address.eq(asked.address),
            read.eq(request.valid & ~beyond & ~asked.write & hazards.read_free),
            write.eq(request.valid & ~beyond & asked.write & hazards.write_free),
            request.ready.eq(
                Mux(
                    beyond,
                    refusals.room,
                    Mux(
                        asked.write,
                        writes.room & hazards.write_free,
                        reads.room & hazards.read_free,
                    ),
                )
            ),
            taken.eq(request.valid & request.ready),
            refusals.take.eq(taken & beyond),
            refusals.tag.eq(asked.tag),
            refusals.write.eq(asked.write),
            writes.data.eq(asked.data),
            writes.mask.eq(asked.mask),
            reads.restart.eq(self.restarted),
            self.crowded.eq(writes.crowded),
            self.restarted.eq(
                self.restart & atomic.idle & reads.empty & writes.empty & refusals.empty & ~hazards.clearing
            ),
        ]
        for path, offered, kind in ((reads, read, "read"), (writes, write, "write")):
            m.d.comb += [
                path.offered.eq(offered),
                path.address.eq(asked.address),
                path.tag.eq(asked.tag),
                path.bucket.eq(hazards.bucket),
                path.single.eq(single),
                path.take.eq(offered & path.room),
                path.flush.eq(self.restart),
                getattr(hazards, f"begin_{kind}").eq(path.take),
                getattr(hazards, f"done_{kind}").eq(path.response.valid & path.response.ready),
                getattr(hazards, f"done_{kind}_bucket").eq(path.bucket_done),
            ]
        return m


class _Refusals(wiring.Component):
    """Answers to requests beyond the memory, in order.

    Members
    -------
    room : Out(1), take : In(1), tag : In(Tag), write : In(1)
        A request that is refused; not without `room`.
    response : Out(stream of MemoryResponse)
    empty : Out(1)
    """

    room: Out(1)
    take: In(1)
    tag: In(Tag)
    write: In(1)
    response: Out(stream.Signature(MemoryResponse))
    empty: Out(1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        refused = data.StructLayout({"tag": Tag, "write": 1})
        m.submodules.queue = queue = memory.Memory(shape=refused, depth=_REFUSALS, init=[])
        queue_write, queue_read = queue.write_port(), queue.read_port(domain="comb")
        first, last = Signal(range(_REFUSALS)), Signal(range(_REFUSALS))
        level = Signal(range(_REFUSALS + 1))
        leaves = Signal()
        m.d.comb += [
            self.room.eq(level != _REFUSALS),
            self.empty.eq(level == 0),
            queue_write.addr.eq(last),
            queue_write.en.eq(self.take),
            queue_write.data.tag.eq(self.tag),
            queue_write.data.write.eq(self.write),
            queue_read.addr.eq(first),
            self.response.valid.eq(~self.empty),
            self.response.payload.tag.eq(queue_read.data.tag),
            self.response.payload.write.eq(queue_read.data.write),
            self.response.payload.status.eq(MemoryStatus.OUT_OF_RANGE),
            leaves.eq(self.response.valid & self.response.ready),
        ]
        m.d.sync += [
            last.eq(last + self.take),
            first.eq(first + leaves),
            level.eq(level + self.take - leaves),
        ]
        return m
