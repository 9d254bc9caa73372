"""The Sequencer: executes a batch of commands out of the scratchpad and records completions there."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from .clock_gate import SLEPT_BITS
from .config import DesignConfig
from .layouts import (
    ATOM_WIDTH,
    CHANNEL_WIDTH,
    CONTEXT_WIDTH,
    LAUNCH_WALKS_MAX,
    CopyCommand,
    Launch,
    MemoryPort,
    MemoryStatus,
    ScratchpadPort,
    Source,
    Verdict,
    VerdictKind,
    WalkMonitor,
)
from .memory.stack import StackMap
from .outstanding_walks import OutstandingWalks
from .registers import CommandOp

__all__ = ["BatchControl", "Completion", "Sequencer"]

#: Atoms fetched ahead of the command that executes: covers the scratchpad's read latency at one a cycle.
_FETCH_DEPTH = 4


class Completion(data.Struct):
    """A completion record: one atom of the completion ring."""

    tag: 16
    """Index in the batch of the WALK command's atom."""
    context: CONTEXT_WIDTH
    kind: VerdictKind
    status: 4
    """`WalkStatus`."""
    far: 1
    """The walk ran in the far walker."""
    channel: CHANNEL_WIDTH
    """The memory channel whose near walker it ran in; 0 of a far walk."""
    hops: 24
    """Records read so far."""
    code: 8
    walk_cycles: 32
    """Launch leaves the Sequencer -> verdict arrives there: both link crossings of a near walk included."""
    walker_cycles: 32
    """Launch accepted by the walker -> verdict leaves it."""
    value: 32
    registers: data.ArrayLayout(32, 3)


class BatchControl(wiring.Signature):
    """What the host port asks of the Sequencer, and what it answers.

    Members
    -------
    start : Out(1)
        Pulse: begin a batch. Ignored while `busy`.
    command_base, completion_base : Out(16)
        First scratchpad atom of the commands and of the completion records.
    command_count : Out(16)
        Atoms of the batch.
    completion_size : Out(16)
        Room for completion records.
    busy : In(1)
        From `start` until the batch has ended.
    active : In(1)
        The commands execute: the cycles that count.
    done : In(1)
        Pulse: the batch has ended.
    error : In(1)
        The last batch held an undefined command, ended inside a WRITE, overran the completion ring, or a
        write or copy of it failed.
    completion_count : In(16)
    batch_cycles : In(32)
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": Out(1),
                "command_base": Out(16),
                "command_count": Out(16),
                "completion_base": Out(16),
                "completion_size": Out(16),
                "busy": In(1),
                "active": In(1),
                "done": In(1),
                "error": In(1),
                "completion_count": In(16),
                "batch_cycles": In(32),
            }
        )


class _Header(data.Struct):
    """The parts of word 0 of a command atom, per `CommandOp`."""

    op: 4
    place_or_direction: 1
    reserved: 1
    entry: 6
    context: CONTEXT_WIDTH
    count_minus_1: 3
    high: 11


class Sequencer(wiring.Component):
    """Executes batches of commands alone: WALK, WRITE, COPY and FENCE, in order.

    A walk is launched while fewer than `config.walker.outstanding_each` walks of its context are under way in
    its place, on their way included: the far walker, or the near walker of the channel that it starts in.
    So the same context may run in every channel at once, and the walks that wait for a near context cross the
    link meanwhile; they run in order. Walks of one launch wait until that is so of all their contexts.

    A batch starts once everything is idle and the controllers have closed every row and restarted their
    refresh, so the same batch over the same memory costs the same cycles every time. It ends, as if by a
    FENCE, when every walk, write and copy of it has been answered.

    Members
    -------
    control : In(BatchControl)
    scratchpad : Out(ScratchpadPort)
    near_launch, far_launch : Out(stream of Launch)
    near_verdict, far_verdict : In(stream of Verdict)
    memory : Out(MemoryPort)
        Writes, over the bulk channel of the link.
    copy : Out(stream of CopyCommand)
    copy_idle : In(1)
        The DataMover has nothing to do.
    copy_failed : In(1), copy_clear : Out(1)
        An access of a copy failed since `copy_clear`, which the Sequencer gives at the start of a batch.
    quiescent : In(1)
        Link, walkers and DataMover are idle.
    restart : Out(1), restarted : In(1)
        Handshake with the controllers, see `Controller`.
    walk : Out(WalkMonitor)
        Monitor: a walk whose verdict was taken in the cycle before.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`.
    """

    def __init__(self, config: DesignConfig) -> None:
        self._config = config
        super().__init__(
            {
                "control": In(BatchControl()),
                "scratchpad": Out(ScratchpadPort()),
                "near_launch": Out(stream.Signature(Launch)),
                "far_launch": Out(stream.Signature(Launch)),
                "near_verdict": In(stream.Signature(Verdict)),
                "far_verdict": In(stream.Signature(Verdict)),
                "memory": Out(MemoryPort()),
                "copy": Out(stream.Signature(CopyCommand)),
                "copy_idle": In(1),
                "copy_failed": In(1),
                "copy_clear": Out(1),
                "quiescent": In(1),
                "restart": Out(1),
                "restarted": In(1),
                "walk": Out(WalkMonitor()),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        contexts = self._config.walker.contexts
        stack = StackMap(self._config.memory)
        # A place as `OutstandingWalks` numbers them.
        far_place = stack.channels
        control = self.control

        running = Signal()
        failed = Signal()
        m.d.comb += control.active.eq(running)
        with m.If(running):
            m.d.sync += control.batch_cycles.eq(control.batch_cycles + self.slept + 1)

        # -- Fetch: command atoms, in order, ahead of execution --
        m.submodules.fetched = fetched = fifo.SyncFIFO(width=ATOM_WIDTH, depth=_FETCH_DEPTH)
        to_fetch = Signal(16)
        fetch_address = Signal(16)
        reading = Signal(range(_FETCH_DEPTH + 1))  # atoms that were asked for and have not come
        fetch = Signal()  # a command read is accepted in this cycle
        room = Signal()
        m.d.comb += [
            room.eq(fetched.level + reading < _FETCH_DEPTH),
            fetched.w_data.eq(self.scratchpad.read_data),
            fetched.w_en.eq(self.scratchpad.read_valid),
        ]
        m.d.sync += reading.eq(reading + fetch - self.scratchpad.read_valid)
        with m.If(fetch):
            m.d.sync += [to_fetch.eq(to_fetch - 1), fetch_address.eq(fetch_address + 1)]

        # -- Completions: one verdict at a time becomes a record --
        record = Signal(Completion)
        record_valid = Signal()
        record_taken = Signal()
        m.submodules.outstanding = outstanding = OutstandingWalks(self._config)
        m.d.comb += outstanding.slept.eq(self.slept)
        far = Signal()
        last_far = Signal()
        verdict = Signal(Verdict)
        accept = Signal()
        m.d.comb += [
            # Alternate when both wait, so neither walker's verdicts can hold back the other's.
            far.eq(Mux(self.near_verdict.valid & self.far_verdict.valid, ~last_far, self.far_verdict.valid)),
            verdict.eq(Mux(far, self.far_verdict.payload, self.near_verdict.payload)),
            outstanding.verdict_place.eq(Mux(far, far_place, verdict.channel)),
            outstanding.verdict_context.eq(verdict.context),
            accept.eq((self.near_verdict.valid | self.far_verdict.valid) & (~record_valid | record_taken)),
            self.near_verdict.ready.eq(accept & ~far),
            self.far_verdict.ready.eq(accept & far),
        ]
        with m.If(record_taken):
            m.d.sync += record_valid.eq(0)
        with m.If(accept):
            m.d.sync += [
                last_far.eq(far),
                record_valid.eq(1),
                record.tag.eq(verdict.tag),
                record.context.eq(verdict.context),
                record.channel.eq(verdict.channel),
                record.kind.eq(verdict.kind),
                record.status.eq(verdict.status),
                record.far.eq(far),
                record.hops.eq(verdict.hops),
                record.code.eq(verdict.code),
                record.walk_cycles.eq(outstanding.cycles),
                record.walker_cycles.eq(verdict.cycles),
                record.value.eq(verdict.value),
                record.registers.eq(verdict.registers),
            ]
        request = self.scratchpad.request
        overrun = Signal()
        # In registers, not as a sum and a comparison that all of the scratchpad waits for.
        full = Signal()
        record_address = Signal.like(request.payload.address)
        count, size = control.completion_count, control.completion_size
        m.d.sync += full.eq(Mux(record_taken & ~overrun, (count + 1)[:16] == size, count == size))
        m.d.comb += overrun.eq(record_valid & full)

        # The choice follows registers only, so a request that is offered stays as it is until taken:
        # `offer_record` is fixed while a fetch waits.
        fetch_waits = Signal()
        offer_record = Signal()
        m.d.comb += offer_record.eq(record_valid & ~overrun & ~fetch_waits)
        m.d.sync += fetch_waits.eq(request.valid & ~request.ready & ~offer_record)
        with m.If(offer_record):
            m.d.comb += [
                request.valid.eq(1),
                request.payload.write.eq(1),
                request.payload.address.eq(record_address),
                request.payload.data.eq(record),
                request.payload.mask.eq(~0),
                record_taken.eq(request.ready),
            ]
        with m.Else():
            m.d.comb += [
                request.valid.eq((to_fetch != 0) & (room | fetch_waits)),
                request.payload.address.eq(fetch_address),
                fetch.eq(request.valid & request.ready),
            ]
        with m.If(overrun):
            m.d.comb += record_taken.eq(1)
            m.d.sync += failed.eq(1)
        with m.If(record_taken & ~overrun):
            m.d.sync += [
                control.completion_count.eq(control.completion_count + 1),
                record_address.eq(record_address + 1),
            ]

        # -- What is outstanding --
        m.d.sync += self.walk.ended.eq(outstanding.ends)
        m.d.comb += [
            outstanding.ends.eq(accept & (verdict.kind == VerdictKind.DONE)),
            self.walk.far.eq(record.far),
            self.walk.cycles.eq(record.walk_cycles),
        ]
        writes = Signal(16)
        write_sent = Signal()
        write_answered = Signal()
        answer = self.memory.response
        write_failed = Signal()
        m.d.comb += [answer.ready.eq(1), write_answered.eq(answer.valid)]
        with m.If(answer.valid & (answer.payload.status != MemoryStatus.OK)):
            m.d.sync += write_failed.eq(1)
        m.d.sync += writes.eq(writes + write_sent - write_answered)
        all_answered = Signal()
        m.d.comb += all_answered.eq(outstanding.none & (writes == 0) & self.copy_idle & ~record_valid)

        # -- Execute --
        index = Signal(16)
        header = Signal(_Header)
        words = Signal(data.ArrayLayout(32, 8))
        have = Signal()
        pop = Signal()
        m.d.comb += [
            words.eq(fetched.r_data),
            header.eq(words[0]),
            have.eq(fetched.r_rdy),
            fetched.r_en.eq(pop),
        ]
        with m.If(pop):
            m.d.sync += index.eq(index + 1)

        message = Signal(Launch)
        launch_far = header.place_or_direction
        m.d.comb += [
            outstanding.place.eq(Mux(launch_far, far_place, stack.channel_wires(words[1]))),
            outstanding.context.eq(header.context),
            outstanding.count_minus_1.eq(header.count_minus_1),
            message.context.eq(header.context),
            message.entry.eq(header.entry),
            message.tag.eq(index),
            message.count_minus_1.eq(header.count_minus_1),
            message.address.eq(words[1]),
            message.words.eq(Cat(words[i] for i in range(2, 8))),
            self.near_launch.payload.eq(message),
            self.far_launch.payload.eq(message),
        ]

        def beyond(more: int) -> Value:
            """The last of so many further walks would be in a context that is not there."""
            fit = contexts - more
            # Linters refuse a comparison that every context passes, or none.
            return header.context >= fit if 0 < fit < 1 << CONTEXT_WIDTH else Const(int(fit <= 0), 1)

        launch_bad = Signal()
        m.d.comb += launch_bad.eq(
            # One comparison for each number of walks, not a sum: everything waits for this.
            Cat((header.count_minus_1 == more) & beyond(more) for more in range(LAUNCH_WALKS_MAX)).any()
            | (header.count_minus_1 >= LAUNCH_WALKS_MAX)
            | (~launch_far & self._strays(stack, header, words))
        )
        write_address = Signal(32)
        write_mask = Signal(32)
        write_left = Signal(13)
        write = self.memory.request
        m.d.comb += [
            write.payload.write.eq(1),
            write.payload.address.eq(write_address),
            write.payload.data.eq(fetched.r_data),
            write.payload.mask.eq(write_mask),
            write.payload.tag.source.eq(Source.SEQUENCER),
        ]
        copy = self.copy
        m.d.comb += [
            copy.payload.to_memory.eq(header.place_or_direction),
            copy.payload.memory_address.eq(words[1]),
            copy.payload.scratchpad_address.eq(words[2]),
            copy.payload.count_minus_1.eq(words[0][16:]),
        ]
        ended = Signal()  # every atom of the batch has been executed
        m.d.comb += ended.eq((to_fetch == 0) & (reading == 0) & ~have)

        offered = Signal()
        m.d.sync += offered.eq((self.near_launch.valid | self.far_launch.valid | copy.valid) & ~pop)

        # A batch goes on when something is fetched, a verdict or an answer comes, or the last one has.
        waits = Signal()
        m.d.comb += self.sleeps.eq(
            waits
            & ~(pop | accept | answer.valid | record_valid | fetched.w_en | fetch_waits)
            & ~(request.valid | offered | self.walk.ended | control.start)
            & ((reading == 0) & outstanding.sleeps & (full == (count == size)))
        )

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += waits.eq(1)
                with m.If(control.start):
                    m.d.comb += self.copy_clear.eq(1)
                    m.d.sync += [
                        write_failed.eq(0),
                        control.busy.eq(1),
                        control.error.eq(0),
                        control.completion_count.eq(0),
                        control.batch_cycles.eq(0),
                        failed.eq(0),
                        index.eq(0),
                        last_far.eq(0),
                    ]
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(self.quiescent):
                    m.next = "RESTART"
            with m.State("RESTART"):
                m.d.comb += self.restart.eq(1)
                with m.If(self.restarted):
                    m.d.sync += [
                        running.eq(1),
                        to_fetch.eq(control.command_count),
                        fetch_address.eq(control.command_base),
                        record_address.eq(control.completion_base),
                    ]
                    m.next = "DECODE"
            with m.State("DECODE"):
                # An offered launch or copy is never taken back, so a failure waits for it.
                with m.If(failed & ~offered):
                    m.next = "DISCARD"
                with m.Elif(have):
                    m.d.comb += waits.eq(
                        (header.op == CommandOp.FENCE)
                        | ((header.op == CommandOp.WALK) & ~launch_bad & ~outstanding.room)
                    )
                    with m.Switch(header.op):
                        with m.Case(CommandOp.NOP):
                            m.d.comb += pop.eq(1)
                        with m.Case(CommandOp.WALK):
                            with m.If(launch_bad):
                                m.d.sync += failed.eq(1)
                            with m.Elif(outstanding.room):
                                target = Mux(launch_far, self.far_launch.ready, self.near_launch.ready)
                                m.d.comb += [
                                    self.near_launch.valid.eq(~launch_far),
                                    self.far_launch.valid.eq(launch_far),
                                    outstanding.launch.eq(target),
                                    pop.eq(target),
                                ]
                        with m.Case(CommandOp.WRITE):
                            m.d.comb += pop.eq(1)
                            m.d.sync += [
                                write_address.eq(words[1]),
                                write_mask.eq(words[2]),
                                write_left.eq(words[0][4:16] + Const(1, 13)),
                            ]
                            m.next = "WRITE"
                        with m.Case(CommandOp.COPY):
                            m.d.comb += [copy.valid.eq(1), pop.eq(copy.ready)]
                        with m.Case(CommandOp.FENCE):
                            m.d.comb += pop.eq(all_answered)
                        with m.Default():
                            m.d.sync += failed.eq(1)
                with m.Elif(ended & all_answered):
                    m.d.sync += [
                        running.eq(0),
                        control.busy.eq(0),
                        control.error.eq(write_failed | self.copy_failed),
                    ]
                    m.d.comb += control.done.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += waits.eq(1)
            with m.State("WRITE"):
                m.d.comb += [write.valid.eq(have), pop.eq(have & write.ready), write_sent.eq(pop)]
                with m.If(pop):
                    m.d.sync += [write_address.eq(write_address + 1), write_left.eq(write_left - 1)]
                    with m.If(write_left == 1):
                        m.next = "DECODE"
                with m.Elif(ended):
                    m.d.sync += failed.eq(1)
                    m.next = "DECODE"
            with m.State("DISCARD"):
                # A bad batch ends here; what it has begun is still finished and answered.
                m.d.comb += pop.eq(have)
                with m.If(ended & all_answered):
                    m.d.sync += [running.eq(0), control.busy.eq(0), control.error.eq(1)]
                    m.d.comb += control.done.eq(1)
                    m.next = "IDLE"
        return m

    @staticmethod
    def _strays(stack: StackMap, header: data.View, words: data.View) -> Value:
        """One of the walks of a launch starts in another channel than the first."""
        first = stack.channel_wires(words[1])
        return Cat(
            (header.count_minus_1 >= number) & (stack.channel_wires(words[1 + number]) != first)
            for number in range(1, LAUNCH_WALKS_MAX)
        ).any()
