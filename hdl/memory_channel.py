"""A memory channel: near walker and arbiter, and the memory end below them."""

from typing import Any

from amaranth.hdl import Const, EnableInserter, Module, Mux, ResetInserter, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .clock_gate import SLEPT_BITS
from .config import DesignConfig
from .fabric.arbiter import Arbiter
from .fabric.clock_divider import ClockDivider
from .fabric.pass_queue import PassQueue
from .fabric.register_slice import RegisterSlice
from .fabric.stream_buffer import StreamBuffer, joined
from .layouts import (
    ContextWrite,
    HopEvent,
    HopMonitor,
    MemoryPort,
    MemoryRequest,
    MemoryResponse,
    PortMonitor,
    ProgramWrite,
    RefreshMode,
    Source,
    Verdict,
    Walk,
)
from .memory.axi.axi_memory import AxiMemory
from .memory.controlled import ControlledMemory
from .memory.end import end_members
from .memory.stack import StackMap
from .walker.walker import Walker

__all__ = ["MemoryChannel"]


class MemoryChannel(wiring.Component):
    """One channel of the stack from its ports down to the memory end; it shares nothing with other channels.

    Addresses at its ports are those of the stack. One that lies in another channel is answered with
    OUT_OF_RANGE, so a near walk that leaves its channel ends with OUT_OF_WINDOW.

    With a `clock_ratio` above 1 the near walker, the arbiter and the front end below them are on a clock so
    much slower than the ports: what comes in through a port is captured at the end of a slow cycle, what goes
    out leaves at the end of one. A restart begins a slow cycle.

    Parameters
    ----------
    channel : int
        Its number in the stack.

    Members
    -------
    walk, bulk : In(MemoryPort)
        The far walker's requests and all others, from the link.
    launch : In(stream of Walk), verdict : Out(stream of Verdict)
        Of the near walker.
    program_write : In(ProgramWrite), context_write : In(ContextWrite)
        To the near walker.
    refresh : In(RefreshMode)
    restart : In(1), restarted : Out(1)
        See `Controller`. During a restart the arbiter begins with its reset turn.
    idle : Out(1)
        The near walker is.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`. It sleeps with a memory of ours, a `clock_ratio` of 1 and no boundary registers only.
    port : Out(PortMonitor)
        Monitor: what passes the memory port below the arbiter.
    hop : Out(HopMonitor)
        Monitor: the near walker.
    row, column, access, violation, violation_rule, errors, fault, m_axi
        As far as the memory end has them: see `end_members`.
    """

    def __init__(self, config: DesignConfig, *, channel: int) -> None:
        self._config = config
        self._channel = channel
        super().__init__(
            {
                "walk": In(MemoryPort()),
                "bulk": In(MemoryPort()),
                "launch": In(stream.Signature(Walk)),
                "verdict": Out(stream.Signature(Verdict)),
                "program_write": In(ProgramWrite()),
                "context_write": In(ContextWrite()),
                "refresh": In(RefreshMode),
                "restart": In(1),
                "restarted": Out(1),
                "idle": Out(1),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
                "hop": Out(HopMonitor()),
                "port": Out(PortMonitor()),
                **end_members(config),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        near_walker = Walker(config, source=Source.NEAR_WALKER)
        arbiter = Arbiter(config)
        below: Any = (ControlledMemory if config.memory.controlled else AxiMemory)(
            config, channel=self._channel
        )
        m.submodules.memory = below

        enable: Value = Const(1)
        if config.clock_ratio == 1:
            m.submodules.near_walker = near_walker
            m.submodules.arbiter = ResetInserter(self.restart)(arbiter)
            connect(m, flipped(self.launch), near_walker.launch)
            connect(m, near_walker.verdict, flipped(self.verdict))
            connect(m, near_walker.hop, flipped(self.hop))
            connect(m, flipped(self.walk), arbiter.far)
            connect(m, flipped(self.bulk), arbiter.bulk)
            m.d.comb += self.idle.eq(near_walker.idle)
        else:
            enable = self._on_slower_clock(m, near_walker, arbiter)
            m.d.comb += below.enable.eq(enable)
        connect(m, flipped(self.program_write), near_walker.program_write)
        connect(m, flipped(self.context_write), near_walker.context_write)
        connect(m, near_walker.memory, arbiter.near)
        registered = config.boundary_registers
        answer, passing = below.memory.response, arbiter.memory.request
        joined(m, "response", answer, arbiter.memory.response, shape=MemoryResponse, registered=registered)
        if registered:
            m.submodules.request_buffer = buffer = StreamBuffer(MemoryRequest)
            connect(m, passing, buffer.input)
            passing = buffer.output
        m.d.comb += [
            self.port.accepted.eq(passing.valid & passing.ready & enable),
            self.port.request_tag.eq(passing.payload.tag),
            self.port.request_write.eq(passing.payload.write),
            self.port.request_conditional.eq(passing.payload.conditional),
            self.port.answered.eq(answer.valid & answer.ready & enable),
            self.port.response_tag.eq(answer.payload.tag),
            self.port.response_write.eq(answer.payload.write),
        ]

        # Within the channel addresses count from 0: its own number is taken off the top bits, and what is
        # left of another's is out of range.
        first = StackMap(config.memory).first(self._channel)
        request = below.memory.request
        m.d.comb += [
            request.valid.eq(passing.valid),
            passing.ready.eq(request.ready),
            request.payload.eq(passing.payload),
        ]
        if self._channel:
            m.d.comb += [
                request.payload.address.eq(passing.payload.address ^ first),
                self.verdict.payload.channel.eq(self._channel),
            ]

        m.d.comb += [
            below.restart.eq(self.restart),
            below.press.eq(near_walker.presses),
            near_walker.crowded.eq(below.crowded),
            self.restarted.eq(below.restarted),
        ]
        if config.memory.controlled:
            m.d.comb += [below.refresh.eq(self.refresh), below.slept.eq(self.slept)]
            if config.clock_ratio == 1 and not registered:
                m.d.comb += [
                    near_walker.slept.eq(self.slept),
                    self.sleeps.eq(near_walker.sleeps & arbiter.sleeps & below.sleeps),
                ]
        for name, member in end_members(config).items():
            outer, inner = getattr(self, name), getattr(below, name)
            if member.is_signature:
                connect(m, inner, flipped(outer))
            else:
                m.d.comb += outer.eq(inner)
        return m

    def _on_slower_clock(self, m: Module, near_walker: Walker, arbiter: Arbiter) -> Value:
        """Walker and arbiter on an enable, which the end's port takes too, and what converts at the ports."""
        ratio = self._config.clock_ratio
        m.submodules.divider = divider = ClockDivider(ratio)
        enable = divider.enable
        # The host sets up programs and windows at the command clock, while the walker is idle.
        set_up = self.program_write.enable | self.context_write.enable
        m.submodules.near_walker = EnableInserter(enable | set_up)(near_walker)
        m.submodules.arbiter = ResetInserter(self.restart)(EnableInserter(enable)(arbiter))
        m.d.comb += divider.align.eq(self.restart & self.restarted)

        def captured(name: str, shape: Any, source: Any, sink: Any) -> RegisterSlice:
            m.submodules[f"{name}_slice"] = register = RegisterSlice(shape)
            connect(m, flipped(source), register.input)
            connect(m, register.output, sink)
            m.d.comb += register.enable.eq(enable)
            return register

        def released(name: str, shape: Any, source: Any, sink: Any) -> PassQueue:
            # What leaves at the end of a slow cycle stays on offer at the port until it is taken.
            m.submodules[f"{name}_queue"] = queue = PassQueue(shape, depth=2)
            m.d.comb += [
                queue.input.valid.eq(source.valid & enable),
                queue.input.payload.eq(source.payload),
                source.ready.eq(queue.input.ready),
            ]
            connect(m, queue.output, flipped(sink))
            return queue

        launches = captured("launch", Walk, self.launch, near_walker.launch)
        for name in ("walk", "bulk"):
            port, side = getattr(self, name), arbiter.far if name == "walk" else arbiter.bulk
            captured(name, MemoryRequest, port.request, side.request)
            released(name, MemoryResponse, side.response, port.response)
        verdicts = released("verdict", Verdict, near_walker.verdict, self.verdict)
        m.d.comb += [
            self.idle.eq(near_walker.idle & launches.empty),
            # The walker counts slow cycles.
            verdicts.input.payload.cycles.eq(near_walker.verdict.payload.cycles << (ratio - 1).bit_length()),
            # A walker's event is there for a whole slow cycle.
            self.hop.event.eq(Mux(divider.first, near_walker.hop.event, HopEvent.NONE)),
            self.hop.context.eq(near_walker.hop.context),
            self.hop.address.eq(near_walker.hop.address),
        ]
        return enable
