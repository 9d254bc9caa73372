"""The walker with a mocked memory: what it does, and in which cycle."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest

from hdl.layouts import HopEvent, MemoryStatus, VerdictKind, WalkStatus
from hdl.walker.fair_share import READS_LIMIT
from hdl.walker.isa import AKind, BKind, Exit, ExitKind, Instruction, Op, PointerKind, Update, UpdateKind
from hdl.walker.selection import PATIENCE
from hdl.walker.stores import STORES_LIMIT
from hdl.walker.walker import Walker

from .harness import Harness


def launch_cycles(stages: int) -> int:
    """Cycles from a launch's acceptance until its request, or its verdict, is visible."""
    return 2 if stages == 6 else 1


STAGES = pytest.mark.parametrize("stages", [1, 2, 3, 5, 6])

#: `load w0, goto 0`: follow the list until null.
CHASE = Instruction(taken=Exit(kind=ExitKind.LOAD))
DONE = Instruction(taken=Exit(kind=ExitKind.DONE, offset=9))


def load(target: int, word: int = 0, offset: int = 0) -> Exit:
    """An exit that loads the record that `word` points to."""
    return Exit(kind=ExitKind.LOAD, target=target, pointer_index=word, offset=offset)


def chain(*addresses: int, end: int = 0) -> dict[int, list[int]]:
    """Records that point to each other through w0; w1 is ten times the address."""
    return {
        address: [following, address * 10, 0, 0, 0, 0, 0, 0]
        for address, following in zip(addresses, (*addresses[1:], end), strict=True)
    }


def only(verdicts: list[Any]) -> Any:
    """The single verdict."""
    (verdict,) = verdicts
    return verdict


# -- Statuses ----------------------------------------------------------------------------------------------


@STAGES
def test_done_reports_code_record_registers_and_hops(stages: int) -> None:
    harness = Harness(stages=stages, memory=chain(5, 6, 7))
    harness.program = [
        Instruction(
            op=Op.EQ,
            a_index=1,
            immediate=70,
            update=Update(kind=UpdateKind.ADD, register=1, source_kind=PointerKind.WORD, source_index=1),
            taken=Exit(kind=ExitKind.DONE, offset=200),
            not_taken=load(0),
        )
    ]
    harness.launch(3, 5, registers=[11, 22, 33, 44, 55, 66], tag=0xBEEF)
    verdict = only(harness.run())
    assert (verdict.context, verdict.tag, verdict.kind) == (3, 0xBEEF, VerdictKind.DONE)
    assert (verdict.status, verdict.code, verdict.value, verdict.hops) == (WalkStatus.DONE, 200, 7, 3)
    assert verdict.registers == (11, 92, 33)
    assert verdict.cycles == verdict.first - harness.accepted[0][0]


@STAGES
@pytest.mark.parametrize(
    ("address", "status"),
    [(0, WalkStatus.NULL_POINTER), (9, WalkStatus.OUT_OF_WINDOW), (20, WalkStatus.OUT_OF_WINDOW)],
)
def test_start_address_is_checked_like_a_load(stages: int, address: int, status: WalkStatus) -> None:
    harness = Harness(stages=stages, program=[DONE], windows={0: (10, 20, True, 5)})
    harness.launch(0, address, tag=1, registers=[1, 2, 3, 4, 5, 6])
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops, verdict.code) == (status, 0, 0, 0)
    assert verdict.registers == (1, 2, 3)
    assert harness.requests == []
    assert verdict.cycles == launch_cycles(stages)
    (event,) = harness.events
    assert (event.event, event.cycle) == (HopEvent.VERDICT, harness.accepted[0][0] + launch_cycles(stages))


@STAGES
@pytest.mark.parametrize("address", [10, 19])
def test_window_edges_are_inside(stages: int, address: int) -> None:
    harness = Harness(stages=stages, program=[DONE], windows={0: (10, 20, True, 5)})
    harness.launch(0, address)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops, verdict.code) == (WalkStatus.DONE, address, 1, 9)


@pytest.mark.parametrize(("end", "status", "value"), [
    (0, WalkStatus.NULL_POINTER, 0),
    (9, WalkStatus.OUT_OF_WINDOW, 12),
    (20, WalkStatus.OUT_OF_WINDOW, 12),
    (0xFFFFFFFF, WalkStatus.OUT_OF_WINDOW, 12),
])  # fmt: skip
@STAGES
def test_a_load_that_fails_ends_at_the_record_it_came_from(
    stages: int, end: int, status: WalkStatus, value: int
) -> None:
    harness = Harness(
        stages=stages, program=[CHASE], memory=chain(11, 12, end=end), windows={2: (10, 20, False, 50)}
    )
    harness.launch(2, 11)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops, verdict.code) == (status, value, 2, 0)
    assert [request.address for request in harness.requests] == [11, 12]


def test_null_is_the_sum_of_pointer_and_offset() -> None:
    """A null word with an offset is an address like any other; a pointer that the offset cancels is null."""
    for offset, first, hops in ((-4, 4, 1), (7, 0, 2)):
        harness = Harness(
            program=[Instruction(taken=load(1, offset=offset)), DONE], memory={3: [first] + [0] * 7}
        )
        harness.launch(0, 3)
        verdict = only(harness.run())
        assert verdict.hops == hops
        assert verdict.status == (WalkStatus.NULL_POINTER if offset < 0 else WalkStatus.DONE)


@STAGES
@pytest.mark.parametrize("bad", [1, 2, 3])
@pytest.mark.parametrize(
    ("status", "end"),
    [
        (MemoryStatus.POISONED, WalkStatus.POISONED),
        (MemoryStatus.OUT_OF_RANGE, WalkStatus.OUT_OF_WINDOW),
        (MemoryStatus.BUS_ERROR, WalkStatus.BUS_ERROR),
    ],
)
def test_a_record_that_cannot_be_read(stages: int, bad: int, status: MemoryStatus, end: WalkStatus) -> None:
    harness = Harness(stages=stages, program=[CHASE], memory=chain(1, 2, 3), read_status={bad: status})
    harness.launch(0, 1)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops, verdict.code) == (end, bad - 1, bad, 0)


@STAGES
def test_a_start_that_cannot_be_read_does_not_report_the_last_walks_record(stages: int) -> None:
    harness = Harness(stages=stages, program=[DONE], read_status={6: MemoryStatus.POISONED})
    harness.launch(0, 5)
    harness.launch(0, 6)
    good, failed = harness.run()
    assert (good.status, good.value) == (WalkStatus.DONE, 5)
    assert (failed.status, failed.value, failed.hops) == (WalkStatus.POISONED, 0, 1)


def test_a_corrected_record_is_good() -> None:
    harness = Harness(program=[CHASE], memory=chain(1, 2), read_status={2: MemoryStatus.CORRECTED})
    harness.launch(0, 1)
    assert only(harness.run()).status == WalkStatus.NULL_POINTER


@STAGES
@pytest.mark.parametrize("budget", [0, 1, 5])
def test_budget(stages: int, budget: int) -> None:
    """Each instruction is a step; the one that finds no budget has no effect, its record counts as a hop."""
    count = Instruction(
        immediate=1,
        update=Update(kind=UpdateKind.ADD, register=0, source_kind=PointerKind.IMMEDIATE),
        store=True,
        store_word=5,
        taken=load(0),
    )
    harness = Harness(
        stages=stages, program=[count], memory=chain(*range(1, 20)), windows={0: (0, 50, True, budget)}
    )
    harness.launch(0, 1)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops) == (WalkStatus.BUDGET_SPENT, budget + 1, budget + 1)
    assert verdict.registers[0] == budget
    assert sum(request.write for request in harness.requests) == budget


def test_budget_is_24_bits_and_every_launch_has_all_of_it() -> None:
    spin = Instruction(taken=Exit(target=0))
    harness = Harness(program=[spin], memory=chain(1), windows={0: (0, 9, False, 300)})
    harness.launch(0, 1)
    harness.launch(0, 1)
    first, second = harness.run()
    assert first.status == second.status == WalkStatus.BUDGET_SPENT
    assert first.cycles == second.cycles > 300


@STAGES
def test_a_store_without_permission(stages: int) -> None:
    """Ends before memory is touched; the update, which comes earlier, stays."""
    instruction = Instruction(
        immediate=77,
        update=Update(kind=UpdateKind.MOV, register=2, source_kind=PointerKind.IMMEDIATE),
        store=True,
        taken=load(0),
    )
    harness = Harness(
        stages=stages, program=[instruction], memory=chain(4, 5), windows={0: (0, 50, False, 9)}
    )
    harness.launch(0, 4)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value, verdict.hops) == (WalkStatus.WRITE_DENIED, 4, 1)
    assert verdict.registers[2] == 77
    assert not any(request.write for request in harness.requests)


def test_a_store_that_is_not_taken_needs_no_permission() -> None:
    instruction = Instruction(op=Op.NE, immediate=0, a_index=7, store=True, not_taken=DONE.taken)
    harness = Harness(program=[instruction], memory=chain(4))
    harness.launch(0, 4)
    assert only(harness.run()).status == WalkStatus.DONE


@STAGES
def test_a_store_outside_a_window_that_shrank(stages: int) -> None:
    """The host must not do this while a walk runs; should it, nothing outside the new window is written."""
    program = [Instruction(taken=Exit(target=0), op=Op.NE, not_taken=Exit(target=1)), Instruction(store=True)]
    harness = Harness(stages=stages, program=program, memory=chain(4), windows={0: (0, 50, True, 99)})

    def shrink(ctx: Any, dut: Walker, cycle: int) -> None:
        harness.configure(ctx, dut, 0, 10, 50, True, 99)
        ctx.set(dut.context_write.enable, cycle == 3)

    harness.on_cycle = shrink
    harness.launch(0, 4)
    verdict = only(harness.run())
    assert (verdict.status, verdict.value) == (WalkStatus.OUT_OF_WINDOW, 4)
    assert len(harness.requests) == 1


# -- Stores ------------------------------------------------------------------------------------------------


@STAGES
def test_a_program_sees_its_store_and_memory_gets_one_word(stages: int) -> None:
    program = [
        Instruction(
            immediate=123,
            update=Update(kind=UpdateKind.MOV, register=4, source_kind=PointerKind.IMMEDIATE),
            store=True,
            store_word=6,
            store_register=4,
            taken=Exit(target=1),
        ),
        Instruction(
            update=Update(kind=UpdateKind.MOV, register=0, source_kind=PointerKind.WORD, source_index=6),
            taken=load(2),
        ),
        Instruction(taken=load(3, word=3)),
        DONE,
    ]
    memory = {1: [2, 3, 4, 5, 6, 7, 8, 9], 2: [0, 0, 0, 1, 0, 0, 0, 0]}
    harness = Harness(stages=stages, program=program, memory=memory, windows={0: (0, 50, True, 9)})
    harness.launch(0, 1)
    verdict = only(harness.run())
    assert verdict.status == WalkStatus.DONE and verdict.registers[0] == 123 and verdict.hops == 3
    assert memory[1] == [2, 3, 4, 5, 6, 7, 123, 9]
    write = only([request for request in harness.requests if request.write])
    assert write.mask == 0xF << 24 and not write.conditional


@STAGES
def test_store_goes_before_the_load_of_its_instruction(stages: int) -> None:
    program = [
        Instruction(
            store=True,
            store_word=5,
            taken=Exit(kind=ExitKind.LOAD, pointer_kind=PointerKind.ADDRESS, target=1),
        ),
        Instruction(
            update=Update(kind=UpdateKind.MOV, register=1, source_kind=PointerKind.WORD, source_index=5),
            taken=DONE.taken,
        ),
    ]
    harness = Harness(stages=stages, program=program, memory=chain(3), windows={0: (0, 50, True, 9)})
    harness.launch(0, 3, registers=[0xABC, 0, 0, 0, 0, 0])
    verdict = only(harness.run())
    assert verdict.registers == (0xABC, 0xABC, 0)
    assert [request.write for request in harness.requests] == [False, True, False]
    store, read = harness.requests[1:]
    # With six stages the store has to be taken, and the last stage to be empty, first.
    assert read.first == store.first + (3 if stages == 6 else 1)
    assert [event.event for event in harness.events] == [
        HopEvent.REQUEST,
        HopEvent.STORE,
        HopEvent.REQUEST,
        HopEvent.VERDICT,
    ]


@STAGES
def test_conditional_store_with_a_changed_word(stages: int) -> None:
    """Memory keeps the other writer's value, the context's copy has the new one, and the walk goes on."""
    program = [
        Instruction(store=True, store_conditional=True, store_word=2, store_register=3, taken=Exit(target=1)),
        Instruction(
            update=Update(kind=UpdateKind.MOV, register=0, source_kind=PointerKind.WORD, source_index=2),
            taken=DONE.taken,
        ),
    ]
    for changed in (False, True):
        memory = {1: [0, 0, 50, 0, 0, 0, 0, 0]}
        harness = Harness(stages=stages, program=program, memory=memory, windows={0: (0, 50, True, 9)})

        def meddle(
            ctx: Any, dut: Walker, cycle: int, *, memory: Any = memory, changed: bool = changed
        ) -> None:
            # The record was read, and the store has not come.
            if changed and cycle == launch_cycles(stages) + 2:
                memory[1][2] = 51

        harness.on_cycle = meddle
        harness.launch(0, 1, registers=[0, 0, 0, 99, 0, 0])
        verdict = only(harness.run())
        assert verdict.status == WalkStatus.DONE and verdict.registers[0] == 99
        assert memory[1][2] == (51 if changed else 99)
        write = only([request for request in harness.requests if request.write])
        assert write.conditional and write.expected == 50


@STAGES
def test_the_last_verdict_waits_for_every_store(stages: int) -> None:
    program = [
        Instruction(store=True, store_word=1, taken=Exit(target=1)),
        Instruction(store=True, store_word=2, taken=DONE.taken),
    ]
    harness = Harness(
        stages=stages,
        program=program,
        memory=chain(1),
        windows={0: (0, 50, True, 9)},
        write_latency=lambda _: 40,
    )
    harness.launch(0, 1)
    verdict = only(harness.run())
    last = max(answer.cycle for answer in harness.answers)
    assert verdict.first == last + 2
    decided = only([event for event in harness.events if event.event == HopEvent.VERDICT])
    stores = [event.cycle for event in harness.events if event.event == HopEvent.STORE]
    assert decided.cycle == stores[-1] + (3 if stages == 6 else 1) and decided.address == 1


@STAGES
def test_unanswered_stores_of_a_context_are_bounded(stages: int) -> None:
    """A loop of stores against a memory that does not answer stops at the limit and goes on afterwards."""
    program = [
        Instruction(
            op=Op.LT_U,
            a_kind=AKind.REGISTER,
            immediate=3 * STORES_LIMIT,
            update=Update(kind=UpdateKind.ADD, register=0, source_kind=PointerKind.REGISTER, source_index=1),
            store=True,
            taken=Exit(target=0),
            not_taken=DONE.taken,
        )
    ]
    memory = chain(1, 2)
    harness = Harness(
        stages=stages,
        program=program,
        memory=memory,
        windows=dict.fromkeys(range(4), (0, 50, True, 500)),
        write_latency=lambda address: 150 if address == 1 else 5,
    )
    harness.launch(0, 1, registers=[0, 1, 0, 0, 0, 0])
    harness.launch(1, 2, registers=[0, 1, 0, 0, 0, 0])
    first, second = harness.run()
    assert (first.context, second.context) == (1, 0), "the other context is not held up"
    assert first.status == second.status == WalkStatus.DONE
    assert memory[1][0] == memory[2][0] == 3 * STORES_LIMIT
    out = most = 0
    log = [(request.cycle, 1) for request in harness.requests if request.write and request.context == 0]
    log += [(answer.cycle, -1) for answer in harness.answers if answer.write and answer.context == 0]
    for _, change in sorted(log):
        out += change
        most = max(most, out)
    assert most == STORES_LIMIT


@STAGES
@pytest.mark.parametrize("status", [MemoryStatus.POISONED, MemoryStatus.OUT_OF_RANGE, MemoryStatus.BUS_ERROR])
def test_a_store_that_fails_is_not_silent(stages: int, status: MemoryStatus) -> None:
    program = [Instruction(store=True, taken=Exit(target=1)), DONE]
    harness = Harness(
        stages=stages,
        program=program,
        memory=chain(1, 2),
        windows={0: (0, 50, True, 9)},
        write_status={1: status},
    )
    harness.launch(0, 1)
    harness.launch(0, 2)
    failed, good = harness.run()
    assert (failed.status, failed.code, failed.value) == (WalkStatus.POISONED, 0, 1)
    assert (good.status, good.code, good.value) == (WalkStatus.DONE, 9, 2)


@STAGES
def test_a_store_that_fails_shows_in_a_walk_that_runs_off_its_path(stages: int) -> None:
    """A null pointer is an answer too ("there is none"): a lost store must not hide behind it."""
    harness = Harness(
        stages=stages,
        program=[Instruction(store=True, taken=load(0))],
        memory=chain(1) | chain(2),
        windows={0: (0, 50, True, 9)},
        write_status={1: MemoryStatus.POISONED},
    )
    harness.launch(0, 1)
    harness.launch(0, 2)
    failed, good = harness.run()
    assert (failed.status, failed.value) == (WalkStatus.POISONED, 0)
    assert (good.status, good.value) == (WalkStatus.NULL_POINTER, 0)


@STAGES
def test_a_store_and_a_record_for_another_context_in_one_cycle(stages: int) -> None:
    """Both need the write port of the records; neither is lost while a record arrives in every cycle."""
    program = [
        CHASE,
        Instruction(
            update=Update(kind=UpdateKind.ADD, register=0, source_kind=PointerKind.REGISTER, source_index=1),
            store=True,
            store_word=5,
            taken=Exit(target=2),
        ),
        Instruction(
            op=Op.EQ,
            a_index=5,
            b_kind=BKind.REGISTER,
            b_index=0,
            taken=Exit(target=3),
            not_taken=Exit(kind=ExitKind.DONE, offset=99),
        ),
        Instruction(
            op=Op.LT_U,
            a_kind=AKind.REGISTER,
            immediate=40,
            taken=Exit(target=1),
            not_taken=Exit(kind=ExitKind.DONE, offset=1),
        ),
    ]
    memory = {n: [n, 0, 0, 0, 0, 7, 0, 0] for n in range(1, 17)}
    harness = Harness(
        contexts=16,
        stages=stages,
        program=program,
        memory=memory,
        windows={n: (0, 99, n == 0, 500 if n == 0 else 100) for n in range(16)},
        latency=lambda _: 8,
        watchdog=6000,
    )
    for context in range(16):
        harness.launch(context, context + 1, entry=context == 0, registers=[0, 1, 0, 0, 0, 0])
    verdicts = harness.run()
    stored = only([verdict for verdict in verdicts if verdict.context == 0])
    assert (stored.status, stored.code, stored.registers[0]) == (WalkStatus.DONE, 1, 40)
    assert memory[1][5] == 40 and all(memory[n][5] == 7 for n in range(2, 17))
    assert all(v.status == WalkStatus.BUDGET_SPENT and v.hops == 101 for v in verdicts if v.context)


# -- Yields ------------------------------------------------------------------------------------------------

#: Yields w1 + 3 of every record of a list.
LIST = [
    Instruction(taken=Exit(kind=ExitKind.YIELD, target=1, pointer_index=1, offset=3)),
    Instruction(taken=load(0)),
]


@STAGES
def test_yields_carry_value_hops_and_registers(stages: int) -> None:
    harness = Harness(stages=stages, program=LIST, memory=chain(1, 2, 3))
    harness.launch(1, 1, tag=7, registers=[4, 5, 6, 0, 0, 0])
    harness.run()
    *yields, end = harness.verdicts
    assert [(y.kind, y.value, y.hops, y.status, y.code, y.tag, y.context) for y in yields] == [
        (VerdictKind.YIELD, 10 * n + 3, n, WalkStatus.DONE, 0, 7, 1) for n in (1, 2, 3)
    ]
    assert all(y.registers == (4, 5, 6) for y in yields)
    assert all(y.cycles == y.first - harness.accepted[0][0] for y in harness.verdicts)
    assert (end.kind, end.status, end.hops) == (VerdictKind.DONE, WalkStatus.NULL_POINTER, 3)


@STAGES
def test_a_yield_blocks_only_its_context(stages: int) -> None:
    """With nobody taking verdicts, the yielding context stands and the others walk to their end."""
    memory = chain(1, 2) | chain(11, 12, 13, 14, 15)
    harness = Harness(
        stages=stages,
        program=[*LIST, CHASE.__class__(taken=load(2))],
        memory=memory,
        verdict_ready=lambda cycle: cycle > 200,
    )
    harness.launch(0, 1)
    harness.launch(1, 11, entry=2)
    harness.run()
    early = [request for request in harness.requests if request.cycle < 200]
    assert [request.address for request in early if request.context == 0] == [1]
    assert [request.address for request in early if request.context == 1] == [11, 12, 13, 14, 15]
    assert [verdict.kind for verdict in harness.verdicts] == [
        VerdictKind.YIELD,
        VerdictKind.DONE,
        VerdictKind.YIELD,
        VerdictKind.DONE,
    ]


def test_a_yield_does_not_wait_for_stores_but_the_end_does() -> None:
    program = [
        Instruction(
            store=True,
            taken=Exit(kind=ExitKind.YIELD, target=1, pointer_kind=PointerKind.IMMEDIATE),
            immediate=5,
        ),
        DONE,
    ]
    harness = Harness(
        program=program, memory=chain(1), windows={0: (0, 9, True, 9)}, write_latency=lambda _: 60
    )
    harness.launch(0, 1)
    harness.run()
    given, end = harness.verdicts
    assert given.value == 5 and given.first < 20 and end.first > 60


@STAGES
def test_a_read_behind_a_store_goes_while_others_ask_without_a_pause(stages: int) -> None:
    """The second request of an instruction waits for a slot, which those of others do not take for ever."""
    ring = chain(*range(1, 21), end=1)
    stores = Instruction(
        store=True, store_word=5, taken=Exit(kind=ExitKind.LOAD, pointer_kind=PointerKind.ADDRESS, target=2)
    )
    windows = {context: (0, 50, True, 60) for context in range(16)}
    harness = Harness(contexts=16, stages=stages, program=[CHASE, stores, DONE], memory=ring, windows=windows)
    harness.latency = lambda address: 2
    for context in range(15):
        harness.launch(context, context + 1)
    harness.launch(15, 30, entry=1, at=150)
    verdicts = harness.run()
    stored = only([verdict for verdict in verdicts if verdict.context == 15])
    assert stored.status == WalkStatus.DONE and stored.hops == 2
    # All the others are at it still.
    assert stored is verdicts[0] and stored.cycles < 150


# -- Timing ------------------------------------------------------------------------------------------------


@STAGES
def test_record_to_next_request(stages: int) -> None:
    """A record that arrives in cycle t gives a request in cycle t + stages. A launch is accepted at once and
    gives one in t + 1, with six stages a cycle later and in t + 2."""
    harness = Harness(stages=stages, program=[CHASE], memory=chain(1, 2, 3, 4))
    harness.launch(0, 1, at=4)
    verdict = only(harness.run())
    accepted = 5 if stages == 6 else 4
    assert harness.accepted == [(accepted, 0)]
    assert harness.requests[0].first == accepted + launch_cycles(stages)
    for answer, request in zip(harness.answers, harness.requests[1:], strict=False):
        assert request.first - answer.cycle == stages
    requests = [event for event in harness.events if event.event == HopEvent.REQUEST]
    assert [event.cycle for event in requests] == [request.first for request in harness.requests]
    assert [event.address for event in requests] == [1, 2, 3, 4]
    decided = only([event for event in harness.events if event.event == HopEvent.VERDICT])
    assert decided.cycle - harness.answers[-1].cycle == stages
    assert verdict.first == decided.cycle and decided.address == 4


@STAGES
def test_chained_goto(stages: int) -> None:
    """Each further instruction on a record costs `execute_stages` cycles."""
    program = [
        Instruction(taken=Exit(target=1)),
        Instruction(taken=Exit(target=2)),
        Instruction(taken=load(0)),
    ]
    harness = Harness(stages=stages, program=program, memory=chain(1, 2, 3))
    harness.launch(0, 1)
    harness.run()
    for answer, request in zip(harness.answers, harness.requests[1:], strict=False):
        assert request.first - answer.cycle == 3 * stages


@STAGES
def test_a_stalled_request_does_not_stop_responses(stages: int) -> None:
    """The memory takes no request until it has given all of its responses."""
    contexts = 8
    memory = {n: [n + 100, 0, 0, 0, 0, 0, 0, 0] for n in range(1, contexts + 1)}
    harness = Harness(
        contexts=contexts,
        stages=stages,
        program=[CHASE],
        memory=memory,
        latency=lambda _: 30,
        request_ready=lambda cycle: cycle < (30 if stages == 6 else 20) or len(harness.answers) >= contexts,
    )
    for context in range(contexts):
        harness.launch(context, context + 1)
    verdicts = harness.run()
    assert len(harness.requests) == 2 * contexts
    assert {verdict.status for verdict in verdicts} == {WalkStatus.NULL_POINTER}
    assert all(answer.first == answer.cycle for answer in harness.answers)
    # Afterwards the requests leave one a cycle, or with six stages, and an instruction between, one in three.
    second = [request.cycle for request in harness.requests[contexts:]]
    if stages < 6:
        assert second == list(range(second[0], second[0] + contexts))
    else:
        assert second[-1] - second[0] <= 3 * (contexts - 1)


def test_a_stalled_request_does_not_stop_instructions() -> None:
    count = Instruction(
        op=Op.LT_U,
        a_kind=AKind.REGISTER,
        immediate=20,
        update=Update(kind=UpdateKind.ADD, register=0, source_kind=PointerKind.REGISTER, source_index=1),
        taken=Exit(target=1),
        not_taken=DONE.taken,
    )
    harness = Harness(
        program=[CHASE, count],
        memory=chain(1) | chain(2, 3),
        request_ready=lambda cycle: cycle < 5 or cycle > 100,
    )
    harness.launch(1, 1, entry=1, registers=[0, 1, 0, 0, 0, 0])
    harness.launch(0, 2)
    first, second = harness.run()
    assert (first.context, first.registers[0]) == (1, 20) and first.first < 100
    assert second.status == WalkStatus.NULL_POINTER and second.hops == 2


@STAGES
def test_hops_of_a_stalled_request_are_logged_in_its_first_cycle_of_valid(stages: int) -> None:
    rng = random.Random(5)
    ready = [rng.random() < 0.4 for _ in range(3000)]
    harness = Harness(stages=stages, program=[CHASE], request_ready=ready.__getitem__)
    for context in range(4):
        harness.memory |= chain(*range(10 * context + 1, 10 * context + 8))
        harness.launch(context, 10 * context + 1)
    harness.run()
    logged = [(e.cycle, e.context, e.address) for e in harness.events if e.event == HopEvent.REQUEST]
    assert logged == [(r.first, r.context, r.address) for r in harness.requests]
    assert len(logged) == 28


# -- Many contexts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("contexts", "stages"), [(1, 1), (1, 3), (12, 2), (64, 1), (64, 3)])
def test_every_context_busy(contexts: int, stages: int) -> None:
    rng = random.Random(contexts)
    harness = Harness(contexts=contexts, stages=stages, program=[CHASE], latency=lambda _: rng.randint(3, 40))
    starts = {}
    for context in range(contexts):
        addresses = [1000 * (context + 1) + n for n in range(3)]
        harness.memory |= chain(*addresses)
        starts[context] = addresses[0]
        harness.launch(context, addresses[0], tag=context, registers=[context] * 6)
    verdicts = harness.run()
    assert sorted(verdict.context for verdict in verdicts) == list(range(contexts))
    for verdict in verdicts:
        assert (verdict.tag, verdict.hops, verdict.status) == (verdict.context, 3, WalkStatus.NULL_POINTER)
        assert verdict.registers == (verdict.context,) * 3
    if contexts == 64:
        cycles = [cycle for cycle, _ in harness.accepted]
        assert all(b - a <= PATIENCE + stages + 2 for a, b in pairwise(cycles)), cycles


def test_launch_into_a_busy_context_waits_for_its_verdict() -> None:
    harness = Harness(program=[CHASE], memory=chain(1, 2, 3))
    harness.launch(2, 1)
    harness.launch(2, 3)
    first, second = harness.run()
    assert (first.hops, second.hops) == (3, 1)
    assert harness.accepted[1][0] == first.cycle + 1


def test_context_number_is_its_low_bits_and_a_missing_context_is_never_accepted() -> None:
    harness = Harness(contexts=4, program=[DONE], memory=chain(1))
    harness.launch(4 + 3, 1)
    assert only(harness.run()).context == 3
    missing = Harness(contexts=3, program=[DONE], memory=chain(1), watchdog=50)
    missing.launch(3, 1)
    with pytest.raises(AssertionError, match="watchdog"):
        missing.run()
    assert missing.accepted == []


@STAGES
def test_executing_contexts_take_turns(stages: int) -> None:
    spin = Instruction(taken=Exit(target=0))
    harness = Harness(
        contexts=8, stages=stages, program=[spin], windows=dict.fromkeys(range(8), (0, 99, False, 40))
    )
    for context in range(8):
        harness.launch(context, context + 1)
    ends = sorted(verdict.first for verdict in harness.run())
    assert ends[-1] - ends[0] < 8 * 8, ends


@STAGES
def test_nobody_starves_under_a_record_in_every_cycle(stages: int) -> None:
    """63 contexts keep the selection busy; one that only jumps and one that is launched still get through."""
    contexts = 64
    program = [CHASE, Instruction(taken=Exit(target=2)), Instruction(taken=DONE.taken)]
    memory = {n: [n] + [0] * 7 for n in range(1, contexts + 1)}
    harness = Harness(
        contexts=contexts,
        stages=stages,
        program=program,
        memory=memory,
        windows={n: (0, 99, False, 20 if n < 60 else 9) for n in range(contexts)},
        latency=lambda _: 50,
        watchdog=4000,
    )
    for context in range(60):
        harness.launch(context, context + 1)
    # With six stages the launches before take longer.
    begin = 400 if stages == 6 else 200
    for n in range(6):
        harness.launch(60, 61, entry=1, at=begin, tag=n)
    verdicts = harness.run()
    short = [verdict for verdict in verdicts if verdict.context == 60]
    assert [verdict.tag for verdict in short] == list(range(6))
    # Two more instructions after the record, each of which may have to be patient.
    # With six stages records arrive faster than requests leave, and pile up in their contexts.
    bound = 50 + 20 + 3 * ((contexts if stages == 6 else 1) * PATIENCE + 2 * stages)
    assert all(verdict.cycles <= bound for verdict in short), [verdict.cycles for verdict in short]
    offered = [begin, *(verdict.cycle + 1 for verdict in short)]
    accepted = [cycle for cycle, context in harness.accepted if context == 60]
    drained = (6 if stages == 6 else 2) * stages
    assert all(at - since <= PATIENCE + drained for at, since in zip(accepted, offered, strict=False))
    busy = [answer.cycle for answer in harness.answers if 200 <= answer.cycle < 600]
    assert len(busy) > (130 if stages == 6 else 330), "the selection was kept busy"


@STAGES
def test_instructions_of_two_tenants_take_turns(stages: int) -> None:
    """A walk of several instructions a record beside 15 that only jump, of its own tenant or of the other."""

    def cycles(tenant: int) -> int:
        program = [Instruction(taken=Exit(target=0))] + [
            Instruction(taken=Exit(target=n)) for n in range(2, 10)
        ]
        harness = Harness(
            contexts=16,
            stages=stages,
            program=[*program, DONE],
            windows=dict.fromkeys(range(15), (0, 99, False, 60)),
            tenants=dict.fromkeys(range(15), tenant),
        )
        for context in range(15):
            harness.launch(context, context + 1)
        harness.launch(15, 50, entry=1, at=60, tag=1)
        return next(verdict.cycles for verdict in harness.run() if verdict.tag)

    assert cycles(tenant=0) > 8 * 15
    assert cycles(tenant=1) <= 9 * (1 + max(2, stages)) + 10
    # Within one tenant everybody has a turn, whoever the other one is.
    spin = Instruction(taken=Exit(target=0))
    harness = Harness(
        contexts=8,
        stages=stages,
        program=[spin],
        windows=dict.fromkeys(range(8), (0, 99, False, 40)),
        tenants=dict.fromkeys(range(3, 8), 1),
    )
    for context in range(8):
        harness.launch(context, context + 1)
    ends = {verdict.context: verdict.first for verdict in harness.run()}
    for mine in (range(3), range(3, 8)):
        assert max(ends[n] for n in mine) - min(ends[n] for n in mine) < 8 * 8, ends


@STAGES
def test_reads_of_two_tenants(stages: int) -> None:
    """One walk beside 47 of another tenant: it has priority, they have none, and few are under way."""
    harness = Harness(
        contexts=48,
        stages=stages,
        program=[CHASE],
        memory={n: [n] + [0] * 7 for n in range(1, 50)},
        windows={n: (0, 99, False, 20) for n in range(48)},
        tenants=dict.fromkeys(range(1, 48), 1),
        latency=lambda address: 60 if address == 1 else 120,
        watchdog=6000,
    )
    for context in range(48):
        harness.launch(context, context + 1)
    harness.run()
    last = max(request.cycle for request in harness.requests if request.context == 0)
    contested = [r for r in harness.requests if harness.accepted[1][0] + 40 < r.first <= last]
    assert all(r.priority for r in contested if r.context == 0)
    assert not any(r.priority for r in contested if r.context)
    for request in contested:
        under_way = [r for r in harness.requests if r.context and r.first <= request.first]
        answered = [a for a in harness.answers if a.context and a.cycle < request.first]
        assert len(under_way) - len(answered) <= READS_LIMIT
    assert any(request.context for request in contested)
    # Alone, a tenant has all of it.
    alone = [r for r in harness.requests if r.first > last + 200]
    assert alone and all(r.priority for r in alone)


@STAGES
def test_verdicts_under_back_pressure(stages: int) -> None:
    rng = random.Random(3)
    ready = [rng.random() < 0.15 for _ in range(3000)]
    harness = Harness(contexts=8, stages=stages, program=LIST, verdict_ready=ready.__getitem__)
    for context in range(8):
        harness.memory |= chain(*range(10 * context + 1, 10 * context + 6))
        harness.launch(context, 10 * context + 1)
    harness.run()
    for context in range(8):
        mine = [verdict for verdict in harness.verdicts if verdict.context == context]
        values = [verdict.value for verdict in mine if verdict.kind == VerdictKind.YIELD]
        assert values == [10 * (10 * context + n) + 3 for n in range(1, 6)]
        assert mine[-1].kind == VerdictKind.DONE and len(mine) == 6
    assert len(harness.verdicts) == 48


@pytest.mark.parametrize("stalled", ["nothing", "requests", "verdicts"])
def test_a_batch_does_not_depend_on_what_ran_before(stalled: str) -> None:
    """The round robins begin anew when the walker is idle: of instructions, of what was put off, of verdicts.

    The latter two choose only where several contexts wait for a neighbour that stalls.
    """

    def flows(cycle: int) -> bool:
        return not (cycle < 60 or 400 <= cycle < 500)

    def batch(before: int) -> list[tuple[int, int]]:
        harness = Harness(contexts=4, program=LIST, memory=chain(1, 2, 3, 4) | chain(50))
        if stalled == "requests":
            harness.request_ready = flows
        elif stalled == "verdicts":
            harness.verdict_ready = flows
        for context in range(before):
            harness.launch(context, 50)
        for context in range(4):
            harness.launch(context, 1, at=400, tag=1)
        harness.run()
        assert all(verdict.cycle < 400 for verdict in harness.verdicts if not verdict.tag)
        return [(verdict.context, verdict.first) for verdict in harness.verdicts if verdict.tag]

    assert batch(0) == batch(1) == batch(2) == batch(3)
