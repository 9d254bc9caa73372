"""The memory side of the link: the channels of the stack, and what brings each message to its own."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, ResetInserter, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .clock_gate import SLEPT_BITS
from .config import DesignConfig
from .fabric.pass_queue import PassQueue
from .fabric.router import Router
from .fabric.stream_buffer import StreamBuffer
from .fabric.stream_merge import StreamMerge
from .layouts import (
    CHANNEL_WIDTH,
    ContextWrite,
    HopMonitor,
    Launch,
    MemoryPort,
    MemoryRequest,
    MemoryResponse,
    PortMonitor,
    ProgramWrite,
    RefreshMode,
    Verdict,
    Walk,
)
from .memory.end import end_members
from .memory.stack import StackMap
from .memory_channel import MemoryChannel
from .walker.launch_group import LaunchGroup

__all__ = ["MemorySide"]


class MemorySide(wiring.Component):
    """The stack: `config.memory.channels` channels behind the memory side of the link.

    Requests go to the channel of their address, a walk to the channel of its start address; what lies
    beyond the stack goes to some channel, which refuses it. None of this takes a cycle, but that several
    walks of one launch follow one another, one a cycle. Responses and verdicts of several channels share the
    link round robin. A response that has to wait for its turn waits in a queue with room for every credit of
    the link, so no channel is held up by another; what is shared is the link alone. With one channel all but
    the launches is wires.

    Members
    -------
    walk, bulk : In(MemoryPort)
        The far walker's requests and all others.
    launch : In(stream of Launch), verdict : Out(stream of Verdict)
        Of the near walkers; a verdict says which channel it comes from.
    program_write : In(ProgramWrite)
        To every near walker.
    context_write : In(ContextWrite), context_channel : In(4)
        To the near walker of that channel.
    refresh : In(RefreshMode)
        Of all controllers.
    restart : In(1), restarted : Out(1)
        See `Controller`: all controllers have restarted.
    idle : Out(1)
        Every near walker is, and no walk is on its way to one.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`. It sleeps with one channel only.
    hop, port : Out, `channels` times
        Monitors, see `MemoryChannel`.
    row, column, access, violation, violation_rule, errors, m_axi : Out, `channels` times
        As far as the memory ends have them: see `end_members`.
    fault : In(FaultInjection())
        One for all channels: a fault strikes in the channel of its address.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        channels = config.memory.channels
        members: dict[str, Any] = {
            "walk": In(MemoryPort()),
            "bulk": In(MemoryPort()),
            "launch": In(stream.Signature(Launch)),
            "verdict": Out(stream.Signature(Verdict)),
            "program_write": In(ProgramWrite()),
            "context_write": In(ContextWrite()),
            "context_channel": In(CHANNEL_WIDTH),
            "refresh": In(RefreshMode),
            "restart": In(1),
            "restarted": Out(1),
            "idle": Out(1),
            "slept": In(SLEPT_BITS),
            "sleeps": Out(1),
            "hop": Out(HopMonitor()).array(channels),
            "port": Out(PortMonitor()).array(channels),
            **self._end_members(),
        }
        super().__init__(members)

    def _end_members(self) -> dict[str, Any]:
        """Those of the channels' memory ends, each for every channel; the control of faults is shared."""
        channels = self._config.memory.channels
        return {
            name: member if name == "fault" else member.array(channels)
            for name, member in end_members(self._config).items()
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link = self._config.link
        channels: list[Any] = []
        for number in range(self._config.memory.channels):
            channel = MemoryChannel(self._config, channel=number)
            m.submodules[f"channel_{number}"] = channel
            channels.append(channel)
            connect(m, flipped(self.program_write), channel.program_write)
            m.d.comb += [
                getattr(channel.context_write, name).eq(getattr(self.context_write, name))
                for name in ("index", "base", "limit", "writable", "tenant", "budget")
            ]
            m.d.comb += [
                channel.context_write.enable.eq(self.context_write.enable & (self.context_channel == number)),
                channel.refresh.eq(self.refresh),
                channel.restart.eq(self.restart),
            ]
            for name, member in {**self._end_members(), "hop": None, "port": None}.items():
                if name == "fault":
                    m.d.comb += [
                        getattr(channel.fault, wire).eq(getattr(self.fault, wire))
                        for wire in ("address", "lane", "flips", "set_flips", "set_armed", "arm", "sticky")
                    ]
                elif member is None or member.is_signature:
                    connect(m, getattr(channel, name), flipped(getattr(self, name)[number]))
                else:
                    m.d.comb += getattr(self, name)[number].eq(getattr(channel, name))
        if "fault" in self._end_members():
            m.d.comb += self.fault.armed.eq(Cat(channel.fault.armed for channel in channels).any())
        m.submodules.launches = launches = LaunchGroup()
        connect(m, flipped(self.launch), launches.input)
        launched, passed = launches.output, Const(1)
        if self._config.boundary_registers:
            m.submodules.launch_buffer = buffer = StreamBuffer(Walk)
            connect(m, launched, buffer.input)
            launched, passed = buffer.output, buffer.empty
        m.d.comb += [
            self.restarted.eq(Cat(channel.restarted for channel in channels).all()),
            self.idle.eq(launches.idle & passed & Cat(channel.idle for channel in channels).all()),
        ]

        m.d.comb += [channel.slept.eq(self.slept) for channel in channels]
        if len(channels) == 1:
            m.d.comb += self.sleeps.eq(launches.sleeps & channels[0].sleeps)
            for name in ("walk", "bulk"):
                connect(m, flipped(getattr(self, name)), getattr(channels[0], name))
            connect(m, launched, channels[0].launch)
            connect(m, channels[0].verdict, flipped(self.verdict))
            return m

        self._route(m, "launch", Walk, launched, [channel.launch for channel in channels])
        self._merge(m, "verdict", Verdict, [channel.verdict for channel in channels], self.verdict)
        for name, credits in (("walk", link.walk_credits), ("bulk", link.bulk_credits)):
            port: Any = getattr(self, name)
            ports: list[Any] = [getattr(channel, name) for channel in channels]
            self._route(m, name, MemoryRequest, flipped(port.request), [each.request for each in ports])
            answers: list[Any] = []
            for number, each in enumerate(ports):
                queue = PassQueue(MemoryResponse, depth=credits)
                m.submodules[f"{name}_queue_{number}"] = queue
                connect(m, each.response, queue.input)
                answers.append(queue.output)
            self._merge(m, name, MemoryResponse, answers, port.response)
        return m

    def _route(self, m: Module, name: str, shape: Any, source: Any, sinks: list[Any]) -> None:
        """Payloads of `source`, an output, each to the channel of its address."""
        router = Router(shape, outputs=len(sinks))
        m.submodules[f"{name}_router"] = router
        connect(m, source, router.input)
        address = Value.cast(source.payload.address)
        m.d.comb += router.select.eq(StackMap(self._config.memory).channel_wires(address))
        for output, sink in zip(router.output, sinks, strict=True):
            connect(m, output, sink)

    def _merge(self, m: Module, name: str, shape: Any, sources: list[Any], sink: Any) -> None:
        """Payloads of all `sources`; whose turn it is does not depend on what was before a restart."""
        merge = StreamMerge(shape, inputs=len(sources))
        m.submodules[f"{name}_merge"] = ResetInserter(self.restart)(merge)
        for source, input in zip(sources, merge.input, strict=True):
            connect(m, source, input)
        connect(m, merge.output, flipped(sink))
