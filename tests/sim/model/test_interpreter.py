"""The golden interpreter: each pinned rule by a walk of one or a few hand-written instructions."""

from __future__ import annotations

import pytest

from hdl.layouts import WalkStatus
from hdl.walker.isa import AKind, BKind, Exit, ExitKind, Instruction, Op, PointerKind, Update, UpdateKind
from sim.model.interpreter import Memory, WalkResult, run_walk

DONE = Exit(kind=ExitKind.DONE)


def load(word: int, target: int = 0, offset: int = 0) -> Exit:
    return Exit(kind=ExitKind.LOAD, target=target, pointer_index=word, offset=offset)


def walk(*program: Instruction, memory: Memory, **arguments: object) -> WalkResult:
    defaults: dict[str, object] = {
        "address": 1,
        "entry": 0,
        "registers": (),
        "window": (0, 100),
        "writable": False,
        "budget": 100,
    }
    return run_walk(program, memory, **(defaults | arguments))  # type: ignore[arg-type]


def atom(**words: int) -> tuple[int, ...]:
    return tuple(words.get(f"w{index}", 0) for index in range(8))


def test_done_reports_code_address_and_counts() -> None:
    result = walk(Instruction(taken=Exit(kind=ExitKind.DONE, offset=255)), memory={1: atom()})
    assert (result.status, result.code, result.value) == (WalkStatus.DONE, 255, 1)
    assert (result.hops, result.steps, result.addresses) == (1, 1, (1,))


def test_start_at_null_reads_nothing() -> None:
    result = walk(Instruction(taken=DONE), memory={}, address=0)
    assert (result.status, result.value, result.hops, result.steps) == (WalkStatus.NULL_POINTER, 0, 0, 0)


@pytest.mark.parametrize("address", [9, 20])
def test_start_outside_the_window_reads_nothing(address: int) -> None:
    result = walk(Instruction(taken=DONE), memory={}, address=address, window=(10, 20))
    assert (result.status, result.value, result.hops) == (WalkStatus.OUT_OF_WINDOW, 0, 0)


@pytest.mark.parametrize("address", [10, 19])
def test_the_window_holds_its_base_and_not_its_limit(address: int) -> None:
    result = walk(Instruction(taken=DONE), memory={}, address=address, window=(10, 20))
    assert (result.status, result.value) == (WalkStatus.DONE, address)


def test_a_null_load_ends_with_value_0_even_outside_the_window() -> None:
    result = walk(Instruction(taken=load(0)), memory={11: atom()}, address=11, window=(10, 20))
    assert (result.status, result.value, result.hops) == (WalkStatus.NULL_POINTER, 0, 1)


def test_a_failed_load_reports_the_record_it_came_from() -> None:
    result = walk(Instruction(taken=load(0)), memory={1: atom(w0=100)})
    assert (result.status, result.value, result.hops) == (WalkStatus.OUT_OF_WINDOW, 1, 1)


def test_a_load_beyond_the_memory_is_issued_and_ends_out_of_window() -> None:
    result = walk(Instruction(taken=load(0)), memory={1: atom(w0=50)}, memory_atoms=50)
    assert (result.status, result.value, result.hops) == (WalkStatus.OUT_OF_WINDOW, 1, 2)
    assert result.addresses == (1, 50)


@pytest.mark.parametrize("status", [WalkStatus.POISONED, WalkStatus.BUS_ERROR])
def test_a_record_that_cannot_be_read_is_not_executed(status: WalkStatus) -> None:
    result = walk(Instruction(taken=load(0)), memory={1: atom(w0=2)}, unreadable={2: status})
    assert (result.status, result.value, result.hops, result.steps) == (status, 1, 2, 1)
    assert walk(Instruction(taken=DONE), memory={}, unreadable={1: status}).value == 0


def test_the_checks_see_the_offset() -> None:
    to_null = walk(Instruction(taken=load(0, offset=-5)), memory={1: atom(w0=5)})
    assert to_null.status is WalkStatus.NULL_POINTER
    from_null = walk(Instruction(taken=load(0, 1, offset=7)), Instruction(taken=DONE), memory={1: atom()})
    assert (from_null.status, from_null.value) == (WalkStatus.DONE, 7)


@pytest.mark.parametrize(("budget", "steps"), [(0, 0), (1, 1), (7, 7)])
def test_a_loop_ends_when_the_budget_is_spent(budget: int, steps: int) -> None:
    result = walk(Instruction(), memory={}, budget=budget)
    assert (result.status, result.steps, result.value) == (WalkStatus.BUDGET_SPENT, steps, 1)


def test_an_unwritten_program_word_is_goto_0() -> None:
    program = (Instruction(taken=Exit(target=63)),)
    assert walk(*program, memory={}, budget=6).steps == 6


def test_update_store_and_exit_see_each_other_in_order() -> None:
    """r1 becomes w1 + 5, is stored to w0, and the load goes where the new w0 points."""
    program = Instruction(
        op=Op.EQ,
        a_kind=AKind.REGISTER,
        a_index=1,
        immediate=5,
        update=Update(kind=UpdateKind.ADD, register=1, source_index=1),
        store=True,
        store_word=0,
        store_register=1,
        taken=load(0),
        not_taken=DONE,
    )
    memory: Memory = {1: atom(w0=90, w1=37)}
    result = walk(program, memory=memory, registers=(0, 5), writable=True)
    assert (result.status, result.addresses) == (WalkStatus.DONE, (1, 42))
    assert memory[1] == atom(w0=42, w1=37)
    assert result.registers[1] == 42


def test_an_instruction_that_is_not_taken_has_no_effect() -> None:
    program = Instruction(
        op=Op.NE,
        a_kind=AKind.REGISTER,
        update=Update(kind=UpdateKind.MOV, register=2, source_kind=PointerKind.ADDRESS),
        store=True,
        not_taken=DONE,
    )
    memory: Memory = {1: atom(w0=3)}
    result = walk(program, memory=memory, writable=True)
    assert (result.registers, result.stores, memory[1]) == ((0,) * 8, (), atom(w0=3))


def test_a_store_without_permission_touches_no_memory() -> None:
    program = Instruction(
        update=Update(kind=UpdateKind.MOV, register=1, source_kind=PointerKind.ADDRESS),
        store=True,
        store_register=1,
        taken=DONE,
    )
    memory: Memory = {1: atom(w0=9)}
    result = walk(program, memory=memory)
    assert (result.status, result.value, result.steps) == (WalkStatus.WRITE_DENIED, 1, 1)
    assert (memory[1], result.registers[1], result.stores) == (atom(w0=9), 1, ())


class _ChangesAfterFirstRead(dict[int, tuple[int, ...]]):
    """A memory in which somebody else writes w0 of every atom once it has been read."""

    def __getitem__(self, key: int) -> tuple[int, ...]:
        atom = super().__getitem__(key)
        self[key] = (77, *atom[1:])
        return atom


def test_a_conditional_store_compares_memory_with_the_record_that_was_read() -> None:
    store = Instruction(store=True, store_conditional=True, taken=Exit(target=1))
    reload = Instruction(taken=load(0, 2))
    program = (store, reload, Instruction(taken=DONE))
    kept = _ChangesAfterFirstRead({1: atom(w0=9)})
    result = walk(*program, memory=kept, writable=True)  # type: ignore[arg-type]
    assert [store.written for store in result.stores] == [False]
    assert kept[1] == atom(w0=77)
    assert result.status is WalkStatus.NULL_POINTER, "the context's copy takes the stored 0"
    plain: Memory = {1: atom(w0=9)}
    assert walk(*program, memory=plain, writable=True).stores[0].written
    assert plain[1] == atom()


def test_bytes_stay_bytes() -> None:
    program = Instruction(
        update=Update(kind=UpdateKind.MOV, source_kind=PointerKind.IMMEDIATE),
        immediate=0x01020304,
        store=True,
        store_word=7,
        taken=DONE,
    )
    memory: Memory = {1: bytes(range(32))}
    walk(program, memory=memory, writable=True)
    assert memory[1] == bytes(range(28)) + bytes((4, 3, 2, 1))


def test_yields_go_on_with_their_offset_and_hops() -> None:
    program = (
        Instruction(taken=Exit(kind=ExitKind.YIELD, target=1, pointer_index=1, offset=-1)),
        Instruction(taken=load(0, 2)),
        Instruction(taken=Exit(kind=ExitKind.YIELD, target=3, pointer_kind=PointerKind.ADDRESS)),
        Instruction(taken=DONE),
    )
    result = walk(*program, memory={1: atom(w0=2)})
    assert (result.yields, result.yield_hops, result.hops) == ((0xFFFFFFFF, 2), (1, 2), 2)


MINUS_1 = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("op", "pairs"),
    [
        (Op.ALWAYS, {(0, 0): True, (1, 0): True}),
        (Op.EQ, {(5, 5): True, (5, 4): False}),
        (Op.NE, {(5, 5): False, (5, 4): True}),
        (Op.LT_S, {(MINUS_1, 0): True, (0, MINUS_1): False, (3, 3): False}),
        (Op.GE_S, {(MINUS_1, 0): False, (0, MINUS_1): True, (3, 3): True}),
        (Op.LT_U, {(MINUS_1, 0): False, (0, MINUS_1): True, (3, 3): False}),
        (Op.GE_U, {(MINUS_1, 0): True, (0, MINUS_1): False, (3, 3): True}),
        (Op.ANY, {(6, 8): False, (6, 12): True}),
    ],
)
def test_comparisons(op: Op, pairs: dict[tuple[int, int], bool]) -> None:
    for (a, b), expected in pairs.items():
        for b_kind in BKind:
            program = Instruction(
                op=op,
                a_kind=AKind.REGISTER,
                b_kind=b_kind,
                b_index=1,
                immediate=b,
                taken=Exit(kind=ExitKind.DONE, offset=1),
                not_taken=DONE,
            )
            result = walk(program, memory={1: atom(w1=b)}, registers=(a, b))
            assert result.code == expected, (a, b, b_kind)


@pytest.mark.parametrize(
    ("low", "width", "signed", "expected"),
    [(4, 8, False, 0xBC), (4, 8, True, 0xFFFFFFBC), (0, 32, True, 0x8000ABCD), (12, 3, True, 2)],
)
def test_fields(low: int, width: int, signed: bool, expected: int) -> None:
    program = Instruction(
        op=Op.EQ,
        a_index=3,
        a_low=low,
        a_width_minus_1=width - 1,
        a_signed=signed,
        immediate=expected,
        taken=Exit(kind=ExitKind.DONE, offset=1),
        not_taken=DONE,
    )
    assert walk(program, memory={1: atom(w3=0x8000ABCD)}).code == 1


@pytest.mark.parametrize(
    ("kind", "register", "source", "expected"),
    [
        (UpdateKind.NONE, 6, 3, 6),
        (UpdateKind.MOV, 6, 3, 3),
        (UpdateKind.ADD, MINUS_1, 3, 2),
        (UpdateKind.SUB, 1, 3, 0xFFFFFFFE),
        (UpdateKind.MIN, MINUS_1, 3, MINUS_1),
        (UpdateKind.MAX, MINUS_1, 3, 3),
        (UpdateKind.AND, 6, 3, 2),
        (UpdateKind.OR, 6, 3, 7),
    ],
)
def test_updates(kind: UpdateKind, register: int, source: int, expected: int) -> None:
    for source_kind in (PointerKind.WORD, PointerKind.REGISTER, PointerKind.IMMEDIATE):
        program = Instruction(
            immediate=source,
            update=Update(kind=kind, register=1, source_kind=source_kind, source_index=2),
            taken=DONE,
        )
        result = walk(program, memory={1: atom(w2=source)}, registers=(0, register, source))
        assert result.registers[1] == expected, source_kind


@pytest.mark.parametrize(
    "arguments",
    [
        {"address": -1},
        {"entry": 64},
        {"budget": 1 << 24},
        {"registers": (0,) * 7},
        {"registers": (1 << 32,)},
    ],
)
def test_a_launch_that_no_command_can_carry_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        walk(Instruction(taken=DONE), memory={}, **arguments)
