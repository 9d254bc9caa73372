"""The walker: many contexts, each following pointers with a small program, on one datapath."""

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..clock_gate import SLEPT_BITS
from ..config import DesignConfig
from ..layouts import (
    ADDRESS_WIDTH,
    ContextWrite,
    HopEvent,
    HopMonitor,
    MemoryPort,
    MemoryRequest,
    MemoryStatus,
    ProgramWrite,
    Source,
    Verdict,
    VerdictKind,
    Walk,
    WalkStatus,
    access_failed,
)
from .commit import Commit, in_window
from .contexts import Contexts, Deferred, context_bits
from .datapath import Datapath
from .fair_share import FairShare
from .isa import INSTRUCTION_WIDTH, ExitKind
from .selection import Selection
from .store_share import StoreShare
from .stores import StoreTracker
from .tenant_robin import TenantRobin
from .verdict_queue import VerdictQueue

__all__ = ["Walker"]


class Walker(wiring.Component):
    """A walker of `config.walker.contexts` contexts, in the place that `source` names.

    **Slots.** In every cycle one context has the commit slot: one whose request or verdict had to wait
    (`deferred`) if the request output is free, else one that executes an instruction, else one that is
    launched. An instruction is selected `execute_stages` - 1 cycles before it commits: first for a record
    that arrives in this cycle, else for a context that continues without a load, round robin. The request
    is visible one cycle after the commit. An instruction with a store whose exit loads or ends takes a
    second slot, as a store and a load are two requests; the same happens when the output is occupied.
    With six stages what the commit puts out is decided in the cycle after it, an instruction is selected
    four cycles before, a launch is checked in the cycle before it is accepted and its request takes one more,
    and requests and verdicts leave in every other cycle at most.

    **Back-pressure.** A record is taken however long requests stall: it is written to its context and
    executed later, so memory may wait for its responses to be taken. `memory.response.ready` is low in
    three cases only: a launch or an executable context has waited for PATIENCE cycles (then once, for it);
    and with more than one execute stage while a store instruction commits, which needs the write port of
    the records (no new instruction is selected then, so for `execute_stages` - 1 commits at most).

    **Stores.** A store also changes the context's copy of the record, a conditional one too, whether or not
    memory was written. At most `STORES_LIMIT` of a context are unanswered; further ones wait. The verdict
    that ends a walk is held until all stores are answered: it says that they are globally ordered. A
    store that was answered with POISONED, OUT_OF_RANGE or BUS_ERROR turns DONE and NULL_POINTER, which are
    answers, into POISONED; MISMATCH is ignored.

    **Tenants.** Contexts belong to one of two tenants. While both walk, `FairShare` says whose reads have no
    priority in the memory and which wait, `StoreShare` which requests wait because of stores, stores have no
    priority, and whatever is served round robin serves the tenants in turn.

    **Verdicts.** `cycles` counts from the launch's acceptance to the first cycle in which the verdict is
    valid. A context is `free` again, or goes on after a yield, when its verdict has been taken. A launch
    that fails its first check gives a verdict with `hops` 0.

    Members
    -------
    launch : In(stream of Walk)
        Ready depends on the payload: its context (the low bits) must be free. Never ready for a context
        that does not exist.
    verdict : Out(stream of Verdict)
    memory : Out(MemoryPort)
    hop : Out(HopMonitor)
        REQUEST and STORE in their first cycle of valid; VERDICT in the cycle in which a request would have
        been visible, with the address of the current record. After a store it comes a slot later.
    program_write : In(ProgramWrite), context_write : In(ContextWrite)
        While idle.
    crowded : In(1)
        The memory is about to run out of room for writes.
    presses : Out(1)
        Stores wait for the memory to be less crowded, see `StoreShare`.
    free : Out(contexts)
        Contexts that can take a launch.
    idle : Out(1)
        All are free.
    slept : In(SLEPT_BITS), sleeps : Out(1)
        See `ClockGate`. It sleeps with one execute stage only.
    """

    def __init__(self, config: DesignConfig, source: Source) -> None:
        self._contexts = config.walker.contexts
        self._stages = config.walker.execute_stages
        self._program_words = config.walker.program_words
        self._source = source
        # Memory with ECC has to read the rest of every word that is stored.
        self._stores_depend = config.controller.ecc
        super().__init__(
            {
                "launch": In(stream.Signature(Walk)),
                "verdict": Out(stream.Signature(Verdict)),
                "memory": Out(MemoryPort()),
                "hop": Out(HopMonitor()),
                "program_write": In(ProgramWrite()),
                "context_write": In(ContextWrite()),
                "crowded": In(1),
                "presses": Out(1),
                "free": Out(self._contexts, init=(1 << self._contexts) - 1),
                "idle": Out(1),
                "slept": In(SLEPT_BITS),
                "sleeps": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, stages = self._contexts, self._stages
        bits = context_bits(count)
        number = ceil_log2(count)
        launch = self.launch.payload
        response = self.memory.response.payload

        # With four stages or more the first one fetches the instruction and does nothing else: into a
        # register, not out of a block RAM, which would take a third of the second stage.
        ahead = int(stages >= 4)
        # With six the last one puts out what the slot before it decided.
        late = int(stages >= 6)
        attributes = {"ram_style": "distributed"} if ahead else {}
        m.submodules.program = program = Memory(
            shape=INSTRUCTION_WIDTH, depth=self._program_words, init=[], attrs=attributes
        )
        m.submodules.contexts = contexts = Contexts(count, shared=stages == 1, checked_ahead=bool(late))
        m.submodules.selection = selection = Selection(count)
        m.submodules.datapath = datapath = Datapath(stages=stages - ahead - late)
        m.submodules.commit = commit = Commit()
        m.submodules.stores = stores = StoreTracker(count)
        m.submodules.fair_share = fair_share = FairShare(count)
        m.submodules.store_share = store_share = StoreShare(count)
        m.submodules.deferred = deferred = TenantRobin(count)
        m.submodules.verdicts = verdicts = VerdictQueue(count, registered=bool(late))
        for configured in (contexts.configure, fair_share.configure):
            wiring.connect(m, wiring.flipped(self.context_write), configured)
        wiring.connect(m, datapath.step, commit.step)
        program_write, program_read = program.write_port(), program.read_port(domain="comb")
        m.d.comb += [
            program_write.en.eq(self.program_write.enable),
            program_write.addr.eq(self.program_write.index),
            program_write.data.eq(self.program_write.word),
            self.idle.eq(self.free.all()),
        ]
        for chooser in (selection, deferred, verdicts):
            m.d.comb += [chooser.restart.eq(self.idle), chooser.second.eq(fair_share.second)]

        # What a context waits for. In none of these, it is in the pipeline, waits for memory, or has a
        # verdict to put out.
        runnable = Signal(count)  # a selection
        arrived = Signal(count)  # (beside `runnable`) the record at the target was not executed on yet
        pending = Signal(count)  # a slot to put `deferred` out

        # -- Selection: whose instruction enters the datapath --
        room = Signal()
        may_go = Signal(count)  # requests that nothing holds back
        owed = Signal()  # such a request lost the room to an instruction
        open_ = Signal()  # the slot's request has room
        goes = Signal()
        popping = Signal()
        advance = Signal()
        slot = _Slot(bits, "slot")
        status = Signal(MemoryStatus)
        selected = _Selected(bits, 0)
        state, operands = contexts.select, contexts.operands
        m.d.comb += [
            deferred.requests.eq(pending & may_go),
            goes.eq(room & deferred.any),
            # With six stages the last one may still need the room.
            popping.eq(goes & (owed | ~slot.acting) if late else goes),
            deferred.used.eq(popping),
            advance.eq(~goes),
            selection.advance.eq(advance),
            selection.record_valid.eq(self.memory.response.valid & ~response.write),
            selection.record_context.eq(response.tag.context[:number]),
            selection.runnable.eq(runnable),
            self.memory.response.ready.eq(selection.ready),
            status.eq(Mux(selection.taken, response.status, state.status)),
            selected.valid.eq(selection.direct | selection.picked),
            selected.context.eq(selection.context),
            selected.status.eq(status),
            # A record that could not be read leaves the walk at the record that the load came from.
            selected.address.eq(
                Mux(
                    (selection.taken | arrived.bit_select(selection.context, 1)) & ~access_failed(status),
                    state.target,
                    state.address,
                )
            ),
            program_read.addr.eq(state.program_counter),
            datapath.advance.eq(advance),
            datapath.registers.eq(operands.registers),
        ]
        held = stores.full | fair_share.held | store_share.held
        if late:
            # Of the cycle before: the last stage looks again. What loses the room to an instruction is next,
            # and instructions are put off meanwhile: else a record in every cycle would keep it out.
            popped_last = Signal()
            m.d.sync += [
                may_go.eq(~held),
                popped_last.eq(popping),
                owed.eq(deferred.any & ~popping & (owed | (room & slot.acting & ~popped_last))),
            ]
            m.d.comb += open_.eq(room & (popped_last | ~owed))
        else:
            m.d.comb += [may_go.eq(~held), open_.eq(room)]
        chosen = [selected]
        for stage in range(1, stages - late):
            staged = _Selected(bits, stage)
            with m.If(advance):
                m.d.sync += [register.eq(value) for register, value in zip(staged, chosen[-1], strict=True)]
            chosen.append(staged)
        final = chosen[-1]
        m.d.comb += datapath.address.eq(chosen[ahead].address)
        if ahead:
            # A record that arrived is in its context by now.
            instruction = Signal(INSTRUCTION_WIDTH)
            with m.If(advance):
                m.d.sync += instruction.eq(program_read.data)
            m.d.comb += [datapath.instruction.eq(instruction), datapath.record.eq(operands.record)]
        else:
            m.d.comb += datapath.instruction.eq(program_read.data)
            with m.If(selection.direct):
                m.d.comb += datapath.record.eq(response.data)
            with m.Else():
                m.d.comb += datapath.record.eq(operands.record)

        # -- Commit: the slot of one context --
        executing = Signal()
        launching = Signal()
        # The same without `advance`, which comes late: it is in the enables only.
        launch_offered = Signal()
        launch_context = Signal(bits)
        launch_possible = Signal()
        # Of the context that executes or is launched, which does not have to wait for the choice of a
        # deferred one, and of the one that has the slot.
        commits, here = Signal(bits), Signal(bits)
        view, popped, ahead_view = contexts.commit, contexts.popped, contexts.ahead
        # What is known of an instruction or a launch before its slot, and whether it is of this launch.
        inside = Signal()
        budget = Signal.like(ahead_view.budget)
        launch_checked = Signal()
        if late:
            before = chosen[-2]
            m.d.comb += ahead_view.context.eq(Mux(before.valid, before.context, launch_context))
            place = Mux(before.valid, before.address, launch.address)
            with m.If(advance):
                m.d.sync += [
                    inside.eq(in_window(place, ahead_view.base, ahead_view.limit)),
                    budget.eq(ahead_view.budget),
                    launch_checked.eq(self.launch.valid & ~self.launch.ready & ~before.valid),
                ]
        else:
            place = Mux(final.valid, final.address, launch.address)
            m.d.comb += [
                inside.eq(in_window(place, ahead_view.base, ahead_view.limit)),
                budget.eq(ahead_view.budget),
                launch_checked.eq(1),
            ]
        m.d.comb += [
            executing.eq(final.valid & advance),
            launch_context.eq(launch.context[:number]),
            launch_possible.eq(self.free.bit_select(launch_context, 1)),
            self.launch.ready.eq(launch_possible & launch_checked & advance & ~final.valid),
            launch_offered.eq(self.launch.valid & launch_possible & launch_checked & ~final.valid),
            launching.eq(launch_offered & advance),
            selection.launch_waits.eq(self.launch.valid & launch_possible & ~self.launch.ready),
            commits.eq(Mux(final.valid, final.context, launch_context)),
            here.eq(Mux(popping, deferred.grant, commits)),
            # With one stage there is one set of read ports, addressed by whoever has the slot.
            state.context.eq(here if stages == 1 else selection.context),
            operands.context.eq(chosen[ahead].context),
            # With six stages not by way of a launch, which reads nothing of it.
            view.context.eq(final.context if late else commits),
            contexts.write_committed.context.eq(commits),
            popped.context.eq(deferred.grant),
            contexts.write_deferred.context.eq(slot.context),
            commit.executing.eq(final.valid),
            commit.address.eq(final.address),
            commit.status.eq(final.status),
            commit.launching.eq(launch_offered),
            commit.start.eq(launch.address),
            commit.inside.eq(inside),
            commit.base.eq(view.base),
            commit.limit.eq(view.limit),
            commit.writable.eq(view.writable),
            commit.spent.eq(view.spent),
        ]
        if stages > 1:
            m.d.comb += selection.hold.eq(final.valid & datapath.step.may_store)
        self._write_state(m, contexts, commit, datapath.step, advance, final.address, budget, verdicts.now)
        self._write_record(m, contexts, selection, commit, datapath.step, advance)
        decided = _Slot(bits, "decided") if late else slot
        m.d.comb += [
            decided.acting.eq(executing | launching | popping),
            decided.begins.eq(launching),
            decided.context.eq(here),
            decided.work.eq(Mux(popping, popped.deferred.as_value(), commit.work.as_value())),
            decided.current.eq(Mux(popping, popped.address, Mux(commit.launching, 0, final.address))),
            decided.target.eq(Mux(popping, popped.target, commit.target)),
        ]
        if late:
            m.d.sync += [register.eq(value) for register, value in zip(slot, decided, strict=True)]

        # -- Output: a request, a verdict, or neither --
        acting, work, current, target = slot.acting, slot.work, slot.current, slot.target
        can_store = Signal()
        unblocked = Signal()
        send_store = Signal()
        load = Signal()
        send_load = Signal()
        resumes = Signal()
        waits = Signal()
        address = Signal(ADDRESS_WIDTH)
        m.d.comb += [
            address.eq(Mux(work.store, current, target)),
            can_store.eq(open_ & ~stores.full.bit_select(slot.context, 1) & ~store_share.holds),
            unblocked.eq(acting & (~work.store | can_store)),
            send_store.eq(acting & work.store & can_store),
            load.eq(acting & ~work.store & (work.after == ExitKind.LOAD)),
            send_load.eq(load & open_ & ~(fair_share.holds | store_share.holds)),
            fair_share.busy.eq(~self.free),
            fair_share.context.eq(slot.context),
            fair_share.issue.eq(send_load),
            fair_share.answer_context.eq(selection.record_context),
            fair_share.answer.eq(selection.taken),
            fair_share.stores.eq(stores.outstanding),
            resumes.eq(unblocked & (work.after == ExitKind.GOTO)),
            verdicts.context.eq(slot.context),
            verdicts.yields.eq(unblocked & (work.after == ExitKind.YIELD)),
            verdicts.ends.eq(acting & ~work.store & (work.after == ExitKind.DONE)),
            # A load or an end behind a store takes a slot of its own: one request, one event a cycle.
            waits.eq(acting & ~(send_load | resumes | verdicts.yields | verdicts.ends)),
            contexts.write.deferred.enable.eq(acting),
            contexts.write.deferred.data.eq(work),
            contexts.write.deferred.data.store.eq(work.store & ~send_store),
            stores.context.eq(slot.context),
            stores.begin.eq(slot.begins),
            stores.issue.eq(send_store),
            stores.answer_context.eq(selection.record_context),
            stores.answer.eq(self.memory.response.valid & self.memory.response.ready & response.write),
            stores.answer_failed.eq(access_failed(response.status)),
            store_share.contested.eq(fair_share.contested),
            store_share.crowded.eq(self.crowded),
            self.presses.eq(store_share.presses),
            store_share.context.eq(slot.context),
            store_share.address.eq(address),
            store_share.store.eq(work.store),
            store_share.dependent.eq(1 if self._stores_depend else work.conditional),
            store_share.issue.eq(send_store),
            store_share.goes.eq(send_load),
            store_share.waits.eq(waits & (work.store | load)),
            store_share.outstanding.eq(stores.outstanding),
            store_share.answer_context.eq(selection.record_context),
            store_share.answer.eq(stores.answer),
            verdicts.outstanding.eq(stores.outstanding),
        ]
        # Nobody waits for a store.
        priority = fair_share.priority & ~(work.store & fair_share.contested)
        self._put_request(m, room, acting, send_store | send_load, address, slot.context, work, priority)
        last = self._put_verdict(m, contexts, stores, verdicts)
        if stages == 1:
            # Round robins that begin anew have done so in the cycle after the last context is free.
            was_idle = Signal()
            m.d.sync += was_idle.eq(self.idle)
            m.d.comb += [
                verdicts.slept.eq(self.slept),
                self.sleeps.eq(
                    selection.sleeps
                    & verdicts.sleeps
                    & fair_share.sleeps
                    & store_share.sleeps
                    & ~(deferred.any | self.launch.valid | self.memory.request.valid)
                    & ~self.memory.response.valid
                    & (self.hop.event == HopEvent.NONE)
                    & (self.idle == was_idle)
                ),
            ]

        m.d.sync += [
            self.hop.event.eq(HopEvent.NONE),
        ]
        with m.If(acting):
            m.d.sync += [
                self.hop.context.eq(slot.context),
                self.hop.address.eq(Mux(send_load, target, current)),
            ]
        with m.If(send_store):
            m.d.sync += self.hop.event.eq(HopEvent.STORE)
        with m.Elif(send_load):
            m.d.sync += self.hop.event.eq(HopEvent.REQUEST)
        with m.Elif(verdicts.ends):
            m.d.sync += self.hop.event.eq(HopEvent.VERDICT)

        # -- Where every context goes --
        def bit(condition: ValueLike, context: Value) -> Value:
            return Mux(condition, (1 << context)[:count], 0)

        saved = bit(selection.taken & ~selection.direct, selection.record_context)
        taken = bit(verdicts.valid & verdicts.ready, verdicts.offered)
        gone = Mux(popping, deferred.one_hot, 0)
        m.d.sync += [
            runnable.eq(
                (runnable & ~selection.picked_one_hot)
                | bit(resumes, slot.context)
                | saved
                | Mux(last, 0, taken)
            ),
            arrived.eq((arrived & ~selection.picked_one_hot) | saved),
            pending.eq((pending & ~gone) | bit(waits, slot.context)),
            self.free.eq((self.free & ~bit(launching, launch_context)) | Mux(last, taken, 0)),
        ]
        return m

    def _write_state(
        self,
        m: Module,
        contexts: Contexts,
        commit: Commit,
        step: wiring.PureInterface,
        advance: Value,
        address: Value,
        budget: Value,
        now: Value,
    ) -> None:
        """What a launch or an executed instruction changes in its context, with `advance`."""
        launch, view, launching = self.launch.payload, contexts.commit, commit.launching
        remaining = Mux(launching, budget, view.remaining - 1)
        spent = Mux(launching, budget == 0, view.remaining == 1)
        hops = Mux(launching, 0, view.hops) + commit.loads
        for name, enable, value in (
            ("program_counter", launching | commit.steps, Mux(launching, launch.entry, step.exit_target)),
            ("address", launching | commit.executing, Mux(launching, 0, address)),
            ("target", commit.loads, commit.target),
            ("remaining", launching | commit.steps, remaining),
            ("spent", launching | commit.steps, spent),
            ("hops", launching | commit.loads, hops),
            ("outcome", commit.concludes, commit.outcome),
            ("value", commit.concludes, commit.value),
        ):
            write = getattr(contexts.write, name)
            m.d.comb += [write.enable.eq(enable & advance), write.data.eq(value)]
        launched = contexts.write.launched
        m.d.comb += [
            launched.enable.eq(launching & advance),
            launched.data.tag.eq(launch.tag),
            launched.data.start.eq(now),
        ]
        # Branches, not multiplexers of single words: a simulation then moves the wide value it needs.
        registers = contexts.write_registers
        with m.If(launching):
            m.d.comb += [
                registers.lanes.eq(advance.replicate(8)),
                registers.data.eq(launch.registers.as_value()),
            ]
        with m.Else():
            m.d.comb += [
                registers.lanes.eq(Mux(commit.steps & step.update & advance, 1 << step.update_register, 0)),
                registers.data.eq(step.update_value.replicate(8)),
            ]

    def _write_record(
        self,
        m: Module,
        contexts: Contexts,
        selection: Selection,
        commit: Commit,
        step: wiring.PureInterface,
        advance: Value,
    ) -> None:
        """A record that arrives and the word that is stored share the write port of the records.

        With one stage both are in one context and are merged; with more, `selection.hold` parts them.
        """
        response, write = self.memory.response.payload, contexts.write_record
        m.d.comb += [
            write.context.eq(Mux(selection.taken, selection.record_context, contexts.commit.context)),
            contexts.write_status.context.eq(selection.record_context),
            contexts.write_status.enable.eq(selection.taken),
            contexts.write_status.data.eq(response.status),
        ]
        stores = Mux(commit.stores & advance, 1 << step.store_word, 0)
        m.d.comb += write.lanes.eq(selection.taken.replicate(8) | stores)
        with m.If(selection.taken):
            m.d.comb += write.data.eq(response.data)
            with m.If(commit.stores):
                with m.Switch(step.store_word):
                    for lane in range(8):
                        with m.Case(lane):
                            m.d.comb += write.data[lane].eq(step.store_value)
        with m.Else():
            m.d.comb += write.data.eq(step.store_value.replicate(8))

    def _put_request(
        self,
        m: Module,
        room: Signal,
        acting: Value,
        send: Value,
        address: Value,
        context: Value,
        work: data.View,
        priority: Value,
    ) -> None:
        """The register of the request output; `room` says that it can be loaded in this cycle."""
        # The whole payload is a register and not made from one in every cycle: that is what a simulation pays
        # for, while synthesis merges the equal copies of the word.
        out = self.memory.request
        valid = Signal()
        request = Signal(MemoryRequest)
        # Six stages do without the path from whoever takes it: a request leaves every other cycle at most.
        taken = 0 if self._stages >= 6 else out.ready
        m.d.comb += [room.eq(~valid | taken), out.valid.eq(valid), out.payload.eq(request)]
        m.d.sync += valid.eq(send | (valid & ~out.ready))
        with m.If(acting & room):
            m.d.sync += [
                request.address.eq(address),
                request.write.eq(work.store),
                request.conditional.eq(work.store & work.conditional),
                request.expected.eq(work.expected),
                request.data.eq(work.value.replicate(8)),
                request.mask.eq(Mux(work.store, 0xF << (work.word << 2), 0)),
                request.tag.source.eq(self._source),
                request.tag.context.eq(context),
                request.priority.eq(priority),
            ]

    def _put_verdict(
        self, m: Module, contexts: Contexts, stores: StoreTracker, verdicts: VerdictQueue
    ) -> Value:
        """The verdict output; returns whether the offered verdict ends its walk."""
        view, verdict = contexts.verdict, self.verdict.payload
        last = view.outcome.kind == VerdictKind.DONE
        spoiled = Signal()
        m.d.comb += [
            spoiled.eq(
                last
                & (
                    (view.outcome.status == WalkStatus.DONE)
                    | (view.outcome.status == WalkStatus.NULL_POINTER)
                )
                & stores.failed.bit_select(verdicts.offered, 1)
            ),
            view.context.eq(verdicts.offered),
            verdicts.ready.eq(self.verdict.ready),
            self.verdict.valid.eq(verdicts.valid),
        ]
        with m.If(verdicts.valid):
            m.d.comb += [
                verdict.context.eq(verdicts.offered),
                verdict.tag.eq(view.launched.tag),
                verdict.kind.eq(view.outcome.kind),
                verdict.status.eq(Mux(spoiled, WalkStatus.POISONED, view.outcome.status)),
                verdict.code.eq(Mux(spoiled, 0, view.outcome.code)),
                verdict.hops.eq(view.hops),
                verdict.cycles.eq(verdicts.time - view.launched.start),
                verdict.value.eq(view.value),
                verdict.registers.eq(view.registers),
            ]
        return last


class _Selected:
    """What goes through the pipeline beside the datapath.

    Signals of their own and no struct: with one stage the address depends on the context, which in a packed
    vector looks like a combinational loop.
    """

    def __init__(self, bits: int, stage: int) -> None:
        self.valid = Signal(name=f"valid_{stage}")
        self.context = Signal(bits, name=f"context_{stage}")
        self.status = Signal(MemoryStatus, name=f"status_{stage}")
        self.address = Signal(ADDRESS_WIDTH, name=f"address_{stage}")

    def __iter__(self) -> Iterator[Signal]:
        yield from (self.valid, self.context, self.status, self.address)


class _Slot:
    """What the context that has the slot puts out: `work`, for the record at `current` or at `target`.

    Signals of their own, as those of `_Selected`.
    """

    def __init__(self, bits: int, prefix: str) -> None:
        self.acting = Signal(name=f"{prefix}_acting")
        self.begins = Signal(name=f"{prefix}_begins")
        self.context = Signal(bits, name=f"{prefix}_context")
        self.work = Signal(Deferred, name=f"{prefix}_work")
        self.current = Signal(ADDRESS_WIDTH, name=f"{prefix}_current")
        self.target = Signal(ADDRESS_WIDTH, name=f"{prefix}_target")

    def __iter__(self) -> Iterator[Any]:
        yield from (self.acting, self.begins, self.context, self.work, self.current, self.target)
