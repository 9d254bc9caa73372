"""The cache of the compute side: set-associative and write-through, between its requesters and the link."""

from typing import Any

from amaranth.hdl import Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import DesignConfig
from ..layouts import (
    ADDRESS_WIDTH,
    CONTEXT_WIDTH,
    MemoryPort,
    MemoryRequest,
    MemoryResponse,
    MemoryStatus,
    access_failed,
)
from .cache_cells import SETS_BITS, WAYS_BITS, CacheCells, CacheOp
from .channel import Channel
from .pass_queue import PassQueue
from .stream_merge import StreamMerge

__all__ = ["Cache"]


class Cache(wiring.Component):
    """A cache of 32-byte lines for every requester of the compute side, so coherent without a protocol.

    What the memory side stores by itself is not seen here: near walks that store are not run beside it.

    One operation a cycle. A request is looked up in the cycle in which it is taken; a cycle later a read that
    hits is on its way back, and everything else leaves for the link (`miss_cycles`). The two ports take
    turns when both wait.

    **Reads** of the walk port that miss are given a line, filled once the response has passed, in a cycle
    without a lookup; at the latest when the next response comes. The response itself is not delayed. Reads of
    the bulk port (copies, the host) hit like others but leave no line. Several walks that miss in one line at
    once all read the memory.

    **Writes** go on to the memory. One of a whole atom leaves its line in the cache, a partial one changes
    the line that is there. A conditional write, and one beyond the memory, drops its line. Memory orders the
    requests of one port for one atom, not those of both: while the other port has writes unanswered, a
    write drops its line and a read leaves none. A line is filled only if nobody has written it since it was
    asked for. When a write fails, every line is forgotten.

    With `ways` 0 every request goes on, and nothing is kept.

    Members
    -------
    walk, bulk : In(MemoryPort)
        The far walker, and all others. A walk context has one read outstanding at most.
    memory_walk, memory_bulk : Out(MemoryPort)
        To the link.
    sets_log2 : In(5), ways : In(6)
        The geometry in use: ways << sets_log2 lines. Change it only while idle and with `clear`.
    hit_latency : In(16)
        Cycles added to the `hit_cycles` of a hit; constant while traffic is in flight.
    clear : In(1)
        Forget every line.
    counting, clear_counts : In(1)
        Count in this cycle; zero the counts.
    hits, misses : Out(32)
        Reads of both ports, wrapping.
    restart : In(1)
        The response of an idle port begins with its reset turn again.
    idle : Out(1)
        No request and no response is inside.
    """

    #: Cycles that a request which is no hit takes through the cache.
    miss_cycles = 1
    #: Cycles from the request of a hit to its response, with `hit_latency` 0.
    hit_cycles = 1 + Channel.minimum_latency
    #: Reads of one port that may be unanswered.
    READS = 64
    #: Requests of one port that may be between the lookup and the link.
    UNSENT = 2

    walk: In(MemoryPort())
    bulk: In(MemoryPort())
    memory_walk: Out(MemoryPort())
    memory_bulk: Out(MemoryPort())
    sets_log2: In(SETS_BITS)
    ways: In(WAYS_BITS)
    hit_latency: In(16)
    clear: In(1)
    counting: In(1)
    clear_counts: In(1)
    restart: In(1)
    hits: Out(32)
    misses: Out(32)
    idle: Out(1)

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cells = cells = CacheCells(self._config.cache)
        on = Signal()
        m.d.comb += [on.eq(self.ways != 0), cells.sets_log2.eq(self.sets_log2), cells.ways.eq(self.ways)]

        # What the cells have to do besides: forget everything, or take the data of a response.
        clearing, filling, fill = Signal(), Signal(), Signal()
        fill_address = Signal(ADDRESS_WIDTH)
        fill_owner = Signal(CONTEXT_WIDTH)
        fill_data = Signal.like(cells.data)

        # -- Taking a request --
        may = [Signal(name=f"may_{name}") for name in ("walk", "bulk")]
        take_bulk, last_bulk = Signal(), Signal()
        taken = Signal()
        taken_request = Signal(MemoryRequest)
        next_fill: Value = self.memory_walk.response.valid
        m.d.comb += [
            fill.eq(filling & ~clearing & ~taken),
            take_bulk.eq(may[1] & (~may[0] | ~last_bulk)),
            self.walk.request.ready.eq(may[0] & ~take_bulk),
            self.bulk.request.ready.eq(take_bulk),
            taken.eq(may[0] | may[1]),
        ]
        with m.If(take_bulk):
            m.d.comb += taken_request.eq(self.bulk.request.payload)
        with m.Else():
            m.d.comb += taken_request.eq(self.walk.request.payload)
        # Whose turn it is does not depend on what was before a pause.
        m.d.sync += last_bulk.eq(taken & take_bulk)

        looked = Signal()
        request = Signal(MemoryRequest)
        from_bulk = Signal()
        hit = Signal()
        m.d.sync += looked.eq(taken)
        with m.If(taken):
            m.d.sync += [request.eq(taken_request), from_bulk.eq(take_bulk)]
        m.d.comb += hit.eq(looked & on & ~request.write & cells.hit)

        # -- Each port: what is inside, its hits and its misses --
        writing = [Signal(16, name=f"{name}_writing") for name in ("walk", "bulk")]
        inside = []
        failed = []
        for index, (name, port, out) in enumerate(
            (("walk", self.walk, self.memory_walk), ("bulk", self.bulk, self.memory_bulk))
        ):
            mine = Signal(name=f"{name}_mine")
            reading = Signal(range(self.READS + 1), name=f"{name}_reading")
            unsent = Signal(range(self.UNSENT + 1), name=f"{name}_unsent")
            accepted = Signal(name=f"{name}_accepted")
            answered = Signal(name=f"{name}_answered")
            m.submodules[f"{name}_hits"] = hits = Channel({"response": MemoryResponse}, credits=self.READS)
            m.submodules[f"{name}_requests"] = queue = PassQueue(MemoryRequest, depth=self.UNSENT)
            merge = StreamMerge(MemoryResponse, inputs=2)
            m.submodules[f"{name}_merge"] = ResetInserter(self.restart)(merge)
            sink, source = port.response, port.request
            m.d.comb += [
                may[index].eq(
                    source.valid
                    & ~clearing
                    # What was read before is filled in before it is looked up, and before the next one is.
                    & ~(filling & (next_fill | (source.payload.address == fill_address)))
                    & (unsent != self.UNSENT)
                    & (source.payload.write | (reading != self.READS))
                ),
                accepted.eq(source.valid & source.ready),
                answered.eq(sink.valid & sink.ready),
                mine.eq(from_bulk if index else ~from_bulk),
                hits.latency.eq(self.hit_latency),
                hits.response_cycles.eq(1),
                hits.response.valid.eq(hit & mine),
                hits.response.payload.tag.eq(request.tag),
                hits.response.payload.data.eq(cells.read_data),
                hits.response.payload.status.eq(MemoryStatus.OK),
                queue.input.valid.eq(looked & ~hit & mine),
                queue.input.payload.eq(request),
            ]
            connect(m, queue.output, flipped(out.request))
            connect(m, hits.far_response, merge.input[0])
            connect(m, flipped(out.response), merge.input[1])
            connect(m, merge.output, flipped(sink))
            sent = out.request.valid & out.request.ready
            m.d.sync += [
                unsent.eq(unsent + accepted - sent - (hit & mine)),
                reading.eq(reading + (accepted & ~source.payload.write) - (answered & ~sink.payload.write)),
                writing[index].eq(
                    writing[index] + (accepted & source.payload.write) - (answered & sink.payload.write)
                ),
            ]
            failed.append(answered & sink.payload.write & access_failed(sink.payload.status))
            inside.append(hits.idle & (unsent == 0))

        # -- The cells --
        others_writing = Mux(take_bulk, writing[0], writing[1]).any()
        beyond = taken_request.address >= self._config.memory.atoms
        m.d.comb += [
            cells.enable.eq(on & (fill | taken)),
            cells.address.eq(Mux(fill, fill_address, taken_request.address)),
            cells.owner.eq(Mux(fill, fill_owner, taken_request.tag.context)),
            cells.data.eq(Mux(fill, fill_data, taken_request.data)),
            cells.mask.eq(taken_request.mask),
        ]
        with m.If(clearing):
            m.d.comb += [cells.op.eq(CacheOp.CLEAR), cells.enable.eq(1)]
        with m.Elif(fill):
            m.d.comb += cells.op.eq(CacheOp.FILL)
        with m.Elif(taken_request.write):
            m.d.comb += cells.op.eq(
                Mux(taken_request.conditional | others_writing | beyond, CacheOp.DROP, CacheOp.WRITE)
            )
        with m.Else():
            m.d.comb += cells.op.eq(Mux(take_bulk | others_writing, CacheOp.READ, CacheOp.READ_ALLOCATE))

        with m.If(clearing | fill):
            m.d.sync += filling.eq(0)
        self._fill(m, taken, take_bulk, taken_request, filling, fill_address, fill_owner, fill_data)
        m.d.sync += clearing.eq(self.clear | failed[0] | failed[1])

        with m.If(self.counting & looked & ~request.write):
            with m.If(hit):
                m.d.sync += self.hits.eq(self.hits + 1)
            with m.Else():
                m.d.sync += self.misses.eq(self.misses + 1)
        with m.If(self.clear_counts):
            m.d.sync += [self.hits.eq(0), self.misses.eq(0)]
        m.d.comb += self.idle.eq(inside[0] & inside[1] & ~looked & ~clearing & ~filling)
        return m

    def _fill(
        self,
        m: Module,
        taken: Value,
        take_bulk: Value,
        request: Any,
        filling: Signal,
        address: Signal,
        owner: Signal,
        data: Signal,
    ) -> None:
        """The data of a read of the walk port that is answered is kept until its line is filled with it."""
        m.submodules.asked = asked = memory.Memory(shape=ADDRESS_WIDTH, depth=1 << CONTEXT_WIDTH, init=[])
        write, read = asked.write_port(), asked.read_port(domain="comb")
        response: stream.Interface = self.memory_walk.response
        m.d.comb += [
            write.en.eq(taken & ~take_bulk & ~request.write),
            write.addr.eq(request.tag.context),
            write.data.eq(request.address),
            read.addr.eq(response.payload.tag.context),
        ]
        good = ~response.payload.write & ~access_failed(response.payload.status)
        with m.If(response.valid & response.ready & good & (self.ways != 0)):
            m.d.sync += [
                filling.eq(1),
                address.eq(read.data),
                owner.eq(response.payload.tag.context),
                data.eq(response.payload.data),
            ]
