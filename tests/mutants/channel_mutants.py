"""Mutants of the channel controller: address map, bank queues, scheduler, and what joins them."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["CHANNEL_MUTANTS"]

_ADDRESS = "hdl/memory/address.py"
_BANK = "hdl/memory/bank.py"
_OVERFLOW = "hdl/memory/overflow.py"
_CONTROLLER = "hdl/memory/controller.py"
_SCHEDULER = "hdl/memory/scheduler.py"

_HAZARD = "& (state.write[s].bit_select(entrance.unit, 1) | entrance.write)"

CHANNEL_MUTANTS: tuple[Mutant, ...] = (
    # -- Address --
    Mutant(
        name="bank bits swapped",
        defect="two banks hold each other's atoms",
        edits=(
            Replace(
                _ADDRESS,
                "unit=Value.cast(Cat(index[bank:]))",
                "unit=Value.cast(Cat(index[bank + 1], index[bank], *index[bank + 2 :]))",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="pseudo channel swapped",
        defect="column commands go to the other pseudo channel",
        edits=(
            Replace(
                _CONTROLLER,
                "self.column.pseudo_channel.eq(column_channel)",
                "self.column.pseudo_channel.eq(~column_channel)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="wrong column",
        defect="column commands go to the neighbouring column",
        edits=(
            Replace(
                _CONTROLLER,
                "self.column.column.eq(queues.column_column)",
                "self.column.column.eq(queues.column_column ^ 1)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="wrong row",
        defect="ACT opens the row before",
        edits=(
            Replace(_CONTROLLER, "self.row.row.eq(queues.row_row)", "self.row.row.eq(queues.row_row - 1)"),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="end of the memory",
        defect="addresses behind the last atom wrap around to the first",
        edits=(
            Replace(
                _ADDRESS,
                "out_of_range=beyond.any() if len(beyond) else Const(0, 1)",
                "out_of_range=Const(0, 1)",
            ),
        ),
        campaign="hbm2",
    ),
    # -- Bank queues --
    Mutant(
        name="row open after PREA",
        defect="the bank's open bit outlives PREA",
        edits=(
            Replace(
                _BANK, "state.open.eq((state.open & ~closed)", "state.open.eq((state.open & ~precharged)"
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="row hit after PRE",
        defect="the hit flag of a waiting request outlives PRE",
        edits=(Replace(_BANK, "(state.hit[s] & ~closed)", "(state.hit[s] & ~all_closed)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="row hit after PREA",
        defect="the hit flag of a waiting request outlives PREA",
        edits=(Replace(_BANK, "(state.hit[s] & ~closed)", "(state.hit[s] & ~precharged)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="RAW order lost",
        defect="a read may pass an older write of its atom",
        edits=(Replace(_BANK, _HAZARD, "& entrance.write"),),
        campaign="hbm2",
    ),
    Mutant(
        name="WAR order lost",
        defect="a write may pass an older read of its atom",
        edits=(Replace(_BANK, _HAZARD, "& state.write[s].bit_select(entrance.unit, 1)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="WAW order lost",
        defect="a write may pass an older write of its atom",
        edits=(Replace(_BANK, _HAZARD, "& (state.write[s].bit_select(entrance.unit, 1) ^ entrance.write)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="order by slot",
        defect="a slot that is filled again keeps its old place in the bank's order",
        edits=(
            Replace(
                _BANK,
                "before.eq((before | entered_slots[s]) & ~entered_slots[other])",
                "before.eq(before | entered_slots[s])",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="row open after auto-precharge",
        defect="the bank's open bit outlives RDA and WRA",
        edits=(
            Replace(
                _BANK,
                "closed.eq(precharged | all_closed | closing)",
                "closed.eq(precharged | all_closed)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="walks pass their write",
        defect="a walk's read passes a write of its atom that waits in the overflow",
        edits=(Replace(_BANK, "& ~filled[common] & ~overflow.writes_key", "& ~filled[common]"),),
        campaign="hbm2",
    ),
    Mutant(
        name="write in the overflow forgotten",
        defect="only the newest write in the overflow holds reads of its atom back",
        edits=(
            Replace(
                _OVERFLOW,
                "writing.eq((writing & ~freed) | (filled & self.append_write.replicate(depth)))",
                "writing.eq((writing & ~freed & ~(~free & filled.any().replicate(depth)))"
                " | (filled & self.append_write.replicate(depth)))",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="slot taken twice",
        defect="a request from the port takes the slot that one from the overflow moves into",
        edits=(
            Replace(
                _BANK,
                "behind.eq(filled[:common].all() | overflow.waiting.bit_select(self.unit, 1))",
                "behind.eq(filled[:common].all())",
            ),
            Replace(_BANK, "free.eq(~filled[:common] & ~refilled[:common])", "free.eq(~filled[:common])"),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="overflow list cut",
        defect="a request that comes as the last of its list leaves is lost",
        edits=(
            Replace(_OVERFLOW, "Mux(ends & extends, entry, read(following, head))", "read(following, head)"),
        ),
        tests=("tests/hdl/memory/test_overflow.py",),
    ),
    # -- Scheduler --
    Mutant(
        name="age cap off",
        defect="no request ever becomes old",
        edits=(Replace(_SCHEDULER, "self.tick.eq(age == half - 1)", "self.tick.eq(0)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="row-hit cap off",
        defect="row hits pass an older request for ever",
        edits=(
            Replace(
                _SCHEDULER,
                "(here & (count == cap).replicate(self._units))",
                "(here & 0)",
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="hazards not strict",
        defect="the scheduler takes a request before an older one of its atom",
        edits=(
            Replace(
                _SCHEDULER, "[state.ordered[s] | state.old[s] for s in each]", "[state.old[s] for s in each]"
            ),
        ),
        campaign="hbm2",
    ),
    Mutant(
        name="response slot not asked for",
        defect="a read is issued with no response slot free",
        edits=(Replace(_SCHEDULER, " & read_free & read_room)", " & read_free)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="scheduler survives a restart",
        defect="whose turn it is and how old requests are depends on what was before",
        edits=(Replace(_CONTROLLER, "ResetInserter(self.restarted)(scheduler)", "scheduler"),),
        campaign="hbm2",
    ),
    Mutant(
        name="predictor survives a restart",
        defect="what the page policy learnt before a restart decides after it",
        edits=(Replace(_CONTROLLER, "ResetInserter(self.restarted)(predictor)", "predictor"),),
        campaign="hbm2",
    ),
    Mutant(
        name="auto-precharge of a wanted row",
        defect="a column command closes its row although others that hit it are queued",
        edits=(
            Replace(
                _SCHEDULER, "return last_hit & (other_row | self.close)", "return other_row | self.close"
            ),
        ),
        tests=(
            "tests/hdl/memory/test_preset_traffic.py::"
            "test_trap_a_row_stays_for_its_hits_and_a_bank_for_who_opened_it",
        ),
    ),
    Mutant(
        name="restart takes requests",
        defect="requests are accepted while a restart waits for the end of what is queued",
        edits=(Replace(_CONTROLLER, "atomic.hold.eq(self.restart)", "atomic.hold.eq(0)"),),
        campaign="hbm2",
    ),
    Mutant(
        name="old requests let every walk pass",
        defect="a bank with reads of walks never serves what is old",
        edits=(Replace(_SCHEDULER, "(reduce(or_, state.old) & yielded)", "0"),),
        tests=("tests/hdl/memory/test_scheduler.py",),
    ),
)
