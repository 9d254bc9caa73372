"""The generator of random walks: repeatable, valid, and of use as test material."""

from __future__ import annotations

from collections import Counter

import pytest

from hdl.layouts import WalkStatus
from hdl.walker.isa import ExitKind, Instruction, Op, UpdateKind
from sim.model.interpreter import run_walk
from sim.model.random_programs import expected_results, random_case

SEEDS = range(40)


def test_a_seed_names_a_case() -> None:
    assert random_case(7) == random_case(7)
    assert random_case(7) != random_case(8)


def test_every_instruction_survives_its_encoding() -> None:
    for seed in SEEDS:
        for instruction in random_case(seed).program:
            assert Instruction.decode(instruction.encode()) == instruction
            assert instruction.a_low + instruction.a_width_minus_1 < 32


def test_every_operation_and_exit_occurs() -> None:
    program = [instruction for seed in SEEDS for instruction in random_case(seed).program]
    assert {instruction.op for instruction in program} == set(Op)
    assert {instruction.update.kind for instruction in program} == set(UpdateKind)
    assert {instruction.taken.kind for instruction in program} == set(ExitKind)
    assert {instruction.store_conditional for instruction in program if instruction.store} == {True, False}


def test_every_status_ends_a_fair_share_and_walks_go_far() -> None:
    results = [result for seed in SEEDS for result in expected_results(random_case(seed, poison=0.03))[0]]
    ends = Counter(result.status for result in results)
    for status in WalkStatus:
        assert ends[status] > len(results) * 0.01, (status, ends)
    assert sum(result.hops for result in results) > 10 * len(results)
    assert sum(result.hops > 20 for result in results) > len(results) // 10
    assert any(result.yields for result in results)
    assert any(store.written for result in results for store in result.stores)


def test_walks_do_not_disturb_each_other() -> None:
    """Alone on the initial memory each walk does what it does after the others."""
    for seed in SEEDS:
        case = random_case(seed)
        together, _ = expected_results(case)
        for walk, result in zip(case.walks, together, strict=True):
            alone = run_walk(
                case.program,
                dict(case.memory),
                address=walk.address,
                entry=walk.entry,
                registers=walk.registers,
                window=walk.window,
                writable=walk.writable,
                budget=walk.budget,
                memory_atoms=case.memory_atoms,
            )
            assert alone == result


@pytest.mark.parametrize("sizes", [{"walks": 0}, {"region_atoms": 0}])
def test_an_empty_case_is_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected at least 1"):
        random_case(0, **sizes)
