"""Mutants outside the memory subsystem: walker, arbiter, merge, link; and of the RTL checker itself."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["DESIGN_MUTANTS"]

_SLOW = "tests/hdl/test_memory_channel.py"
_CLOCK_GATE = "tests/e2e/test_clock_gate.py"

DESIGN_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="walker loop one cycle longer",
        defect="a record is executed in the cycle after its arrival",
        edits=(
            Replace(
                "hdl/walker/selection.py", "self.direct.eq(self.taken & self.advance)", "self.direct.eq(0)"
            ),
        ),
        tests=("tests/hdl/walker/test_walker.py",),
    ),
    Mutant(
        name="bulk starves",
        defect="walks pass bulk requests for ever",
        edits=(Replace("hdl/fabric/arbiter.py", "(passed == self.BULK_WAIT) | ", ""),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="near walker starves",
        defect="the far walker goes first whenever it waits",
        edits=(Replace("hdl/fabric/arbiter.py", "(far_is_next | ~near.valid)", "1"),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="arbiter takes an offer back",
        defect="a walk replaces a bulk request that is on offer",
        edits=(Replace("hdl/fabric/arbiter.py", "held.eq(out.valid & ~out.ready)", "held.eq(0)"),),
        tests=("tests/hdl/fabric/test_arbiter.py",),
    ),
    Mutant(
        name="buffer between blocks forgets",
        defect="what came while the output was not taken is lost",
        edits=(
            Replace(
                "hdl/fabric/stream_buffer.py",
                "full.eq(self.input.valid | waiting)",
                "full.eq(self.input.valid)",
            ),
        ),
        tests=("tests/hdl/fabric/test_stream_buffer.py",),
    ),
    Mutant(
        name="completion ring overrun by one",
        defect="that the ring is full is known a record too late",
        edits=(
            Replace(
                "hdl/sequencer.py",
                "Mux(record_taken & ~overrun, (count + 1)[:16] == size, count == size)",
                "count == size",
            ),
        ),
        tests=("tests/hdl/test_sequencer.py",),
    ),
    Mutant(
        name="link a cycle short",
        defect="messages cross the link in one cycle less than stated",
        edits=(
            Replace(
                "hdl/fabric/channel.py",
                "arrives.eq(Mux(travelling == tail, passes, stamp_read.data == awaited))",
                "arrives.eq((travelling != tail) & (stamp_read.data == coming + 1))",
            ),
        ),
        tests=("tests/hdl/fabric/test_link.py",),
    ),
    Mutant(
        name="link width ignored",
        defect="a message holds the link for one cycle, whatever its size",
        edits=(
            Replace(
                "hdl/fabric/channel.py",
                "m.d.sync += backlog.eq(behind)",
                "m.d.sync += backlog.eq(0)",
            ),
        ),
        tests=("tests/hdl/fabric/test_link.py",),
    ),
    Mutant(
        name="link forgets the kind",
        defect="a message that arrives is offered as one of each kind",
        edits=(
            Replace(
                "hdl/fabric/channel.py",
                "comes.eq(arrives & (arrives_second == index))",
                "comes.eq(arrives)",
            ),
        ),
        tests=("tests/hdl/fabric/test_link.py",),
    ),
    Mutant(
        name="walk timed from another launch",
        defect="a walk's time is taken from the place of the context's next launch",
        edits=(
            Replace(
                "hdl/outstanding_walks.py",
                "read.addr.eq(slot(ended, ",
                "read.addr.eq(slot(noted, ",
            ),
        ),
        tests=("tests/hdl/test_outstanding_walks.py",),
    ),
    Mutant(
        name="launch into full contexts",
        defect="a launch of several walks asks for room in its first context only",
        edits=(Replace("hdl/outstanding_walks.py", "~(full & launched).any()", "~(full & first).any()"),),
        tests=("tests/hdl/test_outstanding_walks.py",),
    ),
    Mutant(
        name="slow clock not aligned",
        defect="a restart does not begin a slow cycle, so a replay's cycles depend on what was before",
        edits=(
            Replace(
                "hdl/memory_channel.py",
                "divider.align.eq(self.restart & self.restarted)",
                "divider.align.eq(0)",
            ),
        ),
        tests=(f"{_SLOW}::test_a_restart_begins_a_slow_cycle_whatever_was_before",),
    ),
    Mutant(
        name="slow intake in any cycle",
        defect="with a slower clock a request enters its queue in every cycle that it is on offer",
        edits=(
            Replace(
                "hdl/memory/controller.py",
                "accepted.eq(request.valid & request.ready & enable)",
                "accepted.eq(request.valid & request.ready)",
            ),
        ),
        tests=(f"{_SLOW}::test_a_loop_takes_whole_slow_cycles_and_is_reported_once[4]",),
    ),
    Mutant(
        name="slow hop logged in every cycle",
        defect="a hop of a walker on a slower clock is reported once a cycle of the memory",
        edits=(
            Replace(
                "hdl/memory_channel.py",
                "Mux(divider.first, near_walker.hop.event, HopEvent.NONE)",
                "near_walker.hop.event",
            ),
        ),
        tests=(f"{_SLOW}::test_a_loop_takes_whole_slow_cycles_and_is_reported_once[4]",),
    ),
    Mutant(
        name="verdict in slow cycles",
        defect="a walker on a slower clock reports its own cycles, not those of the memory",
        edits=(
            Replace(
                "hdl/memory_channel.py",
                "near_walker.verdict.payload.cycles << (ratio - 1).bit_length()",
                "near_walker.verdict.payload.cycles",
            ),
        ),
        tests=(f"{_SLOW}::test_a_loop_takes_whole_slow_cycles_and_is_reported_once[4]",),
    ),
    Mutant(
        name="slow logic takes what comes in this cycle",
        defect="what a slower clock captures is there for its logic in the last cycle only",
        edits=(
            Replace(
                "hdl/fabric/register_slice.py",
                "self.output.valid.eq(full)",
                "self.output.valid.eq(self.input.valid)",
            ),
            Replace(
                "hdl/fabric/register_slice.py",
                "self.enable & (self.output.ready | ~full)",
                "self.enable & self.output.ready",
            ),
            Replace(
                "hdl/fabric/register_slice.py",
                "m.d.sync += [full.eq(self.input.valid), self.output.payload.eq(self.input.payload)]",
                "m.d.comb += self.output.payload.eq(self.input.payload)",
            ),
        ),
        tests=("tests/hdl/fabric/test_register_slice.py",),
    ),
    Mutant(
        name="checker without windows",
        defect="the RTL checker counts tFAW from the last ACT instead of the fourth last",
        edits=(
            Replace(
                "hdl/memory/checker_rules.py",
                "stamp=Stamp(scope=scope, commands=frozenset(commands), window=window),",
                "stamp=Stamp(scope=scope, commands=frozenset(commands), window=1),",
            ),
        ),
        tests=("tests/hdl/memory/test_checker.py",),
    ),
    Mutant(
        name="gated clock sleeps through an arrival",
        defect="a link whose message arrives in the next cycle leaves this edge out, too",
        edits=(
            Replace("hdl/fabric/channel.py", "stamp_read.data - coming)", "stamp_read.data - coming + 1)"),
        ),
        tests=(_CLOCK_GATE,),
    ),
    Mutant(
        name="gated clock forgets time",
        defect="a walker does not count the cycles that it slept",
        edits=(
            Replace(
                "hdl/walker/verdict_queue.py",
                "self.now.eq(self.now + self.slept + 1)",
                "self.now.eq(self.now + 1)",
            ),
        ),
        tests=(_CLOCK_GATE,),
    ),
    Mutant(
        name="gated clock sleeps through refresh",
        defect="the refresher sleeps when a refresh falls due",
        edits=(Replace("hdl/memory/refresher.py", "(running & (later < ends))", "running"),),
        tests=(_CLOCK_GATE,),
    ),
    Mutant(
        name="gated clock does not hear the host",
        defect="a read of a register does not wake the design",
        edits=(Replace("hdl/hostport.py", "self.axi.wvalid | self.axi.arvalid", "self.axi.wvalid"),),
        tests=(_CLOCK_GATE,),
    ),
)
