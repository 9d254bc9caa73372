"""Mutants of the walker: windows, permissions, budgets, whose registers are whose, and what a tenant may."""

from __future__ import annotations

from .mutant import Mutant, Replace

__all__ = ["WALKER_MUTANTS"]

_COMMIT = "hdl/walker/commit.py"
_CONTEXTS = "hdl/walker/contexts.py"
_DATAPATH = "hdl/walker/datapath.py"
_WALKER = "hdl/walker/walker.py"
_WALKS = "tests/hdl/walker/test_walker.py"
_STEPS = "tests/hdl/walker/test_datapath.py"
_PROOF = ("tests/formal/test_walk.py",)
_PROOF_AHEAD = ("tests/formal/test_walk_ahead.py",)
_HOSTILE = ("tests/e2e/test_isolation.py::test_hostile_walks_keep_to_their_windows_permissions_and_budgets",)

WALKER_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        name="window begins early",
        defect="a walk may read the atom before its window",
        edits=(Replace(_COMMIT, "(place >= base)", "(place + 1 >= base)"),),
        tests=_PROOF,
    ),
    Mutant(
        name="window ends late",
        defect="a walk may read the atom behind its window",
        edits=(Replace(_COMMIT, "(place < limit)", "(place <= limit)"),),
        tests=_PROOF,
    ),
    Mutant(
        name="window ends late, beside others",
        defect="the same, as hostile walks in the whole design find it",
        edits=(Replace(_COMMIT, "(place < limit)", "(place <= limit)"),),
        tests=_HOSTILE,
    ),
    Mutant(
        name="write permission ignored",
        defect="a context that may only read stores",
        edits=(
            Replace(
                _COMMIT,
                "self.steps & step.store & self.writable & self.inside",
                "self.steps & step.store & self.inside",
            ),
        ),
        tests=(f"{_WALKS}::test_a_store_without_permission",),
    ),
    Mutant(
        name="operands of the next walk",
        defect="with a stage for the fetch, an instruction reads what the context behind it has",
        edits=(
            Replace(
                _WALKER,
                "operands.context.eq(chosen[ahead].context)",
                "operands.context.eq(chosen[0].context)",
            ),
        ),
        tests=(f"{_WALKS}::test_a_stalled_request_does_not_stop_responses",),
    ),
    Mutant(
        name="six stages, a request over another",
        defect="the last stage puts a request out although the one before is not taken",
        edits=(Replace(_WALKER, "open_.eq(room & (popped_last | ~owed))", "open_.eq(1)"),),
        tests=(f"{_WALKS}::test_a_stalled_request_does_not_stop_responses",),
    ),
    Mutant(
        name="six stages, a request kept out",
        defect="a request that was put off waits for as long as instructions take the room",
        edits=(Replace(_WALKER, "owed.eq(deferred.any & ~popping", "owed.eq(0 & ~popping"),),
        tests=(f"{_WALKS}::test_a_read_behind_a_store_goes_while_others_ask_without_a_pause",),
    ),
    Mutant(
        name="six stages, a launch before its check",
        defect="a launch is accepted in the cycle in which it comes, with the check of another",
        edits=(
            Replace(_WALKER, "launch_possible & launch_checked & advance", "launch_possible & advance"),
            Replace(_WALKER, "launch_possible & launch_checked & ~final", "launch_possible & ~final"),
        ),
        tests=_PROOF_AHEAD,
    ),
    Mutant(
        name="six stages, another's window",
        defect="a launch is compared with the window of the context that executes",
        edits=(Replace(_WALKER, "Mux(before.valid, before.context, launch_context)", "before.context"),),
        tests=_PROOF_AHEAD,
    ),
    Mutant(
        name="budget not counted",
        defect="a walk never runs out of steps",
        edits=(Replace(_WALKER, "budget, view.remaining - 1)", "budget, view.remaining)"),),
        tests=(f"{_WALKS}::test_budget",),
    ),
    Mutant(
        name="budget of the walk before",
        defect="a launch goes on with what the last walk has left",
        edits=(Replace(_WALKER, "Mux(launching, budget, view.remaining - 1)", "view.remaining - 1"),),
        tests=(f"{_WALKS}::test_budget_is_24_bits_and_every_launch_has_all_of_it",),
    ),
    Mutant(
        name="registers of two contexts mixed",
        defect="an update is written to the registers of the neighbour",
        edits=(
            Replace(
                _CONTEXTS,
                "port = registers.write_port(granularity=32)\n        m.d.comb += [\n"
                '            port.addr.eq(contexts["write_committed"]),',
                "port = registers.write_port(granularity=32)\n        m.d.comb += [\n"
                '            port.addr.eq(contexts["write_committed"] ^ self.write_registers.lanes[7]),',
            ),
        ),
        tests=_HOSTILE,
    ),
    Mutant(
        name="store before the update",
        defect="a store takes the register as it was before the update",
        edits=(Replace(_DATAPATH, "tested.update & (tested.update_register == tested.store_register)", "0"),),
        tests=(_STEPS,),
    ),
    Mutant(
        name="offset without sign",
        defect="the offset of a load is never negative",
        edits=(
            Replace(
                _DATAPATH,
                "tested.exit_offset[-1].replicate(20)",
                "(tested.exit_offset[-1].replicate(20) & 0)",
            ),
        ),
        tests=(_STEPS,),
    ),
    Mutant(
        name="tenants do not take turns",
        defect="a tenant whose contexts only jump keeps the other one out",
        edits=(
            Replace(
                "hdl/walker/tenant_robin.py", "other.any & (turn | ~first.any)", "other.any & ~first.any"
            ),
        ),
        tests=("tests/hdl/walker/test_tenant_robin.py",),
    ),
    Mutant(
        name="every tenant first",
        defect="requests of a tenant of many walks have priority too",
        edits=(Replace("hdl/walker/fair_share.py", "((mine == 0) | (mine < others))", "1"),),
        tests=("tests/hdl/walker/test_fair_share.py",),
    ),
    Mutant(
        name="stores with priority",
        defect="a tenant with stores under way goes first beside one that has none",
        edits=(Replace("hdl/walker/fair_share.py", "(~stores_alone & (", "(("),),
        tests=("tests/hdl/walker/test_fair_share.py",),
    ),
    Mutant(
        name="record that arrives under way",
        defect="a walk whose record has just come has no priority for the next read",
        edits=(Replace("hdl/walker/fair_share.py", "count - (self.answer & (answered == number))", "count"),),
        tests=("tests/hdl/walker/test_fair_share.py",),
    ),
    Mutant(
        name="dependent stores of two contexts",
        defect="a second dependent store stops the memory port while two tenants walk",
        edits=(Replace("hdl/walker/store_share.py", "(owned | unanswered)", "unanswered"),),
        tests=("tests/hdl/walker/test_store_share.py",),
    ),
)
