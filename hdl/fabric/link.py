"""The link: the off-chip path between compute and memory side, with latency and width as settings."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig
from ..layouts import Launch, MemoryRequest, MemoryResponse, Verdict
from .channel import Channel
from .message import (
    CONDITIONAL_WRITE_BYTES,
    LAUNCH_BYTES,
    READ_REQUEST_BYTES,
    READ_RESPONSE_BYTES,
    VERDICT_BYTES,
    WRITE_REQUEST_BYTES,
    WRITE_RESPONSE_BYTES,
    MessageCycles,
)

__all__ = ["Link"]


class Link(wiring.Component):
    """The off-chip path: a walk channel and a bulk channel, each way, as `Channel` describes them.

    The walk channel carries the far walker's requests and the launches of the near one up (to the memory
    side), their responses and verdicts down. The bulk channel carries the other requests and responses.
    The two channels share nothing, so bulk traffic cannot delay a walk here. A launch that waits at the
    memory side for its context holds back the launches behind it and nothing else.

    Credits count messages of one kind. A request holds its credit until its response is taken, so a place
    for every response is reserved and the memory side never waits with one: a response is refused for one
    cycle at most, when a verdict has its turn. A launch or verdict holds its credit until it is taken at
    the far end; the return of credits takes no time.

    Members
    -------
    walk_request : In(stream of MemoryRequest), walk_response : Out(stream of MemoryResponse)
    launch : In(stream of Launch), verdict : Out(stream of Verdict)
    bulk_request : In(stream of MemoryRequest), bulk_response : Out(stream of MemoryResponse)
    memory_... : each of these again, the other way round, at the memory side
    latency_up, latency_down : In(16)
        Cycles added to `minimum_latency`; constant while traffic is in flight.
    bytes_per_cycle : In(16)
        Width of each channel; 0: a message a cycle. A message occupies its channel for its size (see
        `hdl/fabric/message.py`) divided by this, rounded up. A change stops the intake from the
        next cycle on, for up to 50 cycles.
    idle : Out(1)
        No message is on the way, every request is answered and the width is settled.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    #: Cycles of a crossing of a one-cycle message with latency 0, each way.
    minimum_latency = Channel.minimum_latency

    walk_request: In(stream.Signature(MemoryRequest))
    walk_response: Out(stream.Signature(MemoryResponse))
    launch: In(stream.Signature(Launch))
    verdict: Out(stream.Signature(Verdict))
    bulk_request: In(stream.Signature(MemoryRequest))
    bulk_response: Out(stream.Signature(MemoryResponse))

    memory_walk_request: Out(stream.Signature(MemoryRequest))
    memory_walk_response: In(stream.Signature(MemoryResponse))
    memory_launch: Out(stream.Signature(Launch))
    memory_verdict: In(stream.Signature(Verdict))
    memory_bulk_request: Out(stream.Signature(MemoryRequest))
    memory_bulk_response: In(stream.Signature(MemoryResponse))

    latency_up: In(16)
    latency_down: In(16)
    bytes_per_cycle: In(16)
    idle: Out(1)
    slept: In(SLEPT_BITS)
    sleeps: Out(1)

    def __init__(self, config: DesignConfig) -> None:
        self.config = config.link
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        walk_credits, bulk_credits = self.config.walk_credits, self.config.bulk_credits
        m.submodules.walk_up = walk_up = Channel(
            {"request": MemoryRequest, "launch": Launch}, credits=walk_credits
        )
        m.submodules.walk_down = walk_down = Channel(
            {"response": MemoryResponse, "verdict": Verdict}, credits=walk_credits
        )
        m.submodules.bulk_up = bulk_up = Channel({"request": MemoryRequest}, credits=bulk_credits)
        m.submodules.bulk_down = bulk_down = Channel({"response": MemoryResponse}, credits=bulk_credits)
        m.submodules.cycles = cycles = MessageCycles()
        m.d.comb += [
            cycles.bytes_per_cycle.eq(self.bytes_per_cycle),
            walk_up.latency.eq(self.latency_up),
            bulk_up.latency.eq(self.latency_up),
            walk_down.latency.eq(self.latency_down),
            bulk_down.latency.eq(self.latency_down),
        ]

        # A register: the comparison of widths would come before every message.
        open_ = Signal(init=1)
        m.d.sync += open_.eq(cycles.settled)

        def connect(source: stream.Interface, sink: stream.Interface, open_: Value | int = 1) -> None:
            m.d.comb += [
                sink.payload.eq(source.payload),
                sink.valid.eq(source.valid & open_),
                source.ready.eq(sink.ready & open_),
            ]

        def unanswered(
            request: stream.Interface, response: stream.Interface, credits: int, name: str
        ) -> Signal:
            """Requests accepted at the compute side whose responses were not taken there."""
            count = Signal(range(credits + 1), name=f"{name}_unanswered")
            m.d.sync += count.eq(count + (request.valid & request.ready) - (response.valid & response.ready))
            return count

        walks = unanswered(self.walk_request, self.walk_response, walk_credits, "walk")
        bulks = unanswered(self.bulk_request, self.bulk_response, bulk_credits, "bulk")

        connect(self.walk_request, walk_up.request, open_ & (walks != walk_credits))
        connect(self.launch, walk_up.launch, open_)
        connect(self.bulk_request, bulk_up.request, open_ & (bulks != bulk_credits))
        connect(self.memory_walk_response, walk_down.response, open_)
        connect(self.memory_verdict, walk_down.verdict, open_)
        connect(self.memory_bulk_response, bulk_down.response, open_)

        connect(walk_up.far_request, self.memory_walk_request)
        connect(walk_up.far_launch, self.memory_launch)
        connect(bulk_up.far_request, self.memory_bulk_request)
        connect(walk_down.far_response, self.walk_response)
        connect(walk_down.far_verdict, self.verdict)
        connect(bulk_down.far_response, self.bulk_response)

        channels = (walk_up, walk_down, bulk_up, bulk_down)
        m.d.comb += [channel.slept.eq(self.slept) for channel in channels]
        m.d.comb += self.sleeps.eq(cycles.settled & open_ & Cat(channel.sleeps for channel in channels).all())

        for channel in (walk_up, bulk_up):
            request = channel.request.p
            m.d.comb += channel.request_cycles.eq(
                Mux(
                    request.write,
                    Mux(
                        request.conditional,
                        cycles.of(CONDITIONAL_WRITE_BYTES),
                        cycles.of(WRITE_REQUEST_BYTES),
                    ),
                    cycles.of(READ_REQUEST_BYTES),
                )
            )
        for channel in (walk_down, bulk_down):
            m.d.comb += channel.response_cycles.eq(
                Mux(channel.response.p.write, cycles.of(WRITE_RESPONSE_BYTES), cycles.of(READ_RESPONSE_BYTES))
            )
        m.d.comb += [
            walk_up.launch_cycles.eq(cycles.of(LAUNCH_BYTES)),
            walk_down.verdict_cycles.eq(cycles.of(VERDICT_BYTES)),
            self.idle.eq(
                cycles.settled
                & open_
                & walk_up.idle
                & walk_down.idle
                & bulk_up.idle
                & bulk_down.idle
                & (walks == 0)
                & (bulks == 0)
            ),
        ]
        return m
